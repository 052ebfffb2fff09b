"""The dataset: what every engine writes and every view reads.

A dataset is a few tidy tables (their columns are in `tables.py`) and a manifest that says how they came about. It may
live in memory or as Parquet parts in a folder; a `Spool` collects a run's rows and moves them to disk before they
fill the memory. On disk:

    results/dumbbell-packet/
    ├── manifest.json
    ├── flows.parquet/part-0000.parquet
    ├── flow_samples.parquet/part-0000.parquet …
    └── …

so that `pl.read_parquet("results/dumbbell-packet/flows.parquet")` reads a table without ackclock.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from ackclock.dataset import folders, sound, tables
from ackclock.dataset.tables import Column
from ackclock.errors import InputError
from ackclock.known import KnownPlan

#: Version of the folder's layout and of the tables' columns; a reader refuses another.
FORMAT = 2

#: The folder of a result's packet captures.
CAPTURES = "captures"

#: What a result folder holds besides the tables. What else a user keeps there is carried along.
OWN_FILES = ("manifest.json", "report.html", CAPTURES)

#: Rows waiting in memory go to disk beyond this many bytes.
SPOOL_BYTES = 64 << 20

Manifest: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one table: a frame in memory or a Parquet file; `shift` is added to its run numbers."""

    source: pl.DataFrame | Path
    shift: int = 0

    def scan(self) -> pl.LazyFrame:
        """The rows, read when collected."""
        lazy = pl.scan_parquet(self.source) if isinstance(self.source, Path) else self.source.lazy()
        return lazy.with_columns(pl.col("run") + pl.lit(self.shift, pl.UInt32)) if self.shift else lazy


@dataclass(frozen=True)
class Dataset:
    """An immutable result: tables as lists of parts, and the manifest.

    `flows`, `flow_samples`, `queue_samples`, `events`, `links` and `packets` are Polars frames; `scan(table)` is
    lazy, for results that should not be read whole.

    Of the manifest `ackclock` (a version) and `runs` (`{run}` each, with a `seed` if it has one) must be there. What
    was never planned has no `plan`, or one that says what is known; and no `engine`.
    """

    manifest: Manifest
    parts: Mapping[str, tuple[Part, ...]]
    _keep: tuple[object, ...] = field(default=(), repr=False, compare=False)

    def scan(self, table: str) -> pl.LazyFrame:
        """A table as a lazy frame. Raises `KeyError` for an unknown table."""
        scans = [part.scan() for part in self.parts.get(table, ())]
        return pl.concat(scans) if scans else pl.LazyFrame(schema=tables.schema(table))

    def frame(self, table: str) -> pl.DataFrame:
        """A table as a frame. Raises `InputError` if a part of it is damaged."""
        try:
            return self.scan(table).collect()
        except sound.UNREADABLE as error:
            raise InputError(f"the table {table!r} cannot be read: {_first_line(error)}") from error

    @property
    def flows(self) -> pl.DataFrame:
        """One row a flow."""
        return self.frame("flows")

    @property
    def flow_samples(self) -> pl.DataFrame:
        """Window, RTT and delivered bytes of each flow over time."""
        return self.frame("flow_samples")

    @property
    def queue_samples(self) -> pl.DataFrame:
        """Backlog, sojourn time, drops and utilisation of each link over time."""
        return self.frame("queue_samples")

    @property
    def events(self) -> pl.DataFrame:
        """Drops, losses, recoveries, timeouts, retransmissions."""
        return self.frame("events")

    @property
    def links(self) -> pl.DataFrame:
        """One row a link: totals and the sojourn-time histogram of the measured part."""
        return self.frame("links")

    @property
    def packets(self) -> pl.DataFrame:
        """The per-packet log (empty unless the scenario asked for it)."""
        return self.frame("packets")

    @cached_property
    def plan(self) -> KnownPlan:
        """What is known of the plan behind the result. Raises `InputError` if that is damaged."""
        return KnownPlan.from_dict(self.manifest.get("plan") or {})

    @property
    def runs(self) -> tuple[Mapping[str, Any], ...]:
        """The manifest's runs: `{run, point, seed}` each."""
        return tuple(self.manifest["runs"])

    def metrics(self) -> dict[str, Any]:
        """The metrics of each run and their summary: see `ackclock.metrics.table`."""
        from ackclock import metrics

        return metrics.table(self)

    @staticmethod
    def concat(datasets: Iterable[Dataset]) -> Dataset:
        """Datasets of one scenario and engine as one; runs are renumbered where their numbers collide.

        The manifest is the first one's, with all the runs. Raises `ValueError` if there is none.
        """
        given = list(datasets)
        if not given:
            raise ValueError("nothing to concatenate")
        shifts = _shifts(given)
        parts = {name: _shifted(given, shifts, name) for name in tables.TABLES}
        runs = [
            {**run, "run": run["run"] + shift} for data, shift in zip(given, shifts, strict=True) for run in data.runs
        ]
        keep = tuple(item for data in given for item in data._keep)
        return Dataset({**given[0].manifest, "runs": runs}, parts, keep)

    def write(self, folder: Path | str, captures: Path | None = None) -> Path:
        """Writes the dataset as a folder, whole or not at all, and returns the folder.

        An earlier ackclock result of that name is replaced, and its packet captures with it. `captures` is a folder
        of those of this dataset, which moves into the result. Raises `InputError` if something else is in the way or
        the place cannot be written.
        """
        target = Path(folder)
        if target.exists() and not is_result(target):
            raise InputError(f"{target}: exists and is not an ackclock result; it is left alone: choose another folder")
        try:
            with folders.replacing(target, carry=lambda name: not _is_own(name)) as new:
                self._write_parts(new)
                if captures is not None:
                    shutil.move(captures, new / CAPTURES)
        except OSError as error:
            raise InputError(f"{target}: cannot be written: {error.strerror or error}") from error
        return target

    def _write_parts(self, folder: Path) -> None:
        counts = {}
        for table, parts in self.parts.items():
            if parts:
                place = folder / f"{table}.parquet"
                place.mkdir()
                counts[table] = len(parts)
                for number, part in enumerate(parts):
                    _write_part(part, place / f"part-{number:04}.parquet")
        manifest = {"format": FORMAT, **self.manifest, "parts": counts}
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=2, ensure_ascii=False), encoding="utf-8")

    @staticmethod
    def read(folder: Path | str) -> Dataset:
        """The dataset in a folder. Raises `InputError` if it is no result, of another format, or damaged."""
        place = Path(folder)
        manifest = _read_manifest(place)
        counts = manifest.get("parts")
        if not isinstance(counts, dict):
            raise InputError(f"{place}: damaged: manifest.json lists no parts")
        return Dataset(manifest, {name: _found(place, name, counts.get(name, 0)) for name in tables.TABLES})


class Spool:
    """Collects the rows of one run, in memory and beyond `SPOOL_BYTES` on disk.

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
        self._folder = folder
        self._run = run
        self._names = dict(names or {})
        self._limit = spool_bytes
        self._waiting: dict[str, list[pl.DataFrame]] = {name: [] for name in tables.TABLES}
        self._written: dict[str, list[Part]] = {name: [] for name in tables.TABLES}
        self._bytes = 0
        self._temporary: _Temporary | None = None
        self._lock = threading.Lock()

    def append(self, table: str, columns: Mapping[str, Column]) -> None:
        """Adds rows (see `tables.frame` for what means null). Raises `ValueError` for what the table has not."""
        rows = tables.frame(table, columns, self._run, self._names)
        if rows.height == 0:
            return
        with self._lock:
            self._waiting[table].append(rows)
            self._bytes += int(rows.estimated_size())
            if self._bytes > self._limit:
                self._flush()

    def dataset(self, manifest: Manifest) -> Dataset:
        """What was collected. The spool may not be used any more."""
        with self._lock:
            parts = {name: (*self._written[name], *self._in_memory(name)) for name in tables.TABLES}
        return Dataset(manifest, parts, (self._temporary,) if self._temporary else ())

    def _in_memory(self, table: str) -> list[Part]:
        waiting = self._waiting[table]
        return [Part(pl.concat(waiting, rechunk=True))] if waiting else []

    def _flush(self) -> None:
        folder = self._place()
        for table, waiting in self._waiting.items():
            if waiting:
                path = folder / f"{table}-{self._run}-{len(self._written[table]):04}.parquet"
                pl.concat(waiting).write_parquet(path, compression="zstd")
                self._written[table].append(Part(path))
                waiting.clear()
        self._bytes = 0

    def _place(self) -> Path:
        if self._folder is None:
            self._temporary = _Temporary()
            self._folder = self._temporary.path
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder


class _Temporary:
    """A temporary folder that lives as long as the object."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="ackclock-"))
        self._end = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def is_result(folder: Path) -> bool:
    """Whether a folder is an ackclock result of whatever format."""
    try:
        return "ackclock" in json.loads((folder / "manifest.json").read_bytes())
    except (OSError, ValueError, TypeError):
        return False


def _is_own(name: str) -> bool:
    return name in OWN_FILES or name.removesuffix(".parquet") in tables.TABLES


def _shifts(datasets: Sequence[Dataset]) -> list[int]:
    numbers = [{int(run["run"]) for run in data.runs} for data in datasets]
    if len(set().union(*numbers)) == sum(map(len, numbers)):
        return [0] * len(datasets)
    shifts, following = [], 0
    for found in numbers:
        shifts.append(following)
        following += max(found, default=-1) + 1
    return shifts


def _shifted(datasets: Sequence[Dataset], shifts: Sequence[int], table: str) -> tuple[Part, ...]:
    return tuple(
        Part(part.source, part.shift + shift)
        for data, shift in zip(datasets, shifts, strict=True)
        for part in data.parts.get(table, ())
    )


def _write_part(part: Part, path: Path) -> None:
    if isinstance(part.source, Path) and not part.shift:
        shutil.copyfile(part.source, path)
    else:
        part.scan().sink_parquet(path, compression="zstd")


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / "manifest.json"
    if not folder.is_dir():
        raise InputError(f"{folder}: no such result folder")
    try:
        manifest = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise InputError(f"{folder}: not an ackclock result: it has no manifest.json") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: damaged: {_first_line(error)}") from error
    return _checked(manifest, folder)


def _checked(manifest: object, folder: Path) -> dict[str, Any]:
    if not isinstance(manifest, dict) or "ackclock" not in manifest:
        raise InputError(f"{folder}: not an ackclock result: manifest.json does not name an ackclock version")
    if "sweep" in manifest:
        raise InputError(f"{folder}: found a sweep; expected the result of `ackclock run`: a sweep has points.parquet")
    if manifest.get("format") != FORMAT:
        ackclock, found = (sound.excerpt(manifest.get(key)) for key in ("ackclock", "format"))
        wrote = f"written by ackclock {ackclock} in format {found}"
        raise InputError(f"{folder}: {wrote}; this ackclock reads format {FORMAT}: run the scenario again")
    sound.check_runs(manifest, folder)
    return manifest


def _found(folder: Path, table: str, count: int) -> tuple[Part, ...]:
    paths = sorted((folder / f"{table}.parquet").glob("part-*.parquet"))
    if len(paths) != count:
        raise InputError(
            f"{folder}: damaged: the manifest lists {sound.excerpt(count)} parts of {table}, found {len(paths)}"
        )
    for path in paths:
        sound.check_part(path, table)
    return tuple(map(Part, paths))


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
