"""Sizes in bandwidth–delay products become packets and bytes."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ackclock import _core, algorithms
from ackclock.algorithms.selection import Given
from ackclock.errors import ScenarioError
from ackclock.input.fields import Loc
from ackclock.input.source import Source
from ackclock.input.units import OVER_SQRT_N, Size
from ackclock.plan import CongestionPlan, DatagramPlan, FlowPlan, QueuePlan

#: Widens a product that should be a whole number before it is rounded down.
ROUNDING = 1 + 1e-12


@dataclass(frozen=True)
class Sizes:
    """Conversion of sizes in bdp to packets and bytes."""

    rtt_s: float
    packet_bytes: int
    source: Source
    flows: Sequence[FlowPlan | DatagramPlan] = ()

    def queue(self, given: Given, number: int, rate_bps: float, loc: Loc) -> QueuePlan:
        """A discipline with complete parameters on a link with that number and rate."""
        spec = algorithms.spec("queue", str(given.name))
        values = spec.complete(given.values, given.variant)
        packet_bytes = self._each_bytes(values)
        sized, rules = {}, {}
        for name, value in values.items():
            key, place = spec.key(name), (*loc, name)
            flows = self._passing(number, value, place)
            kind, shared_bps = spec.parameters[name].kind, rate_bps / math.sqrt(flows)
            sized[key] = self._number(kind, value, shared_bps, place, packet_bytes)
            if rule := _rule(value, flows):
                rules[key] = rule
        return queue_plan(spec.name, sized, rate_bps, loc, self.source, rules)

    def _each_bytes(self, values: dict[str, Any]) -> int:
        """Return the bytes that a packet counts for in a limit: a full one, or an average one of a limit in packets."""
        return self.packet_bytes if values.get("bytes", True) else int(values["avpkt"])

    def _number(self, kind: str, value: Any, rate_bps: float, loc: Loc, packet_bytes: int) -> Any:
        if not isinstance(value, Size):
            return int(value) if kind == "bytes" and value is not None else value
        if kind == "bytes" and value.unit == "p":
            return int(value.value) * packet_bytes
        if not value.in_bdp:
            return self._data_packets(value, loc)
        amount_bytes = value.value * rate_bps * self.rtt_s / 8 * ROUNDING
        if kind == "packets":
            return max(1, math.floor(amount_bytes / self.packet_bytes))
        return max(self.packet_bytes, math.floor(amount_bytes))

    def _data_packets(self, size: Size, loc: Loc) -> int:
        if size.unit == "B" and size.value < self.packet_bytes:
            expected = f"at least one full data packet ({self.packet_bytes} B on the wire)"
            raise ScenarioError([self.source.problem(loc, str(size), expected)])
        return int(size.value)

    def _passing(self, link: int, value: Any, loc: Loc) -> int:
        """Return the number of flows that share a link, for a rule that uses it; 1 for others."""
        if not isinstance(value, Size) or value.unit != OVER_SQRT_N:
            return 1
        there, back = self._flows_by_link
        if flows := there[link] or back[link]:
            return flows
        routed = any(flow.ends for flow in self.flows)
        why = "hosts choose their ways when it runs" if routed else "no [[flows]] pass the link"
        expected = "a size without n, such as 1bdp: n counts the [[flows]] whose ways the plan knows"
        raise ScenarioError([self.source.problem(loc, f"{value} where n is not known ({why})", expected)])

    @cached_property
    def _flows_by_link(self) -> tuple[Counter[int], Counter[int]]:
        """Return the number of flows whose data, and whose ACKs, cross each link."""
        ways = ([flow.forward for flow in self.flows], [flow.reverse for flow in self.flows])
        there, back = (Counter(link for way in some for link in {hop.link for hop in way.hops}) for some in ways)
        return there, back


def _rule(value: Any, flows: int) -> str:
    """Return how a size follows from a rule; empty for a plain one."""
    if not isinstance(value, Size) or not (value.rule or value.unit == OVER_SQRT_N):
        return ""
    said = f"{value.rule}: {value}" if value.rule else str(value)
    return f"{said}, n = {flows}" if value.unit == OVER_SQRT_N else said


def queue_plan(
    name: str, parameters: Mapping[str, Any], rate_bps: float, loc: Loc, source: Source, rules: Mapping[str, str]
) -> QueuePlan:
    """A discipline behind a link of that rate. Raises `ScenarioError` for parameters that do not go together."""
    _check(lambda given: _core.check_queue(name, given, rate_bps), name, parameters, loc, source)
    return QueuePlan(name, dict(parameters), rules)


def congestion_plan(name: str, parameters: Mapping[str, Any], loc: Loc, source: Source) -> CongestionPlan:
    """A congestion control. Raises `ScenarioError` for parameters that do not go together."""
    _check(lambda given: _core.check_congestion(name, given), name, parameters, loc, source)
    return CongestionPlan(name, dict(parameters))


def _check(made: Callable[[str], None], name: str, parameters: Mapping[str, Any], loc: Loc, source: Source) -> None:
    try:
        made(json.dumps(parameters))
    except ValueError as error:
        found, expected = f'parameters that "{name}" cannot work with', f"others ({error})"
        raise ScenarioError([source.problem(loc, found, expected)]) from None
