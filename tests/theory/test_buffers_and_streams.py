"""Parallel streams, buffer rules, the sawtooth over a buffer, and how fast a timer can be a link."""

from __future__ import annotations

import numpy as np
import pytest

from ackclock import theory
from ackclock.theory.buffers import WISCHIK


@pytest.mark.parametrize("kept", [0.5, 0.8, 0.875])
def test_one_stream_has_the_mean_of_a_sawtooth(kept):
    # between β C and C, rising evenly: (1 + β)/2
    assert theory.altman(1, 1e9, kept) == pytest.approx(1e9 * (1 + kept) / 2)


@pytest.mark.parametrize(("streams", "expected"), [(2, 6 / 7), (10, 30 / 31)])
def test_more_halving_streams(streams, expected):
    # β = 1/2: 1 − 1/(1 + 3 N)
    assert theory.altman(streams, 1.0, 0.5) == pytest.approx(expected)


def played_streams(streams: int, kept: float, rng: np.random.Generator) -> float:
    """The mean total of streams that grow at one pace and of which one, any, reduces when the link is full."""
    rates, area, time = np.full(streams, 1 / streams), 0.0, 0.0
    for _ in range(40_000):
        hit = rng.integers(streams)
        fall = (1 - kept) * rates[hit]
        rates[hit] *= kept
        rates += fall / streams
        area += fall * (1 - fall / 2)
        time += fall
    return area / time


@pytest.mark.parametrize("streams", [2, 5, 20])
@pytest.mark.parametrize("kept", [0.5, 0.8])
def test_the_total_is_that_of_streams_one_of_which_reduces_at_a_time(streams, kept):
    played = played_streams(streams, kept, np.random.default_rng(1))
    assert 1 - theory.altman(streams, 1.0, kept) == pytest.approx(1 - played, rel=0.05)


def test_the_buffer_rules():
    # 10 Gb/s × 100 ms = 125 MB
    assert theory.bdp_buffer(10e9, 0.1) == 125e6
    assert theory.bdp_buffer(10e9, 0.1, share=0.2) == 25e6
    assert theory.many_flows_buffer(100, 10e9, 0.1) == 12.5e6
    assert theory.many_flows_buffer(100, 10e9, 0.1, factor=WISCHIK) == pytest.approx(7.875e6)
    assert theory.many_flows_buffer(np.array([1, 4]), 10e9, 0.1).tolist() == [125e6, 62.5e6]


def sawtooth(buffer: float, kept: float) -> tuple[float, float]:
    """Utilisation and mean RTT of the sawtooth, in small steps of time; the base RTT is 1, the pipe holds 1000."""
    window, sent, time, weighted = 1000 * (1 + buffer) * kept, 0.0, 0.0, 0.0
    while window < 1000 * (1 + buffer):
        rtt = max(1.0, window / 1000)
        step = 0.05
        sent += step * window / rtt
        time += step
        weighted += step * rtt
        window += step / rtt
    return sent / time / 1000, weighted / time


@pytest.mark.parametrize("kept", [0.5, 0.8])
@pytest.mark.parametrize("buffer", [0.0, 0.1, 0.3, 1.0, 4.5])
def test_the_sawtooth_s_closed_forms_are_its_integrals(buffer, kept):
    share, rtt = sawtooth(buffer, kept)
    assert theory.sawtooth_utilisation(buffer, kept) == pytest.approx(share, rel=1e-3)
    assert theory.sawtooth_rtt(buffer, kept) == pytest.approx(rtt, rel=1e-3)


def test_a_reno_flow_has_three_quarters_of_a_link_without_a_buffer_and_all_of_it_from_one_bdp_on():
    assert theory.sawtooth_utilisation(0.0) == 0.75
    assert theory.sawtooth_utilisation(np.array([1.0, 2.0])).tolist() == [1, 1]
    assert theory.sawtooth_utilisation(0.99) < 1


@pytest.mark.parametrize(("timer_hz", "largest_bps"), [(20_000, 100e6), (1000, 5e6)])
def test_the_rates_that_a_timer_can_emulate(timer_hz, largest_bps):
    # Braud 2016, section 3: FreeBSD at 20 kHz up to 100 Mb/s, Linux at 1 kHz up to 5 Mb/s
    assert largest_bps <= theory.emulation_limit(timer_hz) <= 1.2 * largest_bps
    assert theory.emulation_limit(timer_hz, margin=1) == 12_000 * timer_hz
