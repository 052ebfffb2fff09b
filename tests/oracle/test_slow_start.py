"""The purpose of the slow starts: fewer losses than with the standard one, and no early exit under jitter.

The signs are published, the sizes are not: "Slow start can overshoot the ideal send rate in many cases, causing
high packet loss" (RFC 9406, abstract); HyStart "can cause premature exit from slow start, especially over
wireless links" (draft-chung-ccwg-search, abstract), for which HyStart++ has its second phase (RFC 9406 section 4.2).
"""

from __future__ import annotations

from functools import cache

import polars as pl
import pytest
from small_networks import dumbbell

import ackclock as ac

#: 50 Mbit/s × 100 ms, in full packets of 1514 B.
BDP_P = 50e6 * 0.1 / (8 * 1514)


def scenario(jitter, kind, start):
    return f"""duration = "6s"
repeats = 1
{dumbbell("50Mbit", "100ms", "2bdp")}
{jitter}
[[flows]]
congestion = {{ kind = "{kind}", slow_start = "{start}" }}
"""


JITTER = 'jitter = { deviation = "12ms", distribution = "normal" }'


@cache
def run(kind: str, start: str, jitter: str = "") -> ac.Dataset:
    return ac.run(ac.loads(scenario(kind=kind, start=start, jitter=jitter)).plan(), engine="packet", jobs=1)


def drops(data: ac.Dataset) -> int:
    return int(data.links["dropped_total_p"].sum())


def exit_window(data: ac.Dataset) -> float:
    """The first slow start threshold."""
    return float(data.flow_samples.filter(pl.col("ssthresh").is_finite())["ssthresh"][0])


@pytest.mark.parametrize("kind", ["reno", "cubic"])
@pytest.mark.parametrize("start", ["hystart", "hystart++", "search"])
def test_a_deep_buffer_loses_less_than_after_standard_slow_start(kind, start):
    assert drops(run(kind, start)) < drops(run(kind, "standard"))


@pytest.mark.parametrize("kind", ["reno", "cubic"])
def test_under_jitter_hystart_leaves_below_the_bdp_and_hystart_plus_plus_above(kind):
    assert exit_window(run(kind, "hystart", JITTER)) < 0.5 * BDP_P
    for start in ("hystart++", "search"):
        assert exit_window(run(kind, start, JITTER)) > BDP_P


@pytest.mark.parametrize("kind", ["reno", "cubic"])
def test_an_early_exit_costs_throughput(kind):
    early, late = (run(kind, start, JITTER).flows["delivered_bytes"][0] for start in ("hystart", "hystart++"))
    assert early < late
