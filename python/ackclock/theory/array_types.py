"""Types of the formulas' arguments: a number, or an array of them."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]

#: A scalar in gives a scalar, an array one of its shape.
Number = TypeVar("Number", float, Array)
