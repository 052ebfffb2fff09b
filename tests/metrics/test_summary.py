import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackclock.metrics import summarise

#: Two-sided 95 % points of Student's t by degrees of freedom, as printed in statistical tables.
T_TABLE = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 9: 2.262, 29: 2.045}


@pytest.mark.parametrize(("freedom", "t"), T_TABLE.items())
def test_interval_against_the_published_t_table(freedom: int, t: float) -> None:
    """n values with a standard deviation of exactly √n give a half width of exactly t."""
    n = freedom + 1
    spread = math.sqrt(n) * math.sqrt((n - 1) / (n if n % 2 == 0 else n - 1))
    values = [spread if k % 2 else -spread for k in range(n)]
    if n % 2:
        values[-1] = 0.0
    result = summarise([7 + value for value in values])
    assert result.mean == pytest.approx(7)
    assert result.ci95_high == pytest.approx(7 + t, abs=6e-4)
    assert result.ci95_low == pytest.approx(7 - t, abs=6e-4)
    assert result.n == n


def test_one_value_has_no_interval_and_none_has_nothing() -> None:
    one, none = summarise([3.0]), summarise([])
    assert (one.mean, one.ci95_low, one.ci95_high, one.n) == (3.0, None, None, 1)
    assert (none.mean, none.ci95_low, none.ci95_high, none.n) == (None, None, None, 0)


def test_nulls_are_left_out_and_n_reports_so() -> None:
    assert summarise([1.0, None, 3.0]).n == 2
    assert summarise([1.0, None, 3.0]).mean == 2.0


@given(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=20), st.floats(0.1, 100))
def test_the_interval_holds_the_mean_and_scales_with_the_values(values: list[float], scale: float) -> None:
    result, scaled = summarise(values), summarise([scale * value for value in values])
    assert result.ci95_low is not None and result.mean is not None and result.ci95_high is not None
    assert result.ci95_low <= result.mean <= result.ci95_high
    width = result.ci95_high - result.ci95_low
    assert scaled.ci95_high - scaled.ci95_low == pytest.approx(scale * width, rel=1e-6, abs=1e-3)  # type: ignore[operator]


def test_the_interval_ends_where_the_metric_does() -> None:
    count = summarise([0.0, 0.0, 1.0], 0.0)
    assert (count.ci95_low, count.mean) == (0.0, pytest.approx(1 / 3))
    share = summarise([0.99, 1.0, 0.98], 0.0, 1.0)
    assert share.ci95_high == 1.0
    over = summarise([1.0001, 1.0003], 0.0, 1.0)
    assert over.mean is not None and over.ci95_high is not None
    assert over.mean <= over.ci95_high
