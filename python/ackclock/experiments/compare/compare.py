"""Run a plan with several engines and set their metrics side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from ackclock import engines as offered
from ackclock import metrics, repr_format
from ackclock.dataset import Dataset, pandas
from ackclock.engines.engine import Engine, Progress, no_progress
from ackclock.errors import InputError, Unsupported, UnsupportedError
from ackclock.experiments import runner
from ackclock.experiments.compare.difference import Sample, difference
from ackclock.input import arguments
from ackclock.input.arguments import checked, optional, several
from ackclock.metrics import METRICS
from ackclock.metrics.metric import Value
from ackclock.metrics.protocols import PHASE
from ackclock.scenario.coerce import Accepted, taken

#: The columns of the table that are null where there is nothing to say.
_NUMBERS = ("mean", "ci95_low", "ci95_high", "difference", "difference_low", "difference_high")


@dataclass(frozen=True)
class Comparison:
    """One scenario's results by engine, in the order requested.

    `refused` has the reasons of the engines that cannot run it; `exact` names the deterministic ones, which run once.
    """

    name: str
    data: Mapping[str, Dataset]
    unsupported: Mapping[str, tuple[Unsupported, ...]]
    exact: frozenset[str]

    @property
    def engines(self) -> list[str]:
        """The engines that ran it; differences are relative to the first."""
        return list(self.data)

    @cached_property
    def values(self) -> dict[str, list[dict[str, Value]]]:
        """For each engine the metrics of each run."""
        return {engine: [metrics.of_run(view) for view in metrics.runs(data)] for engine, data in self.data.items()}

    @cached_property
    def table(self) -> pl.DataFrame:
        """A row for each metric and engine: `n`, `mean` with its interval, and `difference` to the first engine with
        its interval. Metrics that no engine has are left out.
        """  # noqa: D205
        rows = [row for metric in METRICS.values() if not metric.per_flow for row in self._rows(metric.name)]
        kinds = {"metric": pl.String, "engine": pl.String, "n": pl.Int64, **dict.fromkeys(_NUMBERS, pl.Float64)}
        return pl.DataFrame(rows, schema=kinds, orient="row")

    def to_pandas(self) -> Any:
        """The table as a `pandas.DataFrame`. Raises `InputError` if pandas is not installed (`ackclock[pandas]`)."""
        return pandas.frame(self.table)

    def __repr__(self) -> str:
        runs = "; ".join(f"{name}: {repr_format.counted(len(data.runs), 'run')}" for name, data in self.data.items())
        note = "differences are to the first"
        if self.unsupported:
            note = f"cannot run it: {repr_format.listed(self.unsupported)}"
        return repr_format.lines(f'Comparison "{self.name}": {repr_format.listed(self.engines)}', runs, note)

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the main metrics by engine."""
        heading, *others = repr(self).split("\n")
        rows = [
            [METRICS[name].label, *map(_html_cell, metric.iter_rows(named=True))]
            for name in metrics.main("table")
            if (metric := self.table.filter(metric=name)).height
        ]
        return repr_format.html(heading, others, ["metric", *self.engines], rows)

    @property
    def runs(self) -> pl.DataFrame:
        """A row for each run: `engine`, `seed`, and every metric."""
        rows = [
            {"engine": engine, "seed": run.get("seed"), **found}
            for engine, data in self.data.items()
            for run, found in zip(data.runs, self.values[engine], strict=True)
        ]
        kinds = {name: pl.List(pl.Float64) if metric.per_flow else pl.Float64 for name, metric in METRICS.items()}
        return pl.DataFrame(rows, schema={"engine": pl.String, "seed": pl.Int64, **kinds})

    def as_dict(self) -> dict[str, Any]:
        """For JSON: what `ackclock compare --json` prints; `phase` is there if perturbed runs were made."""
        twins = {engine: data.manifest[PHASE] for engine, data in self.data.items() if PHASE in data.manifest}
        return {
            "scenario": self.name,
            "engines": self.engines,
            "unsupported": {engine: [str(reason) for reason in found] for engine, found in self.unsupported.items()},
            "metrics": {
                str(name): {row.pop("engine"): row for row in rows.drop("metric").to_dicts()}
                for (name,), rows in self.table.group_by("metric", maintain_order=True)
            },
            **({PHASE: twins} if twins else {}),
        }

    def _rows(self, name: str) -> list[tuple[Any, ...]]:
        samples = {engine: self._sample(engine, name) for engine in self.data}
        if not any(sample.values for sample in samples.values()):
            return []
        first = samples[self.engines[0]]
        return [(name, engine, *_row(name, sample, first)) for engine, sample in samples.items()]

    def _sample(self, engine: str, name: str) -> Sample:
        found = [run[name] for run in self.values[engine]]
        return Sample([value for value in found if isinstance(value, float)], engine in self.exact)


def _row(name: str, sample: Sample, first: Sample) -> tuple[Any, ...]:
    mean = metrics.summarise(sample.values, 0.0, METRICS[name].maximum)
    apart = None if sample is first else difference(first, sample)
    away = (apart.mean, apart.ci95_low, apart.ci95_high) if apart else (None, None, None)
    return mean.n, mean.mean, mean.ci95_low, mean.ci95_high, *away


def _html_cell(row: Mapping[str, Any]) -> str:
    from ackclock.figures import numbers

    return numbers.estimate(row["mean"], row["ci95_low"], row["ci95_high"], METRICS[row["metric"]].unit)


@checked(
    plan=taken,
    engines=several(arguments.WORD, 'names of engines, such as ["packet", "fluid"]'),
    seeds=optional(arguments.SEEDS),
    jobs=optional(arguments.JOBS),
    progress=arguments.CALL,
    command=arguments.TEXT,
)
def compare(
    plan: Accepted,
    engines: Sequence[str],
    seeds: Iterable[int] | None = None,
    *,
    jobs: int | None = None,
    progress: Progress = no_progress,
    command: str = "",
) -> Comparison:
    """Run the plan with each engine, and report how their metrics differ from the first one's.

    A deterministic engine runs once; one that cannot model something in the plan is left out, with its reasons.

    Args:
        plan: what to run: whatever `run` takes.
        engines: names of engines.
        seeds: the seeds to run, instead of the plan's own.
        jobs: runs at a time; by default one for each core.
        progress: called with the fraction completed, 0 to 1.
        command: the command recorded in the manifests.

    Raises:
        ScenarioError: a scenario whose values do not fit together, or one with a sweep.
        UnsupportedError: no engine can run the plan.
        InputError: unknown engines, fewer than two, or invalid seeds.
        TypeError: an argument of another type.
    """
    complete = runner.planned(plan, seeds)
    chosen = _engines(engines)
    refused = {
        name: tuple(found) for name, engine in chosen.items() if (found := offered.unsupported(engine, complete))
    }
    able = {name: engine for name, engine in chosen.items() if name not in refused}
    if not able:
        raise UnsupportedError(reason for found in refused.values() for reason in found)
    for engine in able.values():
        offered.check_inputs(engine, complete)
    exact = frozenset(name for name, engine in able.items() if not engine.is_stochastic(complete))
    data = {}
    for number, name in enumerate(able):
        own = replace(complete, seeds=complete.seeds[:1]) if name in exact else complete
        data[name] = runner.run(own, name, jobs=jobs, progress=_part(progress, number, len(able)), command=command)
    return Comparison(complete.name, data, refused, exact)


def _engines(names: Sequence[str]) -> dict[str, Engine]:
    chosen = {name: offered.engine(name) for name in names}
    if len(chosen) < 2:
        raise InputError(f"engine: found {', '.join(chosen) or 'nothing'}; expected two engines or more")
    return chosen


def _part(progress: Progress, number: int, total: int) -> Progress:
    return lambda share: progress((number + share) / total)
