"""Plans whose network programs use: the scenario's, with flows for their connections."""

from __future__ import annotations

import math
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, groupby
from typing import Any, NamedTuple

import numpy as np

from ackclock import _core
from ackclock.errors import InputError, ScenarioError
from ackclock.input.fields import nearest, shown
from ackclock.input.source import Source
from ackclock.plan import Plan, TrafficPlan
from ackclock.scenario import overrides, planning
from ackclock.scenario.planning import Loaded
from ackclock.shell.sockets import TOTALS, sender_of

#: Name of the groups of the programs' connections, and how many have a flow of their own: of all pairs of ends
#: together, and at least of each.
GROUP, FLOWS, MIN_FLOWS = "programs", 256, 8

#: Payload of a full datagram, with which queues are sized where the scenario has no TCP: 1500 B with its headers.
PACKET = "1472B"

#: Ends of a network without named hosts: the senders', then the receivers'.
PEER, PROGRAM = "peer", "program"
ENDS = (PEER, PROGRAM)

#: Most ends.
MAX_ENDS = 32

#: A run ends with its program; this is longer than any, in seconds (and a Time of the engine).
ENDLESS_S = 1e6

#: Transfers of the scenario's traffic that are made, about: all before the run begins, some 100 bytes each.
MAX_TRANSFERS = 500_000

#: Name in the dataset of the algorithm of a program's TCP.
UNKNOWN = "unknown"


class Route(NamedTuple):
    """A pair of ends, by number, and the flows for connections between them: the first, and that after the last."""

    sender: int
    receiver: int
    first: int
    after: int


def with_programs(source: Source, nodes: Sequence[str] = ()) -> Loaded:
    """The scenario with flows for programs, which may be all that it has.

    `nodes` are the hosts with programs; by default they are at the senders' and at the receivers' end. Raises
    `ScenarioError`, and `InputError` for nodes that cannot be.
    """
    if nodes and (len(set(nodes)) != len(nodes) or not 2 <= len(nodes) <= MAX_ENDS):
        raise InputError(f"at: found {', '.join(nodes)}; expected 2 to {MAX_ENDS} different hosts")
    pairs: list[dict[str, str]] = [{"from": one, "to": other} for one, other in combinations(nodes, 2)] or [{}]
    count = max(MIN_FLOWS, FLOWS // len(pairs))
    each = {"kind": "udp", "name": GROUP, "count": count, "rate": "1/s", "packet": PACKET}
    programs = [{**each, **pair} for pair in pairs]
    traffic = source.toml().get("traffic", [])
    changed = overrides.rewritten(source, {"traffic": [*traffic, *programs]}, "a path for programs")
    try:
        return planning.loaded(changed)
    except ScenarioError as error:
        ends = re.compile(r"traffic\[(\d+)\]\.(from|to)")
        for problem in error.problems:
            place = ends.fullmatch(problem.key)
            if nodes and place and int(place[1]) >= len(traffic):
                expected = problem.expected.partition(", or a pattern")[0]
                raise InputError(f"at: found {problem.found}; expected {expected}") from error
        raise


def planned(loaded: Loaded, seeds: Sequence[int] | None = None, nodes: Sequence[str] = ()) -> Plan:
    """The plan of what `with_programs` gave, for the first of its seeds or of `seeds`.

    Raises `ScenarioError`, and `InputError` for a node that is no host.
    """
    plan = loaded.plan()
    for node in nodes:
        if node not in (hosts := [each.name for each in plan.nodes]):
            raise InputError(f"at: found {shown(node)}; expected {nearest(node, hosts)}")
    first_group = len(plan.groups) - max(1, math.comb(len(nodes), 2))
    datagrams = tuple(
        replace(each, start_s=ENDLESS_S, source={"kind": "external"}) if each.group >= first_group else each
        for each in plan.datagrams
    )
    seeds = tuple(seeds or plan.seeds)[:1]
    end_s = traffic_end_s(plan, seeds[0])
    return replace(
        plan,
        duration_s=ENDLESS_S,
        warmup_s=0.0,
        seeds=seeds,
        traffic=tuple(_until(end_s, each) for each in plan.traffic),
        datagrams=datagrams,
    )


def traffic_end_s(plan: Plan, seed: int) -> float:
    """Return how long the traffic of a scenario's plan can last in the shell, in seconds, for about `MAX_TRANSFERS`."""
    if not plan.traffic:
        return ENDLESS_S
    transfers = len(_core.drawn(plan.engine_json, seed)["transfers"]["start_s"])
    return min(ENDLESS_S, plan.duration_s * MAX_TRANSFERS / max(1, transfers))


def _until(end_s: float, traffic: TrafficPlan) -> TrafficPlan:
    """Return traffic that stops that long after it has started, or when it does by itself."""
    stop_s = traffic.workload["stop_s"]
    latest_s = traffic.workload["start_s"] + end_s
    earlier_s = latest_s if stop_s is None else min(stop_s, latest_s)
    return replace(traffic, workload={**traffic.workload, "stop_s": earlier_s})


def routes(plan: Plan, ends: int) -> Iterator[Route]:
    """Yield the routes between a number of ends: the pairs in the order of `with_programs`."""
    external = [
        (len(plan.flows) + number, each.group)
        for number, each in enumerate(plan.datagrams)
        if each.source["kind"] == "external"
    ]
    groups = groupby(external, key=lambda each: each[1])
    for (sender, receiver), (_, flows) in zip(combinations(range(ends), 2), groups, strict=True):
        numbers = [number for number, _ in flows]
        yield Route(sender, receiver, numbers[0], numbers[-1] + 1)


def used_flows(rows: Mapping[str, Any], plan: Plan, connections: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the rows of flows: of those for programs only such as had connections that were not refused.

    A flow ends when its connections have: TCP when it was closed or reset, other protocols with their last packets.
    The congestion control of a program's TCP is unknown unless the kernel has reported it. The kernel's totals are
    those of the ends that send the data, over all connections of the flow.
    """
    external = {
        len(plan.flows) + number for number, each in enumerate(plan.datagrams) if each.source["kind"] == "external"
    }
    of_flow: dict[int, list[Mapping[str, Any]]] = {}
    for each in connections:
        if not each["is_rejected"]:
            of_flow.setdefault(each["flow"], []).append(each)
    flows = [int(flow) for flow in np.asarray(rows["flow"])]
    kept = [flow not in external or flow in of_flow for flow in flows]
    tcp = {flow for flow, those in of_flow.items() if any(each["protocol"] == socket.IPPROTO_TCP for each in those)}
    changed = {
        **rows,
        **_of_kernel(rows, flows, {flow: [sender_of(each["tcp"]) for each in of_flow[flow]] for flow in tcp}),
        "end_s": [
            _end_s(of_flow[flow]) if flow in of_flow else end_s
            for flow, end_s in zip(flows, np.asarray(rows["end_s"]).tolist(), strict=True)
        ],
    }
    return {name: [value for value, keep in zip(column, kept, strict=True) if keep] for name, column in changed.items()}


def _of_kernel(
    rows: Mapping[str, Any], flows: Sequence[int], known: Mapping[int, Sequence[Mapping[str, Any]]]
) -> dict[str, list[Any]]:
    """Return the columns of flows that the kernel knows of TCP's, by the statistics of their connections."""
    named = {flow: {str(one.get("congestion") or UNKNOWN) for one in those} for flow, those in known.items()}
    columns: dict[str, dict[int, Any]] = {
        "congestion": {flow: names.pop() if len(names) == 1 else UNKNOWN for flow, names in named.items()}
    }
    for name, statistic in TOTALS.items():
        columns[name] = {flow: _total([one.get(statistic) for one in those]) for flow, those in known.items()}
    return {
        name: [by_flow.get(flow, value) for flow, value in zip(flows, np.asarray(rows[name]).tolist(), strict=True)]
        for name, by_flow in columns.items()
    }


def _total(counts: Sequence[int | None]) -> int | None:
    """Return a sum; None if part of it is unknown."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _end_s(connections: Sequence[Mapping[str, Any]]) -> float:
    """Return the time of the last packet of connections; NaN if one of TCP is still open."""
    if any(each["protocol"] == socket.IPPROTO_TCP and not each["is_closed"] for each in connections):
        return math.nan
    return max(float(each["last_s"]) for each in connections)
