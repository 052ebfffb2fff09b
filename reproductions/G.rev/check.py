"""The rule of G.rev: what traffic on the way back costs files on the way there."""

from collections.abc import Mapping
from math import inf

import polars as pl

from ackclock.campaigns.reproduce import Measured, Row, Values, ratio
from ackclock.campaigns.reproduce.entry import Published
from ackclock.metrics import RunView

ENGINES = ("packet",)

#: A time over another: within 2 points of 100 %; within 10 it is of its kind.
SAME, ALIKE = 0.02, 0.1

#: “A step”: twice as much at least; more at all.
STEP, MORE = (2.0, inf), (1.0, inf)

#: Full segments of 1448 bytes in frames of 1538.
PAYLOAD = 1448 / 1538


def over_ideal(view: RunView) -> float | None:
    """Mean completion time of the files over what all of them take at the link's full rate; null until all ended."""
    files = view.flows.filter(pl.col("size_bytes").is_not_null())
    mean_s = files["completion_s"].mean()
    if files["completion_s"].null_count() or not isinstance(mean_s, float):
        return None
    link_bps = view.plan.links[view.plan.bottleneck].rate_bps
    return mean_s * link_bps * PAYLOAD / (8 * float(files["size_bytes"].sum()))


MEASURES = {"time": over_ideal}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """The time alone, the three beside it, and the step between 90 and 110 %."""
    times = {case: measured[case]["time"] for case in ("0 %", "90 %", "110 %", "150 %")}
    rows = [_row("alone", times["0 %"], published)]
    rows += [_row(at, ratio(times[at], times["0 %"]), published) for at in ("90 %", "110 %", "150 %")]
    added = [
        None if None in seed or seed[1] <= seed[0] else max(0.0, (seed[2] - seed[0]) / (seed[1] - seed[0]))
        for seed in zip(times["0 %"], times["90 %"], times["110 %"], strict=True)
    ]
    return [*rows, Row("step", tuple(added), STEP, MORE)]


def _row(claim: str, values: Values, published: Mapping[str, Published]) -> Row:
    value = published[claim].value or 0.0
    return Row(claim, values, (value - SAME, value + SAME), (value - ALIKE, value + ALIKE))
