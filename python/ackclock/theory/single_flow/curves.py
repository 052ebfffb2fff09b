"""Window over time in each state, with its integral (table 2.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]


class Curve(Protocol):
    """A window over the time since the loss."""

    def at(self, t_s: npt.ArrayLike) -> Array:
        """Return the window at these times, in packets."""

    def area(self, start_s: float, end_s: npt.ArrayLike) -> Array:
        """Return the integral of the window until these times, in packet-seconds."""

    def when(self, window: float) -> float:
        """Return when the window is reached; infinity if never."""


@dataclass(frozen=True, slots=True)
class Cubic:
    """c (t − V)³ + plateau (equation 2.1)."""

    c: float
    to_plateau_s: float
    plateau: float

    def at(self, t_s: npt.ArrayLike) -> Array:
        """Return the window at these times."""
        return np.asarray(self.c * (np.asarray(t_s) - self.to_plateau_s) ** 3 + self.plateau)

    def slope(self, t_s: float) -> float:
        """Return packets per second."""
        return 3 * self.c * (t_s - self.to_plateau_s) ** 2

    def area(self, start_s: float, end_s: npt.ArrayLike) -> Array:
        """Return the integral of the window."""
        x, y = start_s - self.to_plateau_s, np.asarray(end_s) - self.to_plateau_s
        return np.asarray(self.c * (y**4 - x**4) / 4 + self.plateau * (y - x))

    def when(self, window: float) -> float:
        """Return t_BD or t_DE of table 2.5, with the real cube root."""
        return self.to_plateau_s + math.cbrt((window - self.plateau) / self.c)

    def rounds(self, start_s: float, end_s: float) -> float:
        """Return the integral of 1 / window: × the capacity, the round trips made while there is a queue."""
        root = math.cbrt(self.plateau / self.c)

        def primitive(t_s: float) -> float:
            x = t_s - self.to_plateau_s
            logs = math.log(x + root) / 3 - math.log(x * x - root * x + root * root) / 6
            return (logs + math.atan((2 * x - root) / (math.sqrt(3) * root)) / math.sqrt(3)) / (self.c * root**2)

        return primitive(end_s) - primitive(start_s)


@dataclass(frozen=True, slots=True)
class Line:
    """w0 + slope (t − t0): TCP mode without a queue (equation 2.5)."""

    t0_s: float
    w0: float
    slope: float

    def at(self, t_s: npt.ArrayLike) -> Array:
        """Return the window at these times."""
        return np.asarray(self.w0 + self.slope * (np.asarray(t_s) - self.t0_s))

    def area(self, start_s: float, end_s: npt.ArrayLike) -> Array:
        """Return the integral of the window."""
        ends_s = np.asarray(end_s)
        return np.asarray(self.at((start_s + ends_s) / 2) * (ends_s - start_s))

    def when(self, window: float) -> float:
        """Return t_AC of table 2.5."""
        return self.t0_s + (window - self.w0) / self.slope


@dataclass(frozen=True, slots=True)
class Root:
    """m + √(h² + k (t − t0)): TCP mode with a queue, k in packets²/s.

    For growth by ACKs, dW/dt = a C / W: m = 0, h = W(t0), k = 2 a C. For equation 2.11, m = (W1 + a) / 2,
    h = (W1 − a) / 2, k = a C.
    """

    t0_s: float
    middle: float
    half: float
    k: float

    def at(self, t_s: npt.ArrayLike) -> Array:
        """Return the window at these times."""
        return np.asarray(self.middle + np.sqrt(self.half**2 + self.k * (np.asarray(t_s) - self.t0_s)))

    def area(self, start_s: float, end_s: npt.ArrayLike) -> Array:
        """Return the integral of the window."""
        x, y = (self.at(t_s) - self.middle for t_s in (start_s, end_s))
        return np.asarray(self.middle * (np.asarray(end_s) - start_s) + 2 * (y**3 - x**3) / (3 * self.k))

    def when(self, window: float) -> float:
        """Return t_CE of table 2.5."""
        return self.t0_s + ((window - self.middle) ** 2 - self.half**2) / self.k
