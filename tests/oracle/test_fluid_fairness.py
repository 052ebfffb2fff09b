"""Fairness of the fluid engine compared with another integration of the same equations.

Both, for the same beginning: flows of unlike RTTs keep for long what slow start gave them.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from oracle import kumar
from oracle.test_fluid import one

from ackclock import _core

SEEDS = (1, 2, 3, 4)


def ours(minimum: float, buffer: float, changes: dict[str, object] | None = None) -> float:
    """HighSpeed's index, a mean over the seeds: 1000 s from equal rates of half the link, or with slow start."""
    planned = json.loads(one("highspeed", buffer, f'{{ kind = "normal", least = {minimum} }}')) | (changes or {})
    if planned["slow_start"]:
        for flow in planned["flows"]:
            flow["initial_window"] = 10.0
    result = _core.fluid_many([json.dumps(planned)] * len(SEEDS), [*SEEDS], 1)
    rates = np.array([run["flows"]["measured_delivered_p"] for run in result])
    return float((rates.sum(axis=1) ** 2 / (rates**2).sum(axis=1) / rates.shape[1]).mean())


def others(minimum: float, buffer: float) -> float:
    """The other integration's."""
    windows = kumar.RATE_P_S / 20 * kumar.BASE_RTTS_S
    times = {"duration_s": 1000.0, "warmup_s": 100.0}
    return float(
        np.mean([kumar.jain(kumar.highspeed, minimum, buffer, windows, seed=seed, **times) for seed in SEEDS[:2]])
    )


@pytest.mark.parametrize("minimum", [0.3, 0.6])
def test_both_agree_from_equal_rates(minimum):
    assert ours(minimum, 0.05) == pytest.approx(others(minimum, 0.05), abs=0.06)


def test_slow_start_is_what_makes_it_unfair():
    assert ours(0.3, 0.05) - ours(0.3, 0.05, {"slow_start": True}) > 0.15
