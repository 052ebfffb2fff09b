"""Quantiles of values in blocks, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackclock.metrics import quantiles

VALUES = st.lists(st.one_of(st.floats(-1e6, 1e6), st.integers(0, 3).map(float)), min_size=1, max_size=300)


@given(VALUES, st.floats(0, 1), st.integers(1, 40))
def test_as_numpy_has_it(values: list[float], share: float, size: int) -> None:
    blocks = [np.array(values[first : first + size]) for first in range(0, len(values), size)]
    result = quantiles.quantile(lambda: iter(blocks), share, max_sorted=5)
    assert result == pytest.approx(np.quantile(values, share), rel=1e-12, abs=1e-9)


def test_nothing_has_none() -> None:
    assert quantiles.quantile(lambda: iter([np.empty(0)]), 0.5) is None


def test_many_equal_values_and_neighbouring_floats() -> None:
    low = 1.0
    high = float(np.nextafter(low, 2))
    blocks = [np.full(1000, low), np.full(500, high)]
    assert quantiles.ranked(lambda: iter(blocks), 999, max_sorted=10) == low
    assert quantiles.ranked(lambda: iter(blocks), 1000, max_sorted=10) == high
