"""Delay of packets (RFC 5166): round-trip times, queueing delay, and one-way delay from end to end.

One-way delay is RFC 7679's, of the packets of each flow: from the moment at which the sender's TCP or UDP sends a
packet, this very copy of it, to that of its arrival: queues, transmissions and propagation. The packet engine measures
it where a scenario gives `[record] delays = true`; for a run of the real kernel or a network that was captured, two
captures that are joined (`ackclock capture --join`) tell it.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ackclock.errors import InputError
from ackclock.metrics.metric import Metric
from ackclock.metrics.view import Array, Rows, RunView


def rtt_mean_s(view: RunView) -> float | None:
    """Mean of the flows' smoothed round-trip times.

    The senders' srtt (RFC 6298 section 2), sampled at the recording interval in the measured part, all flows and
    instants alike. Without any, as in measurements by flent, the round-trip times of pings in the measured part.
    Source: RFC 5166 (delay).
    """
    return round_trips(view).mean("srtt_s")


def rtt_p95_s(view: RunView) -> float | None:
    """95th percentile of the same smoothed round-trip times. Source: RFC 5166 (delay)."""
    return round_trips(view).quantile("srtt_s", 0.95)


def round_trips(view: RunView) -> Rows:
    """Return the samples whose `srtt_s` are the round-trip times: the TCP flows', else those of pings."""
    rows = view.measured("flow_samples")
    return rows if rows.count("srtt_s") else view.pings


def queue_delay_mean_s(view: RunView) -> float | None:
    """Mean time that packets waited in the bottleneck's queue.

    Mean sojourn time over the packets that left the queue in the measured part, transmission not included. Without
    the per-packet mean, the sampled sojourn times weighted by departures. Source: RFC 5166 (delay), RFC 8289
    section 3 (sojourn time).
    """
    links = view.at_bottleneck("links")
    means_s, departed = links["sojourn_mean_s"], links["departed_p"]
    valid = ~np.isnan(means_s + departed)
    return _weighted_mean(means_s[valid], departed[valid]) if valid.any() else _weighted_mean(*_sampled(view))


def queue_delay_p95_s(view: RunView) -> float | None:
    """95th percentile of the time that packets waited in the bottleneck's queue.

    From the link's histogram of sojourn times: the upper edge of the bin in which 95 % of the packets are reached.
    Without a histogram, from the sampled sojourn times weighted by departures. Source: RFC 5166 (delay).
    """
    times_s, counts = sojourn_histogram(view)
    return weighted_quantile(times_s, counts, 0.95)


def queue_mean_p(view: RunView) -> float | None:
    """Mean backlog of the bottleneck's queue in packets, averaged over time; the packet in transmission is not in it.

    Source: RFC 5166 (delay).
    """
    mean = view.at_bottleneck("links").mean("backlog_mean_p")
    return view.at_bottleneck("queue_samples").mean("backlog_p") if mean is None else mean


def queue_empty_share(view: RunView) -> float | None:
    """Share of the measured time in which no packet waited in the bottleneck's queue (one may be in transmission).

    Without the time itself, the share of the samples with an empty queue. Source: RFC 5166 (delay).
    """
    empty_s = view.at_bottleneck("links").mean("empty_s")
    if empty_s is not None:
        return empty_s / view.measured_s
    samples = view.at_bottleneck("queue_samples")
    count = samples.count("backlog_p")
    return sum(int((backlog == 0).sum()) for backlog in samples.values("backlog_p")) / count if count else None


def sojourn_histogram(view: RunView) -> tuple[Array, Array]:
    """Return sojourn times (s, ascending) and packet counts, at the bottleneck in the measured part."""
    links = view.at_bottleneck("links").as_block
    histograms = zip(links.items("sojourn_edges_s"), links.items("sojourn_counts"), strict=True)
    valid = [(edges_s, counts) for edges_s, counts in histograms if edges_s is not None]
    if not valid:
        return _sampled(view)
    if any(counts is None or len(counts) != len(edges_s) for edges_s, counts in valid):
        raise InputError("the table 'links': found sojourn_edges_s without as many sojourn_counts; expected as many")
    edges_s, counts = (np.concatenate(column) for column in zip(*valid, strict=True))
    times_s, bins = np.unique(edges_s, return_inverse=True)
    return times_s, np.bincount(bins, counts).astype(np.float64)


def weighted_quantile(values: Array, weights: Array, share: float) -> float | None:
    """Return the smallest ascending value at which `share` of the total weight is reached; None without weight."""
    cumulative = np.cumsum(weights)
    if cumulative.size == 0 or cumulative[-1] <= 0:
        return None
    return float(values[np.searchsorted(cumulative, share * cumulative[-1] * (1 - 1e-12))])


def _sampled(view: RunView) -> tuple[Array, Array]:
    samples = view.at_bottleneck("queue_samples")
    sojourns_s, departures = samples["sojourn_s"], samples["departures_p"]
    valid = np.flatnonzero(~np.isnan(sojourns_s + departures))
    order = valid[np.argsort(sojourns_s[valid], kind="stable")]
    return sojourns_s[order], departures[order]


def _weighted_mean(values: Array, weights: Array) -> float | None:
    total = float(weights.sum())
    return float((values * weights).sum()) / total if total > 0 else None


def one_way_delay_mean_s(view: RunView) -> float | None:
    """Mean one-way delay of the data packets that arrived in the measured part, all flows' packets alike.

    From their sending to their arrival, each copy of a packet that arrives counted. TCP's packets; of a group without
    TCP flows, its datagrams. Null where it was not recorded.
    Source: RFC 7679; Le 2011, figures 5.7 to 5.10 (end-to-end delay).
    """
    result = one_way_series(view)
    packets = int(result["packets"].sum())
    return float((result["packets"] * result["delay_mean_s"]).sum()) / packets if packets else None


def one_way_delay_p95_s(view: RunView) -> float | None:
    """95th percentile of the one-way delay, of each flow's packets; the mean over the flows that got any.

    Of a group without TCP flows, of its UDP flows. Null where it was not recorded, or of a part of a run. Within 0.8 %.
    Source: RFC 7679.
    """
    known = _without_null(_delayed(view, "measured_delay_p95_s"))
    return float(known.sum()) / known.size if known.size else None


def one_way_delay_flow_s(view: RunView) -> list[float] | None:
    """Mean one-way delay of each flow's data packets that arrived in the measured part; null if a flow got none.

    Source: RFC 7679; Le 2011, figures 5.7 to 5.10.
    """
    return _of_flows(view, "measured_delay_mean_s")


def one_way_delay_flow_p95_s(view: RunView) -> list[float] | None:
    """95th percentile of the same of each flow, within 0.8 %; null if a flow got none. Source: RFC 7679."""
    return _of_flows(view, "measured_delay_p95_s")


def one_way_series(view: RunView) -> pl.DataFrame:
    """Return the delays of each flow over time in the measured part: a row for each interval with arrivals.

    `time_s` (the interval's end), `flow`, `packets`, `delay_min_s`, `delay_mean_s`, `delay_max_s`. Of joined captures,
    of the directions that carry data.
    """
    columns = ("time_s", "flow", "packets", "delay_min_s", "delay_mean_s", "delay_max_s")
    rows = view.measured("delays").frame().select(columns)
    return rows.filter(pl.col("flow").is_in(_delayed(view, "flow"))).sort("flow", "time_s")


def _of_flows(view: RunView, column: str) -> list[float] | None:
    values = _delayed(view, column)
    return [float(value) for value in values] if values.size and not np.isnan(values).any() else None


def _delayed(view: RunView, column: str) -> Array:
    """Return a column of the flows whose packets' delays count: TCP's, or a group's UDP flows if it has no other."""
    flows = view.rows("flows")
    is_udp = view.group is not None and view.between is None and not flows["flow"].size and view.has_datagrams
    return view.datagrams[column].to_numpy() if is_udp else flows[column]


def _without_null(values: Array) -> Array:
    return values[~np.isnan(values)]


METRICS = (
    Metric("rtt_mean_s", "s", "Mean round-trip time", rtt_mean_s, ranks=(6, 6)),
    Metric("rtt_p95_s", "s", "95th percentile of the round-trip time", rtt_p95_s),
    Metric(
        "queue_delay_mean_s",
        "s",
        "Mean queueing delay",
        queue_delay_mean_s,
        ranks=(4, 4, 2, 4),
        short="queueing delay",
        of_links=True,
    ),
    Metric(
        "queue_delay_p95_s",
        "s",
        "95th percentile of the queueing delay",
        queue_delay_p95_s,
        ranks=(5, 0, 5),
        of_links=True,
    ),
    Metric("queue_mean_p", "packets", "Mean queue length", queue_mean_p, ranks=(7,), of_links=True),
    Metric("queue_empty_share", "share", "Time with an empty queue", queue_empty_share, ranks=(8,), of_links=True),
    Metric("one_way_delay_mean_s", "s", "Mean one-way delay", one_way_delay_mean_s),
    Metric("one_way_delay_p95_s", "s", "95th percentile of the one-way delay", one_way_delay_p95_s),
    Metric("one_way_delay_flow_s", "s", "Mean one-way delay of each flow", one_way_delay_flow_s, per_flow=True),
    Metric(
        "one_way_delay_flow_p95_s",
        "s",
        "95th percentile of each flow's one-way delay",
        one_way_delay_flow_p95_s,
        per_flow=True,
    ),
)
