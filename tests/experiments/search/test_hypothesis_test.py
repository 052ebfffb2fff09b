"""The statistics of "holds": how often they are wrong on values whose mean is known."""

import math

import numpy as np
import pytest
from scipy import stats

from ackclock.errors import InputError
from ackclock.experiments.search.bisection import first_feasible, max_evaluations
from ackclock.experiments.search.criteria import (
    FAILS,
    HOLDS,
    RISK,
    SAMPLE_SIZES,
    UNDECIDED,
    Judgement,
    chance,
    parse_constraint,
    verdicts,
)

NEED = parse_constraint("jain >= 0.5")
OTHER = parse_constraint("utilisation <= 0.5")


def test_the_chance_is_that_of_students_test():
    margins = [0.3, -0.1, 0.25, 0.4, 0.05]
    assert chance(margins) == pytest.approx(stats.ttest_1samp(margins, 0, alternative="greater").pvalue)
    below = [-margin for margin in margins]
    assert chance(below) == pytest.approx(1 - chance(margins))


def test_runs_that_do_not_differ_decide_by_themselves():
    assert chance([0.0]) == chance([0.2, 0.2]) == 0.0
    assert chance([-0.2, -0.2, -0.2]) == 1.0


def test_a_single_run_decides_only_where_nothing_is_drawn():
    values = {"jain": [0.9]}
    assert verdicts([NEED], values, 0.05) == Judgement(UNDECIDED, frozenset([NEED]), 1)
    assert verdicts([NEED], values, 0.05, exact=True).verdict == HOLDS
    assert verdicts([parse_constraint("jain >= 0.95")], values, 0.05, exact=True).verdict == FAILS


def test_all_constraints_must_be_met_and_a_single_failure_decides():
    good, bad, noisy = [0.9, 0.91, 0.92], [0.1, 0.11, 0.12], [0.2, 0.5, 0.9]
    assert verdicts([NEED, OTHER], {"jain": good, "utilisation": bad}, 0.05).verdict == HOLDS
    assert verdicts([NEED, OTHER], {"jain": bad, "utilisation": bad}, 0.05) == Judgement(FAILS, frozenset([NEED]), 3)
    assert verdicts([NEED, OTHER], {"jain": good, "utilisation": noisy}, 0.05).verdict == UNDECIDED
    assert verdicts([], {}, 0.05).verdict == HOLDS


def test_a_missing_metric_is_reported():
    with pytest.raises(InputError, match="jain: found no two flows that are alike"):
        verdicts([NEED], {"jain": [0.4, None]}, 0.05)


class Noisy:
    """Settings 0, 1, … whose mean rises through the bound; the noise of a seed is the same for all (common)."""

    def __init__(self, count: int, edge: float, spread: float, seed: int) -> None:
        self.means = 0.5 + (np.arange(count) - edge) * 0.01
        draws = np.random.default_rng(seed)
        self.noise = draws.normal(0.0, spread, SAMPLE_SIZES[-1]) + draws.normal(
            0.0, spread / 2, (count, SAMPLE_SIZES[-1])
        )
        self.risk = RISK / max_evaluations(count) / len(SAMPLE_SIZES)
        self.known: dict[int, Judgement] = {}

    def evaluate(self, number: int) -> Judgement:
        if number not in self.known:
            self.known[number] = self._judged(number)
        return self.known[number]

    def _judged(self, number: int) -> Judgement:
        for count in SAMPLE_SIZES:
            values = self.means[number] + self.noise[number, :count]
            found = verdicts([NEED], {"jain": list(values)}, self.risk)
            if found.verdict != UNDECIDED:
                break
        return found


@pytest.mark.parametrize("spread", [0.002, 0.02, 0.1])
def test_results_are_right_in_95_of_100_searches(spread):
    """Right: what is said to hold has a mean on the right side; what is said to fail has not."""
    wrong = 0
    for seed in range(400):
        edge = np.random.default_rng(1000 + seed).uniform(0.5, 38.5)
        noisy = Noisy(40, edge, spread, seed)
        first_feasible(40, noisy.evaluate)
        wrong += any(
            (found.verdict == HOLDS and number < edge) or (found.verdict == FAILS and number > edge)
            for number, found in noisy.known.items()
        )
    assert wrong <= 0.05 * 400


def test_with_little_noise_the_result_is_the_edge():
    for seed in range(100):
        edge = np.random.default_rng(seed).uniform(0.5, 38.5)
        assert first_feasible(40, Noisy(40, edge, 1e-6, seed).evaluate) == math.ceil(edge)
