"""Congestion epochs and loss synchronisation.

A congestion epoch is a series of drops by the bottleneck's queue in which each drop follows the one before it within
less than one round-trip time. The RTT is that of the moment: the mean of the flows' smoothed RTTs sampled last before
the drop (the mean base RTT where no sample precedes it). Random losses on the link open no epoch; a drop in the
warm-up belongs to none. Of a capture, all losses of data count, at the times at which they passed it.

Sources: Belhareth 2014 (thesis, figures 5.5–5.11) counts synchronised flows and lost packets "at each congestion
epoch" without fixing its bounds; RFC 5348 section 5.2 has the per-flow idea: losses within one RTT are one event.

Our deviation: RFC 5348 counts the RTT from the event's first loss, we from the drop before, so that an overload that
lasts a little longer than one RTT, as a tail-drop queue's does while the senders have not yet heard of it, is one
epoch and not two. Where drops never cease for an RTT (many flows, a queue discipline that drops early), epochs run
into each other and synchronisation reads high: `epoch_duration_mean_s` far above the RTT shows it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.metrics.epoch_rules import RULES
from ackclock.metrics.flow_series import mean_by_instant
from ackclock.metrics.metric import Metric
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.view import Array, FlowLifetimes, RunView, flow_lifetimes, runs

#: Until so many RTTs after the last loss the window may fall: the senders hear of it one RTT later, and repair for one.
REACTION_RTTS = 2.0

#: Columns of `epochs_by_rule` and `window_reductions`.
SCHEMA = {
    "run": pl.UInt32,
    "rule": pl.String,
    "epochs": pl.Int64,
    "synchronisation": pl.Float64,
    "flows_per_epoch": pl.Float64,
    "losses_per_epoch": pl.Float64,
    "duration_mean_s": pl.Float64,
}
REDUCTION_SCHEMA = {
    "run": pl.UInt32,
    "epoch": pl.Int64,
    "start_s": pl.Float64,
    "losses": pl.UInt32,
    "flows_hit": pl.UInt32,
    "flows_active": pl.Int64,
    "window_before": pl.Float64,
    "window_after": pl.Float64,
    "fall": pl.Float64,
}


@dataclass(frozen=True, slots=True)
class Epochs:
    """The congestion epochs of a run, in order.

    `start_s`, `end_s`: first and last drop; `drops`: all packets; `flows_hit`, `flows_active`: TCP flows; `share`:
    their ratio.
    """

    start_s: Array
    end_s: Array
    drops: npt.NDArray[np.uint32]
    flows_hit: npt.NDArray[np.uint32]
    flows_active: npt.NDArray[np.int64]
    share: Array

    @staticmethod
    def of(view: RunView) -> Epochs:
        """Return the epochs of the measured part."""
        return Epochs.numbered(view, _numbers(view, view.dropped["time_s"]))

    @staticmethod
    def numbered(view: RunView, number: npt.NDArray[np.int64]) -> Epochs:
        """Return the epochs of the measured part, given the ascending epoch number of each drop."""
        times_s, flows = view.dropped["time_s"], view.dropped["flow"]
        first = np.flatnonzero(np.diff(number, prepend=-1))
        start_s, end_s = times_s[first], times_s[np.append(first[1:], times_s.size)[: first.size] - 1]
        ours = _are_flows(view, flows)
        hits = np.unique((number[ours] << 32) + flows[ours].astype(np.int64)) >> 32
        hit, active = np.bincount(hits, minlength=first.size), _active(view, start_s, end_s)
        return Epochs(
            start_s=start_s,
            end_s=end_s,
            drops=np.diff(first, append=times_s.size).astype(np.uint32),
            flows_hit=hit.astype(np.uint32),
            flows_active=active,
            share=np.minimum(hit / np.maximum(active, 1), 1.0),
        )

    @property
    def count(self) -> int:
        """Return the number of epochs."""
        return int(self.start_s.size)


def epochs(view: RunView) -> pl.DataFrame:
    """Return one row an epoch: `epoch`, its number from 0, and the columns of `Epochs`."""
    result = view.cached(Epochs.of)
    columns = {name: getattr(result, name) for name in Epochs.__slots__}
    return pl.DataFrame({"epoch": np.arange(result.count), **columns})


def drops_by_epoch(view: RunView) -> pl.DataFrame:
    """Return the bottleneck's drops in the measured part with the number of their `epoch`, from 0."""
    return view.drops.with_columns(pl.Series("epoch", _numbers(view, view.drops["time_s"].to_numpy())))


def _numbers(view: RunView, times_s: Array) -> npt.NDArray[np.int64]:
    return RULES[view.rule](times_s, rtt_at(view, times_s))


def rtt_at(view: RunView, times_s: Array) -> Array:
    """Return the mean smoothed RTT (s) sampled last before ascending instants, else the mean base RTT, else 0."""
    result, done = np.empty(times_s.shape), 0
    latest = view.rows("flows").mean("base_rtt_s") or 0.0
    for sampled_s, means in mean_by_instant(view, "srtt_s") if times_s.size else ():
        valid = ~np.isnan(means)
        if valid.any():
            sampled_s, means = sampled_s[valid], means[valid]  # noqa: PLW2901
            first, end = np.searchsorted(times_s, sampled_s[[0, -1]])
            result[done:first] = latest
            result[first:end] = means[np.searchsorted(sampled_s, times_s[first:end], side="right") - 1]
            latest, done = means[-1], end
    result[done:] = latest
    return result


def _active(view: RunView, start_s: Array, end_s: Array) -> npt.NDArray[np.int64]:
    """Return how many flows had started by the end of each interval and were not over at its start."""
    active = np.zeros(start_s.size, dtype=np.int64)
    for block in view.rows("flows").blocks(*FlowLifetimes.COLUMNS):
        result = flow_lifetimes(block)
        active += np.searchsorted(np.sort(result.starts_s), end_s, side="right")
        active -= np.searchsorted(np.sort(result.ends_s), start_s, side="left")
    return active


def _are_flows(view: RunView, numbers: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """Return which of the numbers are those of TCP flows that started."""
    valid = np.zeros(numbers.size, dtype=bool)
    for block in view.rows("flows").blocks("flow"):
        valid |= np.isin(numbers, block["flow"])
    return valid


def congestion_epochs(view: RunView) -> float | None:
    """Number of congestion epochs in the measured part.

    A congestion epoch is a series of drops by the bottleneck's queue, each within one RTT (the flows' mean smoothed
    RTT at that moment) of the drop before. Null if the bottleneck dropped packets that were not recorded one by one.
    Source: Belhareth 2014 chapter 5; RFC 5348 section 5.2.
    """
    return float(view.cached(Epochs.of).count) if is_recorded(view) else None


def synchronisation(view: RunView) -> float | None:
    """Loss synchronisation: mean over the congestion epochs of the share of the active flows that lost a packet.

    1 if every flow loses in every epoch; null without epochs. Source: Belhareth 2014 sections 5.3–5.4.
    """
    return _epoch_mean(view, "share")


def losses_per_epoch(view: RunView) -> float | None:
    """Mean number of packets dropped in a congestion epoch; null without epochs. Source: Belhareth 2014, figure 5.5."""
    return _epoch_mean(view, "drops")


def synchronisation_sd(view: RunView) -> float | None:
    """Standard deviation over the epochs of the share of the active flows that lost a packet (the population's).

    Source: Belhareth 2014 sections 5.3–5.4 shows the epochs one by one.
    """
    return _epoch_sd(view, "share")


def losses_per_epoch_sd(view: RunView) -> float | None:
    """Standard deviation over the epochs of the number of packets dropped (the population's); null without epochs."""
    return _epoch_sd(view, "drops")


def losses_per_epoch_max(view: RunView) -> float | None:
    """Greatest number of packets dropped in a congestion epoch; null without epochs."""
    return _epoch_max(view, "drops")


def flows_per_epoch(view: RunView) -> float | None:
    """Synchronised flows: mean over the congestion epochs of the number of flows that lost a packet.

    Null without epochs. Source: Belhareth 2014, figures 5.5–5.11 (synchronised flows at each congestion epoch).
    """
    return _epoch_mean(view, "flows_hit")


def flows_per_epoch_sd(view: RunView) -> float | None:
    """Standard deviation over the epochs of the number of synchronised flows (the population's)."""
    return _epoch_sd(view, "flows_hit")


def flows_per_epoch_max(view: RunView) -> float | None:
    """Greatest number of flows that lost a packet in one congestion epoch; null without epochs."""
    return _epoch_max(view, "flows_hit")


def epoch_interval_mean_s(view: RunView) -> float | None:
    """Mean time from the start of a congestion epoch to the start of the next; null with fewer than two epochs."""
    starts_s = view.cached(Epochs.of).start_s
    return float(np.diff(starts_s).mean()) if starts_s.size > 1 else None


def epoch_time_share(view: RunView) -> float | None:
    """Share of the measured time that lies in a congestion epoch, between its first and its last drop.

    Null without epochs. Near 1 the bottleneck is overloaded without pause, and the number of epochs gives little.
    """
    result = view.cached(Epochs.of)
    return float((result.end_s - result.start_s).sum()) / view.measured_s if result.count else None


def epoch_duration_mean_s(view: RunView) -> float | None:
    """Mean time from the first to the last drop of a congestion epoch; null without epochs.

    Far above the RTT it means that epochs run into each other, and that synchronisation means little.
    """
    result = view.cached(Epochs.of)
    return float(np.mean(result.end_s - result.start_s)) if result.count else None


def _epoch_mean(view: RunView, column: str) -> float | None:
    result = view.cached(Epochs.of)
    return float(np.mean(getattr(result, column))) if result.count else None


def _epoch_sd(view: RunView, column: str) -> float | None:
    result = view.cached(Epochs.of)
    return float(np.std(getattr(result, column))) if result.count else None


def _epoch_max(view: RunView, column: str) -> float | None:
    result = view.cached(Epochs.of)
    return float(np.max(getattr(result, column))) if result.count else None


def is_recorded(view: RunView) -> bool:
    """Return True if the drops were recorded one by one: there are some, or a counter counted none."""
    if view.dropped.count("time_s"):
        return True
    return 0 in (view.rows("links").sum("dropped_p"), view.measured("queue_samples").sum("drops_p"))


def epochs_by_rule(data: Recorded, between: tuple[float, float] | None = None) -> pl.DataFrame:
    """Return the epochs of each run by each rule: how many, and means over them.

    `synchronisation` is the mean share of the active flows that lost a packet, `flows_per_epoch` how many did,
    `losses_per_epoch` the packets lost, `duration_mean_s` the time from the first to the last loss; null without
    epochs. `between` looks at a part of each run (seconds). Sources: Belhareth 2014 chapter 5; RFC 5348 section 5.2.
    """
    rows = [_by_rule(view, rule) for view in runs(data, between) for rule in RULES]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _by_rule(view: RunView, rule: str) -> tuple[object, ...]:
    times_s = view.dropped["time_s"]
    result = Epochs.numbered(view, RULES[rule](times_s, rtt_at(view, times_s)))
    columns = (result.share, result.flows_hit, result.drops, result.end_s - result.start_s)
    means = [float(np.mean(column)) if result.count else None for column in columns]
    return (view.run, rule, result.count, *means)


def window_reductions(data: Recorded, between: tuple[float, float] | None = None) -> pl.DataFrame:
    """Each epoch with the total window, in segments, before it and after the flows' reaction, and its fall as a share.

    Before: the last samples before the first loss; after: the smallest total within two RTTs of the last one. The
    window is the flows' pipe (RFC 6675), which a capture knows at any time. Null where no flow was sampled then.
    """
    rows = [row for view in runs(data, between) for row in _reductions(view)]
    return pl.DataFrame(rows, schema=REDUCTION_SCHEMA, orient="row")


def total_pipe(view: RunView) -> tuple[Array, Array]:
    """Instants (s), and the sum over the flows of what each had under way at its last sample (segments)."""
    samples = view.flow_samples.select("time_s", "flow", "in_flight").drop_nulls()
    if not samples.height:
        return np.empty(0), np.empty(0)
    wide = samples.pivot("flow", index="time_s", values="in_flight", aggregate_function="last").sort("time_s")
    filled = wide.select(pl.all().exclude("time_s").forward_fill().fill_null(0.0))
    return wide["time_s"].to_numpy(), np.asarray(filled.sum_horizontal().to_numpy(), dtype=np.float64)


def _reductions(view: RunView) -> list[tuple[object, ...]]:
    result, (times_s, total) = view.cached(Epochs.of), total_pipe(view)
    first = np.searchsorted(times_s, result.start_s, side="right") - 1
    until_s = result.end_s + REACTION_RTTS * rtt_at(view, result.end_s)
    last = np.searchsorted(times_s, until_s, side="right")
    rows: list[tuple[object, ...]] = []
    for epoch in range(result.count):
        inside = total[max(first[epoch], 0) : last[epoch]]
        before = float(total[first[epoch]]) if first[epoch] >= 0 else None
        after = float(inside.min()) if before is not None and inside.size else None
        fall = 1 - after / before if before and after is not None else None
        counts = int(result.drops[epoch]), int(result.flows_hit[epoch]), int(result.flows_active[epoch])
        rows.append((view.run, epoch, float(result.start_s[epoch]), *counts, before, after, fall))
    return rows


METRICS = (
    Metric("congestion_epochs", "", "Congestion epochs", congestion_epochs, ranks=(12,), of_links=True),
    Metric(
        "synchronisation",
        "share",
        "Loss synchronisation",
        synchronisation,
        ranks=(13, 0, 8),
        of_several=True,
        of_links=True,
    ),
    Metric("synchronisation_sd", "share", "Its standard deviation over the epochs", synchronisation_sd, of_links=True),
    Metric("flows_per_epoch", "", "Synchronised flows in an epoch", flows_per_epoch, of_links=True),
    Metric("flows_per_epoch_sd", "", "Standard deviation of the synchronised flows", flows_per_epoch_sd, of_links=True),
    Metric("flows_per_epoch_max", "", "Most synchronised flows in an epoch", flows_per_epoch_max, of_links=True),
    Metric("losses_per_epoch", "packets", "Packets lost in an epoch", losses_per_epoch, of_links=True),
    Metric(
        "losses_per_epoch_sd", "packets", "Standard deviation of the packets lost", losses_per_epoch_sd, of_links=True
    ),
    Metric("losses_per_epoch_max", "packets", "Most packets lost in an epoch", losses_per_epoch_max, of_links=True),
    Metric("epoch_duration_mean_s", "s", "Mean duration of an epoch", epoch_duration_mean_s, of_links=True),
    Metric("epoch_interval_mean_s", "s", "Mean time from epoch to epoch", epoch_interval_mean_s, of_links=True),
    Metric("epoch_time_share", "share", "Time in congestion epochs", epoch_time_share, of_links=True),
)
