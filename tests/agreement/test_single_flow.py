"""One CUBIC flow in closed form beside the packet engine, in the five set-ups of Belhareth 2014, section 2.4.2.

Amplitude and period of the window agree within 10 %, and so do the averages. What remains: the packet engine counts
α in eighths of a window as Linux does, which is 4 % more than 3β/(2 − β) at β = 0.2, and pauses an RTT to recover.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import ackclock as ac

TEXT = """
name = "one flow"
duration = "120s"
warmup = "20s"
[network]
topology = "dumbbell"
rate = "{rate}"
rtt = "{rtt}"
frame_overhead = "0B"
queue = {{ discipline = "pfifo", limit = "{buffer}" }}
[tcp]
stack = "ns2"
mss = "1460B"
sack = true
{tcp}
[theory]
model = "single-cubic"
single_cubic = {{ {theory} }}
[[flows]]
congestion = {{ kind = "cubic", beta = 0.8, slow_start = "standard", tick = "0ms"{more} }}
"""

SET_UPS = {
    "ADSL": ("10Mbit", "50ms", "10p"),
    "100 Mb/s": ("100Mbit", "50ms", "50p"),
    "200 Mb/s": ("200Mbit", "10ms", "50p"),
    "300 Mb/s": ("300Mbit", "20ms", "50p"),
    "400 Mb/s": ("400Mbit", "8ms", "43p"),
}


@functools.cache
def measured(engine: str, set_up: str, more: str = "", tcp: str = "", theory: str = "") -> dict[str, float]:
    rate, rtt, buffer = SET_UPS[set_up]
    text = TEXT.format(rate=rate, rtt=rtt, buffer=buffer, more=more, tcp=tcp, theory=theory)
    data = ac.run(ac.loads(text, "one.toml").plan(), engine=engine)
    found = {name: value["mean"] for name, value in data.metrics()["summary"].items()}
    return found | {"amplitude": found["cwnd_peak"] - found["cwnd_trough"]}


@pytest.mark.parametrize("set_up", SET_UPS)
def test_windows_agree(set_up: str) -> None:
    packet, theory = measured("packet", set_up), measured("theory", set_up)
    for name in ("cwnd_period_s", "amplitude", "loss_rate"):
        assert theory[name] == pytest.approx(packet[name], rel=0.1), name
    for name in ("cwnd_mean", "cwnd_peak", "cwnd_trough", "utilisation", "rtt_mean_s"):
        assert theory[name] == pytest.approx(packet[name], rel=0.03), name
    assert theory["queue_mean_p"] == pytest.approx(packet["queue_mean_p"], rel=0.1)


def test_fast_convergence_takes_turns_in_both() -> None:
    """Cubic mode at 100 Mb/s: with it a long and a short cycle, without it one.

    BDP and buffer hold 467 packets, and a loss is seen a round trip after the window has passed that. Without fast
    convergence the curve rises from 0.8 of its plateau, and has grown by a packet when the loss is seen. With it every
    other plateau lies at 0.9 of the last window: the curve goes as far beyond it as it was below, is steep there, and
    has grown by 3 c x² R when the loss is seen; so the cycle that follows is lost before its plateau.
    """
    full, rtt_s, c = 467.0, 0.055, 0.4

    def up_to_full(beyond: float) -> float:
        return float(np.cbrt(0.2 * (full + beyond) / c) - np.cbrt(beyond / c) + rtt_s)

    rise_s = np.cbrt(0.1 * full / c)
    once_s, long_s, short_s = up_to_full(1), 2 * rise_s + rtt_s, up_to_full(3 * c * rise_s**2 * rtt_s)
    for engine in ("packet", "theory"):
        usual, without = measured(engine, "100 Mb/s"), measured(engine, "100 Mb/s", ", fast_convergence = false")
        assert usual["cwnd_period_s"] == pytest.approx((long_s + short_s) / 2, rel=0.05)  # one more of either kind
        assert without["cwnd_period_s"] == pytest.approx(once_s, rel=0.03)


@pytest.mark.parametrize("set_up", ["200 Mb/s", "400 Mb/s"])
def test_equation_2_11_is_slower_in_tcp_mode(set_up: str) -> None:
    """W1 + a t / R(t) divides all of t by the last, longest RTT: more than 10 % off where there is a queue."""
    packet, print_s = measured("packet", set_up), measured("theory", set_up, theory='growth = "rtt"')
    assert print_s["cwnd_period_s"] > 1.1 * packet["cwnd_period_s"]


def test_delayed_acks_that_are_counted_halve_the_growth_in_both() -> None:
    counted = {"more": ", delayed_ack_correction = false", "tcp": "delayed_ack = true"}
    for engine in ("packet", "theory"):
        slower, usual = measured(engine, "200 Mb/s", **counted), measured(engine, "200 Mb/s")
        assert slower["cwnd_period_s"] > 1.8 * usual["cwnd_period_s"]
