"""The plans of QUIC connections, which are flows over UDP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ackclock.plan import UDP_HEADER_BYTES, DatagramPlan
from ackclock.scenario.planning.flows import PICOSECOND_DIGITS, nth
from ackclock.scenario.topology.network import Way
from ackclock.scenario.traffic.quic import QuicFlows


def quic_plans(flows: QuicFlows, group: int, ways: Sequence[Way]) -> Iterator[DatagramPlan]:
    """The connections of one table: one for each source's way."""
    for number, way in enumerate(ways):
        yield DatagramPlan(
            group=group,
            start_s=round(flows.start.at + number * flows.start.every, PICOSECOND_DIGITS),
            stop_s=flows.stop,
            priority=flows.priority,
            ends=way.ends,
            forward=way.forward,
            reverse=way.reverse,
            payload_bytes=flows.payload_bytes,
            header_bytes=UDP_HEADER_BYTES,
            source=flows.source(nth(flows.size, number, len(ways))),
            base_rtt_s=way.base_rtt_s,
        )
