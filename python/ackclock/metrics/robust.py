"""Robustness: the ratio of each metric under a challenge to its baseline.

Guillier's table of 2008 names robustness between fairness and deployability, and leaves both its cells empty. RFC 5166
section 2.4 gives of it that a control is looked at in a challenging environment (corrupted packets, varying rates,
reordering, failing links) and how its performance suffers. So it is no quantity of its own but a comparison: the same
scenario with and without the challenge, seed by seed. That the comparison is a ratio is our reading.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from ackclock.errors import InputError
from ackclock.metrics.metric import Value
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.summary import summarise
from ackclock.metrics.view import RunView, runs

SCHEMA = {
    "metric": pl.String,
    "challenged": pl.Float64,
    "baseline": pl.Float64,
    "robustness": pl.Float64,
    "ci95_low": pl.Float64,
    "ci95_high": pl.Float64,
    "n": pl.Int64,
}

#: Metrics of robustness: performance for users and networks, and fairness.
OF = ("goodput_bps", "utilisation", "jain", "fct_mean_s", "queue_delay_mean_s", "loss_rate", "timeouts")


def compared(pairs: Sequence[tuple[RunView, RunView]], value: Callable[[RunView, str], Value]) -> pl.DataFrame:
    """Return the table of pairs of runs, challenged and not; `value` is a metric of a run."""
    rows = [row for name in OF if (row := _row(name, [(value(hard, name), value(easy, name)) for hard, easy in pairs]))]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def paired(
    challenged: Recorded, baseline: Recorded, between: tuple[float, float] | None
) -> list[tuple[RunView, RunView]]:
    """Return the runs with the same seed. Raises `InputError` if there are none."""
    easy = {view.seed: view for view in runs(baseline, between)}
    pairs = [(view, easy[view.seed]) for view in runs(challenged, between) if view.seed in easy]
    if not pairs:
        raise InputError("baseline: found no run with a seed of the challenged result; expected the same seeds")
    return pairs


def _row(name: str, result: Sequence[tuple[Value, Value]]) -> tuple[object, ...] | None:
    valid = [(h, e) for h, e in result if isinstance(h, float) and isinstance(e, float)]
    if not valid:
        return None
    ratio = summarise([h / e for h, e in valid if e], minimum=0.0)
    hard, easy = (sum(column) / len(valid) for column in zip(*valid, strict=True))
    return name, hard, easy, ratio.mean, ratio.ci95_low, ratio.ci95_high, ratio.n
