"""Response times with lost SYNs: the thesis's example, limits, and draws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ackclock import theory
from ackclock.theory import completion_time

#: Braud 2016, section 7.1.6.
EXAMPLE = {"rtt_s": 0.2, "p": 0.02, "p_syn": 0.12, "rto_s": 3.0, "recovery_s": 1.0, "backoff": False}


def test_the_example_by_its_own_equations():
    result = theory.response_time(36, **EXAMPLE)
    assert result.slow_start_s == pytest.approx(0.914, abs=5e-4)
    assert result.avoidance_s == pytest.approx(0.297, abs=5e-4)
    assert result.recovery_s == pytest.approx(0.72)
    assert result.fin_s == 0.2
    assert result.syn_s == pytest.approx(0.609, abs=5e-4)
    assert result.total_s == pytest.approx(2.74, abs=5e-3)
    assert result.syn_share == pytest.approx(0.22, abs=5e-3)
    assert result.retried_s / result.total_s == pytest.approx(0.409 / 2.740, abs=1e-3)


@pytest.mark.parametrize("p", [1e-4, 0.02, 0.3])
def test_the_window_sends_a_loss_s_worth_from_its_half_to_its_top(p):
    # 7.4 with n = W/2 rounds is 1/p
    top = completion_time.largest_window(p)
    rounds = top / 2
    assert top / 2 * rounds + (rounds - 1) * rounds / 2 == pytest.approx(1 / p)


def test_1337_packets_make_one_lost_syn_a_tenth_where_all_is_congestion_avoidance():
    # section 7.1.1: 1336 packets at 200 ms and 2 %, RTO 3 s
    assert 30 * completion_time.avoidance_rate(0.02, 0.2) == pytest.approx(1336, rel=2e-3)


@pytest.mark.parametrize("backoff", [False, True])
@pytest.mark.parametrize("p_syn", [0.05, 0.12])
def test_the_handshake_s_timeouts_are_the_mean_of_draws(p_syn, backoff):
    failures = np.random.default_rng(1).geometric(1 - p_syn, 400_000) - 1
    times = 2.0**failures - 1 if backoff else failures
    assert theory.handshake_time(p_syn, 3.0, backoff=backoff) == pytest.approx(3 * times.mean(), rel=0.02)


def test_with_backoff_present_is_no_mean_from_one_half_on():
    assert theory.handshake_time(0.5, 1.0) == math.inf
    assert theory.handshake_time(0.49, 1.0) == pytest.approx(24.5)
    assert theory.handshake_time(0.5, 1.0, backoff=False) == 1.0


def doubling(segments: int, rtt_s: float) -> float:
    """Seconds of slow start from one segment, in whole rounds."""
    sent, rounds = 0, 0
    while sent < segments:
        sent, rounds = sent + 2**rounds, rounds + 1
    return rounds * rtt_s


@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
def test_a_short_transfer_ends_in_slow_start(rounds):
    segments = 2**rounds - 1
    result = theory.response_time(segments, 0.2, 1e-4)
    assert result.slow_start_s == pytest.approx(doubling(segments, 0.2))
    assert result.avoidance_s == 0


def test_the_phases_join_without_a_step():
    turning = 2 ** completion_time.slow_start_rounds(0.02) - 1
    before, after = (theory.response_time(turning + step, 0.2, 0.02).total_s for step in (-1e-6, 1e-6))
    assert before == pytest.approx(after, abs=1e-5)
    sizes = np.linspace(1, 200, 400)
    assert (np.diff(theory.response_time(sizes, 0.2, 0.02).total_s) > 0).all()


def test_a_larger_initial_window_saves_rounds():
    one, ten = (theory.response_time(10_000, 0.1, 1e-4, initial_window=window) for window in (1, 10))
    assert one.slow_start_s - ten.slow_start_s == pytest.approx(0.1 * math.log2(10))
    # beyond the largest window there is one round, and the window is no larger
    assert completion_time.slow_start_rounds(0.3, 10) == 1


def test_recovery_takes_a_round_trip_unless_it_is_reported():
    assert theory.response_time(100, 0.2, 0.02).recovery_s == pytest.approx(100 * 0.2 * 0.02)


@pytest.mark.parametrize("rto_s", [1.0, 3.0])
def test_at_the_size_where_it_counts_a_lost_syn_is_that_share(rto_s):
    size = theory.size_where_syn_counts(0.1, 0.2, 0.02, rto_s=rto_s, recovery_s=1.0)
    assert theory.response_time(size, 0.2, 0.02, recovery_s=1.0).total_s == pytest.approx(10 * rto_s)


def test_a_share_above_all_has_no_size():
    # without a segment a connection takes two round trips, and a lost SYN of 1 s is 2.5 of them at most
    assert theory.size_where_syn_counts(2.6, 0.2, 0.02) == 0
    assert theory.size_where_syn_counts(2.4, 0.2, 0.02) < 1
