"""Colours and the number of lines that every back end shares."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

#: Okabe and Ito's palette (2008) without its yellow, which vanishes on white; neighbours differ in lightness too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
INK = "#222222"

#: More flows than this are a cloud with its mean, not lines with a legend.
MAX_LINES = 12

#: A group of this many flows or fewer is drawn as lines even beside clouds.
FEW = 3


def colour(number: int) -> str:
    """Return the colour of line `number`; colours repeat."""
    return COLOURS[number % len(COLOURS)]


def dashed(number: int, dashes: tuple[Any, ...]) -> Any:
    """Return the dashes of line `number`: each colour with the first pattern, then with the next."""
    return dashes[number // len(COLOURS) % len(dashes)]


def drawn(count: int, maximum: int) -> npt.NDArray[np.int_]:
    """Return the lines of a cloud to draw: at maximum so many, evenly chosen."""
    return np.unique(np.linspace(0, count - 1, min(count, maximum)).astype(int))
