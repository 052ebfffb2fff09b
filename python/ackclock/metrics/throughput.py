"""How much got through: RFC 5166's throughput, Guillier's goodput, cwnd, throughput, utilisation and efficiency.

Guillier 2008 (table "TCP Performance Metrics") has two views of it: the user's (goodput, completion time, cwnd) and
the network's (throughput, link utilisation, efficiency). It names them after RFC 5166 and gives no formulae; these
are ours.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.metrics.metric import Metric
from ackclock.metrics.view import Array, RunView


def utilisation(view: RunView) -> float | None:
    """Share of the bottleneck's rate that carried packets, all wire bytes counted.

    Wire bytes that left the bottleneck in the measured part × 8 / (rate × its length); several bottlenecks count
    together. Without byte counts, the mean of the sampled utilisation. A packet counts when it leaves the queue, so
    the value may exceed 1 by one packet. Source: RFC 5166 (throughput), Guillier 2008 (link utilisation U).
    """
    links = view.links.drop_nulls("departed_bytes")
    capacity_bits = float(links["rate_bps"].sum()) * view.measured_s
    if capacity_bits > 0:
        return 8 * float(links["departed_bytes"].sum()) / capacity_bits
    return _mean(view.queue_samples["utilisation"])


def throughput_bps(view: RunView) -> float | None:
    """Throughput: wire bytes that left the bottleneck, per second, headers and retransmissions included.

    Utilisation × the bottleneck's rate; several bottlenecks count together, so that a packet that crosses two of them
    counts twice. The user's side of it is the goodput. Source: RFC 5166 (throughput), Guillier 2008 (throughput X).
    """
    share, capacity_bps = utilisation(view), _capacity_bps(view)
    return None if share is None or capacity_bps is None else share * capacity_bps


def efficiency(view: RunView) -> float | None:
    """Efficiency: goodput of all flows together over the bottleneck's rate.

    What utilisation is for wire bytes, for useful ones: headers, retransmissions and UDP do not count, so that it stays
    below 1 (with segments of 1448 bytes in packets of 1514 it is at most 1448 / 1514). With several bottlenecks their
    rates are added. Source: Guillier 2008 names it (efficiency E) without a formula; this reading is ours.
    """
    goodput, capacity_bps = goodput_bps(view), _capacity_bps(view)
    return None if goodput is None or capacity_bps is None else goodput / capacity_bps


def goodput_flow_bps(view: RunView) -> list[float] | None:
    """Goodput of each flow: payload bytes that arrived in order, per second.

    Payload that the receiver could hand to its application in the measured part × 8 / its length, for each flow
    that was there in the measured part, in the order of the flows; a finite transfer's bytes are spread over the
    whole measured part. Without the receiver's counts, bytes acknowledged at the sender. Source: RFC 5166
    (throughput), RFC 2647 section 3.17 (goodput).
    """
    rates = view.once(flow_rates_bps)
    return None if rates is None else rates.tolist()


def goodput_bps(view: RunView) -> float | None:
    """Goodput of all flows together: the sum of the flows' goodputs. Source: RFC 5166 (throughput)."""
    rates = view.once(flow_rates_bps)
    return None if rates is None else float(rates.sum())


def cwnd_mean(view: RunView) -> float | None:
    """Mean congestion window in segments.

    Over the samples of the measured part, all flows and instants alike. Source: Guillier 2008 (cwnd).
    """
    return _mean(view.measured_samples["cwnd"])


def cwnd_flow(view: RunView) -> list[float] | None:
    """Mean congestion window of each flow in segments.

    Over its samples of the measured part, for each flow that has some, in the order of the flows. Source: Guillier
    2008 (cwnd).
    """
    known = view.measured_samples.drop_nulls("cwnd").group_by("flow").agg(pl.col("cwnd").mean()).sort("flow")
    return known["cwnd"].to_list() or None


def flow_rates_bps(view: RunView) -> Array | None:
    """Goodputs of the flows that were there in the measured part; None if nothing tells them."""
    counted = view.once(measured_bytes)
    return None if counted is None else 8 * counted[present(view)] / view.measured_s


def rates_while_there_bps(view: RunView) -> Array | None:
    """Rates of the same flows over the time that each was there in the measured part; None if nothing tells them."""
    counted = view.once(measured_bytes)
    if counted is None:
        return None
    there_s = np.minimum(view.ends_s, view.duration_s) - np.maximum(view.starts_s, view.warmup_s)
    chosen = present(view)
    return np.asarray(8 * counted[chosen] / there_s[chosen])


def datagram_rates_bps(view: RunView) -> Array:
    """Payload of each UDP flow over the time that it sent in the measured part, in bit/s; NaN if it did not."""
    stops = [source.stop_s for source in view.plan.datagrams] or [None] * view.datagrams.height
    stops_s = np.array([stop_s or np.inf for stop_s in stops])
    starts_s = view.datagrams["start_s"].cast(pl.Float64).fill_null(np.inf).to_numpy()
    there_s = np.minimum(stops_s, view.duration_s) - np.maximum(starts_s, view.warmup_s)
    bits = 8 * view.datagrams["measured_bytes"].cast(pl.Float64).to_numpy()
    return np.asarray(np.divide(bits, there_s, out=np.full(bits.shape, np.nan), where=there_s > 0))


def rates_between_bps(view: RunView, edges_s: Array) -> Array:
    """Goodput at the sender of each sampled flow between successive instants (intervals × flows), in bit/s.

    NaN where the flow was not there for the whole interval.
    """
    rates = 8 * np.diff(view.delivered_at(edges_s), axis=0) / np.diff(edges_s)[:, None]
    begun = view.starts_s[view.sampled] <= edges_s[:-1, None]
    return np.where(begun & (view.ends_s[view.sampled] >= edges_s[1:, None]), rates, np.nan)


def measured_bytes(view: RunView) -> Array | None:
    """Payload of each flow in the measured part; None if nothing tells it or no flow was there."""
    if not present(view).any():
        return None
    counted = view.flows["measured_bytes"].cast(pl.Float64)
    return counted.to_numpy() if counted.null_count() == 0 else acknowledged_bytes(view)


def present(view: RunView) -> npt.NDArray[np.bool_]:
    """Which flows were there in the measured part: started before its end, not over before its start."""
    return np.asarray((view.starts_s < view.duration_s) & (view.ends_s > view.warmup_s))


def acknowledged_bytes(view: RunView) -> Array | None:
    """Bytes acknowledged at the sender in the measured part, by flow; None if nothing tells them.

    A flow without samples delivered its bytes evenly from its start to its end.
    """
    end_s = np.minimum(view.ends_s, view.run_end_s)
    inside_s = np.minimum(end_s, view.duration_s) - np.maximum(view.starts_s, view.warmup_s)
    life_s = np.maximum(end_s - view.starts_s, 1e-12)
    total = view.flows["delivered_bytes"].cast(pl.Float64).to_numpy() * np.clip(inside_s / life_s, 0.0, 1.0)
    total[view.sampled] = np.diff(view.delivered_at(np.array([view.warmup_s, view.duration_s])), axis=0)[0]
    return None if np.isnan(total[present(view)]).any() else np.nan_to_num(total)


def _capacity_bps(view: RunView) -> float | None:
    return float(view.links["rate_bps"].sum()) or None


def _mean(series: pl.Series) -> float | None:
    mean = series.mean()
    return float(mean) if isinstance(mean, (int, float)) else None


METRICS = (
    Metric("utilisation", "share", "Utilisation", utilisation, ranks=(1, 1, 1, 1), short="utilisation"),
    Metric("throughput_bps", "bit/s", "Throughput at the bottleneck", throughput_bps),
    Metric("efficiency", "share", "Efficiency", efficiency),
    Metric("goodput_bps", "bit/s", "Total goodput", goodput_bps, ranks=(2, 2, 3, 3), short="goodput"),
    Metric("goodput_flow_bps", "bit/s", "Goodput of each flow", goodput_flow_bps, per_flow=True),
    Metric("cwnd_mean", "segments", "Mean congestion window", cwnd_mean),
    Metric("cwnd_flow", "segments", "Mean congestion window of each flow", cwnd_flow, per_flow=True),
)
