"""The rule of B5.1: the total window of ten CUBIC flows."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import inf

import numpy as np

from ackclock.figures import curves
from ackclock.gallery import Measured, Row
from ackclock.gallery.entry import Published
from ackclock.gallery.rows import Values
from ackclock.metrics import RunView, epoch
from ackclock.metrics.view import Array
from ackclock.reproductions.measures import REACTION_RTTS, window_fall

ENGINES = ("packet", "ns2", "linux")

#: A line has a third of its growth in each third. From .7 of the last maximum up to it, a cubic has 1 − (2/3)³ = .70 in
#: the first; one that goes on beyond for as long has 26/54 = .48.
CUBIC, BENT = (0.45, inf), (0.37, inf)

#: “Regularly”: most gaps are within a third of their mean; within two thirds they still have a length.
REGULARLY, SOMEWHAT = (0.0, 0.33), (0.0, 0.67)

#: At least half of the flows in step: half of what all give up, .2 with the thesis's CUBIC and .3 with today's. One
#: flow of ten alone gives up .02 or .03 of the total; from three on they are more than one by chance.
IN_STEP, TOGETHER = (0.10, inf), (0.06, inf)


def first_third(view: RunView) -> float | None:
    """Mean over the stretches between losses, by their growth: the share that comes in the first third of the time."""
    grown = [(_at(*part, 1 / 3) - part[1][0], part[1][-1] - part[1][0]) for part in _stretches(view)]
    early, all_of_it = np.array(grown).T if grown else (np.zeros(1), np.zeros(1))
    return float(early.sum() / all_of_it.sum()) if all_of_it.sum() > 0 else None


def irregularity(view: RunView) -> float | None:
    """The deviation of the gaps between losses, in means."""
    gaps_s = np.diff(view.cached(epoch.epochs)["start_s"].to_numpy())
    return float(gaps_s.std(ddof=1) / gaps_s.mean()) if gaps_s.size > 1 else None


def _stretches(view: RunView) -> Iterator[tuple[Array, Array]]:
    """Times and total windows from the lowest after a loss, where recovery ends, to the next loss."""
    found = view.cached(epoch.epochs)
    times_s, total = view.grid.times_s, curves.windows(view).total()
    ends_s = found["end_s"].to_numpy()
    settled_s = ends_s + REACTION_RTTS * epoch.rtt_at(view, ends_s)
    for end_s, until_s, (_, next_s) in zip(ends_s, settled_s, pairwise(found["start_s"].to_list()), strict=False):
        first, low, last = np.searchsorted(times_s, [end_s, min(until_s, next_s), next_s])
        if low > first and last > (begun := first + int(np.argmin(total[first:low]))) + 3:
            yield times_s[begun:last], total[begun:last]


def _at(times_s: Array, total: Array, share: float) -> float:
    return float(np.interp(times_s[0] + share * (times_s[-1] - times_s[0]), times_s, total))


MEASURES = {"shape": first_third, "regular": irregularity, "synchronised": window_fall}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims."""
    return [row for found in measured.values() for row in _rows(found)]


def _rows(found: Mapping[str, Values]) -> list[Row]:
    return [
        Row("shape", found["shape"], CUBIC, BENT),
        Row("regular", found["regular"], REGULARLY, SOMEWHAT),
        Row("synchronised", found["synchronised"], IN_STEP, TOGETHER),
    ]
