"""One endless CUBIC flow through one drop-tail queue: its window from loss to loss (Belhareth 2014, chapter 2).

The flow of the plan becomes a `SingleFlow`: capacity in full packets, β as the share given up, ACKs counted two at a
time where they are delayed and growth counts ACKs. Slow start is not modelled: the flow begins as if a loss had just
been seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ackclock.dataset.tables import EVENT_KINDS, Column
from ackclock.engines import features
from ackclock.engines.theory.model import Model, ModelResult, controls, endless, unsupported_features
from ackclock.plan import GroupPlan, Plan
from ackclock.theory import single_flow

SUPPORTED = controls("cubic") | {features.queue("pfifo"), features.queue("bfifo"), features.STARTS}

DROP, RECOVERY = EVENT_KINDS.index("drop"), EVENT_KINDS.index("recovery")


class SingleCubic(Model):
    """A flow alone with its queue."""

    name = "single-cubic"

    def unsupported(self, plan: Plan) -> list[str]:
        """All but one endless CUBIC flow over one drop-tail queue."""
        return unsupported_features(plan, SUPPORTED) + list(_finer(plan))

    def evaluate(self, plan: Plan, seed: int) -> ModelResult:
        """Samples, losses and counts; nothing is random."""
        flow, start_s = as_single_flow(plan), plan.flows[0].start_s
        steps = np.arange(1.0, round(plan.duration_s / plan.record.interval_s) + 1)
        times_s = steps * np.float64(plan.record.interval_s)
        seen = single_flow.at_times(flow, times_s[times_s > start_s] - start_s)
        losses = _losses(flow, plan)
        measured = losses["time_s"] >= plan.warmup_s
        dropped = int(np.sum(measured & (losses["kind"] == DROP)))
        edges_s = np.clip(np.array([plan.warmup_s, plan.duration_s]) - start_s, 0, None)
        sent = [int(count) for count in single_flow.at_times(flow, edges_s).sent]
        return ModelResult(
            tables={
                "flows": _flow(plan, sent, int(np.sum(losses["kind"] == DROP)), dropped),
                "flow_samples": _flow_samples(flow, plan, seen),
                "queue_samples": _queue_samples(flow, plan, seen, losses),
                "events": losses,
                "links": _link(plan, sent[1] - sent[0], dropped),
            }
        )


def as_single_flow(plan: Plan) -> single_flow.SingleFlow:
    """The flow of a plan that fits."""
    group, options = plan.groups[plan.flows[0].group], plan.options["theory"]["single_cubic"]
    given = group.congestion.parameters if group.congestion else {}
    rounding = options["rounding"]
    if rounding == "as_sent":
        rounding = "window" if given["whole_segments"] else "nothing"
    return single_flow.SingleFlow(
        capacity_pps=plan.bottleneck_link.rate_bps / (8 * _wire_bytes(plan)),
        rtt_s=plan.flows[0].base_rtt_s,
        buffer_p=_buffer_p(plan),
        beta=1 - given["beta"],
        c=given["c"],
        packets_per_ack=_packets_per_ack(group),
        fast_convergence=given["fast_convergence"],
        growth=options["growth"],
        rounding=rounding,
        loss_detection=options["loss_detection"],
    )


def _packets_per_ack(group: GroupPlan) -> float:
    """Two if ACKs are delayed and it is they that are counted."""
    given = group.congestion.parameters if group.congestion else {}
    delayed = group.tcp is not None and group.tcp.delayed_ack != "off"
    return 2.0 if delayed and not given["delayed_ack_correction"] else 1.0


def _wire_bytes(plan: Plan) -> int:
    tcp = plan.groups[plan.flows[0].group].tcp
    assert tcp
    return tcp.packet_bytes + plan.bottleneck_link.frame_overhead_bytes


def _buffer_p(plan: Plan) -> float:
    given = plan.bottleneck_link.queue.parameters
    return float(given["limit_packets"]) if "limit_packets" in given else given["limit_bytes"] / _wire_bytes(plan)


def _finer(plan: Plan) -> Iterator[str]:
    if len(plan.flows) != 1 or not endless(plan) or plan.traffic or plan.datagrams:
        yield "window over time of more than one endless flow"
        return
    group = plan.groups[plan.flows[0].group]
    if group.congestion is None or group.tcp is None or group.congestion.kind != "cubic":
        return
    if not group.congestion.parameters["reno_friendly"] or group.congestion.parameters["reno_catch_up"]:
        yield "CUBIC with another estimate of Reno's window"
    if unsupported_features(plan, SUPPORTED):
        return
    limit_bytes = group.tcp.receive_window_bytes
    if limit_bytes is not None and limit_bytes <= as_single_flow(plan).loss_window * group.tcp.mss_bytes:
        yield "window over time of a flow that its receiver holds back"


def _losses(flow: single_flow.SingleFlow, plan: Plan) -> dict[str, np.ndarray]:
    """Drops from when the window is too large until that is seen, and then the reduction."""
    found: list[tuple[float, int]] = []
    start_s = plan.flows[0].start_s
    for since_s, cycle in single_flow.timeline(flow, plan.duration_s - start_s):
        drops_s = np.linspace(cycle.lost_s, cycle.end_s, cycle.lost_p, endpoint=False)
        found += [(start_s + since_s + at_s, DROP) for at_s in drops_s]
        found.append((start_s + since_s + cycle.end_s, RECOVERY))
    times_s, kinds = np.array([row[0] for row in found]), np.array([row[1] for row in found])
    inside = times_s <= plan.duration_s
    count = int(inside.sum())
    link = np.where(kinds[inside] == DROP, plan.bottleneck, 2**32 - 1)
    return {
        "time_s": times_s[inside],
        "flow": np.zeros(count, np.uint32),
        "link": link.astype(np.uint32),
        "kind": kinds[inside].astype(np.uint8),
    }


def _flow_samples(flow: single_flow.SingleFlow, plan: Plan, seen: single_flow.Trajectory) -> Mapping[str, Column]:
    mss_bytes = _mss_bytes(plan)
    in_flight = np.minimum(seen.windows, flow.full_p)
    return {
        "time_s": plan.flows[0].start_s + seen.times_s,
        "flow": np.zeros(seen.times_s.size, np.uint32),
        "cwnd": seen.windows,
        "srtt_s": np.maximum(flow.rtt_s, in_flight / flow.capacity_pps),
        "in_flight": in_flight,
        "delivered_bytes": np.floor(seen.sent).astype(np.uint64) * np.uint64(mss_bytes),
    }


def _queue_samples(
    flow: single_flow.SingleFlow, plan: Plan, seen: single_flow.Trajectory, losses: Mapping[str, np.ndarray]
) -> Mapping[str, Column]:
    times_s, interval_s = plan.flows[0].start_s + seen.times_s, plan.record.interval_s
    departures = np.diff(np.floor(seen.sent), prepend=0.0)
    drops_s = losses["time_s"][losses["kind"] == DROP]
    return {
        "time_s": times_s,
        "link": np.full(times_s.size, plan.bottleneck, np.uint32),
        "backlog_p": seen.queue,
        "backlog_bytes": seen.queue * _wire_bytes(plan),
        "sojourn_s": seen.queue / flow.capacity_pps,
        "departures_p": departures.astype(np.uint64),
        "drops_p": np.diff(np.searchsorted(drops_s, times_s, side="right"), prepend=0).astype(np.uint64),
        "utilisation": np.diff(seen.sent, prepend=0.0) / (flow.capacity_pps * interval_s),
    }


def _flow(plan: Plan, sent: list[int], lost: int, measured_lost: int) -> Mapping[str, Column]:
    """The one flow; packets sent again are those lost, and all that is sent arrives in order."""
    return {
        "flow": np.zeros(1, np.uint32),
        "group": np.array([plan.flows[0].group], np.uint32),
        "congestion": ["cubic"],
        "base_rtt_s": np.array([plan.flows[0].base_rtt_s]),
        "start_s": np.array([plan.flows[0].start_s]),
        "delivered_bytes": np.array([sent[1] * _mss_bytes(plan)], np.uint64),
        "measured_bytes": np.array([(sent[1] - sent[0]) * _mss_bytes(plan)], np.uint64),
        "sent_packets": np.array([sent[1] + lost], np.uint64),
        "retransmissions": np.array([lost], np.uint64),
        "dropped_packets": np.array([lost], np.uint64),
        "measured_sent_packets": np.array([sent[1] - sent[0] + measured_lost], np.uint64),
        "measured_retransmissions": np.array([measured_lost], np.uint64),
        "timeouts": np.zeros(1, np.uint64),
        "measured_timeouts": np.zeros(1, np.uint64),
    }


def _link(plan: Plan, departed: int, dropped: int) -> Mapping[str, Column]:
    link = plan.bottleneck_link
    return {
        "link": np.array([plan.bottleneck], np.uint32),
        "name": [link.name],
        "bottleneck": [True],
        "rate_bps": np.array([link.rate_bps]),
        "arrived_p": np.array([departed + dropped], np.uint64),
        "dropped_p": np.array([dropped], np.uint64),
        "lost_p": np.zeros(1, np.uint64),
        "departed_p": np.array([departed], np.uint64),
        "departed_bytes": np.array([departed * _wire_bytes(plan)], np.uint64),
    }


def _mss_bytes(plan: Plan) -> int:
    tcp = plan.groups[plan.flows[0].group].tcp
    assert tcp
    return tcp.mss_bytes
