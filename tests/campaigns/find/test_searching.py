"""Which setting is looked at next."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackclock.campaigns.find.searching import Minimum, coarse, first_holding, looks_of


@dataclass(frozen=True)
class Seen:
    lacking: frozenset

    @property
    def holds(self):
        return not self.lacking


class Row:
    """Need "a" is met from `rises` on, need "b" below `falls`."""

    def __init__(self, rises: int, falls: int) -> None:
        self.rises, self.falls, self.asked = rises, falls, []

    def look(self, number: int) -> Seen:
        self.asked.append(number)
        return Seen(frozenset("a" * (number < self.rises) + "b" * (number >= self.falls)))


@given(st.integers(1, 200), st.integers(0, 210), st.integers(0, 210), st.none() | st.integers(-5, 210))
def test_the_first_is_found_wherever_it_is(count, rises, falls, guess):
    row = Row(rises, falls)
    expected = rises if rises < min(falls, count) else None
    assert first_holding(count, row.look, guess) == expected


def test_a_good_guess_saves_looks():
    plain, guessed = Row(77, 200), Row(77, 200)
    first_holding(200, plain.look)
    first_holding(200, guessed.look, 78)
    assert len(set(guessed.asked)) <= 6 < len(set(plain.asked)) <= looks_of(200) + 1


@given(st.integers(1, 300))
def test_some_of_a_row_have_both_ends(count):
    found = coarse(count)
    assert found[0] == 0
    assert found[-1] == count - 1
    assert len(found) == min(count, 9)


@pytest.mark.parametrize("best", [0, 1, 17, 50, 98, 99])
def test_the_cheapest_of_a_valley_is_found(best):
    search = Minimum(100, lambda number: abs(number - best))
    assert search.find() == best
    assert len(search.seen) < 25
