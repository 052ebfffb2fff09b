"""Distribution functions of measured quantities, one for each run.

Used by `ac.metrics` and by the figures of distributions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import polars as pl

from ackclock.input.arguments import one_of
from ackclock.metrics import delay, quantiles, throughput
from ackclock.metrics.completion import transfers, watched
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.view import Array, RunView, runs

Distribution = Callable[[RunView], tuple[Array, Array]]


def cdf(data: Recorded, quantity: str, between: tuple[float, float] | None = None) -> pl.DataFrame:
    """Return the distribution function of a quantity in the measured part: `run`, `seed`, the quantity, `share`.

    `share` of the values of the run are at or below. Quantities: `fct_s` (of the transfers begun in the
    measured part, by Kaplan and Meier: unfinished ones count, so that it ends below 1 if some are), `cwnd` (segments)
    and `rtt_s` (smoothed) over samples, `queue_delay_s` over packets, `queue_p` over samples of the bottleneck's queue,
    `goodput_bps` over flows. `between` looks at a
    part of each run (seconds). Raises `InputError` for another quantity.
    """
    one_of(*DISTRIBUTIONS)("quantity", quantity)
    schema = {"run": pl.UInt32, "seed": pl.Int64, quantity: pl.Float64, "share": pl.Float64}
    frames = [pl.DataFrame(schema=schema)]
    for view in runs(data, between):
        values, share = DISTRIBUTIONS[quantity](view)
        rows = pl.DataFrame({quantity: values, "share": share}, schema={quantity: pl.Float64, "share": pl.Float64})
        seed, run = pl.lit(view.seed, pl.Int64).alias("seed"), pl.lit(view.run, pl.UInt32).alias("run")
        frames.append(rows.select(run, seed, quantity, "share"))
    return pl.concat(frames)


def windows_over_time(data: Recorded, between: tuple[float, float] | None = None) -> pl.DataFrame:
    """Return mean and coefficient of variation of the flows' windows at each instant of the measured part.

    `run`, `seed`, `time_s`, `mean` (segments) and `cov`, the coefficient of variation over the flows (the population's
    standard deviation / mean). `between` looks at a part of each run (s). Source: Belhareth 2014, figures 3.12 to 3.14.
    """
    schema = {"run": pl.UInt32, "seed": pl.Int64, "time_s": pl.Float64, "mean": pl.Float64, "cov": pl.Float64}
    frames = [pl.DataFrame(schema=schema)]
    for view in runs(data, between):
        cwnd, seed, run = pl.col("cwnd"), pl.lit(view.seed, pl.Int64), pl.lit(view.run, pl.UInt32)
        spread = (
            view.measured_samples.drop_nulls("cwnd")
            .group_by("time_s")
            .agg(cwnd.mean().alias("mean"), (cwnd.std(ddof=0) / cwnd.mean()).alias("cov"))
        )
        frames.append(spread.sort("time_s").select(run.alias("run"), seed.alias("seed"), "time_s", "mean", "cov"))
    return pl.concat(frames)


def empirical(values: Array, weights: Array | None = None) -> tuple[Array, Array]:
    """Return the empirical distribution function: ascending values and the share at or below each."""
    valid = ~np.isnan(values)
    if weights is None:  # there may be ten million
        ascending = values[valid]
        ascending.sort()
        share = np.arange(1.0, ascending.size + 1)
        share /= max(ascending.size, 1)
        return ascending, share
    order = np.argsort(values[valid], kind="stable")
    ascending, weight = values[valid][order], weights[valid][order]
    total = weight.sum()
    return ascending, np.cumsum(weight) / total if total > 0 else weight


def completions(view: RunView) -> tuple[Array, Array]:
    """Return the Kaplan–Meier share of transfers begun in the measured part that finished within each time (s)."""
    times_s, lasting = quantiles.kaplan_meier(*watched(view.cached(transfers)))
    return times_s, 1 - lasting


def windows(view: RunView) -> tuple[Array, Array]:
    """Return the distribution of the sampled congestion windows (segments)."""
    return empirical(view.measured("flow_samples")["cwnd"])


def rtts(view: RunView) -> tuple[Array, Array]:
    """Return the distribution of the sampled round-trip times (s), as `rtt_mean_s` takes them."""
    return empirical(delay.round_trips(view)["srtt_s"])


def queue_delays(view: RunView) -> tuple[Array, Array]:
    """Return the distribution of the bottleneck's sojourn times (s) over packets."""
    return empirical(*delay.sojourn_histogram(view))


def backlogs(view: RunView) -> tuple[Array, Array]:
    """Return the distribution of the bottleneck's sampled backlog (packets) over time."""
    return empirical(view.measured("queue_samples")["backlog_p"])


def goodputs(view: RunView) -> tuple[Array, Array]:
    """Return the distribution of the flows' goodputs while they were active (bit/s)."""
    rates = view.cached(throughput.active_rates_bps)
    return empirical(np.empty(0) if rates is None else rates)


#: Every distribution by its quantity.
DISTRIBUTIONS: Mapping[str, Distribution] = {
    "fct_s": completions,
    "cwnd": windows,
    "rtt_s": rtts,
    "queue_delay_s": queue_delays,
    "queue_p": backlogs,
    "goodput_bps": goodputs,
}
