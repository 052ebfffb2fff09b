"""The flows of `[[flows]]`, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ackclock.input.fields import Spread
from ackclock.input.units import Size
from ackclock.plan import FlowPlan, TcpPlan
from ackclock.scenario.planning.spread import PICOSECOND_DIGITS
from ackclock.scenario.topology.network import Way
from ackclock.scenario.traffic.flows import Flows


def flow_plans(flows: Flows, group: int, tcp: TcpPlan, ways: Sequence[Way]) -> Iterator[FlowPlan]:
    """The flows of one table: for each source's way, `streams` of them."""
    for number, way in enumerate(ways):
        plan = FlowPlan(
            group=group,
            start_s=round(flows.start.at + number * flows.start.every, PICOSECOND_DIGITS),
            start_jitter_s=flows.start.jitter,
            stop_s=flows.stop,
            size_bytes=transfer_bytes(_nth(flows.size, number, len(ways)), tcp),
            request_bytes=None if flows.request is None else int(flows.request),
            application_rate_bps=_nth(flows.application_rate, number, len(ways)),
            priority=flows.priority,
            ends=way.ends,
            forward=way.forward,
            reverse=way.reverse,
            base_rtt_s=way.base_rtt_s,
        )
        for _ in range(flows.streams):
            yield plan


def _nth(spread: Spread | None, number: int, sources: int) -> Any:
    return spread.at(number, sources) if spread else None


def transfer_bytes(size: Size | None, tcp: TcpPlan) -> int | None:
    """A size in bytes, or in full segments."""
    if size is None:
        return None
    return max(1, round(size.value * (tcp.mss_bytes if size.unit == "p" else 1)))
