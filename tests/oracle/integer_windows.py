"""CUBIC's window under periodic loss, reckoned ACK by ACK: RFC 9438 in whole segments, without a network.

The formula behind RFC 9438's tables takes an epoch to end at t = K, on the flat of the curve. There the window at the
end of an epoch, as a function of that of the epoch before, has slope 1: the curve is flat, so an epoch that begins
from a somewhat larger window ends at that window. Whichever window a flow comes in with it keeps, within about a
fifth, and whole segments make it worse, as the curve is at its flat point already when it is less than a segment
away. This file reckons where the windows from given starts settle; it shares nothing with the packet engine.
"""

from __future__ import annotations

from dataclasses import dataclass

BETA = 0.7
#: Acknowledged windows for each segment of Reno's estimate, 1/α, in whole eighths.
RENO_WINDOWS = 15 / 8


@dataclass
class _Epoch:
    """One congestion avoidance phase; times in round trips' seconds, windows in segments."""

    c: float
    rtt_s: float
    cwnd: int
    w_max: int
    t_s: float = 0.0
    area: float = 0.0
    w_est: int = 0
    reno_credit: float = 0.0
    credit: int = 0

    def __post_init__(self) -> None:
        self.k_s = (max(0, self.w_max - self.cwnd) / self.c) ** (1 / 3)
        self.origin = max(self.w_max, self.cwnd)
        self.w_est = self.cwnd

    def acknowledge(self) -> None:
        """One segment is acknowledged."""
        step_s = self.rtt_s / self.cwnd
        self.t_s += step_s
        self.area += self.cwnd * step_s
        self._follow_reno()
        self.credit += 1
        if self.credit >= self._per_increment():
            self.credit = 0
            self.cwnd += 1

    def _follow_reno(self) -> None:
        self.reno_credit += 1
        if self.reno_credit > RENO_WINDOWS * self.cwnd:
            self.reno_credit -= RENO_WINDOWS * self.cwnd
            self.w_est += 1

    def _per_increment(self) -> int:
        distance = int(self.c * abs(self.t_s + self.rtt_s - self.k_s) ** 3)
        curve = self.origin - distance if self.t_s + self.rtt_s < self.k_s else self.origin + distance
        target = max(curve, self.w_est)
        return max(2, self.cwnd // (target - self.cwnd)) if target > self.cwnd else 100 * self.cwnd


def average_window(loss: float, rtt_s: float, c: float, start: float, epochs: int = 20, skipped: int = 10) -> float:
    """The average over `epochs` epochs of a flow that comes with a window of `start` segments into its first loss."""
    cwnd, w_max, sent = round(BETA * start), round(start), 0.0
    area = time_s = 0.0
    for number in range(skipped + epochs):
        epoch = _Epoch(c, rtt_s, cwnd, w_max)
        sent = _until_detected(epoch, sent, 1 / loss)
        before, cwnd = epoch.cwnd, int(epoch.cwnd * BETA)
        w_max = int(before * (1 + BETA) / 2) if before < w_max else before
        repair = (before + cwnd) / 2  # proportional reduction over one round trip
        sent += repair - 1 / loss
        if number >= skipped:
            area += epoch.area + repair * rtt_s
            time_s += epoch.t_s + rtt_s
    return area / time_s


def _until_detected(epoch: _Epoch, sent: float, period: float) -> float:
    """Sends until the period's last packet, which is lost, and for the round trip until that is seen."""
    while sent < period:
        epoch.acknowledge()
        sent += 1
    until = sent + epoch.cwnd
    while sent < until:
        epoch.acknowledge()
        sent += 1
    return sent
