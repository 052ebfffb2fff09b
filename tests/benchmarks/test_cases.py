"""The cases of the scoreboard: which number is of which control."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ackclock import _core

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "scoreboard"))

import cases


def test_each_cca_has_its_turn_and_later_additions_have_separate_cases():
    numbers = cases.numbers(0, len(cases.CONTROLS), since=1)
    assert {cases.control(number) for number in numbers} == set(_core.CONGESTION_CONTROLS)
    assert len({*numbers}) == len(numbers) == len(_core.CONGESTION_CONTROLS)
    assert [cases.control(number) for number in (0, 20, 7)] == ["abcc", "abcc", "cubic"]


def test_further_cases_are_others():
    first, second = (set(cases.numbers(begin, 100, since=15)) for begin in (0, 100))
    assert not first & second


def test_numbers_of_later_controls_are_no_ordinary_ones():
    with pytest.raises(SystemExit, match="expected less than 10000"):
        cases.numbers(9990, 20, since=0)
