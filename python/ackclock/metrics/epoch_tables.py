"""Tables of loss epochs: by three definitions of an epoch (see `epoch_rules`), and with the window around each."""

from __future__ import annotations

import numpy as np
import polars as pl

from ackclock.metrics.epoch import Epochs, rtt_at
from ackclock.metrics.epoch_rules import RULES
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.view import Array, RunView, runs

SCHEMA = {
    "run": pl.UInt32,
    "rule": pl.String,
    "epochs": pl.Int64,
    "synchronisation": pl.Float64,
    "flows_per_epoch": pl.Float64,
    "losses_per_epoch": pl.Float64,
    "duration_mean_s": pl.Float64,
}


def epochs_by_rule(data: Recorded, between: tuple[float, float] | None = None) -> pl.DataFrame:
    """Return the epochs of each run by each rule: how many, and means over them.

    `synchronisation` is the mean share of the active flows that lost a packet, `flows_per_epoch` how many did,
    `losses_per_epoch` the packets lost, `duration_mean_s` the time from the first to the last loss; null without
    epochs. `between` looks at a part of each run (seconds). Sources: Belhareth 2014 chapter 5; RFC 5348 section 5.2.
    """
    rows = [_row(view, rule) for view in runs(data, between) for rule in RULES]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _row(view: RunView, rule: str) -> tuple[object, ...]:
    times_s = view.dropped["time_s"]
    result = Epochs.numbered(view, RULES[rule](times_s, rtt_at(view, times_s)))
    columns = (result.share, result.flows_hit, result.drops, result.end_s - result.start_s)
    means = [float(np.mean(column)) if result.count else None for column in columns]
    return (view.run, rule, result.count, *means)


#: Until so many RTTs after the last loss the window may fall: the senders hear of it one RTT later, and repair for one.
REACTION_RTTS = 2.0

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


def window_reductions(data: Recorded, between: tuple[float, float] | None = None) -> pl.DataFrame:
    """Each epoch with the total window, in segments, before it and after the flows' reaction, and its fall as a share.

    Before: the last samples before the first loss; after: the smallest total within two RTTs of the last one. The
    window is the flows' pipe (RFC 6675), which a capture knows at any time. Null where no flow was sampled then.
    """
    rows = [row for view in runs(data, between) for row in _rows(view)]
    return pl.DataFrame(rows, schema=REDUCTION_SCHEMA, orient="row")


def total_pipe(view: RunView) -> tuple[Array, Array]:
    """Instants (s), and the sum over the flows of what each had under way at its last sample (segments)."""
    samples = view.flow_samples.select("time_s", "flow", "in_flight").drop_nulls()
    if not samples.height:
        return np.empty(0), np.empty(0)
    wide = samples.pivot("flow", index="time_s", values="in_flight", aggregate_function="last").sort("time_s")
    filled = wide.select(pl.all().exclude("time_s").forward_fill().fill_null(0.0))
    return wide["time_s"].to_numpy(), np.asarray(filled.sum_horizontal().to_numpy(), dtype=np.float64)


def _rows(view: RunView) -> list[tuple[object, ...]]:
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
