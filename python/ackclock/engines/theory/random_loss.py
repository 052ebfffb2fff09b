"""Flows over a link that loses packets at random and never fills, by formulas.

Endless flows get what their response function gives. Reno: Padhye's formula with timeouts. CUBIC: RFC 9438's average
window. HighSpeed TCP: RFC 3649's. BIC, H-TCP and Scalable TCP: Guillier's c/pᵈ; for BIC and H-TCP these are not the
slopes of the algorithms as they are run (see `ackclock.theory.throughput`). But for Padhye's, the formulas are for
periodic losses.

Transfers of one size, whose SYNs may be lost as well, take Braud's mean response time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ackclock import theory
from ackclock.engines import features
from ackclock.engines.theory.model import (
    Model,
    ModelResult,
    controls,
    endless,
    loss_probability,
    timeout_s,
    unsupported_features,
    wire_bytes,
)
from ackclock.plan import CongestionPlan, FlowPlan, Plan, TcpPlan

SUPPORTED = controls("reno", "cubic", "bic", "highspeed", "htcp", "scalable") | {
    features.RANDOM_LOSS,
    features.STARTS,
    features.SIZES,
}

#: Scalable TCP's constant 0.08 is that of these (Kelly 2003).
SCALABLE = {"a": 0.01, "b": 0.125}


class RandomLoss(Model):
    """Response functions."""

    name = "random-loss"

    def unsupported(self, plan: Plan) -> list[str]:
        """All but endless flows over one link that loses at random and has room for them."""
        return unsupported_features(plan, SUPPORTED, any_queue=True) + list(_finer(plan))

    def evaluate(self, plan: Plan, seed: int) -> ModelResult:
        """Goodputs, windows, and what the link carries."""
        link, p = plan.bottleneck_link, loss_probability(plan.bottleneck_link) or 0.0
        flows = [(*_parts(plan, flow), flow.base_rtt_s) for flow in plan.flows]
        windows = [window(congestion, tcp, p, rtt_s) for congestion, tcp, rtt_s in flows]
        segments_hz = [each / rtt_s for each, (_, _, rtt_s) in zip(windows, flows, strict=True)]
        goodputs = [8 * tcp.mss_bytes * hz * (1 - p) for hz, (_, tcp, _) in zip(segments_hz, flows, strict=True)]
        carried = [8 * wire_bytes(tcp, link) * hz * (1 - p) for hz, (_, tcp, _) in zip(segments_hz, flows, strict=True)]
        return ModelResult(
            {
                "goodput_bps": sum(goodputs),
                "goodput_flow_bps": goodputs,
                "throughput_bps": sum(carried),
                "utilisation": sum(carried) / link.rate_bps,
                "efficiency": sum(goodputs) / link.rate_bps,
                "cwnd_mean": sum(windows) / len(windows),
                "cwnd_flow": windows,
                "loss_rate": p,
                "retransmission_rate": p,
                "rtt_mean_s": plan.mean_base_rtt_s,
            }
        )


def window(congestion: CongestionPlan, tcp: TcpPlan, p: float, rtt_s: float) -> float:
    """The average window in segments; Reno's is what makes its rate, timeouts included."""
    most = tcp.receive_window_bytes / tcp.mss_bytes if tcp.receive_window_bytes else math.inf
    if congestion.kind == "reno":
        rate_bps = theory.pftk(p, rtt_s, tcp.mss_bytes, rto_s=timeout_s(tcp, rtt_s), max_window=most)
        return float(rate_bps * rtt_s / 8 / tcp.mss_bytes)
    return min(most, float(_free_window(congestion, p, rtt_s)))


def _free_window(congestion: CongestionPlan, p: float, rtt_s: float) -> float:
    given = congestion.parameters
    if congestion.kind == "cubic":
        return theory.cubic_window(p, rtt_s, c=given["c"], beta=given["beta"], friendly=given["reno_friendly"])
    if congestion.kind == "highspeed":
        return theory.highspeed_window(p)
    return theory.response_window(congestion.kind, p)


def _finer(plan: Plan) -> Iterator[str]:
    if not endless(plan) or plan.traffic or plan.datagrams:
        yield "response function of flows that end"
        return
    if loss_probability(plan.bottleneck_link) is None:
        yield "answer without random loss"
        return
    if any(_parts(plan, flow)[0].kind == "scalable" and _other_constants(plan, flow) for flow in plan.flows):
        yield "response function of Scalable TCP with other constants"
    if not unsupported_features(plan, SUPPORTED, any_queue=True) and _demand_bps(plan) > plan.bottleneck_link.rate_bps:
        yield "response function of flows that fill the link"


def _demand_bps(plan: Plan) -> float:
    """Return the rate that the flows would send at, in bit/s."""
    link, p = plan.bottleneck_link, loss_probability(plan.bottleneck_link) or 0.0
    parts = [(*_parts(plan, flow), flow.base_rtt_s) for flow in plan.flows]
    return sum(
        8 * wire_bytes(tcp, link) * window(congestion, tcp, p, rtt_s) / rtt_s for congestion, tcp, rtt_s in parts
    )


def _other_constants(plan: Plan, flow: FlowPlan) -> bool:
    given = _parts(plan, flow)[0].parameters
    return any(given[name] != value for name, value in SCALABLE.items())


def _parts(plan: Plan, flow: FlowPlan) -> tuple[CongestionPlan, TcpPlan]:
    group = plan.groups[flow.group]
    assert group.congestion
    assert group.tcp
    return group.congestion, group.tcp


OF_TRANSFERS = controls("reno") | {features.RANDOM_LOSS, features.FINITE, features.STARTS}


class SynLoss(Model):
    """The response time by phases."""

    name = "syn-loss"

    def unsupported(self, plan: Plan) -> list[str]:
        """All but transfers of one size and one RTT over a link that loses at random and has room for them."""
        return unsupported_features(plan, OF_TRANSFERS, any_queue=True) + list(_finer_of_transfers(plan))

    def evaluate(self, plan: Plan, seed: int) -> ModelResult:
        """Completion times: they end with the acknowledgement of the last byte, so the FIN's round trip is left out."""
        tcp, p_syn = _tcp(plan), _syn_probability(plan)
        found = theory.response_time(
            float(_segments(plan)),
            plan.flows[0].base_rtt_s,
            loss_probability(plan.bottleneck_link) or 0.0,
            p_syn=p_syn,
            rto_s=tcp.initial_rto_s,
            recovery_s=plan.options["theory"]["syn_loss"]["recovery_s"],
            initial_window=tcp.initial_window,
        )
        mean_s = float(found.total_s - found.fin_s)
        kept_s = mean_s - found.retried_s
        lost = {"fct_syn_lost_s": kept_s + found.retried_s / p_syn} if p_syn else {}
        return ModelResult(
            {
                "fct_mean_s": mean_s,
                "fct_km_mean_s": mean_s,
                "fct_syn_kept_s": kept_s,
                "syn_retransmission_rate": p_syn,
                "syn_retransmission_probability": p_syn,
                **lost,
            }
        )


def _finer_of_transfers(plan: Plan) -> Iterator[str]:
    sizes = {flow.size_bytes for flow in plan.flows}
    if plan.traffic or plan.datagrams or None in sizes or len(sizes) != 1:
        yield "response time of transfers of several sizes"
        return
    if len({flow.base_rtt_s for flow in plan.flows}) > 1:
        yield "response time over several RTTs"
    if len({flow.group for flow in plan.flows}) > 1:
        yield "response time of several groups"
    link = plan.bottleneck_link
    if loss_probability(link) is None or (link.loss or {})["kind"] == "every":
        yield "response time without losses by chance"
    if _syn_probability(plan) >= 0.5:
        yield "mean response time where half of the SYNs are lost"
    elif 8 * _segments(plan) * wire_bytes(_tcp(plan), link) * len(plan.flows) > link.rate_bps * plan.duration_s:
        yield "response time of transfers that fill the link"


def _tcp(plan: Plan) -> TcpPlan:
    tcp = plan.groups[plan.flows[0].group].tcp
    assert tcp
    return tcp


def _segments(plan: Plan) -> int:
    return -(-(plan.flows[0].size_bytes or 0) // _tcp(plan).mss_bytes)


def _syn_probability(plan: Plan) -> float:
    return float((plan.bottleneck_link.loss or {}).get("syn", 0.0))
