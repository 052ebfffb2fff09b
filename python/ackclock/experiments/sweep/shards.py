"""Independent parts of a sweep: each machine runs one, and `merge_shards` joins them.

Which points are in a shard follows from the number of points alone, so machines need not agree on anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ackclock.errors import InputError
from ackclock.input import arguments

#: Most shards of a sweep.
MAX_SHARDS = 100_000

#: The golden ratio's part of 2³², odd: its multiples are 2³² different numbers, and evenly spread (D. E. Knuth, The Art
#: of Computer Programming, volume 3, section 6.4).
MULTIPLIER = 2_654_435_769

_WRITTEN = re.compile(r"([1-9]\d{0,5})/([1-9]\d{0,5})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shard:
    """One part, by its number from 1, of so many."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def check(self, points: int) -> None:
        """Raise `InputError` if a sweep of so many points has no such parts."""
        if self.count > points:
            has = f"{points:,} points" if points > 1 else "one point"
            raise InputError(f"shard: found {self} of a sweep of {has}; expected no more shards than points")


def parsed(text: str) -> Shard:
    """`3/20` → the third of twenty parts. Raises `InputError`."""
    match = _WRITTEN.fullmatch(text)
    shard = Shard(int(match[1]), int(match[2])) if match else None
    if shard is None or shard.number > shard.count or shard.count > MAX_SHARDS:
        arguments.wrong_value("shard", text, 'K/N with K from 1 to N, such as "3/20"')
    return shard


def of_points(points: int, shards: int) -> npt.NDArray[np.int64]:
    """The shard, from 0, of each of so many points.

    Numbers of points in the shards differ by at most one. They are spread: were each N-th point in a shard, a key with
    N values would have one of them in each shard, and one machine all of the slow ones.
    """
    spread = np.arange(points, dtype=np.uint64) * np.uint64(MULTIPLIER) % np.uint64(1 << 32)
    found = np.empty(points, np.int64)
    found[np.argsort(spread, kind="stable")] = np.arange(points) * shards // points
    return found
