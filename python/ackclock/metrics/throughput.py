"""Throughput: RFC 5166's throughput, Guillier's goodput, cwnd, throughput, utilisation and efficiency.

Guillier 2008 (table "TCP Performance Metrics") has two views of it: the user's (goodput, completion time, cwnd) and
the network's (throughput, link utilisation, efficiency). It names them after RFC 5166 and gives no formulae; these
are ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.metrics.flow_series import delivered_at
from ackclock.metrics.metric import Metric
from ackclock.metrics.view import ALL_FLOWS, Array, FlowLifetimes, RunView, flow_lifetimes

#: Numbers of flows.
Flows: TypeAlias = npt.NDArray[np.uint32]

#: Lists of a value for each flow are not made of more.
MAX_LISTED = 1_000_000


def utilisation(view: RunView) -> float | None:
    """Share of what the bottleneck can carry that carried packets, all wire bytes counted.

    Wire bytes that left the bottleneck in the measured part × 8 / (rate × its length): of a trace and of changes the
    mean rate in that part, or a token bucket's rate if that is less. Of several links that may be bottlenecks those
    count, together, that limited flows: they dropped, marked or lost packets, or were used for nine tenths; if none
    did, the one used most. Without byte counts, the mean of the sampled utilisation. A packet counts when it leaves the
    queue, so the value may exceed 1 by one packet. Source: RFC 5166 (throughput), Guillier 2008 (link utilisation U).
    """
    links = view.at_bottleneck("links")
    counted = ~np.isnan(links["departed_bytes"])
    capacity_bits = float(view.capacities_bps(links)[counted].sum()) * view.measured_s
    if capacity_bits > 0:
        return 8 * float(links["departed_bytes"][counted].sum()) / capacity_bits
    return view.at_bottleneck("queue_samples").mean("utilisation")


def throughput_bps(view: RunView) -> float | None:
    """Throughput: wire bytes that left the bottleneck, per second, headers and retransmissions included.

    Utilisation × what the bottleneck can carry; several links that limited flows count together, so that a packet that
    crosses two of them counts twice. The user's side of it is the goodput. Source: RFC 5166 (throughput), Guillier 2008
    (throughput X).
    """
    links = view.at_bottleneck("links")
    share, capacities_bps = utilisation(view), view.capacities_bps(links)
    counted = ~np.isnan(links["departed_bytes"])
    capacity_bps = float(capacities_bps[counted].sum()) or float(capacities_bps.sum())
    return share * capacity_bps if share is not None and capacity_bps > 0 else None


def efficiency(view: RunView) -> float | None:
    """Efficiency: goodput of all flows whose data cross the bottleneck, together, over what it can carry.

    What utilisation is for wire bytes, for useful ones: headers, retransmissions and UDP do not count. With segments of
    1448 bytes in packets of 1514 it is at most 1448 / 1514, apart from what waited behind a hole when the measured part
    began. Behind a token bucket a link carries the bucket's rate. With several bottlenecks it is the mean, weighted by
    what they carry, over those that limited flows: goodput counts at each that it crosses, and of a group those count
    that its flows cross. Null if the paths of flows are unknown then, as in a routed network without `record.paths`.
    Source: Guillier 2008 names it (efficiency E) without a formula; this reading is ours.
    """
    links = view.at_bottleneck("links")
    flows, hops = _paths(view)
    known, is_limiting = np.unique(flows), np.isin(hops, links["link"])
    flows, hops = flows[is_limiting], hops[is_limiting]
    of_others = _crossed_by_others(view, links["link"])
    carried_bytes, crossed = 0.0, set[int]()
    for numbers, counted, _ in payload(view):
        is_other = ~np.isin(numbers, known)
        times = np.bincount(flows, minlength=int(numbers.max(initial=0)) + 1)[numbers]
        if is_other.any():
            if of_others is None:
                return None
            crossed, times[is_other] = crossed | of_others, len(of_others)
        carried_bytes += float(counted @ times)
        crossed.update(hops[np.isin(flows, numbers)].tolist())
    capacity_bps = float(view.capacities_bps(links)[np.isin(links["link"], list(crossed))].sum())
    return 8 * carried_bytes / view.measured_s / capacity_bps if capacity_bps else None


def goodput_flow_bps(view: RunView) -> list[float] | None:
    """Goodput of each flow: payload bytes that arrived in order, per second.

    Payload that the receiver could hand to its application in the measured part × 8 / its length, for each flow
    that was there in the measured part, in the order of the flows; a finite transfer's bytes are spread over the
    whole measured part. Without the receiver's counts, bytes acknowledged at the sender. Null with more than a million
    flows, which are in the table of flows. Source: RFC 5166 (throughput), RFC 2647 section 3.17 (goodput).
    """
    if view.cached(_counts).present > MAX_LISTED:
        return None
    return [rate for rates in _rates_bps(view) for rate in rates.tolist()] or None


def goodput_bps(view: RunView) -> float | None:
    """Goodput of all flows together: the sum of the flows' goodputs. Source: RFC 5166 (throughput)."""
    sums = [float(rates.sum()) for rates in _rates_bps(view)]
    return sum(sums) if sums else None


def goodput_up_bps(view: RunView) -> float | None:
    """Goodput of the flows that the measuring host sends; null unless others go in the other direction.

    Of imports, in which one host measures both. Source: RFC 5166 (throughput).
    """
    return _goodput_of(view, "up")


def goodput_down_bps(view: RunView) -> float | None:
    """Goodput of the flows that the measuring host receives; null unless others go in the other direction.

    Of imports, in which one host measures both. Source: RFC 5166 (throughput).
    """
    return _goodput_of(view, "down")


def _goodput_of(view: RunView, direction: str) -> float | None:
    """Return the sum of the goodputs of the groups of one direction."""
    directions = np.array([group.direction or "" for group in view.plan.groups])
    rates = flow_rates_bps(view) if {"up", "down"} <= set(directions) else None
    if rates is None:
        return None
    flows = view.rows("flows")
    chosen = flows["flow"][np.isin(flows["group"], np.flatnonzero(directions == direction))]
    return float(rates[np.isin(present_flows(view), chosen)].sum())


def cwnd_mean(view: RunView) -> float | None:
    """Mean congestion window in segments.

    Over the samples of the measured part, all flows and instants alike. Source: Guillier 2008 (cwnd).
    """
    return view.measured("flow_samples").mean("cwnd")


def cwnd_flow(view: RunView) -> list[float] | None:
    """Mean congestion window of each flow in segments.

    Over its samples of the measured part, for each flow that has some, in the order of the flows. Source: Guillier
    2008 (cwnd).
    """
    sums, counts = np.empty(0), np.empty(0)
    for block in view.measured("flow_samples").blocks("flow", "cwnd"):
        valid = ~np.isnan(block["cwnd"])
        flows, most = block["flow"][valid].astype(np.intp), sums.size
        sums, counts = _added(sums, np.bincount(flows, block["cwnd"][valid], most)), _added(counts, np.bincount(flows))
    return (sums[counts > 0] / counts[counts > 0]).tolist() or None


def active_rates_bps(view: RunView) -> Array | None:
    """Return rates of the flows active in the measured part over the time of each; None if unknown.

    In the order of the flows, if there are not more than fit into a block.
    """
    result = [rates for _, rates in rates_by_block_bps(view)]
    return np.concatenate(result) if result else None


def rates_by_block_bps(view: RunView) -> Iterator[tuple[Flows, Array]]:
    """Yield the same rates in blocks with their flows; none if they are unknown."""
    return ((flows, 8 * counted / active_s) for flows, counted, active_s in payload(view))


def datagram_rates_bps(view: RunView) -> Array:
    """Return the payload of each UDP flow over its active time in the measured part, bit/s; NaN if inactive."""
    planned = dict(enumerate(view.plan.datagrams, len(view.plan.flows)))
    sources = [planned.get(flow) for flow in view.datagrams["flow"]]
    stops_s = np.array([(source and source.stop_s) or np.inf for source in sources])
    starts_s = view.datagrams["start_s"].cast(pl.Float64).fill_null(np.inf).to_numpy()
    active_s = np.minimum(stops_s, view.duration_s) - np.maximum(starts_s, view.warmup_s)
    bits = 8 * view.datagrams["measured_bytes"].cast(pl.Float64).to_numpy()
    return np.asarray(np.divide(bits, active_s, out=np.full(bits.shape, np.nan), where=active_s > 0))


def udp_goodput_bps(view: RunView) -> float | None:
    """Payload of all UDP flows that arrived in the measured part, per second.

    Payload bytes at the receivers × 8 / the length of the measured part; null if it is unknown for any of them. Source:
    RFC 5166 (throughput).
    """
    arrived = view.datagram_sum("measured_bytes")
    return None if arrived is None or view.measured_s <= 0 else 8 * arrived / view.measured_s


def rates_between_bps(view: RunView, edges_s: Array) -> Array:
    """Return the goodput at the sender of each sampled flow between instants (intervals × flows), bit/s.

    NaN where the flow was not there for the whole interval.
    """
    sampled = view.sampled
    rates = 8 * np.diff(delivered_at(view, edges_s), axis=0) / np.diff(edges_s)[:, None]
    there = (sampled.starts_s <= edges_s[:-1, None]) & (sampled.ends_s >= edges_s[1:, None])
    return np.where(there, rates, np.nan)


def payload(view: RunView) -> Iterator[tuple[Flows, Array, Array]]:
    """Yield in blocks the flows active in the measured part, their payload (bytes) and their active time (s).

    Nothing if nothing tells it, or no flow was there.
    """
    flows = view.cached(_counts)
    if flows.unknown or not flows.present:
        return
    for block in view.rows("flows").blocks(*FlowLifetimes.COLUMNS, "measured_bytes"):
        result = flow_lifetimes(block)
        chosen = _present(view, result)
        counted = _acknowledged_bytes(view, result) if flows.uncounted else block["measured_bytes"]
        active_s = np.minimum(result.ends_s, view.duration_s) - np.maximum(result.starts_s, view.warmup_s)
        yield result.flows[chosen], counted[chosen], active_s[chosen]


def present_flows(view: RunView) -> Flows:
    """Return the numbers of the flows active in the measured part, in the order of `flow_rates_bps`."""
    blocks = view.rows("flows").blocks(*FlowLifetimes.COLUMNS)
    return np.concatenate([np.empty(0, np.uint32), *(b["flow"][_present(view, flow_lifetimes(b))] for b in blocks)])


def _present(view: RunView, flows: FlowLifetimes) -> npt.NDArray[np.bool_]:
    """Return which flows were active in the measured part: started before its end, not over before its start."""
    return np.asarray((flows.starts_s < view.duration_s) & (flows.ends_s > view.warmup_s))


@dataclass(frozen=True, slots=True)
class _Counts:
    """Flows active in the measured part, those not counted by the receiver, and those not counted at all."""

    present: int
    uncounted: int
    unknown: int


def _counts(view: RunView) -> _Counts:
    result, uncounted, unknown = 0, 0, 0
    for block in view.rows("flows").blocks(*FlowLifetimes.COLUMNS, "measured_bytes"):
        flows = flow_lifetimes(block)
        present = _present(view, flows)
        result += int(present.sum())
        uncounted += int(np.isnan(block["measured_bytes"][present]).sum())
    if uncounted:
        for block in view.rows("flows").blocks(*FlowLifetimes.COLUMNS):
            flows = flow_lifetimes(block)
            unknown += int(np.isnan(_acknowledged_bytes(view, flows)[_present(view, flows)]).sum())
    return _Counts(result, uncounted, unknown)


def flow_rates_bps(view: RunView) -> Array | None:
    """Return goodputs of the same flows over the whole measured part; None if unknown."""
    result = [*_rates_bps(view)]
    return np.concatenate(result) if result else None


def _rates_bps(view: RunView) -> Iterator[Array]:
    """Yield goodputs of the flows active in the measured part, in blocks; none if they are unknown."""
    return (8 * counted / view.measured_s for _, counted, _ in payload(view) if counted.size)


def _acknowledged_bytes(view: RunView, flows: FlowLifetimes) -> Array:
    """Return bytes acknowledged at the sender in the measured part, by flow; NaN where unknown.

    A flow without samples delivered its bytes evenly from its start to its end.
    """
    end_s = np.minimum(flows.ends_s, view.run_end_s)
    inside_s = np.minimum(end_s, view.duration_s) - np.maximum(flows.starts_s, view.warmup_s)
    life_s = np.maximum(end_s - flows.starts_s, 1e-12)
    total = flows.delivered_bytes * np.clip(inside_s / life_s, 0.0, 1.0)
    _, rows, places = np.intersect1d(flows.flows, view.sampled.flows, assume_unique=True, return_indices=True)
    total[rows] = view.cached(_acknowledged_of_sampled)[places]
    return np.asarray(total)


def _acknowledged_of_sampled(view: RunView) -> Array:
    return np.asarray(np.diff(delivered_at(view, np.array([view.warmup_s, view.duration_s])), axis=0)[0])


def _added(sums: Array, more: npt.NDArray[np.number[Any]]) -> Array:
    """Add both, the shorter one padded with zeros."""
    most = max(sums.size, more.size)
    return np.pad(sums, (0, most - sums.size)) + np.pad(more, (0, most - more.size))


def flows_active(view: RunView) -> float | None:
    """Number of TCP flows that were there at some time in the measured part.

    Null if there was none.
    """
    return float(view.cached(_counts).present) or None


def goodput_mean_bps(view: RunView) -> float | None:
    """Mean over the flows of each one's goodput while it was there.

    A flow's payload in the measured part over the time in it in which the flow was there, which is what its user sees;
    null if it is unknown. Source: RFC 5166 (throughput).
    """
    found = view.cached(_active_rates)
    return found.total / found.count if found.count else None


def goodput_min_bps(view: RunView) -> float | None:
    """Smallest goodput of a flow while it was there.

    Null if it is unknown. Source: as `goodput_mean_bps`.
    """
    found = view.cached(_active_rates)
    return found.smallest if found.count else None


def goodput_max_bps(view: RunView) -> float | None:
    """Greatest goodput of a flow while it was there.

    Null if it is unknown. Source: as `goodput_mean_bps`.
    """
    found = view.cached(_active_rates)
    return found.greatest if found.count else None


@dataclass(frozen=True, slots=True)
class _Rates:
    """Goodputs of flows while they were there: how many, their sum, the smallest and the greatest."""

    count: int
    total: float
    smallest: float
    greatest: float


def _active_rates(view: RunView) -> _Rates:
    blocks = [
        (rates.size, float(rates.sum()), float(rates.min()), float(rates.max()))
        for _, rates in rates_by_block_bps(view)
        if rates.size
    ]
    counts, totals, smallest, greatest = zip(*blocks, strict=True) if blocks else ((), (), (), ())
    return _Rates(sum(counts), math.fsum(totals), min(smallest, default=0.0), max(greatest, default=0.0))


def _paths(view: RunView) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the flows with a known path, and the links on it, in pairs: as recorded, else as planned."""
    recorded = view.rows("paths")
    if recorded["flow"].size:
        return recorded["flow"].astype(np.intp), recorded["link"].astype(np.intp)
    paths = ((number, flow.forward.hops) for number, flow in enumerate(view.plan.flows) if flow.forward)
    pairs = [(number, hop.link) for number, hops in paths for hop in hops if hop.link is not None]
    flows, links = np.array(pairs, np.intp).reshape(-1, 2).T
    return flows, links


def _crossed_by_others(view: RunView, links: Array) -> set[int] | None:
    """Return which of these links the flows cross that the plan does not list; None if that is unknown."""
    groups = None if view.group in (None, ALL_FLOWS) else view.plan.groups_of(view.group or "")
    traffic = [each for each in view.plan.traffic if groups is None or each.group in groups]
    paths = [pair.forward for each in traffic for pair in each.population.paths]
    if paths and all(paths):
        crossed = {frozenset(hop.link for hop in path.hops if hop.link in links) for path in paths if path}
        return set(crossed.pop()) if len(crossed) == 1 else None  # type: ignore[arg-type]
    return set(links.tolist()) if len(view.bottlenecks) == 1 else None


METRICS = (
    Metric("utilisation", "share", "Utilisation", utilisation, ranks=(1, 1, 1, 1), short="utilisation", of_links=True),
    Metric("throughput_bps", "bit/s", "Throughput at the bottleneck", throughput_bps, of_links=True),
    Metric("efficiency", "share", "Efficiency", efficiency),
    Metric("goodput_bps", "bit/s", "Total goodput", goodput_bps, ranks=(2, 2, 3, 3), short="goodput"),
    Metric("goodput_up_bps", "bit/s", "Goodput upstream", goodput_up_bps, ranks=(2,)),
    Metric("goodput_down_bps", "bit/s", "Goodput downstream", goodput_down_bps, ranks=(2,)),
    Metric("goodput_flow_bps", "bit/s", "Goodput of each flow", goodput_flow_bps, per_flow=True),
    Metric("flows_active", "", "Flows", flows_active),
    Metric("goodput_mean_bps", "bit/s", "Mean goodput of a flow", goodput_mean_bps),
    Metric("goodput_min_bps", "bit/s", "Smallest goodput of a flow", goodput_min_bps),
    Metric("goodput_max_bps", "bit/s", "Greatest goodput of a flow", goodput_max_bps),
    Metric("udp_goodput_bps", "bit/s", "Total goodput of UDP", udp_goodput_bps, ranks=(2,)),
    Metric("cwnd_mean", "segments", "Mean congestion window", cwnd_mean),
    Metric("cwnd_flow", "segments", "Mean congestion window of each flow", cwnd_flow, per_flow=True),
)
