"""Delay of packets: RFC 5166's delay."""

from __future__ import annotations

import numpy as np

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
    links = view.rows("links")
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
    mean = view.rows("links").mean("backlog_mean_p")
    return view.measured("queue_samples").mean("backlog_p") if mean is None else mean


def queue_empty_share(view: RunView) -> float | None:
    """Share of the measured time in which no packet waited in the bottleneck's queue (one may be in transmission).

    Without the time itself, the share of the samples with an empty queue. Source: RFC 5166 (delay).
    """
    empty_s = view.rows("links").mean("empty_s")
    if empty_s is not None:
        return empty_s / view.measured_s
    samples = view.measured("queue_samples")
    count = samples.count("backlog_p")
    return sum(int((backlog == 0).sum()) for backlog in samples.values("backlog_p")) / count if count else None


def sojourn_histogram(view: RunView) -> tuple[Array, Array]:
    """Return sojourn times (s, ascending) and packet counts, at the bottleneck in the measured part."""
    links = view.rows("links").as_block
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
    samples = view.measured("queue_samples")
    sojourns_s, departures = samples["sojourn_s"], samples["departures_p"]
    valid = np.flatnonzero(~np.isnan(sojourns_s + departures))
    order = valid[np.argsort(sojourns_s[valid], kind="stable")]
    return sojourns_s[order], departures[order]


def _weighted_mean(values: Array, weights: Array) -> float | None:
    total = float(weights.sum())
    return float((values * weights).sum()) / total if total > 0 else None


METRICS = (
    Metric("rtt_mean_s", "s", "Mean round-trip time", rtt_mean_s, ranks=(6, 6)),
    Metric("rtt_p95_s", "s", "95th percentile of the round-trip time", rtt_p95_s),
    Metric(
        "queue_delay_mean_s", "s", "Mean queueing delay", queue_delay_mean_s, ranks=(4, 4, 2, 4), short="queueing delay"
    ),
    Metric("queue_delay_p95_s", "s", "95th percentile of the queueing delay", queue_delay_p95_s, ranks=(5, 0, 5)),
    Metric("queue_mean_p", "packets", "Mean queue length", queue_mean_p, ranks=(7,)),
    Metric("queue_empty_share", "share", "Time with an empty queue", queue_empty_share, ranks=(8,)),
)
