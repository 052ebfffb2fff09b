"""Loss epochs and synchronisation by three definitions of an epoch: see `epoch_rules`."""

from __future__ import annotations

import numpy as np
import polars as pl

from ackclock.metrics.epoch import Epochs, rtt_at
from ackclock.metrics.epoch_rules import RULES
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.view import RunView, runs

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
