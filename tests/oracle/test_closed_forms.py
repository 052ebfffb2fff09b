"""Closed forms: Mathis, PFTK, a sawtooth over a short buffer, a receive window, equal shares."""

from __future__ import annotations

import math

import pytest
from oracle import lab

RTT_S = 0.1
SEEDS = (1, 2, 3)


def segments_per_s(loss: float, delayed_ack: str) -> float:
    """Goodput of one Reno flow under Bernoulli loss on a link where nothing queues; about 300 loss epochs a run."""
    duration_s = min(20_000.0, max(1_000.0, 300 * RTT_S / (1.2 * math.sqrt(loss))))
    data = lab.run(
        duration_s,
        RTT_S,
        '"reno"',
        warmup_s=0.05 * duration_s,
        network=f"loss = {{ probability = {loss} }}",
        tcp=f"delayed_ack = {delayed_ack}",
        seeds=SEEDS,
    )
    return lab.goodput_bps(data) / 8 / lab.MSS_BYTES


def mathis(loss: float) -> float:
    """Mathis et al. 1997, eq. 3 with C = √(3/2), segments per second; every segment counts for the window."""
    return math.sqrt(3 / 2) / (RTT_S * math.sqrt(loss))


def pftk(loss: float, timeout_s: float) -> float:
    """Padhye et al. 1998, eq. 30 with b = 1 (the window counts segments and not ACKs), segments per second."""
    timeouts = timeout_s * min(1, 3 * math.sqrt(3 * loss / 8)) * loss * (1 + 32 * loss**2)
    return 1 / (RTT_S * math.sqrt(2 * loss / 3) + timeouts)


@pytest.mark.parametrize("delayed_ack", ["false", "true"])
@pytest.mark.parametrize("loss", [3e-4, 1e-3, 3e-3, 1e-2])
def test_mathis(loss: float, delayed_ack: str) -> None:
    """Delayed ACKs make no difference to it: growth counts acknowledged segments, as in Linux (RFC 3465's L = ∞)."""
    assert segments_per_s(loss, delayed_ack) == pytest.approx(mathis(loss), rel=0.1)


@pytest.mark.parametrize("loss", [3e-4, 1e-3, 3e-3, 1e-2])
def test_pftk(loss: float) -> None:
    """Its domain here ends near 1e-2: it takes all later segments of a round for lost with the first, so it expects
    timeouts where independent losses with SACK give none. The RTO of the linux stack is RTT + 200 ms.
    """
    assert segments_per_s(loss, "false") == pytest.approx(pftk(loss, RTT_S + 0.2), rel=0.1)


@pytest.mark.parametrize("congestion", ["reno", "cubic"])
@pytest.mark.parametrize(("rate", "rtt_s"), [("10Mbit", 0.02), ("100Mbit", 0.1), ("1Gbit", 0.05)])
def test_one_flow_with_a_buffer_of_one_bdp_fills_the_link(congestion: str, rate: str, rtt_s: float) -> None:
    data = lab.run(120.0, rtt_s, f'"{congestion}"', warmup_s=20.0, rate=rate, limit="1bdp")
    assert 0.995 < lab.utilisation(data) <= 1.0001


def sawtooth_utilisation(buffer: float) -> float:
    """Reno's utilisation with a buffer of `buffer` BDP: the window goes from (1+b)/2 to 1+b BDP; below 1 the link is
    not full and a round trip lasts one base RTT, above it the queue makes it longer. b = 0 gives 3/4.
    """
    lowest, highest = (1 + buffer) / 2, 1 + buffer
    queued = (highest**2 - 1) / 2
    return ((1 - lowest**2) / 2 + queued) / ((1 - lowest) + queued)


@pytest.mark.parametrize("buffer", [0.1, 0.25, 0.5])
def test_reno_over_a_short_buffer_is_a_sawtooth(buffer: float) -> None:
    data = lab.run(600.0, 0.1, '"reno"', warmup_s=60.0, rate="50Mbit", limit=f"{buffer}bdp")
    assert lab.utilisation(data) == pytest.approx(sawtooth_utilisation(buffer), rel=0.02)


def test_a_receive_window_gives_a_window_per_round_trip() -> None:
    segments = 40
    data = lab.run(20.0, RTT_S, '"reno"', warmup_s=5.0, tcp=f'receive_window = "{segments * lab.MSS_BYTES}B"')
    assert lab.goodput_bps(data) == pytest.approx(segments * lab.MSS_BYTES * 8 / RTT_S, rel=0.005)


def test_equal_reno_flows_get_equal_shares() -> None:
    """Ten flows, 300 s; starts spread over a second, so that they do not lose in step from the beginning."""
    data = lab.run(
        300.0,
        0.05,
        '"reno"',
        warmup_s=30.0,
        rate="100Mbit",
        limit="1bdp",
        flows='count = 10\nstart = { every = "100ms", jitter = "100ms" }',
        seeds=SEEDS,
    )
    summary = data.metrics()["summary"]
    assert summary["jain"]["mean"] > 0.98
