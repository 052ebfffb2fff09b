"""Endless flows over a link with a drop-tail queue, by formulas: parallel streams, and small packets beside an upload.

Parallel streams of one AIMD control over a link with a small buffer (Altman's formula). N are the streams of a source.
Sources with access links of their own are taken to lose together, each one stream at a time, which is how Guillier sets
the formula beside her measurement; without access links all flows are the streams of one source, which is what the
formula is derived for.

One long upload beside small UDP packets in a queue that counts packets (Braud's chapter 6, by places of the queue). The
thesis says how the delay of a full queue falls. The mean RTT and the goodput beside that are those of Reno's sawtooth
over a queue with as many places as the small packets leave. Of a download beside the upload, whose ACKs are small
packets too, the thesis's model says nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ackclock import theory
from ackclock.engines import features
from ackclock.engines.theory.model import Model, ModelResult, controls, endless, unsupported_features, wire_bytes
from ackclock.plan import CongestionPlan, LinkPlan, Plan

SUPPORTED = controls("reno") | {features.queue("pfifo"), features.UDP, features.REVERSE, features.STARTS}


class SmallPackets(Model):
    """A full upload beside small packets."""

    name = "small-packets"

    def unsupported(self, plan: Plan) -> list[str]:
        """All but one endless Reno upload over the up link of an asymmetric line, alone or beside steady UDP."""
        return unsupported_features(plan, SUPPORTED) + list(_finer(plan))

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
        yield "model of small packets for flows other than one upload over an asymmetric line"
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


OF_STREAMS = controls("reno", "cubic", "bic", "scalable") | {
    features.queue("pfifo"),
    features.queue("bfifo"),
    features.SEVERAL_LINKS,
    features.STARTS,
}

#: The formula has no buffer. Up to this share of the bandwidth–delay product it is still near (the sawtooth of a
#: single Reno stream has 87 % of the link then, and not 75 %).
LARGEST_BUFFER = 0.2


class Streams(Model):
    """Altman's total of parallel streams."""

    name = "streams"

    def unsupported(self, plan: Plan) -> list[str]:
        """All but endless flows of one control with a fixed decrease, the same number for each source."""
        return unsupported_features(plan, OF_STREAMS) + list(_finer_of_streams(plan))

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


def _finer_of_streams(plan: Plan) -> Iterator[str]:
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
