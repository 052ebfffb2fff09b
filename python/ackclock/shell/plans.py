"""Plans whose network programs use: the scenario's, with flows for their connections."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ackclock.input.source import Source
from ackclock.plan import Plan
from ackclock.scenario import overrides, planning
from ackclock.scenario.planning import Loaded

#: Name of the group of the programs' connections, and how many have a flow of their own.
GROUP, FLOWS = "programs", 256

#: A run ends with its program; this is longer than any, in seconds (and a Time of the engine).
ENDLESS_S = 1e6

#: Name in the dataset of the algorithm of a program's TCP.
UNKNOWN = "unknown"


def with_programs(source: Source) -> Loaded:
    """The scenario with flows for programs, which may be all that it has. Raises `ScenarioError`."""
    traffic = source.toml().get("traffic", [])
    programs = {"kind": "udp", "name": GROUP, "count": FLOWS, "rate": "1/s", "packet": "1B"}
    return planning.loaded(overrides.rewritten(source, {"traffic": [*traffic, programs]}, "a path for the program"))


def planned(loaded: Loaded, seeds: Sequence[int] | None = None) -> Plan:
    """The plan of what `with_programs` gave, for the first of its seeds or of `seeds`. Raises `ScenarioError`."""
    plan = loaded.plan()
    group = len(plan.groups) - 1
    datagrams = tuple(
        replace(each, start_s=ENDLESS_S, source={"kind": "external"}) if each.group == group else each
        for each in plan.datagrams
    )
    record = replace(plan.record, pcap=False)
    return replace(
        plan,
        duration_s=ENDLESS_S,
        warmup_s=0.0,
        seeds=tuple(seeds or plan.seeds)[:1],
        datagrams=datagrams,
        record=record,
    )


def program_flows(plan: Plan) -> tuple[int, int]:
    """Return the numbers of the flows for programs: the first, and that after the last."""
    end = len(plan.flows) + len(plan.datagrams)
    return end - FLOWS, end


def used_flows(rows: Mapping[str, Any], plan: Plan, connections: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the rows of flows without those for programs that had no packets; which algorithm a TCP has is unknown."""
    first, end = program_flows(plan)
    numbers = np.asarray(rows["flow"])
    kept = (numbers < first) | (numbers >= end) | np.isfinite(np.asarray(rows["start_s"]))
    tcp = {each["flow"] for each in connections if each["protocol"] == socket.IPPROTO_TCP}
    names = [UNKNOWN if flow in tcp else name for flow, name in zip(numbers, rows["congestion"], strict=True)]
    return {
        name: [value for value, keep in zip(column, kept, strict=True) if keep]
        for name, column in {**rows, "congestion": names}.items()
    }
