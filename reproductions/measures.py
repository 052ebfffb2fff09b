"""Measures that entries share and that are no metrics of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from ackclock.figures import curves
from ackclock.metrics import RunView, delay, epoch, value

#: Time after an epoch's last drop while the total window may still be on its way down, in round-trip times: one until
#: the senders detect it, one to bring the window down in proportion to what is delivered, one in reserve.
REACTION_RTTS = 3


def synchronised_flows(view: RunView) -> float | None:
    """Mean number of flows that lost a packet in a congestion epoch. Source: Belhareth 2014, figures 5.5 and 5.6."""
    mean = view.cached(epoch.epochs)["flows_hit"].mean()
    return float(mean) if isinstance(mean, (int, float)) else None


def window_fall(view: RunView) -> float | None:
    """Mean share of the total window that is given up in a congestion epoch.

    1 − (lowest total from the last drop until `REACTION_RTTS` after it or the next epoch) / (highest total from the
    first drop until one RTT after the last). Source: Belhareth 2014, section 5.4.1.
    """
    found = view.cached(epoch.epochs)
    times_s, total = view.grid.times_s, curves.windows(view).total()
    starts_s, ends_s = found["start_s"].to_numpy(), found["end_s"].to_numpy()
    next_s = np.append(starts_s[1:], np.inf)
    rtts_s = epoch.rtt_at(view, ends_s)
    falls = []
    for start_s, end_s, after_s, rtt_s in zip(starts_s, ends_s, next_s, rtts_s, strict=True):
        peak = total[_between(times_s, start_s, min(end_s + rtt_s, after_s))]
        trough = total[_between(times_s, end_s, min(end_s + REACTION_RTTS * rtt_s, after_s))]
        if peak.size and trough.size:
            falls.append(1 - float(trough.min()) / float(peak.max()))
    return float(np.mean(falls)) if falls else None


def window_peak(view: RunView) -> float | None:
    """Mean over the congestion epochs of the highest total window (segments) until one RTT after the last drop."""
    found = view.cached(epoch.epochs)
    times_s, total = view.grid.times_s, curves.windows(view).total()
    ends_s = found["end_s"].to_numpy()
    parts = [
        total[_between(times_s, start_s, end_s)]
        for start_s, end_s in zip(found["start_s"], ends_s + epoch.rtt_at(view, ends_s), strict=True)
    ]
    peaks = [float(part.max()) for part in parts if part.size]
    return float(np.mean(peaks)) if peaks else None


def peak_bdp(view: RunView) -> float | None:
    """`window_peak` in bandwidth-delay products of packets of 1500 bytes on the wire."""
    peak = window_peak(view)
    return None if peak is None else peak / _bdp_p(view)


def mean_window_bdp(view: RunView) -> float | None:
    """The mean total window of the measured part, in the same unit."""
    lines = curves.windows(view)
    total = lines.total()[lines.times_s > view.warmup_s]
    return float(total.mean()) / _bdp_p(view) if total.size else None


def _bdp_p(view: RunView) -> float:
    rate_bps, rtt_s = view.plan.links[view.plan.bottlenecks[0]].rate_bps, view.plan.flows[0].base_rtt_s
    return (rate_bps or np.nan) * (rtt_s or np.nan) / (8 * 1500)


def transfer_loss(view: RunView) -> float | None:
    """Packets dropped / (dropped + received), over all TCP flows. Source: Le 2011, equation 5.3.

    Of an engine that does not count what arrives, that is what was sent and not dropped.
    """
    sent, lost, arrived = (view.flows[f"{what}_packets"].cast(pl.Float64) for what in ("sent", "dropped", "received"))
    dropped, received = float(lost.sum()), float(arrived.fill_null((sent - lost).clip(0.0)).sum())
    return dropped / (dropped + received) if received else None


def served_bps(view: RunView) -> float | None:
    """Payload of the packets that the bottleneck sends, new or repeated (bit/s).

    Source: Belhareth 2014, section 3.4: throughput less what is lost, “the traffic that the server could effectively
    service over a given time period”, which that thesis calls goodput.
    """
    utilisation, rate_bps = value(view, "utilisation"), view.plan.links[view.plan.bottlenecks[0]].rate_bps
    tcp, packet_bytes = view.plan.groups[0].tcp, view.plan.packet_bytes
    mss_bytes = tcp.mss_bytes if tcp else None
    if not isinstance(utilisation, float) or not rate_bps or not mss_bytes or not packet_bytes:
        return None
    return utilisation * rate_bps * mss_bytes / packet_bytes


def queue_delay_quantile(share: float) -> Callable[[RunView], float | None]:
    """The measure of the bottleneck's sojourn time (s) that this share of the packets does not exceed."""
    return lambda view: delay.weighted_quantile(*delay.sojourn_histogram(view), share)


def waiting_quantile(share: float) -> Callable[[RunView], float | None]:
    """The same measure, in seconds; of an engine without times of single packets (the kernel) from the backlog.

    A packet that arrives waits for the backlog, its bytes over the link's rate, and for the rest of the packet in
    transmission: up to one full packet's, uniformly. Each sample of the backlog in the measured part counts once, which
    at a link that is always busy is as often as packets leave.
    """
    of_packets = queue_delay_quantile(share)

    def measure(view: RunView) -> float | None:
        known_s, rate_bps = of_packets(view), view.plan.links[view.plan.bottlenecks[0]].rate_bps
        if known_s is not None or not rate_bps or not view.plan.packet_bytes:
            return known_s
        backlog_bytes = view.at_bottleneck("queue_samples")["backlog_bytes"]
        waits_s, counts = np.unique(backlog_bytes[~np.isnan(backlog_bytes)] * 8 / rate_bps, return_counts=True)
        if not waits_s.size:
            return None
        transmission_s = 8 * view.plan.packet_bytes / rate_bps
        times_s = np.unique(np.concatenate([waits_s, waits_s + transmission_s]))
        shares = np.clip((times_s[:, None] - waits_s) / transmission_s, 0, 1) @ counts / counts.sum()
        return float(np.interp(share, shares, times_s))

    return measure


def window_quantile(share: float) -> Callable[[RunView], float | None]:
    """The measure of the window that this share of the samples of all flows and instants does not exceed."""

    def measure(view: RunView) -> float | None:
        value = view.measured_samples["cwnd"].quantile(share, interpolation="linear")
        return None if value is None else float(value)

    return measure


def window_swing(view: RunView) -> float | None:
    """Range of the mean window over the flows: its 95th less its 5th percentile over time, in segments."""
    means = mean_windows(view)["cwnd"]
    return float(np.quantile(means, 0.95) - np.quantile(means, 0.05)) if means.len() else None


def mean_windows(view: RunView) -> pl.DataFrame:
    """At each sampled instant of the measured part the mean of the flows' windows, and their deviation `sd`."""
    samples = (
        view.measured_samples.drop_nulls("cwnd")
        .group_by("time_s")
        .agg(pl.col("cwnd").mean(), pl.col("cwnd").std(ddof=0).alias("sd"))
    )
    return samples.sort("time_s")


def queue_swing(view: RunView) -> float | None:
    """Range of the bottleneck's backlog: its 95th less its 5th percentile over time, in packets."""
    backlog = view.queue_samples["backlog_p"].drop_nulls()
    return float(np.quantile(backlog, 0.95) - np.quantile(backlog, 0.05)) if backlog.len() else None


def _between(times_s: np.ndarray, low_s: float, high_s: float) -> slice:
    return slice(*np.searchsorted(times_s, [low_s, high_s]))


def rtt_of_acks_s(flow: int) -> Callable[[RunView], float | None]:
    """A measure: the mean of a flow's RTTs over what is acknowledged, as tcptrace has it from a capture.

    It takes one for each ACK, and so many where ACKs are frequent. A mean over time has more of the long ones, at which
    fewer arrive.
    """

    def rtt_s(view: RunView) -> float | None:
        samples = view.measured_samples.filter(pl.col("flow") == flow).sort("time_s")
        acked = np.diff(samples["delivered_bytes"].to_numpy().astype(float))
        total = float(acked.sum())
        return float(samples["srtt_s"].to_numpy()[1:] @ acked) / total if total > 0 else None

    return rtt_s
