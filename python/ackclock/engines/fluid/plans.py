"""A plan as `crates/ackclock-models/src/fluid/plan.rs` reads it: packets, packets/s, seconds.

A flow is given with the links of its path, so the paths of a routed network are computed before the run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ackclock.engines import features, red
from ackclock.errors import InputError
from ackclock.plan import EndsPlan, FlowPlan, GroupPlan, HopPlan, LinkPlan, PathPlan, Plan, QueuePlan

#: A step is never longer than so many-th of the shortest RTT: what is lost is heard of a round trip later.
STEPS_PER_RTT = 10

#: A queue in packets, as `fluid/queue.rs` reads it.
Queue: TypeAlias = Mapping[str, Any]

#: The queue of a link that no data crosses.
UNUSED = {"kind": "droptail", "limit_p": 1.0}


def fluid(plan: Plan, *, samples: bool) -> str:
    """The plan in JSON; without `samples` nothing is recorded over time."""
    options = plan.options["fluid"]
    used = {hop.link for flow in plan.flows for hop in flow.forward.hops}
    return json.dumps(
        {
            "duration_s": plan.duration_s,
            "warmup_s": plan.warmup_s,
            "step_s": None if options["step_s"] is None else min(options["step_s"], _longest_step_s(plan)),
            "interval_s": plan.record.interval_s if samples else None,
            "slow_start": options["slow_start"],
            "links": [_link(plan, link, number in used) for number, link in enumerate(plan.links)],
            "flows": [_flow(flow, plan.groups[flow.group]) for flow in plan.flows],
            "synchronisation": _controller("synchronisation", options["synchronisation"]),
            "loss_assignment": _controller("loss_assignment", options["loss_assignment"]),
            "cuts": options["cuts"],
        }
    )


def _longest_step_s(plan: Plan) -> float:
    return min(flow.base_rtt_s for flow in plan.flows) / STEPS_PER_RTT


def unsupported(plan: Plan) -> Iterator[str]:
    """Yield the features of the plan's queues and slow starts that the fluid model lacks."""
    if plan.options["fluid"]["slow_start"]:
        yield from dict.fromkeys(what for group in plan.groups for what in _unsupported_start(group))
    used = {hop.link for flow in plan.flows for hop in flow.forward.hops}
    yield from dict.fromkeys(what for link in sorted(used) for what in _unsupported_queue(plan.links[link].queue))


def is_stochastic(plan: Plan) -> bool:
    """Return True if anything is drawn: jittered starts, sizes of loss events, loss assignment, RED's early drops."""
    options = plan.options["fluid"]
    events = options["synchronisation"]["kind"] != "none"
    return (
        any(flow.start_jitter_s for flow in plan.flows)
        or options["synchronisation"]["kind"] in ("normal", "losses")
        or (events and options["loss_assignment"]["kind"] in ("random", "weighted"))
        or (events and any(link.queue.discipline == "red" for link in plan.links))
    )


def rate_p_s(plan: Plan, link: LinkPlan) -> float:
    """C: full data packets per second."""
    return link.rate_bps / (8 * plan.packet_bytes)


def _link(plan: Plan, link: LinkPlan, used: bool) -> dict[str, Any]:
    queue = queue_in_packets(link.queue, plan.packet_bytes) if used else UNUSED
    return {"rate_p_s": rate_p_s(plan, link), "queue": queue}


def _flow(flow: FlowPlan, group: GroupPlan) -> dict[str, Any]:
    assert group.congestion is not None
    assert group.tcp is not None
    window_bytes = group.tcp.receive_window_bytes
    return {
        "path": [hop.link for hop in flow.forward.hops],
        "base_rtt_s": flow.base_rtt_s,
        "start_s": flow.start_s,
        "start_jitter_s": flow.start_jitter_s,
        "stop_s": flow.stop_s,
        "initial_window": float(group.tcp.initial_window),
        "largest_window": None if window_bytes is None else window_bytes / group.tcp.mss_bytes,
        "law": group.congestion.kind,
        "parameters": dict(group.congestion.parameters),
    }


def _controller(table: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a controller as the solver reads them. Results that it names have been measured before."""
    if chosen.get("from"):
        raise InputError(
            f'fluid.{table}.from: found "{chosen["from"]}", not measured yet; '
            "expected what ackclock.engines.resolve_inputs(engine, plan) puts in its place"
        )
    return {key: value for key, value in chosen.items() if key != "from"}


def queue_in_packets(queue: QueuePlan, packet_bytes: int) -> Queue:
    """Return a queue in packets. Raises `KeyError` for a discipline that is not in `QUEUES`."""
    return QUEUES[queue.discipline](queue.parameters, packet_bytes)


def _unsupported_start(group: GroupPlan) -> Iterator[str]:
    """HyStart's delay threshold is modelled for CUBIC; every other slow start ends with a loss."""
    if group.congestion is None:
        return
    kind, start = group.congestion.kind, group.congestion.parameters.get("slow_start")
    if start not in (None, "standard") and (kind, start) != ("cubic", "hystart"):
        yield f'congestion control "{kind}" with slow_start = {start}'


def _unsupported_queue(queue: QueuePlan) -> Iterator[str]:
    """Yield the parameters of a queue that the fluid model lacks."""
    if queue.discipline == "red":
        if queue.parameters["adaptive"]:
            yield "adaptive RED"
        if queue.parameters["weighted"]:
            yield "RED that weighs packets by their length"
        if queue.parameters["wait"]:
            yield "RED with wait"


def _pfifo(parameters: Mapping[str, Any], packet_bytes: int) -> Queue:
    return {"kind": "droptail", "limit_p": float(parameters["limit_packets"])}


def _bfifo(parameters: Mapping[str, Any], packet_bytes: int) -> Queue:
    return {"kind": "droptail", "limit_p": parameters["limit_bytes"] / packet_bytes}


def _red(parameters: Mapping[str, Any], packet_bytes: int) -> Queue:
    return {"limit_p": red.limit_in_packets(parameters, packet_bytes), **red.in_packets(parameters, packet_bytes)}


#: Discipline → function of its parameters and the bytes of a packet.
QUEUES: Mapping[str, Callable[[Mapping[str, Any], int], Queue]] = {"pfifo": _pfifo, "bfifo": _bfifo, "red": _red}


#: Feature of a plan whose hosts have equal-cost paths: a fluid takes one path.
SEVERAL_WAYS = "several equally short ways"


#: And where a way leads by a switch that is drawn.
BY_A_SWITCH = "Valiant's routing"


@dataclass(frozen=True, slots=True)
class _Reached:
    """The last link of a shortest path to a node (None: it is the start), and the number of shortest paths."""

    link: int | None
    ways: int


@dataclass(frozen=True, slots=True)
class _Way:
    """The links of a shortest way in their order, and whether there is no other."""

    links: tuple[int, ...]
    is_unique: bool


def laid(plan: Plan) -> Plan:
    """The plan with the links that each flow's data crosses; where the engine was to find them, it has.

    A way has the fewest links, and none leads through a host. Of several, it is one of them.
    """
    ways = _Ways(plan)

    def lay(flow: FlowPlan) -> FlowPlan:
        if flow.ends is None:
            return flow
        hops = tuple(_hop(plan, link) for link in ways.between(flow.ends).links)
        return replace(flow, forward=PathPlan(hops, 0.0))

    return replace(plan, flows=tuple(map(lay, plan.flows)))


def unsupported_routes(plan: Plan) -> Iterator[str]:
    """Yield the features of paths that the fluid model lacks: equal-cost paths, and ACKs that wait behind data."""
    if plan.routing == "valiant":
        yield BY_A_SWITCH
        return
    ways = _Ways(plan)
    pairs = {flow.ends for flow in plan.flows if flow.ends}
    there = [ways.between(ends) for ends in pairs]
    back = [ways.between(EndsPlan(ends.destination, ends.source)) for ends in pairs]
    if not all(way.is_unique for way in (*there, *back)):
        yield SEVERAL_WAYS
    elif {link for way in there for link in way.links} & {link for way in back for link in way.links}:
        yield features.REVERSE


def _hop(plan: Plan, link: int) -> HopPlan:
    """A link as a hop; its propagation is in the flow's base RTT, which is all that a fluid knows of it."""
    return HopPlan(plan.links[link].delay_s, link)


@dataclass
class _Ways:
    """The shortest ways of a plan's network."""

    plan: Plan
    _cache: dict[int, Mapping[int, _Reached]] = field(default_factory=dict)
    _out: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self._out = [[] for _ in self.plan.nodes]
        for number, link in enumerate(self.plan.links):
            if link.ends:
                self._out[link.ends.source].append(number)

    def between(self, ends: EndsPlan) -> _Way:
        """The way from one host to another; `KeyError` if there is none, which no scenario's plan has."""
        first = self._out[ends.source]
        if len(first) == 1:  # all hosts of a switch share what is known of it
            next_hop = self._ends(first[0]).destination
            return self._way(next_hop, ends.destination, tuple(first))
        return self._way(ends.source, ends.destination, ())

    def _way(self, start: int, destination: int, before: tuple[int, ...]) -> _Way:
        reached = self._from(start)
        links: list[int] = []
        node = destination
        while (link := reached[node].link) is not None:
            links.append(link)
            node = self._ends(link).source
        return _Way((*before, *reversed(links)), reached[destination].ways == 1)

    def _from(self, start: int) -> Mapping[int, _Reached]:
        """Return how each node is reached from one, level by level."""
        if start in self._cache:
            return self._cache[start]
        found = {start: _Reached(None, 1)}
        edge = found
        while edge:
            next_edge: dict[int, _Reached] = {}
            for node, here in edge.items():
                if self.plan.nodes[node].host and node != start:
                    continue
                for link in self._out[node]:
                    reached = self._ends(link).destination
                    if reached not in found:
                        others = next_edge[reached].ways if reached in next_edge else 0
                        next_edge[reached] = _Reached(link, here.ways + others)
            found = found | next_edge
            edge = next_edge
        self._cache[start] = found
        return found

    def _ends(self, link: int) -> EndsPlan:
        ends = self.plan.links[link].ends
        assert ends is not None
        return ends
