"""Comparisons: one scenario with several engines, their metrics side by side with differences and intervals."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ackclock import _core, metrics, repr_format
from ackclock import engines as offered
from ackclock.dataset import Dataset, folders, lazy_frame, manifests, result_kind
from ackclock.dataset.result_kind import Kind
from ackclock.engines.engine import Engine, Progress, circumstances, no_progress
from ackclock.errors import InputError, Unsupported, UnsupportedError
from ackclock.experiments import guards, runner
from ackclock.input import arguments
from ackclock.input.arguments import checked, optional, several
from ackclock.metrics import METRICS
from ackclock.metrics.metric import Value
from ackclock.metrics.protocols import PHASE
from ackclock.metrics.summary import student_quantile, subtract
from ackclock.plan import Plan
from ackclock.scenario.builder import Accepted, taken

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The table as JSON, in the folder.
TABLE = "comparison.json"

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
    plan: Plan | None = None

    @property
    def engines(self) -> list[str]:
        """The engines that ran it; differences are relative to the first."""
        return list(self.data)

    @property
    def is_single(self) -> bool:
        """True if all runs have one flow."""
        return self.plan is not None and len(self.plan.flows) == 1

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
        return lazy_frame.pandas_frame(self.table)

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
            if metrics.is_shown(name, (metric := self.table.filter(metric=name))["mean"])
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

    @cached_property
    def warnings(self) -> list[str]:
        """Why the results may mislead, in sentences."""
        if self.plan is None:
            return []
        settings = [guards.Setting(name, self.plan, name, rows, self.data[name]) for name, rows in self.values.items()]
        return guards.warnings(settings, perturbed=any(PHASE in data.manifest for data in self.data.values()))

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
            "warnings": self.warnings,
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
    chosen = check_engines(engines)
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
    return Comparison(complete.name, data, refused, exact, complete)


def check_engines(names: Sequence[str]) -> dict[str, Engine]:
    """Return the engines by name. Raises `InputError` for unknown ones, and for fewer than two."""
    chosen = {name: offered.engine(name) for name in names}
    if len(chosen) < 2:
        raise InputError(
            f"engine: found {', '.join(chosen) or 'nothing'}; expected two engines or more, or choices (--try)"
        )
    return chosen


def _part(progress: Progress, number: int, total: int) -> Progress:
    return lambda share: progress((number + share) / total)


@dataclass(frozen=True, slots=True)
class Sample:
    """One metric's values over the runs of an engine; `exact` if chance has no part in them."""

    values: Sequence[float]
    exact: bool = False

    @property
    def mean(self) -> float:
        """Their mean; there must be a value."""
        return math.fsum(self.values) / len(self.values)

    @property
    def variance_of_mean(self) -> float | None:
        """s²/n; 0 for an exact value, None if one run is all there is."""
        if (n := len(self.values)) == 1:
            return 0.0 if self.exact else None
        return math.fsum((value - self.mean) ** 2 for value in self.values) / (n - 1) / n


@dataclass(frozen=True, slots=True)
class Difference:
    """The second mean minus the first, and its 95 % interval (null if there is none)."""

    mean: float
    ci95_low: float | None
    ci95_high: float | None


def difference(first: Sample, second: Sample) -> Difference | None:
    """Return the difference of two samples; None if either is empty."""
    if not first.values or not second.values:
        return None
    mean = subtract(second.mean, first.mean)
    half = half_width(first, second)
    return Difference(mean, None if half is None else mean - half, None if half is None else mean + half)


def half_width(first: Sample, second: Sample) -> float | None:
    """Half of Welch's interval (B. L. Welch, Biometrika 34, 1947, with Satterthwaite's degrees of freedom)."""
    variances = first.variance_of_mean, second.variance_of_mean
    if variances[0] is None or variances[1] is None:
        return None
    total = variances[0] + variances[1]
    if total == 0:
        return 0.0
    parts = zip(variances, (len(first.values), len(second.values)), strict=True)
    freedom = total**2 / math.fsum(variance**2 / (n - 1) for variance, n in parts if variance)
    return student_quantile(freedom) * math.sqrt(total)


def check_folder(folder: Path) -> None:
    """Raise `InputError` for a folder that holds something else, or cannot be made."""
    result_kind.check(folder, Kind.COMPARISON)
    folders.staging_folder(folder).close()


def write(comparison: Comparison, folder: Path, *, report: bool = True, command: str = "") -> None:
    """Write everything, completely or not at all; an earlier comparison is replaced.

    The manifest says that `command` was run. The folder:

        results/dumbbell-compare/
        ├── manifest.json         engines, versions, command, and the SHA-256 of the files
        ├── comparison.json       what `ackclock compare --json` prints
        ├── comparison.parquet    the table: a row for each metric and engine
        ├── metrics.png           a panel for each metric, with intervals by engine
        ├── cwnd.png, queue.png   the first runs over each other
        ├── packet/ fluid/ …      the datasets
        └── report.html           all of them side by side
    """
    result_kind.check(folder, Kind.COMPARISON)
    with folders.replace_folder(folder, manifests.is_note(folder)) as new, folders.write_errors(new):
        _write_files(comparison, new)
        if report:
            _write_report(comparison, new)
        engines = {"engines": comparison.engines, "scenario": comparison.name}
        about = {"ackclock": _core.version, "comparison": engines, **circumstances(command)}
        manifests.write(new, about, manifests.list_files(new))


def _write_files(comparison: Comparison, folder: Path) -> None:
    for engine, data in comparison.data.items():
        data.write(folder / engine)
    text = json.dumps(comparison.as_dict(), indent=2, ensure_ascii=False, allow_nan=False)
    (folder / TABLE).write_text(text + "\n", encoding="utf-8")
    comparison.table.write_parquet(folder / "comparison.parquet", compression="zstd")
    for name, figure in _figures(comparison):
        figure.savefig(folder / f"{name}.png")


def _write_report(comparison: Comparison, folder: Path) -> None:
    from ackclock.figures.report import render, write_page

    try:
        text = render([*comparison.data.values()], comparison.engines)
    except InputError:  # an engine of averages alone has no curves to show
        return
    write_page(text, folder / manifests.REPORT)


def _figures(comparison: Comparison) -> Iterator[tuple[str, Figure]]:
    from ackclock.figures import plots

    datasets = list(comparison.data.values())
    yield "metrics", plots.compared(comparison.name, comparison.table)
    first = next((data for data in datasets if data.flow_samples.height), None)
    if first is None:
        return
    others = [data for data in datasets if data is not first]
    for name, draw in {"cwnd": plots.cwnd, "queue": plots.queue}.items():
        with suppress(InputError):  # the first one has nothing to draw
            yield name, draw(first, over=[other for other in others if _can_lie(draw, other, first)])


def _can_lie(draw: Callable[..., Figure], other: Dataset, first: Dataset) -> bool:
    """Return True if the other engine has the data of the figure, as curves or as a mean."""
    try:
        draw(first, over=[other])
    except InputError:
        return False
    return True
