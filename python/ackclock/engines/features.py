"""Names of the features that a plan uses: its algorithms, and features of its network and traffic.

An engine lists the features that it supports. What is missing becomes `Unsupported`, with the engines that have it.

Used by every engine to declare what it supports, by `engine.unsupported_features`, and by exporters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from ackclock.algorithms import default_processing
from ackclock.plan import AT_LINK, ChangePlan, DatagramPlan, FlowPlan, GroupPlan, LinkPlan, MediumPlan, Parameters, Plan

FINITE = "finite transfers"
STOPS = "flows that stop"
REQUESTS = "requests"
APPLICATION = "application-limited flows"
SLOW_READERS = "slow readers (slow_reader)"
MESSAGES = "messages of small writes (writes)"
SEND_BUFFERS = "limited send buffers (tcp.send_buffer)"
PRIORITIES = "priorities"
CODEPOINTS = "DS codepoints (dscp)"
STARTS = "flows that start later"
NO_DELAY = "flows without propagation delay"
GENERATED = "generated traffic"
UDP = "UDP"
QUIC = 'QUIC (transport = "quic")'
MEDIA = 'real-time media (kind = "media")'
ROUTED = "routed networks"
SEVERAL_LINKS = "path through several queues"
REVERSE = "queue on the way back"
RANDOM_LOSS = "random loss"
BURST_LOSS = "random loss in bursts (p_good_to_bad, p_bad_to_good)"
ACK_LOSS = "random loss of ACKs (loss.ack)"
ACK_THINNING = "thinned ACKs (loss.ack_thinning)"
TRACES = "rates that follow a trace"
OPPORTUNITIES = "delivery opportunities of a trace (it takes a CSV of rates)"
JITTER = "jitter"
REORDERING = "packets that are reordered"
DUPLICATION = "packets that are duplicated"
CORRUPTION = "packets that are damaged"
ECN_REWRITING = "ECN fields that a link rewrites (ecn)"
TUNNELS = "tunnels (tunnel)"
MISBEHAVIOUR = "misbehaving receivers (misbehaviour)"
ACK_COUNTING = "a window that grows with the number of ACKs (tcp.byte_counting)"
BURSTS = "token buckets"
CHANGES = "changes of links"
PROCESSING = "processing times of hosts other than the default"
ECN = "explicit congestion notification"
PACKET_LOG = "per-packet log"
CAPTURES = "packet captures"
LINK_CAPTURES = "packet captures at links"
SIZES = "packets of several sizes"
DELAYS = "one-way delays (record.delays)"
INSIDE = "CUBIC's inside (record.cubic_state)"
PATHS = "paths of flows (record.paths)"
UNKNOWN_DELAY = "a testbed whose delay is not said (network.rtt)"
LEFT = "a path that is left as it is (network.existing_path)"
MEASURED = "a path that is measured"

#: Features that only a testbed has.
OF_TESTBEDS = frozenset({UNKNOWN_DELAY, LEFT, MEASURED})

#: All features that are not the name of an algorithm.
ALL = frozenset({
    FINITE, STOPS, REQUESTS, APPLICATION, SLOW_READERS, MESSAGES, SEND_BUFFERS, PRIORITIES, CODEPOINTS, STARTS,
    GENERATED, UDP, QUIC, MEDIA, ROUTED, NO_DELAY, SEVERAL_LINKS, REVERSE,
    RANDOM_LOSS, BURST_LOSS, ACK_LOSS, ACK_THINNING, TRACES, OPPORTUNITIES, JITTER, REORDERING, DUPLICATION,
    CORRUPTION, ECN_REWRITING, TUNNELS, MISBEHAVIOUR, ACK_COUNTING,
    BURSTS, CHANGES, PROCESSING, ECN, PACKET_LOG, CAPTURES, LINK_CAPTURES,
    SIZES, DELAYS, INSIDE, PATHS,
})  # fmt: skip


def congestion(name: str) -> str:
    """The feature of a congestion control."""
    return f'congestion control "{name}"'


def queue(name: str) -> str:
    """The feature of a queue discipline."""
    return f'queue discipline "{name}"'


#: Features of flows, each with its test.
_OF_FLOWS: Mapping[str, Callable[[FlowPlan], bool]] = {
    FINITE: lambda flow: flow.size_bytes is not None,
    STOPS: lambda flow: flow.stop_s is not None,
    STARTS: lambda flow: flow.start_s > 0 or flow.start_jitter_s > 0,
    NO_DELAY: lambda flow: flow.base_rtt_s == 0,
    REQUESTS: lambda flow: flow.request_bytes is not None,
    APPLICATION: lambda flow: flow.application_rate_bps is not None,
    PRIORITIES: lambda flow: flow.priority != 0,
    SEVERAL_LINKS: lambda flow: len(flow.forward.hops) > 1,
    REVERSE: lambda flow: bool(flow.reverse.hops),
}


def features(plan: Plan) -> list[str]:
    """Everything that the plan asks for, in the order in which it is missed."""
    return list(dict.fromkeys(_features(plan)))


def _features(plan: Plan) -> Iterator[str]:
    own = [flow.source["congestion"] for flow in plan.datagrams if flow.is_quic]  # a stack's own is a text
    kinds = {each["kind"] for each in own if isinstance(each, Mapping)}
    kinds |= {group.congestion.kind for group in plan.groups if group.congestion}
    yield from sorted(map(congestion, kinds))
    yield from sorted({queue(link.queue.discipline) for link in _used(plan)})
    yield from _true(
        {
            GENERATED: bool(plan.traffic),
            UDP: any(not source.is_quic for source in plan.datagrams),
            QUIC: any(source.is_quic for source in plan.datagrams),
            MEDIA: any(source.source["kind"] == "media" for source in plan.datagrams),
            ROUTED: bool(plan.nodes),
            CHANGES: bool(plan.changes),
            UNKNOWN_DELAY: "testbed" in plan.options and plan.options["testbed"]["rtt_s"] is None,
            LEFT: "testbed" in plan.options and plan.options["testbed"]["existing_path"],
            MEASURED: "testbed" in plan.options and bool(plan.options["testbed"]["measure"]),
            PACKET_LOG: plan.record.packets,
            CAPTURES: bool(plan.record.pcap),
            LINK_CAPTURES: any(vantage.startswith(AT_LINK) for vantage in plan.record.vantages),
            PROCESSING: any(map(takes_other_time, plan.groups)),
            SLOW_READERS: any(group.slow_reader for group in plan.groups),
            MESSAGES: any(group.writes for group in plan.groups),
            SEND_BUFFERS: any(group.tcp and group.tcp.send_buffer_bytes is not None for group in plan.groups),
            CODEPOINTS: any(group.dscp for group in plan.groups),
            DELAYS: plan.record.delays,
            INSIDE: plan.record.cubic_state,
            PATHS: plan.record.paths,
            ECN: any(map(_marks, plan.groups)) or any(map(_marks_media, plan.datagrams)),
            RANDOM_LOSS: any(loss["kind"] != "gilbert_elliott" for loss in losses(plan)),
            BURST_LOSS: any(loss["kind"] == "gilbert_elliott" for loss in losses(plan)),
            ACK_LOSS: any(loss.get("ack", 0.0) > 0 for loss in losses(plan)),
            ACK_THINNING: any(loss.get("ack_thinning", 1) > 1 for loss in losses(plan)),
            TRACES: any(link.trace for link in plan.links),
            OPPORTUNITIES: any(link.trace and link.trace.has_opportunities for link in plan.links),
            JITTER: any(medium.jitter for medium in _media(plan)),
            REORDERING: any(medium.reorder > 0 for medium in _media(plan)),
            DUPLICATION: any(medium.duplicate > 0 for medium in _media(plan)),
            CORRUPTION: any(medium.corrupt > 0 for medium in _media(plan)),
            ECN_REWRITING: any(medium.ecn for medium in _media(plan)),
            TUNNELS: any(medium.tunnel for medium in _media(plan)),
            MISBEHAVIOUR: any(group.misbehaviour for group in plan.groups),
            ACK_COUNTING: any(group.tcp and not group.tcp.byte_counting for group in plan.groups),
            BURSTS: any(link.burst_bytes is not None for link in plan.links),
            SIZES: len({(group.tcp.packet_bytes, group.tcp.mss_bytes) for group in plan.groups if group.tcp}) > 1,
        }
    )
    yield from (what for what, asks in _OF_FLOWS.items() if any(map(asks, plan.flows)))


def takes_other_time(group: GroupPlan) -> bool:
    """Return True if a group's hosts have other processing times than the default, which any engine may leave out."""
    return group.tcp is not None and group.tcp.processing not in (None, default_processing())


def losses(plan: Plan) -> list[Parameters]:
    """All random losses that there are, or will be."""
    items: tuple[LinkPlan | ChangePlan, ...] = (*plan.links, *plan.changes)
    return [item.loss for item in items if item.loss]


def _media(plan: Plan) -> list[MediumPlan]:
    """All media that do more than delay, or will."""
    items: tuple[LinkPlan | ChangePlan, ...] = (*plan.links, *plan.changes)
    return [item.medium for item in items if item.medium]


def _used(plan: Plan) -> Iterable[LinkPlan]:
    """The links whose queue is one that data crosses, or may cross."""
    if plan.nodes or plan.traffic or plan.datagrams:
        return plan.links
    return [plan.links[link] for link in sorted({hop.link for flow in plan.flows for hop in flow.forward.hops})]


def _true(found: dict[str, bool]) -> Iterator[str]:
    return (name for name, there in found.items() if there)


def _marks(group: GroupPlan) -> bool:
    """Return True if the group's senders negotiate ECN. A queue that can mark is no feature by itself."""
    return group.tcp is not None and group.tcp.ecn != "off"


def _marks_media(source: DatagramPlan) -> bool:
    """Return True if media packets are ECN-capable."""
    return bool(source.source["kind"] == "media" and source.source["ecn"] != "off")
