"""Parts of a sweep's points: a two-level fractional factorial design, and shards.

A design of resolution R confuses no effect of p keys with one of fewer than R − p: III leaves the effects of single
keys apart, IV also from those of pairs, V also those of pairs from each other (Box, Hunter, Hunter: Statistics for
Experimenters, 2nd edition 2005, chapter 6; NIST/SEMATECH e-Handbook, section 5.3.3.4).

The first keys, as few as will do, have every combination of their values; the level of each further key is the product
of some of theirs, its word. Words are searched for here, shorter designs first, so the number of points is the smallest
that the resolution allows; among words of one length the first is taken, so the design need not be the published one.

Shards are independent: each machine runs one, and `result.merge` joins them. Which points are in a shard follows from
the number of points alone, so machines need not agree on anything.

Used by the other modules of a sweep (`--design`, `--shard`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ackclock.errors import InputError
from ackclock.input import arguments
from ackclock.input.fields import shown
from ackclock.scenario.points import Axis

#: All points.
FULL = "full"

#: Most shards of a sweep.
MAX_SHARDS = 100_000

#: The golden ratio's part of 2³², odd: its multiples are 2³² different numbers, and evenly spread (D. E. Knuth, The Art
#: of Computer Programming, volume 3, section 6.4).
MULTIPLIER = 2_654_435_769

_SHARD = re.compile(r"([1-9]\d{0,5})/([1-9]\d{0,5})", re.ASCII)

_FRACTIONAL = re.compile(r"fractional:([3-5])", re.ASCII)

#: Factors of a word, or of the products of several, as the bits of a number.
Word = int


def resolution(text: str) -> int | None:
    """`fractional:4` → 4, `full` → None. Raises `InputError`."""
    match = _FRACTIONAL.fullmatch(text)
    if match is None and text != FULL:
        raise InputError(
            f'--design: found {shown(text)}; expected "full", or "fractional:3", ":4" or ":5" (resolution)'
        )
    return int(match[1]) if match else None


def points(axes: Sequence[Axis], wanted: int) -> npt.NDArray[np.int64]:
    """The points of a design of this resolution, rising. A key of one value is no factor.

    Raises `InputError` for a key of three values or more, and for fewer keys than the resolution says.
    """
    factors = [axis for axis in axes if len(axis.values) > 1]
    for axis in factors:
        if len(axis.values) > 2:
            found = f"{axis.key} with {len(axis.values)} values"
            raise InputError(f"--design: found {found}; expected two, such as the lowest and the highest")
    if len(factors) < wanted:
        few = f"{len(factors)} {'key' if len(factors) == 1 else 'keys'} of two values"
        raise InputError(f"--design: found {few}; expected {wanted} or more for resolution {wanted}")
    signs = matrix(len(factors), wanted)
    strides = np.array([1 << (len(factors) - 1 - place) for place in range(len(factors))])
    return np.sort(((signs > 0) * strides).sum(axis=1))


def matrix(factors: int, wanted: int) -> npt.NDArray[np.int64]:
    """The design: a row of −1 and 1 for each point, a column for each factor. All 1 is among its points."""
    basic, words = generators(factors, wanted)
    numbers = np.arange(1 << basic)
    columns = [1 - 2 * (~numbers >> place & 1) for place in range(basic)]
    for word in words:
        columns.append(np.prod([columns[place] for place in range(basic) if word >> place & 1], axis=0))
    return np.stack(columns, axis=1)


def generators(factors: int, wanted: int) -> tuple[int, list[Word]]:
    """Return the number of independent factors, and the generator of each other one, with the fewest points."""
    for basic in range(1, factors + 1):
        found = _searched(basic, factors, wanted)
        if found is not None:
            return basic, found
    raise AssertionError("a full design has any resolution")


def _searched(basic: int, factors: int, wanted: int) -> list[Word] | None:
    """Words of so many basic factors for the others, depth first; None if there are none."""
    if factors - basic > (1 << basic) - 1 - basic:
        return None
    candidates = list(_generators(basic, wanted))
    left = [STEPS]

    def search(chosen: list[Word], group: list[Word], first: int) -> list[Word] | None:
        if len(chosen) == factors - basic:
            return chosen
        own = 1 << (basic + len(chosen))
        for place in range(first, len(candidates)):
            left[0] -= 1
            if left[0] < 0:
                return None
            added = [word ^ candidates[place] ^ own for word in group]
            if min(map(int.bit_count, added)) >= wanted:
                found = search([*chosen, candidates[place]], group + added, place + 1)
                if found is not None:
                    return found
        return None

    return search([], [0], 0)


#: A search is given up after so many steps, and one more factor has every combination.
STEPS = 20_000


def _generators(basic: int, wanted: int) -> Iterator[Word]:
    """Products of basic factors that are long enough with their own factor, the shortest ones first."""
    for length in range(wanted - 1, basic + 1):
        for chosen in combinations(range(basic), length):
            yield sum(1 << place for place in chosen)


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


def parse_shard(text: str) -> Shard:
    """`3/20` → the third of twenty parts. Raises `InputError`."""
    match = _SHARD.fullmatch(text)
    shard = Shard(int(match[1]), int(match[2])) if match else None
    if shard is None or shard.number > shard.count or shard.count > MAX_SHARDS:
        arguments.wrong_value("shard", text, 'K/N with K from 1 to N, such as "3/20"')
    return shard


def shard_of_points(points: int, shards: int) -> npt.NDArray[np.int64]:
    """Return the shard, from 0, of each of so many points.

    Numbers of points in the shards differ by at most one. They are spread: were each N-th point in a shard, a key with
    N values would have one of them in each shard, and one machine all of the slow ones.
    """
    spread = np.arange(points, dtype=np.uint64) * np.uint64(MULTIPLIER) % np.uint64(1 << 32)
    found = np.empty(points, np.int64)
    found[np.argsort(spread, kind="stable")] = np.arange(points) * shards // points
    return found
