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
from ackclock.metrics.view import Array, FlowLifetimes, RunView, flow_lifetimes


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

    Far above the RTT it gives that epochs run into each other, and that synchronisation means little.
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


METRICS = (
    Metric("congestion_epochs", "", "Congestion epochs", congestion_epochs, ranks=(12,)),
    Metric("synchronisation", "share", "Loss synchronisation", synchronisation, ranks=(13, 0, 8), of_several=True),
    Metric("synchronisation_sd", "share", "Its standard deviation over the epochs", synchronisation_sd),
    Metric("flows_per_epoch", "", "Synchronised flows in an epoch", flows_per_epoch),
    Metric("flows_per_epoch_sd", "", "Standard deviation of the synchronised flows", flows_per_epoch_sd),
    Metric("flows_per_epoch_max", "", "Most synchronised flows in an epoch", flows_per_epoch_max),
    Metric("losses_per_epoch", "packets", "Packets lost in an epoch", losses_per_epoch),
    Metric("losses_per_epoch_sd", "packets", "Standard deviation of the packets lost", losses_per_epoch_sd),
    Metric("losses_per_epoch_max", "packets", "Most packets lost in an epoch", losses_per_epoch_max),
    Metric("epoch_duration_mean_s", "s", "Mean duration of an epoch", epoch_duration_mean_s),
    Metric("epoch_interval_mean_s", "s", "Mean time from epoch to epoch", epoch_interval_mean_s),
    Metric("epoch_time_share", "share", "Time in congestion epochs", epoch_time_share),
)
