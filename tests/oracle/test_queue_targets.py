"""AQMs that are given a target delay: 64 New Reno flows, 10 Mb/s, 100 ms, a buffer of 1000 packets (Belhareth 2014,
section 6.2, figures 6.5 to 6.8): the delay follows the target, and the goodput stays above 9 Mb/s.

PIE and ARED hold the target itself; ARED down to its floor of five packets. CoDel stays above: 64 flows that share
100 ms × 10 Mb/s have a window of two or three packets each, so every flow needs a loss in twenty packets to be held
there, and CoDel's drops come closer only with the square root of their number.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest
from oracle import lab

TARGETS_MS = (1, 5, 10, 20, 30)
DURATION_S, WARMUP_S = 100.0, 20.0
SEEDS = (1, 2, 3, 4)


@cache
def measured(discipline: str, keys: str) -> tuple[float, float]:
    """Mean time in the queue (s) and goodput (bit/s), of four seeds: one alone is up to a tenth off."""
    data = lab.run(
        DURATION_S,
        0.1,
        '"reno"',
        warmup_s=WARMUP_S,
        rate="10Mbit",
        network="",
        queue=f'{{ discipline = "{discipline}", limit = "1000p", {keys} }}',
        flows='count = 64\nstart = { jitter = "5s" }',
        interval_s=1.0,
        seeds=SEEDS,
    )
    return float(data.links.filter(link=0)["sojourn_mean_s"].mean()), lab.goodput_bps(data)


def delays_ms(discipline: str) -> list[float]:
    return [1e3 * measured(discipline, f'target = "{target}ms"')[0] for target in TARGETS_MS]


@pytest.mark.parametrize("discipline", ["codel", "pie", "ared"])
def test_the_delay_follows_the_target(discipline: str) -> None:
    delays = delays_ms(discipline)
    assert all(after > 0.97 * before for before, after in pairwise(delays)), delays
    assert delays[-1] > 1.3 * delays[0], delays


@pytest.mark.parametrize("target_ms", [20, 30])
@pytest.mark.parametrize("discipline", ["pie", "ared"])
def test_pie_and_ared_hold_the_target_itself(discipline: str, target_ms: int) -> None:
    delay_s, _ = measured(discipline, f'target = "{target_ms}ms"')
    assert 1e3 * delay_s == pytest.approx(target_ms, rel=0.1)


@pytest.mark.parametrize("target_ms", TARGETS_MS)
@pytest.mark.parametrize("discipline", ["codel", "pie", "ared"])
def test_the_goodput_stays_above_nine_tenths(discipline: str, target_ms: int) -> None:
    assert measured(discipline, f'target = "{target_ms}ms"')[1] > 9e6


def test_gentle_changes_nothing_for_ared() -> None:
    gentle, other = (measured("ared", f'target = "20ms", gentle = {word}') for word in ("true", "false"))
    assert other == pytest.approx(gentle, rel=0.02)


def test_codel_s_delay_falls_with_its_interval_at_the_same_goodput() -> None:
    """Figures 6.7 and 6.9."""
    short, middle, default = (measured("codel", f'target = "1ms", interval = "{ms}ms"') for ms in (5, 30, 100))
    assert short[0] < 0.5 * middle[0] < 0.5 * default[0]
    assert all(goodput_bps > 9.2e6 for _, goodput_bps in (short, middle, default))
