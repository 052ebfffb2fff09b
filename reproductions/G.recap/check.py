"""The rule of G.recap: six controls at two latencies, twelve sources on 10 Gb/s."""

from collections.abc import Mapping
from math import inf

import numpy as np
import numpy.typing as npt

from ackclock.gallery import Measured, Row, Values, near, ratio
from ackclock.gallery.entry import Published
from ackclock.gallery.rows import Band
from ackclock.metrics import RunView
from ackclock.metrics.fairness import jain_index

CONTROLS = ("Reno", "BIC", "CUBIC", "HS-TCP", "H-TCP", "Scalable")
LATENCIES = ("11.5 ms", "100 ms")

#: “About the same” goodput: within 5 %; up to 20 % it is of its kind.
SAME, ALIKE = 0.05, 0.2

#: Indexes are the same within 0.03 and of their kind within 0.1; deviations within 0.05 and 0.15.
FAIRNESS, DEVIATION = (0.03, 0.1), (0.05, 0.15)

#: Reno at 100 ms has less than half of the others' goodput: below 0.6 we would say so too; below 1 it is the last.
FAR_BEHIND, LAST = (-inf, 0.6), (-inf, 1.0)

#: Scalable at 11.5 ms is 7 % behind the next: 3 % would still be seen.
BEHIND = (-inf, 0.97)


def rates_bps(view: RunView) -> npt.NDArray[np.float64]:
    """Goodput of each flow in each sampling interval (1 s) of the measured part, in which all transmit."""
    grid = view.grid
    return grid.rates_bps(grid.interval_s)[grid.times_s > view.warmup_s]


def goodput(view: RunView) -> float:
    """Mean over flows and time, as a share of the access rate."""
    return float(rates_bps(view).mean()) / access_bps(view)


def fairness(view: RunView) -> float | None:
    """Mean over time of Jain's index of the flows' goodputs."""
    found = [index for index in map(jain_index, rates_bps(view)) if index is not None]
    return float(np.mean(found)) if found else None


def deviation(view: RunView) -> float:
    """Mean over the flows of the standard deviation over time of their goodput, as a share of its mean."""
    rates = rates_bps(view)
    return float(np.mean(rates.std(axis=0) / rates.mean(axis=0)))


def across_flows(view: RunView) -> float:
    """Standard deviation of the flows' mean goodputs, as a share of their mean."""
    means = rates_bps(view).mean(axis=0)
    return float(means.std() / means.mean())


def full_run(view: RunView) -> float:
    """Mean over the flows of their goodput from their start to the end of the run, as a share of the access rate."""
    bits = 8 * view.grid.delivered_bytes[-1]
    return float(np.mean(bits / (view.duration_s - view.starts_s))) / access_bps(view)


def access_bps(view: RunView) -> float:
    """Rate of a source's access link."""
    return min(float(link.rate_bps) for link in view.plan.links)


ENGINES = ("packet",)
MEASURES = {
    "goodput": goodput,
    "fairness": fairness,
    "deviation": deviation,
    "across flows": across_flows,
    "whole run": full_run,
}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """The three columns of the table, who is last, and two other readings as asides."""
    cases = [f"{control} {latency}" for control in CONTROLS for latency in LATENCIES]
    rows = []
    for case in cases:
        found = measured[case]
        paper = {name: published[f"{name} {case}"].value or 0.0 for name in ("goodput", "fairness", "deviation")}
        same, alike = near(paper["goodput"], SAME), near(paper["goodput"], ALIKE)
        rows += [
            Row(f"goodput {case}", found["goodput"], same, alike),
            Row(f"fairness {case}", found["fairness"], *_within(paper["fairness"], *FAIRNESS)),
            Row(f"deviation {case}", found["deviation"], *_within(paper["deviation"], *DEVIATION)),
            Row(f"whole run {case}", found["whole run"], same, alike, aside=True),
            Row(f"across flows {case}", found["across flows"], *_within(paper["deviation"], *DEVIATION), aside=True),
        ]
    rows.append(Row("reno-last", _relative_to_others(measured, "Reno", "100 ms"), FAR_BEHIND, LAST))
    rows.append(Row("scalable-last", _relative_to_others(measured, "Scalable", "11.5 ms"), BEHIND, LAST))
    return sorted(rows, key=lambda row: [*published].index(row.claim))


def _within(published: float, same: float, alike: float) -> tuple[Band, Band]:
    return (published - same, published + same), (published - alike, published + alike)


def _relative_to_others(measured: Measured, control: str, latency: str) -> Values:
    """Seed by seed, its goodput over the lowest of the others'."""
    others = [measured[f"{other} {latency}"]["goodput"] for other in CONTROLS if other != control]
    lowest = tuple(
        min((value for value in seed if value is not None), default=None) for seed in zip(*others, strict=True)
    )
    return ratio(measured[f"{control} {latency}"]["goodput"], lowest)
