"""Maximum rate of a TCP connection, and its packet sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ackclock.plan import TIMESTAMPS_BYTES, Parameters, Plan

#: A TCP that answers each loss with a smaller window; the others take no notice of random loss.
HEEDLESS = frozenset({"bbr", "bbr2", "bbr3", "vegas", "fast"})

#: ACKs for a data packet: one for two segments where they are delayed.
ACKS_PER_PACKET = {"off": 1.0, "on": 0.5, "quick": 0.52}


@dataclass(frozen=True, slots=True)
class Connection:
    """One connection: sizes in bytes, the base RTT in seconds, the chance of random loss on its way."""

    mss_bytes: int
    wire_bytes: float
    window_bytes: float
    initial_window: int
    base_rtt_s: float
    loss: float
    heedless: bool
    acks: float

    @staticmethod
    def of(plan: Plan, group: int, base_rtt_s: float, there: Sequence[int]) -> Connection:
        """A connection of a group, on its way over some links."""
        kind, tcp = plan.groups[group].congestion, plan.groups[group].tcp
        assert kind is not None
        assert tcp is not None
        overhead_bytes = plan.links[0].frame_overhead_bytes
        return Connection(
            mss_bytes=tcp.mss_bytes,
            wire_bytes=tcp.mss_bytes + tcp.header_bytes + TIMESTAMPS_BYTES * tcp.timestamps + overhead_bytes,
            window_bytes=tcp.receive_window_bytes or math.inf,
            initial_window=tcp.initial_window,
            base_rtt_s=base_rtt_s,
            loss=sum(_chance(plan, link) for link in there),
            heedless=kind.kind in HEEDLESS,
            acks=ACKS_PER_PACKET[tcp.delayed_ack],
        )

    def max_bps(self, application_bps: float | None) -> float:
        """The wire rate if nobody else were there: application, receive window, random loss."""
        application = math.inf if application_bps is None else application_bps * self.wire_bytes / self.mss_bytes
        window = min(self.window_bytes / self.mss_bytes, self._window_by_loss())
        return min(application, 8 * self.wire_bytes * window / max(self.base_rtt_s, 1e-9))

    def _window_by_loss(self) -> float:
        """Segments: the larger of Reno's (Mathis et al. 1997) and CUBIC's (RFC 9438 section 5.1) mean windows."""
        if not self.loss or self.heedless:
            return math.inf
        cubic: float = 1.054 * (self.base_rtt_s / self.loss) ** 0.75
        return max(math.sqrt(1.5 / self.loss), cubic)

    def on_wire(self, size_bytes: float) -> float:
        """Wire bytes of a transfer's data."""
        return size_bytes + math.ceil(size_bytes / self.mss_bytes) * (self.wire_bytes - self.mss_bytes)

    def opening_s(self, rate_bps: float) -> float:
        """Return the time slow start adds until a rate is reached: a round trip for each doubling."""
        segments = rate_bps * self.base_rtt_s / (8 * self.wire_bytes)
        if not math.isfinite(segments) or segments <= self.initial_window:
            return self.base_rtt_s
        return self.base_rtt_s * (1 + math.log2(segments / self.initial_window))

    def opening_bits(self, span_s: float) -> float:
        """Return the bits that slow start sends in a part of that time."""
        rounds = max(0.0, min(span_s / max(self.base_rtt_s, 1e-9) - 1, 60.0))
        return 8 * self.wire_bytes * self.initial_window * (2**rounds - 1)

    def transfer_s(self, size_bytes: float, rate_bps: float) -> float:
        """Return the duration of a transfer without competition: handshake, slow start, then the rate."""
        segments = max(1.0, size_bytes / self.mss_bytes)
        rounds = 1 + math.log2(1 + segments / self.initial_window)
        return self.base_rtt_s * rounds + 8 * self.on_wire(size_bytes) / rate_bps


def _chance(plan: Plan, link: int) -> float:
    """Return the probability of a data packet's random loss on a link."""
    loss = plan.links[link].loss
    if not loss:
        return 0.0
    return 1 / loss["packets"] if loss["kind"] == "every" else _mean_chance(loss)


def _mean_chance(loss: Parameters) -> float:
    """In bursts: that of each state, as often as packets find it."""
    if loss["kind"] != "gilbert_elliott":
        return float(loss["probability"])
    bad = loss["p_good_to_bad"] / (loss["p_good_to_bad"] + loss["p_bad_to_good"])
    return float(bad * loss["in_bad"] + (1 - bad) * loss["in_good"])
