"""Verdicts on settings that were all run."""

import pytest

from ackclock.errors import InputError
from ackclock.experiments.search.criteria import parse_constraint, parse_objective
from ackclock.experiments.search.pareto import judge

NEED = parse_constraint("jain >= 0.5")
GOALS = [parse_objective("min:queue_delay_mean"), parse_objective("max:utilisation")]


def rows(jain, delay=0.0, busy=0.0):
    return [{"jain": jain + k / 100, "queue_delay_mean_s": delay, "utilisation": busy} for k in (-1, 0, 1, 0)]


def test_points_hold_fail_or_are_undecided():
    found = judge([NEED], [], [rows(0.2), rows(0.9), rows(0.501)], exact=False)
    assert [each.verdict for each in found.judgements] == ["fails", "holds", "undecided"]
    assert (found.verdict, found.best, found.holding) == ("holds", (1,), (1,))


def test_the_best_is_among_those_that_hold():
    runs = [rows(0.2, 1.0, 0.9), rows(0.9, 2.0, 0.8), rows(0.9, 3.0, 0.7)]
    assert judge([NEED], GOALS[:1], runs, exact=False).best == (1,)
    assert judge([NEED], GOALS, [*runs, rows(0.9, 4.0, 0.95)], exact=False).best == (1, 3)


def test_one_run_decides_only_if_it_is_the_only_one():
    single = [rows(0.9)[:1]]
    assert judge([NEED], [], single, exact=True).verdict == "holds"
    assert judge([NEED], [], single, exact=False).verdict == "undecided"
    assert judge([NEED], [], [rows(0.1)], exact=False).as_dict() == {
        "verdict": "none",
        "verdicts": ["fails"],
        "best": [],
    }


def test_constraints_are_given_by_option():
    with pytest.raises(InputError, match="^--require: found"):
        parse_constraint("jain")
