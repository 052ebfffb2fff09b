"""The metrics: one small file a family, one list of all.

    from ackclock import metrics
    metrics.table(data)          # {"scenario", "engine", "runs": [{"seed", "metrics"}], "summary"}
    metrics.METRICS["jain"]      # its unit, label, definition and function

To add one, write a function of a `RunView` whose docstring says what it is and where it comes from, and add it to its
file's `METRICS`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ackclock.dataset import Dataset
from ackclock.metrics import completion, delay, dynamics, epochs, fairness, loss, pendulum, throughput
from ackclock.metrics.metric import Metric, Value
from ackclock.metrics.summary import Summary, summarise
from ackclock.metrics.view import RunView, runs

__all__ = ["METRICS", "Metric", "RunView", "Summary", "of_run", "runs", "summarise", "summary", "table"]

FAMILIES = (throughput, fairness, loss, delay, epochs, completion, dynamics, pendulum)

#: Every metric by its name.
METRICS: Mapping[str, Metric] = {metric.name: metric for family in FAMILIES for metric in family.METRICS}


def of_run(view: RunView) -> dict[str, Value]:
    """All the metrics of one run."""
    return {name: _finite(metric.function(view)) for name, metric in METRICS.items()}


def summary(values: list[dict[str, Value]]) -> dict[str, Summary]:
    """Each metric's summary over runs; lists (a value for each flow) have none."""
    scalars = [metric for metric in METRICS.values() if not metric.per_flow]
    return {metric.name: _summary(metric, [_scalar(run.get(metric.name)) for run in values]) for metric in scalars}


def _summary(metric: Metric, values: list[float | None]) -> Summary:
    return summarise(values, 0.0, metric.most)


def table(data: Dataset) -> dict[str, Any]:
    """Metrics of each run and their summaries, as `ackclock run --json` prints them."""
    views = list(runs(data))
    values = [of_run(view) for view in views]
    return {
        "scenario": (data.manifest.get("plan") or {}).get("name"),
        "engine": data.manifest.get("engine"),
        "runs": [{"seed": view.seed, "metrics": found} for view, found in zip(views, values, strict=True)],
        "summary": {name: found.as_dict() for name, found in summary(values).items()},
    }


def _finite(value: Value) -> Value:
    """Null for what JSON cannot say (NaN, infinity)."""
    if isinstance(value, list):
        return value if all(map(math.isfinite, value)) else None
    return None if value is None or not math.isfinite(value) else float(value)


def _scalar(value: Value) -> float | None:
    return None if isinstance(value, list) else value
