"""Choice of the next setting."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackclock.experiments.search.bisection import (
    Frontier,
    Minimum,
    coarse,
    first_feasible,
    max_evaluations,
    max_refined_evaluations,
)


@dataclass(frozen=True)
class Evaluation:
    unmet: frozenset

    @property
    def holds(self):
        return not self.unmet


class Row:
    """Constraint "a" is met from `rises` on, need "b" below `falls`."""

    def __init__(self, rises: int, falls: int) -> None:
        self.rises, self.falls, self.asked = rises, falls, []

    def evaluate(self, number: int) -> Evaluation:
        self.asked.append(number)
        return self.evaluated(number)

    def evaluated(self, number: int) -> Evaluation:
        return Evaluation(frozenset("a" * (number < self.rises) + "b" * (number >= self.falls)))


@given(st.integers(1, 200), st.integers(0, 210), st.integers(0, 210), st.none() | st.integers(-5, 210))
def test_the_first_feasible_setting_is_located_at_any_position(count, rises, falls, guess):
    row = Row(rises, falls)
    expected = rises if rises < min(falls, count) else None
    assert first_feasible(count, row.evaluate, guess) == expected


def test_a_good_guess_saves_evaluations():
    plain, guessed = Row(77, 200), Row(77, 200)
    first_feasible(200, plain.evaluate)
    first_feasible(200, guessed.evaluate, 78)
    assert len(set(guessed.asked)) <= 6 < len(set(plain.asked)) <= max_evaluations(200) + 1


@given(st.integers(1, 300))
def test_some_of_a_row_have_both_ends(count):
    found = coarse(count)
    assert found[0] == 0
    assert found[-1] == count - 1
    assert len(found) == min(count, 9)


@pytest.mark.parametrize("best", [0, 1, 17, 50, 98, 99])
def test_the_minimum_of_a_valley_is_located(best):
    search = Minimum(100, lambda number: abs(number - best))
    assert search.find() == best
    assert len(search.evaluated) <= max_refined_evaluations(100) + 4


def cover(costs, seen, low, high):
    """Return True if a visited setting is as good, to within 1 %, as the best that may lie between two."""
    best = [min(pair) for pair in zip(costs(low), costs(high), strict=True)]
    return any(all(a <= b + 0.01 * abs(b) for a, b in zip(costs(number), best, strict=True)) for number in seen)


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=1, max_size=120),
    st.integers(0, 120),
    st.integers(0, 130),
)
def test_what_a_frontier_leaves_out_adds_nothing(steps, rises, falls):
    """One cost rises along the row and the other falls; what is between the ends of the needs holds."""
    row, count = Row(rises, falls), len(steps)
    up = [sum(step for step, _ in steps[: place + 1]) for place in range(count)]
    down = [-sum(step for _, step in steps[: place + 1]) for place in range(count)]

    def costs(number):
        return up[number], down[number]

    def holding():
        return {number for number in row.asked if row.evaluated(number).holds}

    Frontier(1, count, row.evaluate, lambda low, high: cover(costs, holding(), low, high)).find()
    held = holding()
    for number in range(count):
        assert not row.evaluated(number).holds or cover(costs, held, number, number)


def test_a_frontier_takes_few_settings_where_one_objective_hardly_changes():
    row = Row(0, 1000)

    def costs(number):
        return number, -min(number, 40)

    Frontier(2, 400, row.evaluate, lambda low, high: cover(costs, set(row.asked), low, high)).find()
    assert len(set(row.asked)) < 150


def test_between_two_settings_with_the_same_violations_none_is_evaluated():
    row = Row(300, 400)
    Frontier(1, 200, row.evaluate, lambda *_: False).find()
    assert len(set(row.asked)) == 9
