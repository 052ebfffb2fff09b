"""Offset and drift of two clocks, from packets that pass between them in both directions.

Packets that go out take at least some time, so the difference of the clocks lies below all of theirs, and above those
of the packets that come back. How it grows is the slope of the line below one cloud that is nearest to it in sum, a
linear program (S. Moon, P. Skelly, D. Towsley, *Estimation and Removal of Clock Skew from Network Delay Measurements*,
INFOCOM 1999): of both clouds that in which shortest delays differ less, as the other may have stood in a queue.
Between lines of that slope along both clouds the middle is the offset if the shortest delays are the same in both
directions; whatever they are, it is off by no more than half the room.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]

#: Microseconds in a second: the linear program's unit, far from its tolerance.
US = 1e6

#: Fewest stretches of time whose shortest delays tell a drift.
MIN_STRETCHES = 10


@dataclass(frozen=True, slots=True)
class Relation:
    """Offset of the second clock from the first at `reference_s` of the first, its drift, and their errors.

    `error_s` is a bound, whatever the delays are. `drift_error` comes from how much the shortest delays differ from one
    stretch of time to the next. Directions with fewer than `MIN_STRETCHES` of them do not tell the drift: it is 0 then,
    with an infinite error.
    """

    reference_s: float
    offset_s: float
    error_s: float
    drift: float
    drift_error: float

    def at(self, time_s: Floats) -> Floats:
        """Return the offset of the second clock at times of the first."""
        return self.offset_s + self.drift * (time_s - self.reference_s)


def relate(out: tuple[Floats, Floats], back: tuple[Floats, Floats], tick_s: float) -> Relation:
    """Estimate the relation of two clocks.

    Both directions have times of the first clock and the second clock less the first, of the shortest delays of
    stretches of time; `tick_s` is what the clocks resolve. Raises `ValueError` if a direction has nothing.
    """
    (out_s, above_s), (back_s, below_s) = out, back
    if not len(out_s) or not len(back_s):
        raise ValueError("packets pass in one direction only; expected both")
    every_s = np.concatenate([out_s, back_s])
    middle_s, span_s = float(every_s.min() + every_s.max()) / 2, max(float(np.ptp(every_s)), 1e-9)
    base_s = float(above_s.min())
    clouds = [
        ((out_s - middle_s) / span_s, US * (above_s - base_s)),
        ((back_s - middle_s) / span_s, US * (base_s - below_s)),
    ]
    noise, slope = math.inf, 0.0
    for sign, (x, y) in zip((1.0, -1.0), clouds, strict=True):
        if len(x) >= MIN_STRETCHES:
            noise, slope = min((noise, slope), _below(x, y, sign), key=lambda found: found[0])
    high = float((clouds[0][1] - slope * clouds[0][0]).min())
    low = -float((clouds[1][1] + slope * clouds[1][0]).min())
    return Relation(
        reference_s=middle_s,
        offset_s=base_s + (high + low) / 2 / US,
        error_s=abs(high - low) / 2 / US + tick_s,
        drift=slope / US / span_s,
        drift_error=2 * (noise / US + tick_s) / span_s,
    )


def _below(x: Floats, y: Floats, sign: float) -> tuple[float, float]:
    """Return how far points typically lie above the line below the cloud, and the slope of that line times a sign."""
    from scipy.optimize import linprog

    centre = float(x.mean())
    result = linprog([-1.0, 0.0], A_ub=np.column_stack([np.ones_like(x), x - centre]), b_ub=y, bounds=(None, None))
    height, slope = result.x if result.x is not None else (float(y.min()), 0.0)  # None: all at one instant
    return float(np.median(y - height - slope * (x - centre))), sign * float(slope)
