"""Choice of the points of a large sweep that are checked first."""

from __future__ import annotations

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from ackclock.scenario.covering_array import covering


def places(number: int, lengths: list[int]) -> list[int]:
    found = []
    for length in reversed(lengths):
        number, place = divmod(number, length)
        found.append(place)
    return found[::-1]


def test_few_points_are_all_checked():
    assert covering([3, 4], 12) == [*range(12)]
    assert covering([], 10) == [0]


@given(st.lists(st.integers(1, 12), min_size=2, max_size=5))
def test_every_value_corner_and_pair_is_covered(lengths):
    found = covering(lengths, 3000)
    assert found == sorted(set(found))
    assert all(0 <= number < math.prod(lengths) for number in found)
    points = {tuple(places(number, lengths)) for number in found}
    assert set(itertools.product(*({0, length - 1} for length in lengths))) <= points
    for one, other in itertools.combinations(range(len(lengths)), 2):
        pairs = {(point[one], point[other]) for point in points}
        assert len(pairs) == lengths[one] * lengths[other]


def test_the_number_of_points_besides_values_and_corners_is_bounded():
    lengths = [100, 100, 100]
    found = covering(lengths, 1000)
    assert len(found) <= 1000
    assert all({places(number, lengths)[axis] for number in found} == set(range(100)) for axis in range(3))
    assert len(covering([50_000, 20], 1000)) >= 50_000
