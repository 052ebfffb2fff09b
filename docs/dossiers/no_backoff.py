"""A congestion control algorithm as none should be: Reno's growth, and no reduction, whatever is lost or marked."""

from typing import Any

import ackclock as ac


@ac.congestion_control
class NoBackoff:
    """Slow start up to 64 segments, then a segment per round trip; losses, marks and timeouts change nothing."""

    def __init__(self, initial_window: float) -> None:
        self.cwnd, self.ssthresh = initial_window, 64.0

    def on_ack(self, ack: Any) -> None:
        """Grow as Reno does (RFC 5681, equations 2 and 3)."""
        if ack.may_grow:
            self.cwnd += ack.newly_acked * (1 if self.cwnd < self.ssthresh else 1 / self.cwnd)

    def on_loss(self, loss: Any) -> None:
        """Keep the window."""

    def on_timeout(self, now_s: float, in_flight: float) -> None:
        """Keep the window."""
