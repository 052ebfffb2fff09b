"""The dataset: the result that every engine writes and every figure and metric reads.

A dataset is a few tidy tables (their columns are in `tables.py`) and a manifest that records their origin. It may
live in memory or as Parquet parts in a folder; a `Spool` collects a run's rows and moves them to disk before they
fill the memory. On disk:

    results/dumbbell-packet/
    ├── manifest.json
    ├── flows.parquet/part-0000.parquet
    ├── flow_samples.parquet/part-0000.parquet …
    └── …

so that `pl.read_parquet("results/dumbbell-packet/flows.parquet")` reads a table without ackclock. The manifest has the
SHA-256 of each file, and what is read has been compared with it.
"""

from __future__ import annotations

import secrets
import shutil
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from ackclock.dataset import checksums, folders, manifests, result_kind, tables
from ackclock.dataset import lazy_frame as as_columns
from ackclock.dataset.lazy_frame import Columns
from ackclock.dataset.manifests import CAPTURES
from ackclock.dataset.tables import Column
from ackclock.errors import InputError, first_line
from ackclock.input import arguments
from ackclock.input.arguments import checked, optional, several
from ackclock.system.files import LockedTempDir, check_name

if TYPE_CHECKING:
    from ackclock.partial_plan import PartialPlan

#: Rows waiting in memory go to disk beyond this many bytes.
SPOOL_BYTES = 8 << 20

#: Rows that are read together: what metrics take at a time.
GROUP_ROWS = 1 << 16

Manifest: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one table: in memory as a frame or as columns, or a Parquet file; `shift` is added to run numbers.

    `state` is that of a file whose result may be replaced while it is read, `recast` the types of enum columns that
    have gained values since it was written.
    """

    source: pl.DataFrame | Columns | Path
    shift: int = 0
    state: checksums.State | None = None
    recast: Mapping[str, Any] = field(default_factory=dict)

    @property
    def height(self) -> int:
        """Return the number of rows. Raises `InputError` if the file is damaged."""
        if not isinstance(self.source, Path):
            return self.source.height
        return int(self._collected(self.scan().select(pl.len())).item())

    def read(self, first: int, count: int, columns: Sequence[str] = ()) -> pl.DataFrame | Columns:
        """Return `count` rows from one on, with at least these columns. Raises `InputError` if the file is damaged."""
        if (handed := self.columns()) is not None and first == 0 and handed.height <= count:
            return handed
        if (frame := self.frame()) is not None and not self.shift:
            return frame[first : first + count]
        rows = self.scan().slice(first, count)
        return self._collected(rows.select(columns) if columns else rows)

    def columns(self) -> Columns | None:
        """Return the rows with their run numbers if they are columns in memory, else None."""
        if not isinstance(self.source, Columns):
            return None
        return replace(self.source, run=self.source.run + self.shift) if self.shift else self.source

    def frame(self) -> pl.DataFrame | None:
        """Return the rows if they are in memory, without the shift, else None."""
        if isinstance(self.source, Path):
            return None
        return self.source.frame if isinstance(self.source, Columns) else self.source

    def _collected(self, rows: pl.LazyFrame) -> pl.DataFrame:
        try:
            result = rows.collect()
        except manifests.UNREADABLE as error:
            raise InputError(f"{self.source}: cannot be read: {first_line(error)}") from error
        self.check()
        return result

    def check(self) -> None:
        """Raise `InputError` if the file was replaced since the result was read."""
        if not isinstance(self.source, Path) or self.state is None:
            return
        if checksums.state(self.source) != self.state:
            raise InputError(f"{self.source}: found another file than before; the result was replaced meanwhile")

    def scan(self) -> pl.LazyFrame:
        """Return the rows as a lazy frame."""
        if isinstance(self.source, Path):
            lazy = pl.scan_parquet(self.source, glob=False)
            if self.recast:
                lazy = lazy.with_columns(pl.col(name).cast(dtype) for name, dtype in self.recast.items())
        else:
            lazy = (self.source.frame if isinstance(self.source, Columns) else self.source).lazy()
        return lazy.with_columns(pl.col("run") + pl.lit(self.shift, pl.UInt32)) if self.shift else lazy


@dataclass(frozen=True)
class Dataset:
    """An immutable result: tables as lists of parts, and the manifest.

    `flows`, `flow_samples`, `queue_samples`, `events`, `links`, `packets` and `transmissions` are Polars frames;
    `scan(table)` is lazy, for results that should not be read whole.

    In the manifest, `ackclock` (a version) and `runs` (`{run}` each, with a `seed` if it has one) must be there. What
    was never planned has no `plan`, or one with what is known; and no `engine`.
    """

    manifest: Manifest
    parts: Mapping[str, tuple[Part, ...]]
    _keep: tuple[object, ...] = field(default=(), repr=False, compare=False)

    @cached_property
    def measured(self) -> dict[Any, Any]:
        """Return the cache of computed metrics by run."""
        return {}

    @checked(table=arguments.WORD)
    def scan(self, table: str) -> pl.LazyFrame:
        """Return a table as a lazy frame. Raises `InputError` for an unknown table."""
        if table not in tables.TABLES:
            arguments.wrong_value("table", table, f"one of {', '.join(tables.TABLES)}")
        scans = [part.scan() for part in self.parts.get(table, ())]
        return pl.concat(scans) if scans else pl.LazyFrame(schema=tables.schema(table))

    def frame(self, table: str) -> pl.DataFrame:
        """Return a table as a frame. Raises `InputError` if a part of it is damaged."""
        parts = self.parts.get(table, ())
        if len(parts) == 1 and not parts[0].shift and (result := parts[0].frame()) is not None:
            return result.clone()
        in_memory = [columns for part in parts if (columns := part.columns()) is not None]
        if parts and len(in_memory) == len(parts):
            return as_columns.frame(in_memory)
        try:
            result = self.scan(table).collect()
        except manifests.UNREADABLE as error:
            raise InputError(f"the table {table!r} cannot be read: {first_line(error)}") from error
        for part in parts:
            part.check()
        return result

    @property
    def flows(self) -> pl.DataFrame:
        """Return one row a flow; after `group` comes its `name`, that in the scenario, else its CCA."""
        from ackclock.metrics.flow_tables import group_name_of

        result = self.frame("flows")
        if "name" in result.columns:  # rows that were taken from here before
            return result
        place = result.columns.index("group") + 1
        return result.select(*result.columns[:place], group_name_of(self.plan).alias("name"), *result.columns[place:])

    @property
    def flow_samples(self) -> pl.DataFrame:
        """Return window, RTT and delivered bytes of each flow over time."""
        return self.frame("flow_samples")

    @property
    def queue_samples(self) -> pl.DataFrame:
        """Return backlog, sojourn time, drops and utilisation of each link over time."""
        return self.frame("queue_samples")

    @property
    def events(self) -> pl.DataFrame:
        """Return drops, losses, recoveries, timeouts and retransmissions."""
        return self.frame("events")

    @property
    def links(self) -> pl.DataFrame:
        """Return one row a link: totals and the sojourn-time histogram of the measured part."""
        return self.frame("links")

    @property
    def packets(self) -> pl.DataFrame:
        """Return the per-packet log (empty unless the scenario requests it)."""
        return self.frame("packets")

    @property
    def transmissions(self) -> pl.DataFrame:
        """Return why each captured packet was sent, and its fate (empty unless captures were requested)."""
        return self.frame("transmissions")

    @cached_property
    def plan(self) -> PartialPlan:
        """Return the known parts of the plan behind the result. Raises `InputError` if it is damaged."""
        from ackclock.partial_plan import PartialPlan

        return PartialPlan.from_dict(self.manifest.get("plan") or {})

    @property
    def runs(self) -> tuple[Mapping[str, Any], ...]:
        """Return the manifest's runs: `{run, point, seed}` each."""
        return tuple(self.manifest["runs"])

    def only(self, names: Iterable[str]) -> Dataset:
        """Without the other tables."""
        return replace(self, parts={name: self.parts.get(name, ()) for name in names})

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of each run and their summary: see `ackclock.metrics.table`."""
        from ackclock import metrics

        return metrics.table(self)

    def summary(self) -> pl.DataFrame:
        """Return the mean of each metric over the runs, and of each group's: a row for each that has a value.

        `metric`; `group`, null for those of the whole run; `mean`, `ci95_low` and `ci95_high`, Student's 95 % interval;
        `n`, the number of runs with a value.
        """
        found = self.metrics()
        of_groups = [(name, group, row) for group, rows in found["groups"].items() for name, row in rows.items()]
        every = [*((name, None, row) for name, row in found["summary"].items()), *of_groups]
        rows = [(name, group, *row.values()) for name, group, row in every if row["n"]]
        columns = {"mean": pl.Float64, "ci95_low": pl.Float64, "ci95_high": pl.Float64, "n": pl.Int64}
        return pl.DataFrame(rows, schema={"metric": pl.String, "group": pl.String, **columns}, orient="row")

    @checked(between=optional(arguments.BETWEEN))
    def flow_goodput(self, between: tuple[float, float] | None = None) -> pl.DataFrame:
        """Return each TCP flow's goodput, with its group's name and CCA: see `ackclock.metrics.flow_tables`."""
        from ackclock import metrics

        return metrics.flow_goodput(self, between)

    @checked(table=arguments.WORD)
    def to_pandas(self, table: str = "flows") -> Any:
        """Return a table as a `pandas.DataFrame`, the flows with the names of their groups; null is NaN in numbers.

        Raises `InputError` for an unknown table, and if pandas is not installed (`ackclock[pandas]`).
        """
        from ackclock.dataset import lazy_frame

        return lazy_frame.pandas_frame(self.flows if table == "flows" else self.frame(table))

    @checked(table=arguments.WORD)
    def to_xarray(self, table: str = "flow_samples") -> Any:
        """Return a table as an `xarray.Dataset` over run, flow or link, and time; other tables over their rows.

        Columns have their unit as an attribute; what a flow or link has no row for is NaN. Raises `InputError` for an
        unknown table, for samples at times of their own, whose grid would be mostly empty, and if xarray is not
        installed (`ackclock[xarray]`).
        """
        from ackclock.dataset import lazy_frame

        return lazy_frame.xarray_dataset(table, self.flows if table == "flows" else self.frame(table))

    def __repr__(self) -> str:
        from ackclock.dataset import reprs

        return reprs.lines(self)

    def _repr_html_(self) -> str:
        from ackclock.dataset import reprs

        return reprs.html(self)

    @staticmethod
    @checked(datasets=several(arguments.RECORDED, "datasets"))
    def concat(datasets: Iterable[Dataset]) -> Dataset:
        """Join datasets of one scenario and engine; runs are renumbered where their numbers collide.

        The manifest is the first one's, with all the runs. Raises `InputError` if there is none.
        """
        given = list(datasets)
        if not given:
            raise InputError("datasets: found none; expected one or more")
        shifts = _shifts(given)
        parts = {name: _shifted(given, shifts, name) for name in tables.TABLES}
        runs = [
            {**run, "run": run["run"] + shift} for data, shift in zip(given, shifts, strict=True) for run in data.runs
        ]
        keep = tuple(item for data in given for item in data._keep)
        return Dataset({**given[0].manifest, "runs": runs}, parts, keep)

    @checked(folder=arguments.PATH, captures=optional(arguments.PATH))
    def write(
        self, folder: Path | str, captures: Path | None = None, also: Callable[[Path], object] = lambda _: None
    ) -> Path:
        """Write the dataset as a folder, atomically, and return the folder.

        An earlier result of its kind, a run's or that of captures, is replaced, with its packet captures. `captures` is
        a folder of those of this dataset, which moves into the result. `also` is given the folder before it takes its
        place, for what else belongs into it. Raises `InputError` if something else is in the way or the place cannot be
        written.
        """
        target = Path(folder)
        result_kind.check(target, result_kind.of(self.manifest))
        with folders.replace_folder(target, manifests.is_note(target)) as new:
            with folders.write_errors(new):
                self._write(new, captures)
            also(new)
        return target

    def _write(self, folder: Path, captures: Path | None) -> None:
        for table, parts in self.parts.items():
            if parts:
                place = folder / f"{table}.parquet"
                place.mkdir()
                for number, part in enumerate(parts):
                    _write_part(part, place / f"part-{number:04}.parquet")
        if captures is not None and captures.exists():
            shutil.move(captures, folder / CAPTURES)
        manifests.write(folder, self.manifest, manifests.list_files(folder))

    @staticmethod
    @checked(folder=arguments.PATH)
    def read(folder: Path | str) -> Dataset:
        """Read the dataset in a folder. Raises `InputError` if it is no result, of another format, or damaged.

        Every part is compared with its SHA-256 in the manifest, once.
        """
        place = check_name(Path(folder))
        manifest = manifests.read(place, *result_kind.DATASETS)
        manifests.check_runs(manifest.about, place)
        names = {table: manifest.under(f"{table}.parquet") for table in tables.TABLES}
        states = {name: checksums.state(place / name) for result in names.values() for name in result}
        manifest.check(states, [f"{table}.parquet" for table in names])
        parts = {
            table: tuple(
                Part(place / name, state=states[name], recast=manifests.check_part(place / name, table))
                for name in result
            )
            for table, result in names.items()
        }
        return Dataset(manifest.about, parts)


class Spool:
    """Collector of the rows of one run, in memory and beyond `SPOOL_BYTES` on disk.

    `folder` is where parts go (it must outlive the dataset); without one a temporary folder is made when it is
    needed and removed with the last dataset that uses it. `names` are the words behind integer codes, keyed
    `table.column`: `Spool(names={"events.kind": _core.EVENT_KINDS})`. Several threads may append.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        run: int = 0,
        names: Mapping[str, Sequence[str]] | None = None,
        spool_bytes: int = SPOOL_BYTES,
    ) -> None:
        if folder is not None:
            with folders.write_errors(folder):
                folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._run = run
        self._names = dict(names or {})
        self._limit = spool_bytes
        self._waiting: dict[str, list[Columns]] = {name: [] for name in tables.TABLES}
        self._written: dict[str, list[Part]] = {name: [] for name in tables.TABLES}
        self._bytes = 0
        self._temporary: _Temporary | None = None
        self._lock = threading.Lock()

    def append(self, table: str, columns: Mapping[str, Column]) -> None:
        """Add rows (see `tables.frame` for what means null). Raises `ValueError` for unknown tables or columns."""
        if table in tables.TABLES and not any(map(len, columns.values())):
            return
        tables.check(table, columns, self._names)
        rows = Columns(table, columns, self._run, self._names)
        with self._lock:
            self._waiting[table].append(rows)
            self._bytes += rows.size_bytes
            if self._bytes > self._limit:
                self._flush()

    def revise(self, table: str, column: str, by: str, values: Mapping[int, str]) -> None:
        """Replace values of a string column in the rows whose number in the column `by` is a key of `values`."""
        with self._lock:
            self._waiting[table] = [_revised(rows, column, by, values) for rows in self._waiting[table]]
            for part in self._written[table]:
                if isinstance(path := part.source, Path):
                    result = pl.read_parquet(path)
                    new = pl.col(by).replace_strict(values, default=pl.col(column), return_dtype=result.schema[column])
                    if result[by].is_in(list(values)).any():
                        result.with_columns(new.alias(column)).write_parquet(
                            path, compression="zstd", row_group_size=GROUP_ROWS
                        )

    def dataset(self, manifest: Manifest) -> Dataset:
        """Return the dataset of the rows. The spool may not be used afterwards."""
        with self._lock:
            parts = {name: (*self._written[name], *self._in_memory(name)) for name in tables.TABLES}
        return Dataset(manifest, parts, (self._temporary,) if self._temporary else ())

    def _in_memory(self, table: str) -> list[Part]:
        waiting = self._waiting[table]
        return [Part(as_columns.joined(waiting) or as_columns.frame(waiting))] if waiting else []

    def _flush(self) -> None:
        folder = self._place()
        for table, waiting in self._waiting.items():
            if waiting:
                path = folder / f"{table}-{self._run}-{len(self._written[table]):04}.parquet"
                with folders.write_errors(path):
                    as_columns.frame(waiting).write_parquet(path, compression="zstd", row_group_size=GROUP_ROWS)
                self._written[table].append(Part(path))
                waiting.clear()
        self._bytes = 0

    def _place(self) -> Path:
        if self._folder is None:
            self._temporary = _Temporary()
            self._folder = self._temporary.path
        with folders.write_errors(self._folder):
            self._folder.mkdir(exist_ok=True)  # not its parents: a signal may have removed the place just now
        return self._folder


class _Temporary:
    """A temporary folder that lives as long as the object; those of a process share a private folder."""

    _place: weakref.ReferenceType[LockedTempDir] | None = None
    _lock = threading.Lock()

    def __init__(self) -> None:
        with _Temporary._lock:
            self._in = (_Temporary._place and _Temporary._place()) or folders.temporary_folder()
            _Temporary._place = weakref.ref(self._in)
        self.path = self._in.path / secrets.token_hex(8)
        self._end = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _shifts(datasets: Sequence[Dataset]) -> list[int]:
    numbers = [{int(run["run"]) for run in data.runs} for data in datasets]
    if len(set().union(*numbers)) == sum(map(len, numbers)):
        return [0] * len(datasets)
    shifts, following = [], 0
    for result in numbers:
        shifts.append(following)
        following += max(result, default=-1) + 1
    return shifts


def _shifted(datasets: Sequence[Dataset], shifts: Sequence[int], table: str) -> tuple[Part, ...]:
    return tuple(
        replace(part, shift=part.shift + shift)
        for data, shift in zip(datasets, shifts, strict=True)
        for part in data.parts.get(table, ())
    )


def _revised(rows: Columns, column: str, by: str, values: Mapping[int, str]) -> Columns:
    pairs = zip(rows.columns[by], rows.columns[column], strict=True)
    return replace(rows, columns={**rows.columns, column: [values.get(int(key), word) for key, word in pairs]})


def _write_part(part: Part, path: Path) -> None:
    if isinstance(part.source, Path) and not part.shift:
        shutil.copyfile(part.source, path)
    else:
        part.scan().sink_parquet(path, compression="zstd")
