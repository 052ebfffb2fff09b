"""One long upload beside small UDP packets in a queue that counts packets: Braud's chapter 6 by places of the queue.

The thesis says how the delay of a full queue falls. The mean RTT and the goodput beside that are those of Reno's
sawtooth over a queue with as many places as the small packets leave. Of a download beside the upload, whose ACKs are
small packets too, the thesis's model says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from ackclock import theory
from ackclock.engines import features
from ackclock.engines.theory.model import ModelResult, controls, endless, unsupported_features, wire_bytes
from ackclock.plan import LinkPlan, Plan

SUPPORTED = controls("reno") | {features.queue("pfifo"), features.UDP, features.REVERSE, features.STARTS}


class SmallPackets:
    """A full upload beside small packets."""

    name = "small-packets"

    def unsupported(self, plan: Plan) -> list[str]:
        """All but one endless Reno upload over the up link of an asymmetric line, alone or beside steady UDP."""
        return unsupported_features(plan, SUPPORTED) + list(_finer(plan))

    def is_stochastic(self, plan: Plan) -> bool:
        """A closed form: the seed changes nothing."""
        return False

    def evaluate(self, plan: Plan, seed: int) -> ModelResult:
        """The upload's goodput and mean RTT."""
        flow, link = plan.flows[0], plan.links[_up(plan)]
        tcp = plan.groups[flow.group].tcp
        assert tcp
        segment, small, rate_hz = wire_bytes(tcp, link), _small_bytes(plan, link), _rate_hz(plan)
        slots = theory.slots_per_segment(rate_hz, link.rate_bps, segment, small)
        each_s = 1 / theory.tcp_rate_with_small_packets(slots, link.rate_bps, segment, small)
        empty_s = flow.base_rtt_s + 8 * segment / link.rate_bps
        buffer = link.queue.parameters["limit_packets"] / slots * each_s / empty_s
        goodput_bps = float(8 * tcp.mss_bytes / each_s * theory.sawtooth_utilisation(buffer))
        return ModelResult(
            {
                "goodput_bps": goodput_bps,
                "goodput_flow_bps": [goodput_bps],
                "rtt_mean_s": float(empty_s * theory.sawtooth_rtt(buffer)),
            }
        )


def _finer(plan: Plan) -> Iterator[str]:
    if len(plan.flows) != 1 or not endless(plan) or not plan.flows[0].forward.hops or not plan.flows[0].reverse.hops:
        yield "model of small packets but for one upload over an asymmetric line"
        return
    if any(udp.source["kind"] != "constant" for udp in plan.datagrams):
        yield "model of small packets that do not come steadily"
        return
    if any([hop.link for hop in udp.forward.hops] != [_up(plan)] for udp in plan.datagrams):
        yield "model of small packets on other ways than the upload's"
    if 8 * _small_bytes(plan, plan.links[_up(plan)]) * _rate_hz(plan) >= plan.links[_up(plan)].rate_bps:
        yield "model of small packets that fill the link"


def _up(plan: Plan) -> int:
    return plan.flows[0].forward.hops[0].link


def _rate_hz(plan: Plan) -> float:
    return float(sum(udp.source["per_s"] for udp in plan.datagrams))


def _small_bytes(plan: Plan, link: LinkPlan) -> float:
    """The mean size of the small packets on the wire; 0 if there are none."""
    bytes_hz = [
        udp.source["per_s"] * (udp.payload_bytes + udp.header_bytes + link.frame_overhead_bytes)
        for udp in plan.datagrams
    ]
    return float(sum(bytes_hz)) / (_rate_hz(plan) or 1.0)
