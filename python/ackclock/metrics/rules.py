"""Loss epochs and synchronisation by three rules of what an epoch is, side by side.

- `gap`: a loss belongs to the epoch of the one before it if it follows that within one RTT (see `epoch`: the rule of
  all the metrics).
- `first`: it belongs to the epoch if it follows its *first* loss within one RTT (RFC 5348 section 5.2, of a flow).
- `per RTT`: the time is cut into RTTs, from the first loss on; an epoch is one with losses.

The RTT is the mean of the flows' smoothed RTTs at the moment, for `per RTT` that of all the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.metrics.epoch import Epochs, rtt_at
from ackclock.metrics.recorded import Recorded
from ackclock.metrics.view import Array, RunView, runs

#: The epoch of each loss, by ascending times and the RTTs then.
Rule = Callable[[Array, Array], npt.NDArray[np.int64]]


def _by_gap(times_s: Array, rtts_s: Array) -> npt.NDArray[np.int64]:
    return np.asarray(np.cumsum(np.diff(times_s, prepend=-np.inf) >= rtts_s) - 1, dtype=np.int64)


def _by_first(times_s: Array, rtts_s: Array) -> npt.NDArray[np.int64]:
    numbers, number, until_s = np.zeros(times_s.size, dtype=np.int64), -1, -np.inf
    for place, (time_s, rtt_s) in enumerate(zip(times_s, rtts_s, strict=True)):
        if time_s >= until_s:
            number, until_s = number + 1, time_s + rtt_s
        numbers[place] = number
    return numbers


def _per_rtt(times_s: Array, rtts_s: Array) -> npt.NDArray[np.int64]:
    if not times_s.size:
        return np.empty(0, dtype=np.int64)
    slots = np.floor((times_s - times_s[0]) / max(float(rtts_s.mean()), 1e-9))
    return np.asarray(np.unique(slots, return_inverse=True)[1], dtype=np.int64)


#: Every rule by its name.
RULES: Mapping[str, Rule] = {"gap": _by_gap, "first": _by_first, "per RTT": _per_rtt}

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
    """Epochs of each run by each rule: how many, and means over them.

    `synchronisation` is the mean share of the active flows that lost a packet, `flows_per_epoch` how many did,
    `losses_per_epoch` the packets lost, `duration_mean_s` the time from the first to the last loss; null without
    epochs. `between` looks at a part of each run (seconds). Sources: Belhareth 2014 chapter 5; RFC 5348 section 5.2.
    """
    rows = [_row(view, rule) for view in runs(data, between) for rule in RULES]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _row(view: RunView, rule: str) -> tuple[object, ...]:
    times_s = view.dropped["time_s"]
    found = Epochs.numbered(view, RULES[rule](times_s, rtt_at(view, times_s)))
    columns = (found.share, found.flows_hit, found.drops, found.end_s - found.start_s)
    means = [float(np.mean(column)) if found.count else None for column in columns]
    return (view.run, rule, found.count, *means)
