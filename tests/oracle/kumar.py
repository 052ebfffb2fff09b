"""Kumar, Azad and Park's equations in numpy, with fixed steps: a second opinion on the fluid engine.

Written from the equations as the engine's page has them, not from the engine: Euler's steps, no roots, no events but
those of the model. One queue, losses as jumps; flows begin with equal rates of half the link, or with given windows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

FLOWS = 10
BASE_RTTS_S = 0.08 + 0.02 * np.arange(FLOWS)
RATE_P_S = 1e10 / 12_000
LARGEST_P = 141_667


def reno(windows: Array) -> tuple[Array, Array]:
    """Growth per round trip and the share that is given up."""
    return np.ones_like(windows), np.full_like(windows, 0.5)


def highspeed(windows: Array) -> tuple[Array, Array]:
    """RFC 3649 with a(w) = 0.156 w^0.8 b/(2 − b); Reno up to 38 packets."""
    large = np.maximum(windows, 38.0)
    share = np.maximum(0.5 - 0.4 * np.log(large / 38) / np.log(83_000 / 38), 0.1)
    return np.where(windows > 38, 0.156 * large**0.8 * share / (2 - share), 1.0), share


def jain(
    law: Callable[[Array], tuple[Array, Array]], least: float, buffer: float, windows: Array, **run: float
) -> float:
    """Jain's index of what the flows got through from `warmup_s` to `duration_s`, by draws of `seed`."""
    random, step_s = np.random.default_rng(int(run["seed"])), 0.01
    queue, limit = 0.0, buffer * LARGEST_P
    reduces_s, immune_s = np.full(FLOWS, np.inf), np.full(FLOWS, -np.inf)
    got, closes_s = np.zeros(FLOWS), -np.inf
    for now_s in np.arange(0, run["duration_s"], step_s):
        rtts_s = BASE_RTTS_S + queue / RATE_P_S
        rates = windows / rtts_s
        arriving = rates.sum()
        if queue >= limit and arriving > RATE_P_S and closes_s <= now_s:
            free = np.flatnonzero(immune_s <= now_s)
            hit = free[np.argsort(-rates[free])][: drawn(random, least)]
            reduces_s[hit] = np.minimum(reduces_s[hit], now_s + rtts_s[hit])
            closes_s = (now_s + rtts_s[hit]).max() if hit.size else immune_s.min()
        if now_s >= run["warmup_s"]:
            got += step_s * rates * (RATE_P_S / arriving if queue > 0 else min(1.0, RATE_P_S / arriving))
        windows = windows + step_s * law(windows)[0] / rtts_s
        queue = min(max(queue + step_s * (arriving - RATE_P_S), 0.0), limit)
        due = reduces_s <= now_s + step_s
        windows = np.where(due, windows * (1 - law(windows)[1]), windows)
        immune_s = np.where(due, now_s + step_s + rtts_s, immune_s)
        reduces_s = np.where(due, np.inf, reduces_s)
    return float(got.sum() ** 2 / (FLOWS * (got**2).sum()))


def drawn(random: np.random.Generator, least: float) -> int:
    """A number of flows: normal about the middle of its bounds, drawn again outside them."""
    while True:
        count = round(random.normal(FLOWS * (1 + least) / 2, 1.5))
        if np.ceil(least * FLOWS - 1e-9) <= count <= FLOWS:
            return int(count)
