"""The rule of R4.6: throughput ratios lie between the model's with two probabilities of simultaneous losses."""

from collections.abc import Mapping
from statistics import fmean

import numpy as np

from ackclock.gallery import Measured, Row
from ackclock.gallery.entry import Published
from ackclock.gallery.rows import Values
from ackclock.metrics import RunView, epoch
from ackclock.reproductions import antiparallel

ENGINES = ("packet", "theory")

#: The case of the packet engine, and the probabilities between which its ratios shall lie.
SIMULATED, LEAST, MOST = "simulated", "p=0.33", "p=0.5"

SIZES = ("36KB", "75KB", "105KB", "150KB")

#: A loss brings another within three RTTs: in the first it is not seen yet, in the second its sender is silent and
#: its queue drains, in the third comes what those ACKs have clocked out.
SYNCHRONISED_RTTS = 3

#: Beyond both by less than a quarter is of its kind.
A_QUARTER = 1.25

#: “About 50 %”: within a tenth of all losses; within a quarter of its kind.
ABOUT_HALF, AROUND_HALF = (0.4, 0.6), (0.25, 0.75)

#: “Comes near 0”: one loss in ten at most; one in four is of its kind.
NEAR_0, FEW = (0.0, 0.1), (0.0, 0.25)


def both(view: RunView) -> float | None:
    """The share of the losses that hit both flows; drops less than `TOGETHER_RTTS` apart are one loss."""
    times_s, flows = (view.drops[name].to_numpy() for name in ("time_s", "flow"))
    opens = np.diff(times_s, prepend=-np.inf) >= SYNCHRONISED_RTTS * epoch.rtt_at(view, times_s)
    losses = np.split(flows, np.flatnonzero(opens)[1:])
    return float(np.mean([np.unique(hit).size == 2 for hit in losses])) if times_s.size else None


MEASURES = {**antiparallel.RATIOS, "both": both}


def runs(engine: str, case: str) -> bool:
    """A simulation has no probability to choose; the model has nothing else."""
    return (engine == "packet") == case.endswith(SIMULATED)


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Return the rows of the simulated cases; the model's probability is given."""
    if f"150KB {SIMULATED}" not in measured:
        return []
    return [
        Row("both-equal", measured[f"150KB {SIMULATED}"]["both"], ABOUT_HALF, AROUND_HALF),
        Row("both-small", measured[f"36KB {SIMULATED}"]["both"], NEAR_0, FEW),
    ]


def compare(measured: Mapping[str, Measured], published: Mapping[str, Published]) -> list[Row]:
    """The simulated ratio between the model's, by the mean windows as the thesis has it."""
    simulated, model = (measured[engine] for engine in ENGINES)
    return [_between(size, simulated, model) for size in SIZES]


def _between(size: str, simulated: Measured, model: Measured) -> Row:
    low, high = sorted(_mean(model[f"{size} {p}"]["windows"]) for p in (LEAST, MOST))
    found = simulated[f"{size} {SIMULATED}"]["ratio"]
    return Row("between", found, (low, high), (low / A_QUARTER, high * A_QUARTER), size)


def _mean(values: Values) -> float:
    return fmean(value for value in values if value is not None)
