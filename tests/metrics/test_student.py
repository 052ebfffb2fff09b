"""Student's quantile, against SciPy's."""

import numpy as np
import pytest
from scipy.special import stdtrit

from ackclock.metrics import student


@pytest.mark.parametrize("freedom", [0.3, 1, 1.7, 2, 4, 9.5, 29, 314.15, 999.9, 1000, 12345.6, 1e7])
def test_as_scipy_has_it(freedom: float) -> None:
    assert student.quantile(freedom) == pytest.approx(stdtrit(freedom, student.SHARE), rel=1e-11)


def test_it_falls_with_the_degrees_of_freedom() -> None:
    found = [student.quantile(freedom) for freedom in np.geomspace(0.5, 1e5, 200)]
    assert (np.diff(found) < 0).all() and found[-1] > student.NORMAL
