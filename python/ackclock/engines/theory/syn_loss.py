"""Transfers of one size over a link that loses data and SYNs at random: Braud's mean response time."""

from __future__ import annotations

from collections.abc import Iterator

from ackclock import theory
from ackclock.engines import features
from ackclock.engines.theory.model import ModelResult, controls, loss_probability, unsupported_features, wire_bytes
from ackclock.plan import Plan, TcpPlan

SUPPORTED = controls("reno") | {features.RANDOM_LOSS, features.FINITE, features.STARTS}


class SynLoss:
    """The response time by phases."""

    name = "syn-loss"

    def unsupported(self, plan: Plan) -> list[str]:
        """All but transfers of one size and one RTT over a link that loses at random and has room for them."""
        return unsupported_features(plan, SUPPORTED, any_queue=True) + list(_finer(plan))

    def is_stochastic(self, plan: Plan) -> bool:
        """A closed form: the seed changes nothing."""
        return False

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


def _finer(plan: Plan) -> Iterator[str]:
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
