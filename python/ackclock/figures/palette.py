"""What print and report have in common in how lines look: colours, and when many lines become a cloud."""

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
    """The colour of line `number`; they come again."""
    return COLOURS[number % len(COLOURS)]


def dashed(number: int, dashes: tuple[Any, ...]) -> Any:
    """The dashes of line `number`: first each colour with the first, then each with the next."""
    return dashes[number // len(COLOURS) % len(dashes)]


def drawn(count: int, most: int) -> npt.NDArray[np.int_]:
    """Which lines of a cloud are drawn: at most so many, evenly chosen."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(int))
