"""Two antiparallel New Reno flows on an asymmetric line: `ackclock.theory.pendulum` as a model of the engine.

Not modelled, and so left null: how many packets a loss costs. A loss is one `drop` event for each flow that it hits,
and a `recovery` at the same instant. ACKs are in the backlog where the queue counts packets, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ackclock.dataset.tables import EVENT_KINDS, Column
from ackclock.engines import features
from ackclock.engines.theory.model import Model, ModelResult, unsupported_features, wire_bytes
from ackclock.plan import FlowPlan, Plan, TcpPlan
from ackclock.theory import pendulum
from ackclock.theory.pendulum import Side, Trajectory

#: Features that it models as the packet engine does. Slow start is left out, and so is the time to the first loss.
SUPPORTED = frozenset(
    {
        features.congestion("reno"),
        features.queue("pfifo"),
        features.queue("bfifo"),
        features.REVERSE,
        features.STARTS,
        features.SIZES,
    }
)

#: The probability of a simultaneous loss where the scenario does not say: section 4.3 takes it for certain, and
#: section 4.4, of queues in packets, leaves such losses out.
SIMULTANEOUS = {"bfifo": 1.0, "pfifo": 0.0}

Times = npt.NDArray[np.float64]


class Pendulum(Model):
    """Braud 2016, chapter 4."""

    name = "pendulum"

    def unsupported(self, plan: Plan) -> list[str]:
        """List what of the plan it does not support, in a few words each; empty if it fits."""
        fits = _is_antiparallel(plan)
        finer = _finer(plan) if fits else ["traffic but one flow in each direction of a line"]
        return [*finer, *unsupported_features(plan, SUPPORTED)]

    def is_stochastic(self, plan: Plan) -> bool:
        """Return True if simultaneous losses are drawn."""
        drawn = plan.options["theory"]["pendulum"]["simultaneous_losses"] == "drawn"
        return bool(drawn and 0 < _simultaneous(plan) < 1)

    def evaluate(self, plan: Plan, seed: int) -> ModelResult:
        """Both windows and queues over time."""
        made = _Line.of(plan, seed)
        return ModelResult(
            tables={
                "flows": made.flows(),
                "flow_samples": made.flow_samples(),
                "queue_samples": made.queue_samples(),
                "events": made.events(),
                "links": made.links(),
            }
        )


def _is_antiparallel(plan: Plan) -> bool:
    """Return True if there are two flows, and the data of each shares a link with the ACKs of the other."""
    ways = [[[hop.link for hop in path.hops] for path in (flow.forward, flow.reverse)] for flow in plan.flows]
    return len(plan.links) == 2 and sorted(ways) == [[[0], [1]], [[1], [0]]] and not (plan.traffic or plan.datagrams)


def _finer(plan: Plan) -> Iterator[str]:
    if max(flow.start_s for flow in plan.flows) > plan.warmup_s:
        yield "flow that starts after the warm-up"
    sides, tcps = _sides(plan), [_tcp(plan, flow) for flow in _by_link(plan)]
    for side, tcp in zip(sides, tcps, strict=True):
        if side.full_p < pendulum.MIN_P:
            yield "way that holds less than two packets"
        if tcp.receive_window_bytes is not None and tcp.receive_window_bytes < side.full_p * tcp.mss_bytes:
            yield "receive window that limits a flow"
    if len({tcp.delayed_ack == "off" for tcp in tcps}) > 1:
        yield "flows that differ in delayed ACKs"


def _by_link(plan: Plan) -> list[FlowPlan]:
    """The flows in the order of the links that their data go over: the download, the upload."""
    return sorted(plan.flows, key=lambda flow: flow.forward.hops[0].link)


def _tcp(plan: Plan, flow: FlowPlan) -> TcpPlan:
    tcp = plan.groups[flow.group].tcp
    if tcp is None:
        raise TypeError("a flow without TCP")
    return tcp


def _wire_bytes(plan: Plan) -> list[int]:
    """A full packet of either flow on its link."""
    return [wire_bytes(_tcp(plan, flow), link) for flow, link in zip(_by_link(plan), plan.links, strict=True)]


def _sides(plan: Plan) -> tuple[Side, Side]:
    down, up = (
        Side(link.rate_bps / (8 * wire), _limit_p(link.queue.parameters, wire), flow.base_rtt_s, _in_packets(link))
        for link, flow, wire in zip(plan.links, _by_link(plan), _wire_bytes(plan), strict=True)
    )
    return down, up


def _in_packets(link: Any) -> bool:
    return bool(link.queue.discipline == "pfifo")


def _limit_p(parameters: Mapping[str, Any], wire_bytes: int) -> float:
    if "limit_packets" in parameters:
        return float(parameters["limit_packets"])
    return float(parameters["limit_bytes"]) / wire_bytes


@dataclass(frozen=True)
class _Line:
    """A trajectory as the tables of a run; columns are in the order of the links."""

    plan: Plan
    begin_s: float
    way: Trajectory
    wire_bytes: npt.NDArray[np.float64]
    payload_bytes: npt.NDArray[np.float64]

    @staticmethod
    def of(plan: Plan, seed: int) -> _Line:
        """Follows both flows from the start of the later one, jitters taken at their means."""
        flows, options = _by_link(plan), plan.options["theory"]["pendulum"]
        begin_s = max(flow.start_s + flow.start_jitter_s / 2 for flow in flows)
        tcps = [_tcp(plan, flow) for flow in flows]
        acked = 1.0 if tcps[0].delayed_ack == "off" else 2.0
        way = pendulum.follow(
            *_sides(plan),
            max(plan.duration_s - begin_s, plan.record.interval_s),
            simultaneous=_simultaneous(plan),
            seed=seed if options["simultaneous_losses"] == "drawn" else None,
            growth_p=1 / acked if options["growth"] == "acks" else 1.0,
            acked=1.0 if options["ack_places"] == "acknowledged" else acked,
            begin_p=(float(tcps[0].initial_window), float(tcps[1].initial_window)),
        )
        wire, payload = np.array(_wire_bytes(plan), float), np.array([tcp.mss_bytes for tcp in tcps], float)
        return _Line(plan, begin_s, way, wire, payload)

    @property
    def _numbers(self) -> list[int]:
        """The flows' numbers in the order of the links."""
        return sorted(range(2), key=lambda number: self.plan.flows[number].forward.hops[0].link)

    def _grid(self) -> tuple[Times, Times, npt.NDArray[np.bool_]]:
        """Sample times, times since both flows began (at least 0), and whether they had."""
        interval_s = self.plan.record.interval_s
        count = int(self.plan.duration_s / interval_s * (1 + 1e-12)) + 1
        times_s: Times = np.asarray(np.arange(count) * interval_s)
        since_s: Times = np.maximum(times_s - self.begin_s, 0)
        return times_s, since_s, times_s >= self.begin_s

    def _delivered_p(self, at_s: float) -> npt.NDArray[np.float64]:
        return np.asarray(self.way.delivered_p([max(at_s - self.begin_s, 0.0)])[0])

    def _measured_p(self) -> npt.NDArray[np.float64]:
        return self._delivered_p(self.plan.duration_s) - self._delivered_p(self.plan.warmup_s)

    def _by_flow(self, of_links: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Columns of the links as columns of the flows."""
        return of_links[..., np.argsort(self._numbers)]

    def flows(self) -> Mapping[str, Column]:
        """One row a flow."""
        hits = [sum(n in loss.flows for loss in self.way.losses()) for n in range(2)]
        return {
            "flow": np.arange(2, dtype=np.uint32),
            "group": np.array([flow.group for flow in self.plan.flows], np.uint32),
            "source": ["sender-0", "sender-1"],
            "destination": ["receiver-0", "receiver-1"],
            "congestion": ["reno", "reno"],
            "base_rtt_s": np.array([flow.base_rtt_s for flow in self.plan.flows]),
            "start_s": np.full(2, self.begin_s),
            "delivered_bytes": _to_uint64(self._by_flow(self._delivered_p(self.plan.duration_s) * self.payload_bytes)),
            "measured_bytes": _to_uint64(self._by_flow(self._measured_p() * self.payload_bytes)),
            "recoveries": _to_uint64(self._by_flow(np.array(hits, float))),
        }

    def flow_samples(self) -> Mapping[str, Column]:
        """Windows, RTTs and bytes."""
        times_s, since_s, _ = self._grid()
        windows = self._by_flow(self.way.windows_p(since_s))
        return {
            "time_s": np.repeat(times_s, 2),
            "flow": np.tile(np.arange(2, dtype=np.uint32), times_s.size),
            "cwnd": windows.reshape(-1),
            "in_flight": windows.reshape(-1),
            "srtt_s": self._by_flow(self.way.rtts_s(since_s)).reshape(-1),
            "delivered_bytes": _to_uint64(
                self._by_flow(self.way.delivered_p(since_s) * self.payload_bytes).reshape(-1),
            ),
        }

    def queue_samples(self) -> Mapping[str, Column]:
        """Backlogs, delays and use of both links."""
        times_s, since_s, begun = self._grid()
        waits_s = self.way.waits_s(since_s) * begun[:, None]
        queued = self.way.queues_p(since_s) * begun[:, None]
        counted = np.array([side.counts_acks for side in self.way.sides])
        left = np.floor(self.way.delivered_p(since_s))
        departures = np.diff(left, axis=0, prepend=left[:1])
        rates_p = np.array([side.rate_p for side in self.way.sides])
        return {
            "time_s": np.repeat(times_s, 2),
            "link": np.tile(np.arange(2, dtype=np.uint32), times_s.size),
            "backlog_p": (queued + self.way.acks_p(since_s) * begun[:, None] * counted).reshape(-1),
            "backlog_bytes": (queued * self.wire_bytes).reshape(-1),
            "sojourn_s": waits_s.reshape(-1),
            "departures_p": departures.astype(np.uint64).reshape(-1),
            "utilisation": (departures / (rates_p * self.plan.record.interval_s)).reshape(-1),
        }

    def events(self) -> Mapping[str, Column]:
        """A drop and a recovery for each flow that a loss hits."""
        hits = [(self.begin_s + loss.time_s, side) for loss in self.way.losses() for side in loss.flows]
        sides = np.array([side for _, side in hits], dtype=np.uint32)
        kinds = np.array([EVENT_KINDS.index("drop"), EVENT_KINDS.index("recovery")], np.uint8)
        return {
            "time_s": np.repeat(np.array([at for at, _ in hits], float), 2),
            "flow": np.repeat(np.array(self._numbers, np.uint32)[sides], 2),
            "link": np.repeat(sides, 2),
            "kind": np.tile(kinds, sides.size),
        }

    def links(self) -> Mapping[str, Column]:
        """Data that left and data that waited in the measured part."""
        plan, measured = self.plan, self._measured_p()
        span = (max(plan.warmup_s - self.begin_s, 0.0), max(plan.duration_s - self.begin_s, 1e-9))
        queued = np.array(self.way.mean_queues_p(*span))
        return {
            "link": np.arange(2, dtype=np.uint32),
            "name": [link.name for link in plan.links],
            "bottleneck": [link.bottleneck for link in plan.links],
            "rate_bps": np.array([link.rate_bps for link in plan.links]),
            "departed_p": _to_uint64(measured),
            "departed_bytes": _to_uint64(measured * self.wire_bytes),
            "backlog_mean_bytes": queued * self.wire_bytes,
        }


def _simultaneous(plan: Plan) -> float:
    """The scenario's, else the thesis's for these queues."""
    given = plan.options["theory"]["pendulum"]["simultaneous_loss"]
    return min(SIMULTANEOUS[link.queue.discipline] for link in plan.links) if given is None else float(given)


def _to_uint64(values: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    return np.floor(values).astype(np.uint64)
