"""Student's quantile and tail probability, against tabulated values."""

import math

import pytest

from ackclock.metrics.summary import NORMAL_QUANTILE, student_quantile, student_tail


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [
        (1, math.tan(0.475 * math.pi)),
        (2, 0.95 * math.sqrt(2 / (1 - 0.95**2))),
        (4, 2.7764451051977987),
        (29, 2.045229642132703),
    ],
)
def test_the_quantile_is_the_tabulated_one(freedom: float, expected: float) -> None:
    assert student_quantile(freedom) == pytest.approx(expected, rel=1e-12)


def test_the_quantile_approaches_the_normal_distributions() -> None:
    assert student_quantile(1e7) == pytest.approx(NORMAL_QUANTILE, rel=1e-6)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0, 30.0])
def test_the_tail_of_one_degree_of_freedom_is_cauchys(value: float) -> None:
    assert student_tail(value, 1) == pytest.approx(0.5 - math.atan(value) / math.pi, rel=1e-12)
