"""Shares of links between sources: max-min fairness by progressive filling.

D. Bertsekas, R. Gallager: Data Networks, second edition, 1992, section 6.5.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

#: The time is cut into so many parts at most.
MAX_PARTS = 12


@dataclass(frozen=True, slots=True)
class Claim:
    """`count` sources alike: the links of their way, and what each would send if nobody else did, in bit/s."""

    links: tuple[int, ...]
    count: float
    max_bps: float


@dataclass(frozen=True, slots=True)
class Span:
    """When a source may send, in seconds."""

    begin_s: float
    end_s: float

    def within(self, other: Span) -> float:
        """The share of another span in which this source may send."""
        return max(0.0, min(self.end_s, other.end_s) - max(self.begin_s, other.begin_s)) / (other.end_s - other.begin_s)


@dataclass(frozen=True, slots=True)
class Share:
    """A source's mean rate over the whole time, and the utilisation of the busiest link of its path meanwhile."""

    mean_bps: float = 0.0
    crowded: float = 0.0


def over_time(
    claims: Sequence[Claim], spans: Sequence[Span], rates_bps: Sequence[float], duration_s: float
) -> list[Share]:
    """Return each source's share if it may send in its span only. `Claim.max_bps` are means over all time."""
    means_bps, crowded = [0.0] * len(claims), [0.0] * len(claims)
    lengths = [_length(span, duration_s) for span in spans]
    for part in _parts(spans, duration_s):
        length = (part.end_s - part.begin_s) / duration_s
        there = {number: share for number, span in enumerate(spans) if (share := span.within(part))}
        ours = {number: share * length / lengths[number] for number, share in there.items()}
        wanted = [
            Claim(claims[number].links, claims[number].count, claims[number].max_bps * our / length)
            for number, our in ours.items()
        ]
        found = shares_bps(wanted, rates_bps)
        busy = _busy(wanted, found, rates_bps)
        for (number, our), rate_bps in zip(ours.items(), found, strict=True):
            means_bps[number] += rate_bps * length
            crowded[number] += our * max((busy[link] for link in claims[number].links), default=0.0)
    return [Share(*share) for share in zip(means_bps, crowded, strict=True)]


def _length(span: Span, duration_s: float) -> float:
    """The share of the time in which a source may send."""
    return span.within(Span(0.0, duration_s))


def _busy(claims: Sequence[Claim], found_bps: Sequence[float], rates_bps: Sequence[float]) -> list[float]:
    """Return the utilisation of each link."""
    used_bps = [0.0] * len(rates_bps)
    for claim, rate_bps in zip(claims, found_bps, strict=True):
        for link in claim.links:
            used_bps[link] += claim.count * rate_bps
    return [used / rate for used, rate in zip(used_bps, rates_bps, strict=True)]


def _parts(spans: Sequence[Span], duration_s: float) -> list[Span]:
    """The time, cut where sources begin and end; where many do, at some of these instants."""
    inside = {instant for span in spans for instant in (span.begin_s, span.end_s) if 0 < instant < duration_s}
    chosen = sorted(inside)[:: 1 + len(inside) // MAX_PARTS]
    return [Span(*pair) for pair in pairwise([0.0, *chosen, duration_s])]


def shares_bps(claims: Sequence[Claim], rates_bps: Sequence[float]) -> list[float]:
    """Return the max-min fair rate of each claim's sources, in bit/s. A claim without links gets its demand."""
    free = dict.fromkeys((link for claim in claims for link in claim.links), 0.0)
    free = {link: rates_bps[link] for link in free}
    weights = dict.fromkeys(free, 0.0)
    for claim in claims:
        for link in claim.links:
            weights[link] += claim.count
    found = [0.0] * len(claims)
    waiting = sorted(range(len(claims)), key=lambda number: claims[number].max_bps)
    while waiting:
        level = {link: free[link] / weights[link] for link in free if weights[link] > _NONE}
        tightest = min(level, key=level.__getitem__, default=None)
        least = math.inf if tightest is None else max(0.0, level[tightest])
        modest = [number for number in waiting if claims[number].max_bps <= least]
        full = modest or [number for number in waiting if tightest in claims[number].links] or waiting
        for number in full:
            claim = claims[number]
            found[number] = min(claim.max_bps, least)
            for link in claim.links:
                free[link] -= claim.count * found[number]
                weights[link] -= claim.count
        done = set(full)
        waiting = [number for number in waiting if number not in done]
    return found


#: Weights below are rounding.
_NONE = 1e-9
