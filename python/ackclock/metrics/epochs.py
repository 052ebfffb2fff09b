"""Congestion epochs and loss synchronisation.

A congestion epoch is a series of drops by the bottleneck's queue in which each drop follows the one before it within
less than one round-trip time. The RTT is that of the moment: the mean of the flows' smoothed RTTs sampled last before
the drop (the mean base RTT where no sample precedes it). Random losses on the link open no epoch; a drop in the
warm-up belongs to none.

Sources: Belhareth 2014 (thesis, figures 5.5–5.11) counts synchronised flows and lost packets "at each congestion
epoch" without fixing its bounds; RFC 5348 section 5.2 has the per-flow idea: losses within one RTT are one event.

Our deviation: RFC 5348 counts the RTT from the event's first loss, we from the drop before, so that an overload that
lasts a little longer than one RTT, as a tail-drop queue's does while the senders have not yet heard of it, is one
epoch and not two. Where drops never cease for an RTT (many flows, a queue discipline that drops early), epochs run
into each other and synchronisation reads high: `epoch_duration_mean_s` far above the RTT shows it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.metrics.metric import Metric
from ackclock.metrics.view import Array, RunView


def epochs(view: RunView) -> pl.DataFrame:
    """One row an epoch: `start_s`, `end_s` (first and last drop), `drops`, `flows_hit`, `flows_active`, `share`."""
    drops = drops_by_epoch(view)
    found = drops.group_by("epoch", maintain_order=True).agg(
        pl.col("time_s").first().alias("start_s"),
        pl.col("time_s").last().alias("end_s"),
        pl.len().alias("drops"),
        pl.col("flow").drop_nulls().n_unique().alias("flows_hit"),
    )
    active = _active(view, found["start_s"].to_numpy(), found["end_s"].to_numpy())
    share = found["flows_hit"].to_numpy() / np.maximum(active, 1)
    return found.with_columns(pl.Series("flows_active", active), pl.Series("share", np.minimum(share, 1.0)))


def drops_by_epoch(view: RunView) -> pl.DataFrame:
    """The bottleneck's drops in the measured part with the number of their `epoch`, from 0."""
    times_s = view.drops["time_s"].to_numpy()
    opens = np.diff(times_s, prepend=-np.inf) >= rtt_at(view, times_s)
    return view.drops.with_columns(pl.Series("epoch", np.cumsum(opens) - 1, dtype=pl.Int64))


def rtt_at(view: RunView, times_s: Array) -> Array:
    """The mean smoothed RTT (s) sampled last before each instant, else the mean base RTT, else 0."""
    base_s = view.flows["base_rtt_s"].mean()
    fallback = float(base_s) if isinstance(base_s, (int, float)) else 0.0
    known = view.flow_samples.drop_nulls("srtt_s").group_by("time_s").agg(pl.col("srtt_s").mean()).sort("time_s")
    if not known.height:
        return np.full(times_s.shape, fallback)
    before = np.searchsorted(known["time_s"].to_numpy(), times_s, side="right") - 1
    return np.where(before < 0, fallback, known["srtt_s"].to_numpy()[np.maximum(before, 0)])


def _active(view: RunView, start_s: Array, end_s: Array) -> npt.NDArray[np.int64]:
    """How many flows had started by the end of each interval and were not over at its start."""
    begun = np.searchsorted(np.sort(view.starts_s), end_s, side="right")
    over = np.searchsorted(np.sort(view.ends_s), start_s, side="left")
    return np.asarray(begun - over, dtype=np.int64)


def congestion_epochs(view: RunView) -> float | None:
    """Number of congestion epochs in the measured part.

    A congestion epoch is a series of drops by the bottleneck's queue, each within one RTT (the flows' mean smoothed
    RTT at that moment) of the drop before. Null if the bottleneck dropped packets that were not recorded one by one.
    Source: Belhareth 2014 chapter 5; RFC 5348 section 5.2.
    """
    return float(view.once(epochs).height) if _is_recorded(view) else None


def synchronisation(view: RunView) -> float | None:
    """Loss synchronisation: mean over the congestion epochs of the share of the active flows that lost a packet.

    1 if every flow loses in every epoch; null without epochs. Source: Belhareth 2014 sections 5.3–5.4.
    """
    return _epoch_mean(view, "share")


def losses_per_epoch(view: RunView) -> float | None:
    """Mean number of packets dropped in a congestion epoch; null without epochs. Source: Belhareth 2014, figure 5.5."""
    return _epoch_mean(view, "drops")


def epoch_duration_mean_s(view: RunView) -> float | None:
    """Mean time from the first to the last drop of a congestion epoch; null without epochs.

    Far above the RTT it says that epochs run into each other, and that synchronisation means little.
    """
    found = view.once(epochs)
    return float(np.mean(found["end_s"].to_numpy() - found["start_s"].to_numpy())) if found.height else None


def _epoch_mean(view: RunView, column: str) -> float | None:
    mean = view.once(epochs)[column].mean()
    return float(mean) if isinstance(mean, (int, float)) else None


def _is_recorded(view: RunView) -> bool:
    dropped = view.links["dropped_p"]
    if dropped.null_count() == dropped.len():
        return view.drops.height > 0
    return view.drops.height > 0 or int(dropped.sum()) == 0


METRICS = (
    Metric("congestion_epochs", "", "Congestion epochs", congestion_epochs),
    Metric("synchronisation", "share", "Loss synchronisation", synchronisation),
    Metric("losses_per_epoch", "packets", "Packets lost in an epoch", losses_per_epoch),
    Metric("epoch_duration_mean_s", "s", "Mean duration of an epoch", epoch_duration_mean_s),
)
