"""Peaks that stand out, against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import find_peaks

from ackclock.metrics.oscillation import prominent_peaks


@pytest.mark.parametrize("seed", range(30))
def test_as_scipy_has_it(seed: int) -> None:
    """Random series of few levels: with plateaus, equal peaks, and the highest values at the ends."""
    rng = np.random.default_rng(seed)
    for _ in range(20):
        curve = rng.integers(0, rng.integers(2, 12), rng.integers(1, 60)).astype(float)
        minimum = float(rng.choice([np.finfo(float).tiny, 1, 2, 3.5]))
        expected, _ = find_peaks(curve, prominence=minimum)
        assert prominent_peaks(curve, minimum).tolist() == expected.tolist()


def test_of_a_walk() -> None:
    curve = np.cumsum(np.random.default_rng(1).normal(size=20_000))
    assert prominent_peaks(curve, 5.0).tolist() == find_peaks(curve, prominence=5.0)[0].tolist()
