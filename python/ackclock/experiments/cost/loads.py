"""Offered load of a plan's sources in packets: rates × time, bounded by link capacities.

Rates are max-min fair shares (`sharing`) of those that are there at a time, and means over the time in which a source
may send: a transfer that is done early leaves its share to the others. A TCP is bounded by its application, its receive
window, and random loss (`tcp`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ackclock.experiments.cost import arrivals
from ackclock.experiments.cost.sharing import Claim, Share, Span, over_time
from ackclock.experiments.cost.tcp import Connection
from ackclock.experiments.cost.ways import Ways
from ackclock.plan import DatagramPlan, EndsPlan, FlowPlan, LinkPlan, PathPlan, Plan, TrafficPlan

#: The number of pairs that represent all, of generated traffic between hosts.
MAX_PAIRS = 512


@dataclass(frozen=True, slots=True)
class Load:
    """`count` sources alike, each with what it sends in a run.

    Attributes:
        packets: data packets or datagrams.
        answers: ACKs for them.
        loss: the share of the packets that is lost.
        transfers: connections.
        hops, hops_back: links on the ways there and back.
        window_p: packets of a source under way when queues are empty; infinite without a share.
        alive_s: how long it is there, all its transfers together.
        udp, generated: what it is.
        ahead: its transfers are drawn before the run, for some wait for others; else each is drawn when it is next.
    """

    count: float
    packets: float
    acks: float
    loss: float
    transfers: float
    hops: int
    hops_back: int
    window_p: float
    alive_s: float
    udp: bool
    generated: bool
    ahead: bool


@dataclass(frozen=True, slots=True)
class _Source:
    """A source that claims a share, before it has one."""

    count: float
    forward: tuple[int, ...]
    reverse: tuple[int, ...]
    max_bps: float
    wire_bytes: float
    base_rtt_s: float
    acks: float
    transfers: float
    ideal_s: float
    span_s: float
    begin_s: float = 0.0
    udp: bool = False
    generated: bool = False
    closed: bool = False
    ahead: bool = False
    total_s: float = 0.0
    used: float = 1.0
    first_p: float = 0.0


def loads(plan: Plan) -> list[Load]:
    """Everything that the plan's sources send in one run."""
    sources = [*_sources(plan)]
    spans = [Span(source.begin_s, source.begin_s + source.span_s) for source in sources]
    claims = [Claim(source.forward, source.count, source.max_bps) for source in sources]
    shares = over_time(claims, spans, [link.rate_bps for link in plan.links], plan.duration_s)
    return [_load(plan, source, share) for source, share in zip(sources, shares, strict=True)]


def _load(plan: Plan, source: _Source, share: Share) -> Load:
    rate_bps, crowded = share.mean_bps, share.crowded
    if crowded > FULL:
        rate_bps *= source.used
    served = rate_bps / source.max_bps if source.closed and source.max_bps > 0 else 1.0
    transfers = source.transfers * served
    arriving = rate_bps * plan.duration_s / (8 * source.wire_bytes) + (transfers / 2 if source.generated else 0.0)
    alive_s = _alive_s(source, crowded)
    while_alive_bps = rate_bps * plan.duration_s / alive_s if alive_s > 0 else 0.0
    loss = _loss(plan, source, while_alive_bps) if crowded > FULL and not source.udp else 0.0
    return Load(
        count=source.count,
        packets=max(arriving / (1 - loss), source.first_p),
        acks=arriving * source.acks,
        loss=loss,
        transfers=transfers,
        hops=len(source.forward),
        hops_back=len(source.reverse),
        window_p=rate_bps * source.base_rtt_s / (8 * source.wire_bytes),
        alive_s=alive_s,
        udp=source.udp,
        generated=source.generated,
        ahead=source.ahead,
    )


def _loss(plan: Plan, source: _Source, rate_bps: float) -> float:
    """The share of a TCP's packets that is lost, roughly: what belongs to its mean window (Mathis et al. 1997).

    A queue that drops from its tail is half full on average.
    """
    if not source.forward:
        return 0.0
    link = min((plan.links[number] for number in source.forward), key=lambda link: link.rate_bps)
    waiting_bytes = _limit_bytes(plan, link) / 2 if link.queue.discipline in TAIL_DROP else 0.0
    rtt_s = source.base_rtt_s + 8 * waiting_bytes / link.rate_bps
    window_p = min(rate_bps * rtt_s / (8 * source.wire_bytes), MAX_WINDOW_P)
    return min(MAX_LOSS, 1.5 / (1 + window_p) ** 2)


#: Disciplines that are full before they drop.
TAIL_DROP = frozenset({"pfifo", "bfifo", "sfq"})

#: A link so busy is full at times.
FULL = 0.9

#: The loss rate at which timeouts keep it from growing further, where windows are below one packet.
MAX_LOSS = 0.35

#: A window without a bound.
MAX_WINDOW_P = 1e6


def _limit_bytes(plan: Plan, link: LinkPlan) -> float:
    parameters = link.queue.parameters
    return float(parameters.get("limit_bytes") or plan.packet_bytes * (parameters.get("limit_packets") or math.inf))


def _alive_s(source: _Source, busy: float) -> float:
    """Return the total duration of a source's transfers.

    Beside others one takes 1/(1 − load) times as long as alone: as in a queue that serves all at once (processor
    sharing).
    """
    alone_s = source.ideal_s / max(1 - busy, _MIN_IDLE)
    if source.count > 1 and source.forward:
        alone_s = max(alone_s, min(source.total_s, source.span_s))
    return min(alone_s * source.transfers, source.span_s * max(1.0, source.transfers if source.generated else 1.0))


#: A link is never busier than all but this.
_MIN_IDLE = 0.2


def _sources(plan: Plan) -> Iterator[_Source]:
    ways = Ways(plan.nodes, plan.links)
    for flow, count in Counter(plan.flows).items():
        yield _flow(plan, flow, count, ways)
    for datagrams in plan.datagrams:
        yield _datagrams(plan, datagrams, ways)
    for traffic in plan.traffic:
        yield from _generated(plan, traffic, ways)


def _flow(plan: Plan, flow: FlowPlan, count: float, ways: Ways) -> _Source:
    there, back = _both(flow.ends, flow.forward, flow.reverse, ways)
    connection = Connection.of(plan, flow.group, flow.base_rtt_s, there)
    start_s = flow.start_s + flow.start_jitter_s / 2
    span_s = max(0.0, min(flow.stop_s or math.inf, plan.duration_s) - start_s)
    least_bps = min((plan.links[link].rate_bps for link in there), default=math.inf)
    rate_bps = min(connection.max_bps(flow.application_rate_bps), least_bps)
    opening_s = connection.opening_s(rate_bps)
    bits = rate_bps * max(0.0, span_s - opening_s) + connection.opening_bits(min(span_s, opening_s))
    alone_s = span_s
    if flow.size_bytes is not None and rate_bps > 0:
        bits = min(bits, 8 * connection.on_wire(flow.size_bytes))
        alone_s = min(span_s, connection.transfer_s(flow.size_bytes, rate_bps))
    made = _tcp(plan, connection, there, back, bits, span_s)
    used = 1.0 if connection.heedless else _used(plan, there, flow.base_rtt_s)
    first_p = 0.0 if flow.application_rate_bps else min(connection.initial_window, bits / (8 * connection.wire_bytes))
    together_s = count * bits / least_bps
    return replace(
        made,
        begin_s=start_s,
        count=count,
        transfers=1.0,
        ideal_s=alone_s,
        total_s=together_s,
        used=used,
        first_p=first_p,
    )


def _used(plan: Plan, there: Sequence[int], base_rtt_s: float) -> float:
    """The share of the slowest link that TCPs use whose windows are cut by losses: little with a tiny buffer."""
    if not there:
        return 1.0
    link = min((plan.links[number] for number in there), key=lambda link: link.rate_bps)
    limit_bytes = _limit_bytes(plan, link)
    bdp_bytes = link.rate_bps * base_rtt_s / 8
    if bdp_bytes < _SMALL_BDP_P * plan.packet_bytes:
        return 1.0
    return float(min(1.0, MIN_USED + (1 - MIN_USED) * limit_bytes / (ENOUGH_BDP * bdp_bytes)))


#: Utilisation with hardly a buffer, and the buffer, in bandwidth–delay products, that gives full utilisation.
MIN_USED, ENOUGH_BDP = 0.35, 0.1

#: The BDP below which a buffer of a packet or two is large.
_SMALL_BDP_P = 50


def _tcp(
    plan: Plan, connection: Connection, there: tuple[int, ...], back: tuple[int, ...], bits: float, span_s: float
) -> _Source:
    """One that would send so many bits in the run."""
    return _Source(
        count=1.0,
        forward=there,
        reverse=back,
        max_bps=bits / plan.duration_s,
        wire_bytes=connection.wire_bytes,
        base_rtt_s=connection.base_rtt_s,
        acks=connection.acks,
        transfers=0.0,
        ideal_s=0.0,
        span_s=span_s,
    )


def _datagrams(plan: Plan, source: DatagramPlan, ways: Ways) -> _Source:
    there, back = _both(source.ends, source.forward, source.reverse, ways)
    overhead_bytes = plan.links[there[0]].frame_overhead_bytes if there else 0
    wire_bytes = source.payload_bytes + source.header_bytes + overhead_bytes
    span_s = max(0.0, min(source.stop_s or math.inf, plan.duration_s) - source.start_s)
    return _Source(
        count=1,
        forward=there,
        reverse=back,
        max_bps=8 * wire_bytes * arrivals.datagrams_per_s(source.source) * span_s / plan.duration_s,
        wire_bytes=wire_bytes,
        base_rtt_s=source.base_rtt_s,
        acks=1.0 if source.source["kind"] == "adaptive" else 0.0,
        transfers=0.0,
        ideal_s=span_s,
        span_s=span_s,
        begin_s=source.start_s,
        udp=True,
    )


def _generated(plan: Plan, traffic: TrafficPlan, ways: Ways) -> Iterator[_Source]:
    """Each pair of ends with its part of the transfers."""
    begin_s = traffic.workload["start_s"]
    span_s = max(0.0, min(traffic.workload["stop_s"] or math.inf, plan.duration_s) - begin_s)
    pairs, known = _pairs(plan, traffic, ways)
    kind = traffic.workload["arrivals"]["kind"]
    closed, ahead = kind in ("sources", "web"), kind not in ("poisson", "periodic")
    for there, back, base_rtt_s in known:
        connection = Connection.of(plan, traffic.group, base_rtt_s, there)
        least_bps = min((plan.links[link].rate_bps for link in there), default=math.inf)
        rate_bps = min(connection.max_bps(traffic.application_rate_bps), least_bps)
        amount = arrivals.transfers(traffic.workload, pairs, span_s, connection, rate_bps)
        part = 1 / len(known)
        bits = min(8 * amount.wire_bytes * part, least_bps * span_s)
        made = _tcp(plan, connection, there, back, bits, span_s)
        yield replace(
            made,
            begin_s=begin_s,
            transfers=amount.number * part,
            ideal_s=amount.each_s,
            generated=True,
            closed=closed,
            ahead=ahead,
        )


def _pairs(
    plan: Plan, traffic: TrafficPlan, ways: Ways
) -> tuple[float, Sequence[tuple[tuple[int, ...], tuple[int, ...], float]]]:
    """Return the number of pairs of ends; of the representative ones, the links there and back and the base RTT."""
    population = traffic.population
    if population.kind == "paths":
        paths = population.paths  # type: ignore[union-attr]
        chosen = paths[:: max(1, len(paths) // MAX_PAIRS)]
        return len(paths), [(_links(pair.forward), _links(pair.reverse), pair.base_rtt_s) for pair in chosen]
    senders, receivers = population.sources, population.destinations  # type: ignore[union-attr]
    each_to_each = population.pairing == "all"  # type: ignore[union-attr]
    pairs = len(senders) * len(receivers) if each_to_each else len(senders)
    known = []
    for number in range(min(pairs, MAX_PAIRS)):
        source = senders[number % len(senders)]
        turn = number * _STRIDE + 1 if each_to_each or traffic.workload["arrivals"]["kind"] != "once" else number + 1
        destination = receivers[turn % len(receivers)]
        if source == destination:
            destination = receivers[(turn + 1) % len(receivers)]
        there, back = ways.between(source, destination, number), ways.between(destination, source, number)
        delay_s = sum(plan.links[link].delay_s for link in (*there, *back))
        known.append((there, back, delay_s))
    return pairs, known


#: Walks through the receivers.
_STRIDE = 7


def _both(
    ends: EndsPlan | None, forward: PathPlan, reverse: PathPlan, ways: Ways
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if ends is None:
        return _links(forward), _links(reverse)
    which = ends.source + ends.destination
    there = ways.between(ends.source, ends.destination, which)
    return there, ways.between(ends.destination, ends.source, which)


def _links(path: PathPlan) -> tuple[int, ...]:
    return tuple(hop.link for hop in path.hops)
