"""The folder of a sweep while it runs: Parquet parts of many runs each, so that a kill loses nothing that is in one.

    results/buffers-fluid-sweep/
    ├── manifest.json                 what is run, and the SHA-256 of each file below: written first, and with each part
    ├── flows.parquet/part-0000.parquet …
    ├── links.parquet/part-0000.parquet …
    ├── runs.parquet/part-0000.parquet …   a row for each run with its metrics
    └── points.parquet                the table of the whole sweep: when all runs are there

Every file is written in a private place, forced to the disk and renamed. A part is there when the manifest lists its
files: what a kill leaves of an unfinished part is removed when the sweep goes on. A part that is damaged by then is
told and removed, and its runs are made again, which gives the same. A lock keeps a second process out.
"""

from __future__ import annotations

import fcntl
import re
import shutil
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeAlias

import polars as pl

from ackclock import _core
from ackclock.dataset import checksums, folders, manifests, result_kind
from ackclock.dataset.manifests import PLACES, POINTS, RUNS, Manifest
from ackclock.dataset.result_kind import LOCK, MANIFEST, Kind
from ackclock.errors import InputError, first_line
from ackclock.experiments.sweep.spec import SweepSpec, different
from ackclock.system.files import LockedTempDir, check, check_name

#: A part is written after so many seconds, and after this share of the time so far if that is longer: a kill costs at
#: most that much work, and a sweep of many hours still has only hundreds of parts.
PART_S, PART_SHARE = 2.0, 0.01

#: … and as soon as so many bytes of rows wait for it.
PART_BYTES = 64 << 20

#: Some runs' rows of each table.
Rows: TypeAlias = Mapping[str, pl.DataFrame]

_PART = re.compile(r"(\w+)\.parquet/part-(\d{4,})\.parquet")


class Parts:
    """A sweep's folder, open for writing. Use it in a `with` block."""

    def __init__(self, folder: Path, order: SweepSpec, *, command: str = "", restart: bool = False) -> None:
        """Begin a sweep or resume one. Raises `InputError` for a folder that holds something else."""
        result_kind.check(folder, Kind.SWEEP)
        self.given = folder
        with folders.write_errors(folder):
            self.folder = folders.resolve_link(folder)
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self.folder)
            self._private = LockedTempDir(self.folder)
            if restart:
                _empty(self.folder)
            self._begin(order, command)
            self.done = self._recover()
        self._following = 1 + max(self._numbers(), default=-1)
        self._waiting: list[Rows] = []
        self._begun_s = self._written_s = time.monotonic()

    def __enter__(self) -> Parts:
        return self

    def __exit__(self, *_: object) -> None:
        self._private.close()
        self._lock.close()

    def add(self, rows: Rows) -> None:
        """Keep the rows of some runs; write a part when it is time."""
        self._waiting.append(rows)
        now_s = time.monotonic()
        due_s = max(PART_S, PART_SHARE * (now_s - self._begun_s))
        if now_s - self._written_s >= due_s or self._waiting_bytes() > PART_BYTES:
            self.write()

    def take(self, found: Manifest) -> None:
        """Copy all parts of another sweep's folder, whose runs are other ones than those here (`done` stays)."""
        before = {number for name in found.files if (number := _number(name)) is not None}
        numbers = {number: self._following + place for place, number in enumerate(sorted(before))}
        for name, known in found.files.items():
            if match := _PART.fullmatch(name):
                taken = f"{match[1]}.parquet/part-{numbers[int(match[2])]:04}.parquet"
                with folders.write_errors(self.folder / taken):
                    (self.folder / taken).parent.mkdir(exist_ok=True)
                self._put(taken, partial(shutil.copyfile, found.folder / name))
                self._files[taken] = known
        self._following += len(numbers)
        self._list()

    def write(self) -> None:
        """Write the waiting rows as a part, completely or not at all. Raises `InputError` if it cannot be written."""
        if not self._waiting:
            return
        tables = {table: pl.concat([rows[table] for rows in self._waiting]) for table in self._waiting[0]}
        self._write({f"{table}.parquet/part-{self._following:04}.parquet": rows for table, rows in tables.items()})
        self.done |= set(tables[RUNS]["run"].to_list())
        self._following += 1
        self._waiting, self._written_s = [], time.monotonic()

    def finish(self, points: pl.DataFrame) -> None:
        """Write the table of the whole sweep."""
        self._write({POINTS: points})

    def _write(self, tables: Rows) -> None:
        """Files by name, then the manifest that lists them. The same rows give the same bytes."""
        for name, rows in tables.items():
            self._put_table(name, rows)
        with folders.write_errors(self.folder):
            self._files |= checksums.of_files(self.folder, tables)
        self._list()

    def _put_table(self, name: str, rows: pl.DataFrame) -> None:
        with folders.write_errors(self.folder / name):
            (self.folder / name).parent.mkdir(exist_ok=True)
        self._put(name, lambda new: rows.rechunk().write_parquet(new, compression="zstd"))

    def _list(self) -> None:
        """Write the manifest."""
        self._put(MANIFEST, lambda new: new.write_bytes(manifests.content(self._about, self._files)))

    def _put(self, name: str, write: Callable[[Path], object]) -> None:
        folders.atomic_write(self.folder / name, write, self._private.path)

    def _waiting_bytes(self) -> float:
        return sum(frame.estimated_size() for rows in self._waiting for frame in rows.values())

    def _begin(self, order: SweepSpec, command: str) -> None:
        if not (self.folder / MANIFEST).exists():
            self._about, self._files = _about(order, command), dict[str, str]()
            self._list()
            return
        found = read_manifest(self.folder)
        if differs := different(found.about["sweep"], order.identity()):
            raise InputError(
                f"{self.folder}: found an earlier sweep, which differs in: {', '.join(differs)}; "
                "expected another folder (--out), or --restart to discard it"
            )
        self._about, self._files = found.about, dict(found.files)

    def _recover(self) -> set[int]:
        """The runs that are in sound parts. What else there is of parts is removed: all files of a damaged one too."""
        damaged = checksums.damage(self.folder, self._files)
        for name, what in damaged.items():
            warnings.warn(f"{self.folder / name}: {what}; it is made again", stacklevel=2)
        lost = {_number(name) for name in damaged}
        if lost:
            self._files = {name: known for name, known in self._files.items() if _number(name) not in lost}
            self._list()
        for path in self.folder.glob("*.parquet/*"):
            name = path.relative_to(self.folder).as_posix()
            if name not in self._files and _PART.fullmatch(name):
                path.unlink()
        if not self._numbers():
            return set()
        return set(scan(self.folder, RUNS, self._files).select("run").collect()["run"].to_list())

    def _numbers(self) -> set[int]:
        """Return the numbers of the parts on disk."""
        return {number for name in self._files if (number := _number(name)) is not None}


def extend_manifest(folder: Path, more: Mapping[str, Any]) -> None:
    """Extend the manifest of a finished sweep. Raises `InputError` if it cannot be written."""
    found = read_manifest(folder)
    content = manifests.content({**found.about, **more}, found.files)
    folders.atomic_write(folder / MANIFEST, lambda new: new.write_bytes(content))


def read_manifest(folder: Path) -> Manifest:
    """Read a sweep's manifest. Raises `InputError` if there is none, or one of another format or damaged."""
    check_name(folder)
    if (found := result_kind.kind(folder)) is not Kind.SWEEP and not (folder / MANIFEST).is_file():
        raise InputError(f"{folder}: found {found.value}; expected a folder that `ackclock sweep` has written")
    return manifests.read(folder, Kind.SWEEP)


def scan(folder: Path, table: str, files: Iterable[str]) -> pl.LazyFrame:
    """A table of all the runs that are in parts, in the order of the parts; `files` are the manifest's."""
    numbers = sorted(int(match[2]) for name in files if (match := _PART.fullmatch(name)) and match[1] == table)
    paths = [folder.absolute() / f"{table}.parquet" / f"part-{number:04}.parquet" for number in numbers]
    return pl.concat([pl.scan_parquet(path, glob=False) for path in paths])


def read_table(path: Path) -> pl.DataFrame:
    """A table in one file. Raises `InputError` if it is damaged."""
    check(path)
    try:
        return pl.read_parquet(path.absolute(), glob=False)
    except manifests.UNREADABLE as error:
        first = first_line(error)
        raise InputError(f"{path}: damaged: {first}") from error


def _about(order: SweepSpec, command: str) -> dict[str, Any]:
    from ackclock.engines.engine import circumstances

    known = {"ackclock": _core.version, "name": order.title, "scenario_path": Path(order.name).name}
    return {**known, "sweep": order.identity(), **circumstances(command)}


def _locked(folder: Path) -> IO[str]:
    """Lock a folder until the returned file is closed, or the process ends."""
    lock = (folder / LOCK).open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise InputError(f"{folder}: found another ackclock at work in it; expected another folder (--out)") from None
    return lock


def _number(name: str) -> int | None:
    """The number of a file's part; None for what is no part."""
    match = _PART.fullmatch(name)
    return int(match[2]) if match else None


def _empty(folder: Path) -> None:
    """Remove an earlier sweep, the manifest last; other files of the user stay."""
    for path in (folder / name for name in (*PLACES, POINTS)):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
