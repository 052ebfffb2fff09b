"""CUBIC with the Reno estimate of RFC 8312, for the ablation in `make_cubic_in_quic.py`: where that estimate begins."""

from typing import Any

import ackclock as ac

BETA, C = 0.7, 0.4


@ac.congestion_control
class CubicRfc8312:
    """CUBIC with the estimate W_est of RFC 8312 (equation 4), or with the start that it has in RFC 9438 (figure 4).

    W_est(t) = start + 3 (1 - beta) / (1 + beta) t / RTT, where the start is beta W_max in RFC 8312. Fast convergence
    lowers W_max, and this start with it, below the window that the loss left; in RFC 9438 it is that window.

    The cubic curve has the K of RFC 8312 (equation 2) in both. Fast convergence compares the window with the W_max that
    it may have lowered (RFC 9438 section 4.7), as in quinn and Linux; RFC 8312 has W_last_max there.
    """

    def __init__(self, initial_window: float, *, from_w_max: bool = True) -> None:
        self.from_w_max = from_w_max
        self.cwnd, self.ssthresh = initial_window, float("inf")
        self.w_max, self.k_s, self.start_s, self.w_est = 0.0, 0.0, 0.0, 0.0

    def on_ack(self, ack: Any) -> None:
        """Grow by (target - cwnd) / cwnd for each segment (RFC 8312 sections 4.1 to 4.4)."""
        if not ack.may_grow:
            return
        if self.cwnd < self.ssthresh:
            self.cwnd += ack.newly_acked
            return
        t_s = ack.now_s - self.start_s
        target = C * (t_s + ack.srtt_s - self.k_s) ** 3 + self.w_max
        w_est = self.w_est + 3 * (1 - BETA) / (1 + BETA) * t_s / ack.srtt_s
        if target < w_est:
            self.cwnd = max(self.cwnd, w_est)
        elif target > self.cwnd:
            self.cwnd += ack.newly_acked * (min(target, 1.5 * self.cwnd) - self.cwnd) / self.cwnd

    def on_loss(self, loss: Any) -> None:
        """Reduce, with fast convergence (sections 4.5 and 4.6)."""
        self.w_max = self.cwnd * (1 + BETA) / 2 if self.cwnd < self.w_max else self.cwnd
        self.ssthresh = self.cwnd = max(2.0, BETA * self.cwnd)
        self.w_est = BETA * self.w_max if self.from_w_max else self.cwnd
        self.k_s = (self.w_max * (1 - BETA) / C) ** (1 / 3)
        self.start_s = loss.now_s

    def on_timeout(self, now_s: float, in_flight: float) -> None:
        """Begin again from one segment (section 4.7)."""
        self.ssthresh, self.cwnd = max(2.0, BETA * self.cwnd), 1.0
        self.w_max = self.w_est = self.k_s = 0.0
        self.start_s = now_s
