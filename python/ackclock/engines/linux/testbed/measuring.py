"""Measurement of a path's rate and round-trip time, where a scenario leaves them to be measured.

TCP fills the path a few times for a few seconds. The rate is what arrived after the first of them, with the headers
that went with it; the round trip is the least that the senders' kernels saw: the handshakes find the path idle.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ackclock.engines.linux.testbed.layout import RECEIVER, SENDER, TESTBED, Tables, Testbed
from ackclock.errors import InputError
from ackclock.plan import CongestionPlan, FlowPlan, HopPlan, PathPairPlan, PathPairsPlan, PathPlan, Plan, TrafficPlan

#: Number of transfers, their duration, and the slow start at their beginning that does not count, in seconds.
REPEATS, DURATION_S, WARMUP_S = 3, 3.0, 1.0

#: Flows of each sender or receiver: one alone may not fill a path. They begin at their own times, within this.
FLOWS, SPREAD_S = 4, 0.01

#: Congestion control algorithm that fills a path: a loss-based one, since delay-based ones hold back.
CONTROL = "cubic"


@dataclass(frozen=True, slots=True)
class PathEstimate:
    """The rate of each transfer, in bit/s on the wire, and the least round trip, in seconds."""

    rates_bps: tuple[float, ...]
    rtt_s: float

    def as_dict(self) -> dict[str, Any]:
        """For the plan; the rate is the mean."""
        return {"rate_bps": float(np.mean(self.rates_bps)), "rates_bps": list(self.rates_bps), "rtt_s": self.rtt_s}


def probe(plan: Plan, controls: Collection[str]) -> Plan:
    """Endless flows between the hosts of a plan, with its TCP; `controls` are those that every host has.

    Raises `InputError` for a plan without TCP.
    """
    group = _group(plan)
    testbed = Testbed.of(plan)
    count = FLOWS * max(len(testbed.role(role)) for role in (SENDER, RECEIVER))
    there, back = PathPlan((HopPlan(0.0, 0),), 0.0), PathPlan((), 0.0)
    flow = FlowPlan(group, 0.0, SPREAD_S, None, None, None, None, 0, None, there, back, 0.0)
    groups = list(plan.groups)
    if CONTROL in controls:
        groups[group] = replace(groups[group], congestion=CongestionPlan(CONTROL, {}))
    record = replace(plan.record, pcap=False, packets=False)
    return replace(
        plan, duration_s=DURATION_S, warmup_s=WARMUP_S, groups=tuple(groups), flows=(flow,) * count, traffic=(),
        datagrams=(), changes=(), record=record,
    )  # fmt: skip


def estimate_path(plan: Plan, transfers: Sequence[Tables]) -> PathEstimate:
    """Measure a path from the tables of each transfer. Raises `InputError` if nothing arrived."""
    tcp, overhead_bytes = plan.groups[_group(plan)].tcp, plan.links[0].frame_overhead_bytes
    assert tcp is not None
    wire = 8 * (tcp.packet_bytes + overhead_bytes) / tcp.mss_bytes / (DURATION_S - WARMUP_S)
    rates_bps = tuple(wire * float(np.sum(tables["flows"]["measured_bytes"])) for tables in transfers)
    rtts_s = [rtt_s for tables in transfers for rtt_s in _finite_rtts(tables.get("limits", {}))]
    if not all(rates_bps) or not rtts_s:
        raise InputError("found a path that cannot be measured: nothing arrived; expected a way between its hosts")
    return PathEstimate(rates_bps, min(rtts_s))


def _finite_rtts(limits: Mapping[str, Any]) -> list[float]:
    seen_s = np.asarray(limits.get("least_rtt_s", ()), dtype=np.float64)
    return [float(rtt_s) for rtt_s in seen_s[np.isfinite(seen_s)] if rtt_s > 0]


def filled(plan: Plan, measured: PathEstimate) -> Plan:
    """The plan with what it left to be measured."""
    known = measured.as_dict()
    options = {**plan.options, TESTBED: {**plan.options[TESTBED], "measured": known}}
    made = replace(plan, options=options)
    if "rate" in plan.options[TESTBED]["measure"]:
        made = replace(made, links=(replace(plan.links[0], rate_bps=known["rate_bps"]), *plan.links[1:]))
    return _delayed(made, measured.rtt_s) if "rtt" in plan.options[TESTBED]["measure"] else made


def _delayed(plan: Plan, rtt_s: float) -> Plan:
    """Half of a round trip each way."""
    return replace(
        plan,
        mean_base_rtt_s=rtt_s,
        flows=tuple(_longer(flow, rtt_s) for flow in plan.flows),
        datagrams=tuple(_longer(source, rtt_s) for source in plan.datagrams),
        traffic=tuple(_users(traffic, rtt_s) for traffic in plan.traffic),
    )


def _users(traffic: TrafficPlan, rtt_s: float) -> TrafficPlan:
    if not isinstance(traffic.population, PathPairsPlan):
        return traffic
    paths: tuple[PathPairPlan, ...] = tuple(_longer(path, rtt_s) for path in traffic.population.paths)
    return replace(traffic, population=replace(traffic.population, paths=paths))


def _longer(way: Any, rtt_s: float) -> Any:
    forward, reverse = (replace(path, delay_s=rtt_s / 2) for path in (way.forward, way.reverse))
    return replace(way, forward=forward, reverse=reverse, base_rtt_s=rtt_s)


def _group(plan: Plan) -> int:
    for number, group in enumerate(plan.groups):
        if group.tcp is not None:
            return number
    raise InputError("found no TCP in the scenario; expected a group with it, by which its path is measured")
