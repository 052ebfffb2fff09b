"""The recovery period (RFC 9002 section 7.3.2): no second reduction, nor growth, until a packet sent in it is acked."""

from __future__ import annotations

from dataclasses import dataclass

from ackclock.qlog import Packet


@dataclass(slots=True)
class Recovery:
    """The present recovery period, or the last one. `top_bytes` is what its windows may not exceed."""

    start_s: float = -1.0
    top_bytes: float = 0.0
    is_active: bool = False
    is_reported: bool = False
    has_grown: bool = False

    def begin(self, time_s: float, top_bytes: float) -> None:
        """Begin a period."""
        self.start_s, self.top_bytes, self.is_active = time_s, top_bytes, True
        self.is_reported = self.has_grown = False

    def end(self) -> None:
        """End the period: a packet sent in it is acknowledged."""
        self.is_active = False

    def forget(self) -> None:
        """End the period so that losses of packets sent before it count."""
        self.start_s, self.is_active = -1.0, False

    def covers(self, time_s: float, packet: Packet | None, srtt_s: float) -> bool:
        """Return True if a loss belongs to the period; without the packet, if it comes within two round trips."""
        if packet is None:
            return time_s - self.start_s < 2.0 * srtt_s
        return packet.time_s <= self.start_s

    def take(self, window: float, slack: float) -> bool:
        """Take a window of the period; return True if it has grown."""
        grows = window > self.top_bytes + slack
        self.is_reported, self.has_grown = True, self.has_grown or grows
        self.top_bytes = self.top_bytes if grows else min(self.top_bytes, window)
        return grows
