"""How sources share links: max-min fairness by progressive filling.

D. Bertsekas, R. Gallager: Data Networks, second edition, 1992, section 6.5.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """`count` sources alike: the links of their way, and what each would send if nobody else did, in bit/s."""

    links: tuple[int, ...]
    count: float
    most_bps: float


def shares_bps(claims: Sequence[Claim], rates_bps: Sequence[float]) -> list[float]:
    """What each source of each claim gets, in bit/s. A claim without links gets what it would send."""
    free = dict.fromkeys((link for claim in claims for link in claim.links), 0.0)
    free = {link: rates_bps[link] for link in free}
    weights = dict.fromkeys(free, 0.0)
    for claim in claims:
        for link in claim.links:
            weights[link] += claim.count
    found = [0.0] * len(claims)
    waiting = sorted(range(len(claims)), key=lambda number: claims[number].most_bps)
    while waiting:
        level = {link: free[link] / weights[link] for link in free if weights[link] > _NONE}
        tightest = min(level, key=level.__getitem__, default=None)
        least = math.inf if tightest is None else max(0.0, level[tightest])
        modest = [number for number in waiting if claims[number].most_bps <= least]
        full = modest or [number for number in waiting if tightest in claims[number].links] or waiting
        for number in full:
            claim = claims[number]
            found[number] = min(claim.most_bps, least)
            for link in claim.links:
                free[link] -= claim.count * found[number]
                weights[link] -= claim.count
        done = set(full)
        waiting = [number for number in waiting if number not in done]
    return found


#: Weights below are rounding.
_NONE = 1e-9
