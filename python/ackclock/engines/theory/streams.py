"""Parallel streams of one AIMD control over a link with a small buffer: Altman's formula.

N are the streams of a source. Sources with access links of their own are taken to lose together, each one stream at a
time, which is how Guillier sets the formula beside her measurement; without access links all flows are the streams of
one source, which is what the formula is derived for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ackclock import theory
from ackclock.engines import features
from ackclock.engines.theory.model import ModelResult, controls, endless, unsupported_features, wire_bytes
from ackclock.plan import CongestionPlan, LinkPlan, Plan

SUPPORTED = controls("reno", "cubic", "bic", "scalable") | {
    features.queue("pfifo"),
    features.queue("bfifo"),
    features.SEVERAL_LINKS,
    features.STARTS,
}

#: The formula has no buffer. Up to this share of the bandwidth–delay product it is still near (the sawtooth of a
#: single Reno stream has 87 % of the link then, and not 75 %).
LARGEST_BUFFER = 0.2


class Streams:
    """Altman's total of parallel streams."""

    name = "streams"

    def unsupported(self, plan: Plan) -> list[str]:
        """All but endless flows of one control with a fixed decrease, the same number for each source."""
        return unsupported_features(plan, SUPPORTED) + list(_finer(plan))

    def is_stochastic(self, plan: Plan) -> bool:
        """A closed form: the seed changes nothing."""
        return False

    def evaluate(self, plan: Plan, seed: int) -> ModelResult:
        """Return the metrics of all flows together."""
        link, tcp = plan.bottleneck_link, plan.groups[plan.flows[0].group].tcp
        assert tcp
        carried_bps = float(theory.altman(_streams(plan)[0], link.rate_bps, kept(_controls(plan)[0])))
        goodput_bps = carried_bps * tcp.mss_bytes / wire_bytes(tcp, link)
        return ModelResult(
            {
                "goodput_bps": goodput_bps,
                "throughput_bps": carried_bps,
                "utilisation": carried_bps / link.rate_bps,
                "efficiency": goodput_bps / link.rate_bps,
            }
        )


def kept(congestion: CongestionPlan) -> float:
    """The share of the window that is kept at a loss."""
    given = congestion.parameters
    return {"reno": 0.5, "scalable": 1 - given.get("b", 0.0)}.get(congestion.kind) or float(given["beta"])


def _finer(plan: Plan) -> Iterator[str]:
    if not endless(plan) or plan.traffic or plan.datagrams:
        yield "formula of parallel streams for flows that end"
        return
    if any(control != _controls(plan)[0] for control in _controls(plan)):
        yield "formula of parallel streams with several congestion controls"
    if len(set(_streams(plan))) != 1:
        yield "formula of parallel streams whose sources have different numbers of them"
    if _buffer_bytes(plan.bottleneck_link, plan) > LARGEST_BUFFER * plan.bdp_bytes:
        yield f"formula of parallel streams for a buffer of more than {LARGEST_BUFFER:g} bandwidth–delay products"


def _controls(plan: Plan) -> list[CongestionPlan]:
    return [group.congestion for group in plan.groups if group.congestion]


def _streams(plan: Plan) -> list[int]:
    """Return the number of streams of each source."""
    access = [flow.forward.hops[0].link if len(flow.forward.hops) > 1 else -1 for flow in plan.flows]
    return list(Counter(access).values())


def _buffer_bytes(link: LinkPlan, plan: Plan) -> float:
    given = link.queue.parameters
    return float(given.get("limit_bytes") or given.get("limit_packets", 0) * plan.packet_bytes)
