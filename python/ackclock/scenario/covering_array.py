"""Covering arrays: the points of a large sweep that are checked first, with all combinations likely to be wrong.

Every value stands in one of them, every combination of the axes' first and last values (of the first dozen axes), and
every pair of values of two axes if there are not too many, for what does not fit together is mostly two keys. This is
a covering array of strength two (R. Mandl: Orthogonal Latin squares: an application of experiment design to compiler
testing, Communications of the ACM 28(10), 1985), not of least size.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

#: Number of axes of which all first and last values are combined.
CORNERED = 12


def covering(lengths: Sequence[int], most: int) -> list[int]:
    """Numbers of points, rising, for axes with so many values each; the last axis changes fastest.

    At most `most`, but every value is there, and all corners.
    """
    total = math.prod(lengths)
    if total <= most:
        return list(range(total))
    found = {_number(places, lengths) for places in itertools.chain(_single_axis(lengths), _corners(lengths))}
    pairs = sum(one * other for one, other in itertools.combinations(lengths, 2))
    stride = max(1, math.ceil(pairs / max(1, most - len(found))))
    found.update(_number(places, lengths) for places in itertools.islice(_pairs(lengths), 0, None, stride))
    return sorted(found)


def _single_axis(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Each value beside the first ones of the other axes."""
    for axis, length in enumerate(lengths):
        for place in range(length):
            yield [place if other == axis else 0 for other in range(len(lengths))]


def _corners(lengths: Sequence[int]) -> Iterator[list[int]]:
    """All combinations of first and last values."""
    cornered, rest = lengths[:CORNERED], lengths[CORNERED:]
    for corner in itertools.product(*((0, length - 1) for length in cornered)):
        yield [*corner, *(0 for _ in rest)]


def _pairs(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Each pair of values of two axes; the other axes take their values in turn."""
    turn = 0
    for one, other in itertools.combinations(range(len(lengths)), 2):
        for first, second in itertools.product(range(lengths[one]), range(lengths[other])):
            places = [(turn + axis) % length for axis, length in enumerate(lengths)]
            places[one], places[other] = first, second
            turn += 1
            yield places


def _number(places: Sequence[int], lengths: Sequence[int]) -> int:
    number = 0
    for place, length in zip(places, lengths, strict=True):
        number = number * length + place
    return number
