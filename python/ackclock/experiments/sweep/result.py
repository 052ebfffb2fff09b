"""The result of a sweep: a row for each run with its settings, seed and metrics; the means over seeds; shards joined.

`merge` joins the shards of a sweep into the folder of the whole. Parts are taken over as they are. The table of the
whole sweep is made of them anew, so it has the bytes of a sweep that one process ran from the first point to the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from ackclock import metrics, repr_format
from ackclock.dataset import Dataset, Part, folders, lazy_frame, manifests, result_kind
from ackclock.dataset.manifests import PLACES, POINTS, RUNS, WARNINGS, Manifest
from ackclock.dataset.result_kind import Kind
from ackclock.engines.engine import Progress, no_progress
from ackclock.errors import InputError
from ackclock.experiments.sweep import designs
from ackclock.experiments.sweep import folder as parts
from ackclock.experiments.sweep.designs import Shard
from ackclock.experiments.sweep.folder import Parts, extend_manifest, read_manifest
from ackclock.experiments.sweep.spec import KEPT, SweepSpec, different
from ackclock.input import arguments
from ackclock.input.arguments import checked, optional
from ackclock.input.source import Source
from ackclock.metrics import METRICS, Summary, main
from ackclock.metrics.protocols import PHASE
from ackclock.plan import Plan
from ackclock.scenario import planning, points
from ackclock.scenario.points import Axis, NumericColumn
from ackclock.system import files

#: Points, and metrics, of a notebook's table.
MAX_ROWS, MAX_METRICS = 60, 6


@dataclass(frozen=True)
class Sweep:
    """A finished sweep. `table` has the columns `run`, `point`, `seed`, a column for each swept key, and the metrics.

    Swept numbers and booleans are columns of their type; all else is text, as in the file. Next to the texts of
    quantities of one kind are their numbers, in a column whose name has the unit: `network.rate_bps` (bit/s),
    `network.rtt_s` (seconds), `network.queue.limit_bdp`, `…_bytes`, `…_p` (packets), `…_hz` (per second).
    """

    folder: Path
    manifest: Mapping[str, Any]
    axes: tuple[Axis, ...]
    table: pl.DataFrame
    keep: object = field(default=None, repr=False, compare=False)

    @property
    def engine(self) -> str:
        """The engine's name."""
        return str(self.manifest["sweep"]["engine"])

    @property
    def name(self) -> str:
        """The scenario's title."""
        return str(self.manifest["name"])

    @property
    def metrics(self) -> list[str]:
        """The metrics that were computed."""
        return [str(name) for name in self.manifest["sweep"]["metrics"]]

    def scan(self, table: str) -> pl.LazyFrame:
        """A table of the dataset over all runs, with the columns `run` and `point`, in the order of the runs.

        `flows` and `links` are always there, the others if samples were kept; `InputError` is raised for what is not,
        or is damaged.
        """
        manifest = parts.read_manifest(self.folder)
        place = f"{table}.parquet"
        if not manifest.under(place):
            raise InputError(f"{self.folder}: found no table {table!r}; expected a sweep that was run with --samples")
        manifest.check(manifest.under(place), [place])
        return parts.scan(self.folder, table, manifest.files).sort("run", maintain_order=True)

    def of_point(self, point: int, plan: Plan) -> Dataset:
        """Return a point's runs as a dataset with the tables `flows` and `links`; `plan` is the point's."""
        runs = self.table.filter(point=point).select("run", "seed").to_dicts()
        tables = {name: self.scan(name).filter(point=point).drop("point").collect() for name in KEPT}
        parts_of = {name: (Part(rows),) for name, rows in tables.items()}
        return Dataset({**self.manifest, "plan": plan.to_dict(), "runs": runs}, parts_of)

    @checked(table=optional(arguments.WORD))
    def to_pandas(self, table: str | None = None) -> Any:
        """The table, or one of the dataset's over all runs, as a `pandas.DataFrame`: see `Dataset.to_pandas`."""
        return lazy_frame.pandas_frame(self.table if table is None else self.scan(table).collect())

    def __repr__(self) -> str:
        runs, count = self.table.height, self.table["point"].n_unique()
        sizes = f"{repr_format.counted(count, 'point')}, {repr_format.counted(runs, 'run')}"
        swept = "; ".join(f"{axis.key}: {repr_format.listed(map(points.label, axis.values))}" for axis in self.axes)
        table = f"table: {runs:,} rows, {self.table.width} columns; folder {self.folder}"
        title = f'Sweep "{self.name}": engine {self.engine}, {sizes}'
        return repr_format.lines(title, swept or "nothing swept", table)

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the summary in sentences, and the means at each point."""
        from ackclock.figures import summary_text, sweep_axes

        names = self._html_metrics()
        rows = [
            [
                *sweep_axes.values_of(self, point),
                *(summary_text.estimate(point["summary"][name], name) for name in names),
            ]
            for point in self.points[:MAX_ROWS]
        ]
        left = len(self.points) - len(rows)
        more = [f"The table has the first {len(rows)} points; {left:,} more are in .points"] if left else []
        heads = [*points.short_keys(self.axes), *(METRICS[name].label for name in names)]
        sentences = summary_text.sweep_sentences(self)
        told = [*sentences, summary_text.precision(self)] if sentences else []
        return repr_format.html(repr(self).split("\n")[0], [*told, *more], heads, rows)

    def _html_metrics(self) -> list[str]:
        """Return the requested metrics, or the main ones, that have a value."""
        scalars = [name for name in self.metrics if not METRICS[name].per_flow]
        chosen = scalars if len(scalars) <= MAX_METRICS else [name for name in main("column") if name in scalars]
        return [name for name in chosen if any(point["summary"][name]["n"] for point in self.points)][:MAX_METRICS]

    @property
    def warnings(self) -> list[str]:
        """Why the results may mislead, in sentences; empty if none was found, or they were not checked."""
        return list(self.manifest.get(WARNINGS, ()))

    @cached_property
    def points(self) -> list[dict[str, Any]]:
        """For each point its number, the swept `values`, and the `summary` of each metric over the seeds.

        `numbers` has the values that are quantities by the names of their columns, as in the table. If perturbed
        runs were made, `phase` has the comparison with the point's.
        """
        keys, beside = [axis.key for axis in self.axes], _numeric_columns(self.axes)
        twins = self.manifest.get(PHASE, {})
        return [
            {
                "point": point[0],
                "values": {key: group[key][0] for key in keys},
                "numbers": {of.column: of.numbers[group[key][0]] for key, of in beside.items()},
                "n": group.height,
                "summary": {name: found.as_dict() for name, found in self._summary(group).items()},
                **({PHASE: twins[str(point[0])]} if twins else {}),
            }
            for point, group in self.table.group_by("point", maintain_order=True)
        ]

    def _summary(self, group: pl.DataFrame) -> dict[str, Summary]:
        scalars = [name for name in self.metrics if not METRICS[name].per_flow]
        return {name: metrics.summarise(group[name].to_list(), 0.0, METRICS[name].maximum) for name in scalars}

    def only(self, where: Mapping[str, Sequence[str]]) -> Sweep:
        """The points that have some of the values only, by keys: `{"network.queue.limit": ["1bdp"]}`.

        Raises `InputError` for keys and values that are not swept.
        """
        if not where:
            return self
        whole = points.Sweep(self.axes, {}, Source("", ""))
        axes = whole.only(where).axes
        table = self.table
        for before, axis in zip(self.axes, axes, strict=True):
            kept = set(map(points.exact, axis.values))
            texts = _column(axis.key, list(before.values)).to_list()
            some = [text for text, value in zip(texts, before.values, strict=True) if points.exact(value) in kept]
            table = table.filter(pl.col(axis.key).is_in(some))
        return replace(self, axes=axes, table=table)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: what `ackclock sweep --json` prints."""
        return {"scenario": self.name, "engine": self.engine, "points": self.points}


def finish(opened: Parts, loaded: planning.Loaded) -> Sweep:
    """Write the table of a sweep whose runs are all there, and return the sweep."""
    folder = opened.folder
    found = parts.scan(folder, RUNS, parts.read_manifest(folder).files).collect().sort("run")
    axes = loaded.sweep.axes if loaded.sweep else ()
    table = found.select("run", "point", "seed").with_columns(
        column.gather(found["point"]).alias(column.name) for column in _columns(loaded)
    )
    opened.finish(_with_numbers(table, axes).hstack(found.drop("run", "point", "seed")))
    return read(opened.given)


def read(folder: Path | str) -> Sweep:
    """The sweep in a folder. Raises `InputError` if there is none, or one that is not finished, or damaged."""
    place = Path(folder)
    manifest = parts.read_manifest(place)
    if POINTS not in manifest.files:
        raise InputError(f"{folder}: found a sweep that is not finished; expected all its runs: run it again to go on")
    manifest.check([POINTS], PLACES)
    about, given = manifest.about, manifest.about["sweep"]
    loaded = planning.loads(given["scenario"], about["scenario_path"]).only(given["where"])
    axes = loaded.sweep.axes if loaded.sweep else ()
    return Sweep(place, about, axes, _with_numbers(parts.read_table(files.check_name(place) / POINTS), axes))


def _numeric_columns(axes: Sequence[Axis]) -> dict[str, NumericColumn]:
    """The columns of numbers, by the keys beside which they stand; none that is called as another column."""
    taken = {axis.key for axis in axes} | METRICS.keys()
    found = ((axis.key, points.numeric_column(axis)) for axis in axes)
    return {key: of for key, of in found if of is not None and of.column not in taken}


def _with_numbers(table: pl.DataFrame, axes: Sequence[Axis]) -> pl.DataFrame:
    """The table with the columns of numbers, each behind its texts; those that are there are left."""
    beside = _numeric_columns(axes)
    columns: list[str | pl.Expr] = []
    for name in table.columns:
        columns.append(name)
        if (of := beside.get(name)) and of.column not in table.columns:
            columns.append(pl.col(name).replace_strict(of.numbers, return_dtype=pl.Float64).alias(of.column))
    return table.select(columns)


def _columns(loaded: planning.Loaded) -> list[pl.Series]:
    """Return the value of each swept key at every point."""
    if loaded.sweep is None:
        return []
    columns = []
    together = 1
    for axis in reversed(loaded.sweep.axes):
        places = pl.int_range(loaded.sweep.count, dtype=pl.UInt32, eager=True) // together % len(axis.values)
        columns.append(_column(axis.key, list(axis.values)).gather(places))
        together *= len(axis.values)
    return columns[::-1]


def _column(key: str, values: list[Any]) -> pl.Series:
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return pl.Series(key, values, dtype=pl.Boolean)
    if kinds == {int}:
        return pl.Series(key, values, dtype=pl.Int64)
    if kinds <= {int, float}:
        return pl.Series(key, values, dtype=pl.Float64)
    return pl.Series(key, [points.label(value) for value in values], dtype=pl.String)


#: Number of missing shards that are named.
MAX_NAMED = 10


def merge(
    given: Iterable[Path | str], out: Path | str, *, progress: Progress = no_progress, command: str = ""
) -> Sweep:
    """Join the folders of all shards of a sweep into the folder `out`, which appears completely or not at all.

    Args:
        given: folders that `ackclock sweep … --shard K/N` has written, all of one sweep, in any order.
        out: folder of the whole sweep; one that has the same sweep already is replaced.
        progress: called with the fraction completed, 0 to 1.
        command: the command recorded in the manifest.

    Raises:
        InputError: a folder that is no shard, is not finished or damaged; shards of different sweeps, one twice, or one
            that is missing; something else in `out`.
    """
    found = [read_manifest(Path(folder)) for folder in given]
    first = _checked(found)
    order = _order(first)
    if differs := different(_sweep_identity(first), order.identity()):
        raise InputError(f"{first.folder}: found a shard that differs in its {differs[0]}; expected this one's")
    place = Path(out)
    _check_out(place, order)
    with folders.replace_folder(place, manifests.is_note(place)) as new:
        with Parts(new, order, command=command) as parts:
            for number, shard in enumerate(found):
                _check_files(shard)
                parts.take(shard)
                progress((number + 1) / (len(found) + 1))
            finish(parts, planning.loads(order.text, order.name).only(order.where))
        warnings = dict.fromkeys(each for shard in found for each in shard.about.get(WARNINGS, ()))
        extend_manifest(new, {WARNINGS: list(warnings)})
        (new / result_kind.LOCK).unlink()
    progress(1.0)
    return read(place)


def _checked(found: Sequence[Manifest]) -> Manifest:
    """The first of the shards, in the order of their numbers, if they are all of one sweep and none is missing."""
    if not found:
        raise InputError("merge-shards: found no folder; expected those of all shards of a sweep")
    by_number = _by_number(found, _shard(found[0]).count)
    count = _shard(found[0]).count
    missing = [str(Shard(number, count)) for number in range(1, count + 1) if number not in by_number]
    if missing:
        more = f" and {len(missing) - MAX_NAMED} more" if len(missing) > MAX_NAMED else ""
        raise InputError(f"merge-shards: found no shard {', '.join(missing[:MAX_NAMED])}{more}; expected all {count}")
    return by_number[1]


def _by_number(found: Sequence[Manifest], count: int) -> dict[int, Manifest]:
    first, by_number = found[0], dict[int, Manifest]()
    for manifest in found:
        shard = _shard(manifest)
        if differs := different(_sweep_identity(manifest), _sweep_identity(first)):
            also = f"{manifest.folder}: found a shard of a sweep that differs in its {' and '.join(differs)}"
            raise InputError(f"{also}; expected that of {first.folder}")
        if shard.count != count:
            raise InputError(f"{manifest.folder}: found shard {shard}; expected one of {count}, as in {first.folder}")
        if (other := by_number.setdefault(shard.number, manifest)) is not manifest:
            raise InputError(f"{manifest.folder}: found shard {shard}, which {other.folder} is too; expected it once")
        if POINTS not in manifest.files:
            raise InputError(f"{manifest.folder}: found shard {shard} not finished; expected all its runs")
    return by_number


def _shard(manifest: Manifest) -> Shard:
    written = manifest.about["sweep"].get("shard")
    if written is None:
        raise InputError(f"{manifest.folder}: found a whole sweep; expected one run with --shard")
    return designs.parse_shard(written)


def _sweep_identity(manifest: Manifest) -> dict[str, Any]:
    """Return the identity of the sweep that a shard belongs to."""
    return {**manifest.about["sweep"], "shard": None}


def _order(first: Manifest) -> SweepSpec:
    """Return the specification of the whole sweep."""
    known = first.about["sweep"]
    seeds = known["seeds"]
    return SweepSpec(
        text=known["scenario"],
        name=first.about["scenario_path"],
        engine=known["engine"],
        seeds=None if seeds is None else tuple(seeds),
        metrics=tuple(known["metrics"]),
        samples=known["samples"],
        where={key: tuple(texts) for key, texts in known["where"].items()},
        kernel=known["kernel"],
        design=known["design"],
        module=known.get("module"),
    )


def _check_files(shard: Manifest) -> None:
    """Raise `InputError` for a file that is not as it was written."""
    for name, what in shard.problems().items():
        raise InputError(f"{shard.folder / name}: {what}; expected a sound shard: run it again")


def _check_out(out: Path, order: SweepSpec) -> None:
    """Raise `InputError` for a folder that holds another sweep, as a sweep itself does."""
    folders.check(out, Kind.SWEEP)
    if result_kind.kind(out) is Kind.SWEEP and (
        differs := different(read_manifest(out).about["sweep"], order.identity())
    ):
        there = f"{out}: found an earlier sweep, which differs in: {', '.join(differs)}"
        raise InputError(f"{there}; expected another folder (--out)")
