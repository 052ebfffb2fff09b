"""The analysis of variance on published experiments, and on functions whose effects are known."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from ackclock.experiments.effects import analyse

#: Box, Hunter and Hunter, Statistics for Experimenters: a pilot plant's yield at two temperatures (fastest), two
#: concentrations and two catalysts, two runs each (2nd edition, tables 5.2 and 5.3).
PILOT = [(59, 61), (74, 70), (50, 58), (69, 67), (50, 54), (81, 85), (46, 44), (79, 81)]

#: The same book's reactor example, the half fraction of resolution V (2nd edition, table 6.4; factors A to E).
REACTOR = {
    "----+": 56, "+----": 53, "-+---": 63, "++--+": 65, "--+--": 53, "+-+-+": 55, "-++-+": 67, "+++--": 61,
    "---+-": 69, "+--++": 45, "-+-++": 78, "++-+-": 93, "--+++": 49, "+-++-": 60, "-+++-": 95, "+++++": 82,
}  # fmt: skip

#: NIST/SEMATECH e-Handbook of Statistical Methods, section 7.4.3.3: resistance at three levels.
NIST = [[6.9, 5.4, 5.8, 4.6, 4.0], [8.3, 6.8, 7.8, 9.2, 6.5], [8.0, 10.5, 8.1, 6.9, 9.3]]


def test_the_pilot_plant():
    """Temperature 23, concentration −5, catalyst 1.5; the error's variance 8, that of an effect 1.4 (table 5.3)."""
    levels = [tuple(reversed(point)) for point in product((0, 1), repeat=3) for _ in range(2)]
    found = analyse(levels, [value for pair in PILOT for value in pair])
    assert [step.effect for step in found.steps] == pytest.approx([23.0, -5.0, 1.5])
    assert (found.error, found.error_freedom, found.error_variance) == ("repeats", 8, pytest.approx(8.0))
    assert found.steps[0].half_width == pytest.approx(2.306 * 2**0.5, rel=1e-3)
    effects = {term.factors: (term.squares / 4) ** 0.5 for term in found.terms}  # N/4 · effect² with N = 16
    assert effects[0, 1] == pytest.approx(1.5)
    assert effects[0, 2] == pytest.approx(10.0)
    assert effects[1, 2] == pytest.approx(0.0, abs=1e-6)
    clear = {term.factors for term in found.terms if term.p < 0.05}
    assert clear == {(0,), (1,), (0, 2)}


def test_half_of_the_reactor():
    """B 20.5, D 12.25, E −6.25, BD 10.75, DE −9.5: all that matters, from half of the runs (table 6.4)."""
    levels = [[sign == "+" for sign in point] for point in REACTOR]
    found = analyse(levels, list(REACTOR.values()))
    assert [step.effect for step in found.steps] == pytest.approx([-2.0, 20.5, 0.0, 12.25, -6.25])
    assert not found.pairs  # 16 values have no room for 16 effects and an error
    assert found.error == "factors"


def test_one_factor_of_three_levels():
    """Sums of squares 27.897 and 17.452, F = 9.59 with 2 and 12 degrees of freedom, so p = .00325."""
    found = analyse([[level] for level in range(3) for _ in range(5)], [value for level in NIST for value in level])
    (term,) = found.terms
    assert (term.squares, term.freedom, term.p) == (
        pytest.approx(27.897, abs=1e-3),
        2,
        pytest.approx(0.00325, abs=1e-5),
    )
    assert (found.error_freedom, found.error_variance) == (12, pytest.approx(17.452 / 12, abs=1e-4))
    assert term.share == pytest.approx(27.897 / 45.349, abs=1e-4)
    (step,) = found.steps
    assert (step.low, step.high, step.effect) == (0, 2, pytest.approx(3.22))
    assert step.half_width == pytest.approx(3.77 * (17.452 / 12 / 5) ** 0.5, rel=2e-3)  # q(.95; 3, 12) = 3.77


def test_blocks_take_off_what_runs_have_in_common():
    """With blocks the error is what differs within them: 0 where each block only lifts all of its values."""
    levels = [(a, b) for a in (0, 1) for b in (0, 1, 2) for _ in range(3)]
    values = [3.0 * a + b + 10.0 * (place % 3) for place, (a, b) in enumerate(levels)]
    found = analyse(levels, values, blocks=[place % 3 for place in range(18)])
    assert found.error_variance == pytest.approx(0.0, abs=1e-20)
    assert analyse(levels, values).error_variance == pytest.approx(100.0)
    assert [term.share for term in found.terms] == pytest.approx([0.771, 0.229, 0.0], abs=1e-3)


@pytest.mark.parametrize("repeats", [1, 2])
def test_intervals_have_their_nominal_coverage(repeats):
    """Each true effect is in its interval in 95 % of 400 experiments, within 2.3 standard deviations of that."""
    random = np.random.default_rng(19)
    levels = [point for point in product((0, 1), (0, 1), (0, 1)) for _ in range(repeats)]
    true = np.array([2.0, 0.0, -1.0])
    held = np.zeros(3)
    for _ in range(400):
        values = np.array(levels) @ true + random.normal(size=len(levels))
        steps = analyse(levels, values).steps
        held += [abs(step.effect - effect) <= step.half_width for step, effect in zip(steps, true, strict=True)]
    assert (held / 400 >= 0.925).all()
    assert (held / 400 <= 0.98).all()


def test_without_residual_degrees_of_freedom_no_interval_exists():
    found = analyse([[0], [1]], [1.0, 3.0])
    assert (found.error, found.steps[0].effect, found.steps[0].half_width, found.terms[0].p) == (
        "none",
        2.0,
        None,
        None,
    )


@pytest.mark.parametrize("levels", [[], [[0], [0]]])
def test_a_factor_of_one_level_is_rejected(levels):
    with pytest.raises(ValueError, match="two levels"):
        analyse(levels, [1.0] * len(levels))
