"""Groups of flows: which flows are alike, what the max-min fair share of each is, and what the groups got.

*Like flows* are of one group, with one size, of one access rate, over the same bottlenecks, and with base RTTs within a
tenth of each other: an algorithm can be asked to treat them alike. Transfers of a workload are alike if all have one
size. Of flows that were not planned (captures, imports), those of a group are alike.

*Max-min fair shares* are those of the plan's long-lived flows, of TCP, QUIC and media: what the links have for them,
as goodput, is shared so that no flow can get more without taking it from one that has no more (Bertsekas and Gallager
1992, section 6.5.2). What the links have for them is what they delivered and what was left unused, so what generated
transfers, other datagrams and retransmissions took is not theirs. A flow asks for no more than its application's rate
and a receive window per RTT; one of media for its highest rate, and to its planned end if a breaker ends it.

Used by the metrics of a group (`goodput_bps[cubic]`), and by constraints, guards and sentences that name groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ackclock.metrics.metric import Metric
from ackclock.metrics.throughput import Flows, payload
from ackclock.metrics.view import RunView
from ackclock.partial_plan import PartialDatagrams, PartialFlow, PartialPlan

#: Base RTTs of like flows differ by at most this share.
SAME_RTT = 0.1

#: A flow has a fair share if it was active for this share of the measured part.
MIN_ACTIVE = 0.9

#: Below this part of its max-min fair share a flow or a group starves.
STARVED = 0.1

#: Bytes that timestamps add to a segment (RFC 7323 appendix A).
TIMESTAMPS_BYTES = 12

#: Bytes of a QUIC packet besides its stream data: a short header of 11 (flags, a connection ID of 8, a packet number of
#: 2: RFC 9000 section 17.3.1), the tag of 16 (RFC 9001 section 5.3) and the header of a STREAM frame without a length,
#: 6 with an offset of 4 (RFC 9000 section 19.8). Other frames are few in the packets of a bulk transfer.
QUIC_BYTES = 33

Classes = npt.NDArray[np.int64]


def like_flows(view: RunView) -> Callable[[Flows], Classes]:
    """Return a function that maps flows to the numbers of their classes of like flows; −1: like no other.

    In the view of one group, or of all flows as one, they are one class.
    """
    if view.group is not None:
        return lambda flows: np.zeros(flows.size, np.int64)
    listed, uniform = view.cached(_classes_of_plan), view.cached(_uniform_groups)
    first = int(listed.max(initial=-1)) + 1

    def classes(flows: Flows) -> Classes:
        result = np.full(flows.size, -1, np.int64)
        is_listed = flows < listed.size
        result[is_listed] = listed[flows[is_listed]]
        for place, numbers in enumerate(uniform):
            result[~is_listed & np.isin(flows, numbers)] = first + place
        return result

    return classes


def _classes_of_plan(view: RunView) -> Classes:
    """Return the class of each flow that the plan lists."""
    plan = view.plan
    keys: dict[Any, list[tuple[float, int]]] = {}
    for number, flow in enumerate(plan.flows):
        links = [plan.links[hop.link] for hop in (flow.forward.hops if flow.forward else ()) if hop.link is not None]
        access_bps = min((link.rate_bps or math.inf for link in links if not link.bottleneck), default=None)
        crossed = tuple(link.name for link in links if link.bottleneck)
        name = plan.groups[flow.group].name if flow.group < len(plan.groups) else None
        keys.setdefault((name, flow.size_bytes, access_bps, crossed), []).append((flow.base_rtt_s or 0.0, number))
    result = np.full(len(plan.flows), -1, np.int64)
    count = 0
    for members in keys.values():
        shortest_s = math.nan
        for rtt_s, number in sorted(members):
            if not rtt_s <= shortest_s * (1 + SAME_RTT):
                shortest_s, count = rtt_s, count + 1
            result[number] = count - 1
    return result


def _uniform_groups(view: RunView) -> Sequence[Flows]:
    """Return the flows that the plan does not list of each group in which all have one size."""
    sizes: dict[int, set[float]] = {}
    numbers: dict[int, list[Flows]] = {}
    listed, generated = len(view.plan.flows), {traffic.group for traffic in view.plan.traffic}
    for block in view.rows("flows").blocks("flow", "group", "size_bytes"):
        for group in np.unique(block["group"]):
            chosen = (block["group"] == group) & (block["flow"] >= listed)
            some = sizes.setdefault(int(group), set())
            if len(some) < 2:
                sizes_bytes = (
                    np.nan_to_num(block["size_bytes"][chosen], nan=-1.0) if group in generated else np.zeros(1)
                )
                some.update(np.unique(sizes_bytes)[:2].tolist())
                numbers.setdefault(int(group), []).append(block["flow"][chosen])
    return [np.concatenate(numbers[group]) for group, some in sizes.items() if len(some) == 1]


@dataclass(frozen=True, slots=True)
class Share:
    """A long-lived flow's goodput while it was active, and its max-min fair share, both in bit/s."""

    flow: int
    group: str
    goodput_bps: float
    fair_bps: float

    @property
    def part(self) -> float:
        """Goodput over fair share."""
        return self.goodput_bps / self.fair_bps


@dataclass(frozen=True, slots=True)
class Demand:
    """Flows that cross the same links and ask for as much: each takes `cost` bits of a link for a bit of goodput."""

    links: tuple[int, ...]
    demand_bps: float
    cost: float


def max_min_shares(demands: Mapping[Demand, int], capacities_bps: Mapping[int, float]) -> dict[Demand, float]:
    """Return the max-min fair goodput of a flow of each kind, of which there are so many, by progressive filling.

    Infinite where neither a link nor the demand bounds it. Source: Bertsekas and Gallager 1992, section 6.5.2.
    """
    left, result, waiting = dict(capacities_bps), dict[Demand, float](), dict(demands)
    while waiting:
        loads: dict[int, float] = {}
        for demand, count in waiting.items():
            for link in demand.links:
                loads[link] = loads.get(link, 0.0) + count * demand.cost
        levels = {link: max(left[link], 0.0) / load for link, load in loads.items() if link in left}
        level = min([*levels.values(), *(demand.demand_bps for demand in waiting)])
        full = {link for link, reached in levels.items() if reached <= level}
        done = [demand for demand in waiting if demand.demand_bps <= level or full.intersection(demand.links)]
        for demand in done or list(waiting):
            result[demand] = min(level, demand.demand_bps)
            for link in demand.links:
                if link in left:
                    left[link] -= waiting[demand] * demand.cost * result[demand]
            del waiting[demand]
    return result


def fair_shares(view: RunView) -> list[Share]:
    """Return the shares of the long-lived flows that were active for most of the measured part.

    Empty where paths or rates are not known.
    """
    known = [*_transfers(view), *_media(view)]
    counts: dict[Demand, int] = {}
    carried_bps: dict[int, float] = {}
    for each in known:
        counts[each.demand] = counts.get(each.demand, 0) + 1
        for link in each.demand.links:
            carried_bps[link] = carried_bps.get(link, 0.0) + each.goodput_bps * each.demand.cost
    fair = max_min_shares(counts, _capacities_bps(view, carried_bps))
    return [
        Share(each.flow, each.group, each.goodput_bps, fair[each.demand])
        for each in known
        if 0 < fair[each.demand] < math.inf
    ]


class _Active(NamedTuple):
    """A long-lived flow, what it got and what it asks for."""

    flow: int
    group: str
    goodput_bps: float
    demand: Demand


def _transfers(view: RunView) -> Iterator[_Active]:
    """Yield the plan's flows of TCP and QUIC without an end that were active for most of the measured part."""
    plan = view.plan
    planned = (*plan.flows, *plan.datagrams)
    for block in payload(view):
        for number, counted, active_s in zip(*(column.tolist() for column in block), strict=True):
            if number >= len(planned) or active_s < MIN_ACTIVE * view.measured_s:
                continue
            flow = planned[number]
            demand = _tcp_demand(plan, flow) if isinstance(flow, PartialFlow) else _quic_demand(plan, flow)
            if demand:
                yield _Active(number, _name(plan, flow.group), 8 * counted / active_s, demand)


def _media(view: RunView) -> Iterator[_Active]:
    """Yield the flows of media that were planned for most of the measured part; their numbers follow those of TCP."""
    plan = view.plan
    if view.between is not None or not view.has_datagrams:
        return
    got = dict(view.datagrams.select("flow", "measured_bytes").iter_rows())
    for number, media in enumerate(plan.datagrams, len(plan.flows)):
        ends_s = view.duration_s if media.stop_s is None else min(media.stop_s, view.duration_s)
        active_s = ends_s - max(media.start_s, view.warmup_s)
        demand = _media_demand(plan, media)
        if demand and got.get(number) is not None and active_s >= MIN_ACTIVE * view.measured_s:
            yield _Active(number, _name(plan, media.group), 8 * got[number] / active_s, demand)


def _media_demand(plan: PartialPlan, media: PartialDatagrams) -> Demand | None:
    """Return what a flow of media asks for; None for other datagrams, or where its path is not known."""
    max_rate_bps = media.source.get("max_rate_bps")  # of media only
    if not isinstance(max_rate_bps, int | float) or media.forward is None or not media.payload_bytes:
        return None
    if media.group >= len(plan.groups):
        return None
    links = tuple(hop.link for hop in media.forward.hops if hop.link is not None)
    packet_bytes = media.payload_bytes + (media.header_bytes or 0)
    overhead_bytes = max((plan.links[link].frame_overhead_bytes or 0 for link in links), default=0)
    demand_bps = max_rate_bps * media.payload_bytes / packet_bytes
    return Demand(links, demand_bps, (packet_bytes + overhead_bytes) / media.payload_bytes) if links else None


def _quic_demand(plan: PartialPlan, flow: PartialDatagrams) -> Demand | None:
    """Return what a QUIC connection without an end asks for; None for others, or where its path is not known.

    Each stream has a receive window.
    """
    source, payload_bytes = flow.source, flow.payload_bytes or 0
    if source.get("kind") not in ("quic", "stack") or source.get("size_bytes") is not None:
        return None
    if flow.forward is None or not flow.forward.hops or payload_bytes <= QUIC_BYTES:
        return None
    links = tuple(hop.link for hop in flow.forward.hops if hop.link is not None)
    overhead_bytes = max((plan.links[link].frame_overhead_bytes or 0 for link in links), default=0)
    wire_bytes = payload_bytes + (flow.header_bytes or 0) + overhead_bytes
    window_bytes, streams = source.get("receive_window_bytes"), source.get("streams", 1)
    demand_bps = math.inf
    if flow.base_rtt_s and isinstance(window_bytes, int) and isinstance(streams, int):
        demand_bps = 8 * window_bytes * streams / flow.base_rtt_s
    return Demand(links, demand_bps, wire_bytes / (payload_bytes - QUIC_BYTES))


def _tcp_demand(plan: PartialPlan, flow: PartialFlow) -> Demand | None:
    """Return what a TCP flow without an end asks for; None for others, or where that is not known.

    It is not where an application limits the flow otherwise, and without its path or its TCP.
    """
    if flow.size_bytes is not None:
        return None
    group = plan.groups[flow.group] if flow.group < len(plan.groups) else None
    if flow.forward is None or not flow.forward.hops or group is None or group.tcp is None:
        return None
    if group.slow_reader or group.writes:
        return None
    tcp, links = group.tcp, tuple(hop.link for hop in flow.forward.hops if hop.link is not None)
    if not tcp.mss_bytes or tcp.header_bytes is None:
        return None
    overhead_bytes = max((plan.links[link].frame_overhead_bytes or 0 for link in links), default=0)
    wire_bytes = tcp.mss_bytes + tcp.header_bytes + TIMESTAMPS_BYTES * tcp.timestamps + overhead_bytes
    demand_bps = math.inf if flow.application_rate_bps is None else flow.application_rate_bps
    if tcp.receive_window_bytes and flow.base_rtt_s:
        demand_bps = min(demand_bps, 8 * tcp.receive_window_bytes / flow.base_rtt_s)
    return Demand(links, demand_bps, wire_bytes / tcp.mss_bytes)


def _capacities_bps(view: RunView, carried_bps: Mapping[int, float]) -> dict[int, float]:
    """Return what each link has for these flows: what it carried of them and what it left unused.

    All of its rate where the link was not counted.
    """
    known = ((link, view.plan.capacity_bps(link)) for link in range(len(view.plan.links)))
    rates = {link: rate_bps for link, rate_bps in known if rate_bps}
    rows = view.rows("links")
    for link, departed_bytes in zip(rows["link"].tolist(), rows["departed_bytes"].tolist(), strict=True):
        if link in rates and not math.isnan(departed_bytes):
            unused_bps = max(rates[link] - 8 * departed_bytes / view.measured_s, 0.0)
            rates[link] = min(rates[link], carried_bps.get(link, 0.0) + unused_bps)
    return rates


def _name(plan: PartialPlan, group: int) -> str:
    return plan.groups[group].name or str(group)


def min_share(view: RunView) -> float | None:
    """Smallest ratio of a long-lived flow's goodput to its max-min fair share; below 0.1 it starves.

    Of the flows of the plan that were active for nine tenths of the measured part. 1 where all have their shares, in
    whatever groups they are, whatever their RTTs. Null where the paths are not known, and for one flow by itself: what
    it leaves unused, for losses on the path say, nobody takes from it. Source: the shares are Bertsekas and Gallager's
    (1992, section 6.5.2); to judge by the worst-off is max-min fairness (RFC 5166).
    """
    parts = [share.part for share in view.cached(fair_shares)]
    return min(parts) if len(parts) > 1 else None


def min_group_share(view: RunView) -> float | None:
    """Smallest of the groups' ratios of goodput to max-min fair share, each a mean over a group's long-lived flows.

    1 where no group takes from another; below 0.1 a group starves. As `min_share`, and null where there is one group
    only. Source: as there.
    """
    parts: dict[str, list[float]] = {}
    for share in view.cached(fair_shares):
        parts.setdefault(share.group, []).append(share.part)
    return min(math.fsum(some) / len(some) for some in parts.values()) if len(parts) > 1 else None


#: Metrics of the table by group.
TABLE = (
    "flows_active",
    "goodput_bps",
    "udp_goodput_bps",
    "efficiency",
    "goodput_mean_bps",
    "goodput_min_bps",
    "goodput_max_bps",
    "jain",
    "rtt_mean_s",
    "retransmission_rate",
    "retransmissions",
    "udp_loss_rate",
    "one_way_delay_p95_s",
    "frame_delay_p95_s",
    "freezes",
    "fct_mean_s",
    "fct_p95_s",
    "unfinished",
)


def present(view: RunView) -> list[str]:
    """Return the names of the groups that have TCP flows or datagrams in the run, in the plan's order."""
    of_groups = ((name, view.of_group(name)) for name in view.plan.group_names)
    return [name for name, of in of_groups if of and (of.rows("flows")["flow"].size or of.has_datagrams)]


def starved(view: RunView) -> Iterator[tuple[str, Sequence[Share], int]]:
    """Yield each group with long-lived flows that starve: its name, those flows, and how many it has.

    One flow by itself does not starve (see `min_share`).
    """
    shares = view.cached(fair_shares)
    if len(shares) < 2:
        return
    for name in dict.fromkeys(share.group for share in shares):
        own = [share for share in shares if share.group == name]
        if few := [share for share in own if share.part < STARVED]:
            yield name, few, len(own)


METRICS = (
    Metric("min_share", "share", "Smallest share of a flow", min_share, of_several=True),
    Metric("min_group_share", "share", "Smallest share of a group", min_group_share, ranks=(3,), of_several=True),
)
