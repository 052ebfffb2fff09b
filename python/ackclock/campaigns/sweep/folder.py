"""The folder of a sweep while it runs: Parquet parts of many runs each, so that a kill loses nothing that is in one.

    results/buffers-fluid/
    ├── manifest.json                 what is run: written first
    ├── flows.parquet/part-0000.parquet …
    ├── links.parquet/part-0000.parquet …
    ├── runs.parquet/part-0000.parquet …   a row for each run with its metrics: written last of a part
    └── points.parquet                the table of the whole sweep: when all runs are there

Every file is written under another name, forced to the disk and renamed. A part is there when its `runs` file is: what
a kill leaves of an unfinished part is removed when the sweep goes on. A lock keeps a second process out.
"""

from __future__ import annotations

import fcntl
import json
import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, TypeAlias

import polars as pl

from ackclock import _core
from ackclock.campaigns.sweep.order import Order, different
from ackclock.dataset import LONGEST_MANIFEST, folders
from ackclock.errors import InputError
from ackclock.system import files

MANIFEST, POINTS, LOCK = "manifest.json", "points.parquet", ".lock"

#: The table that makes a part complete.
RUNS = "runs"

#: Version of the folder's layout.
FORMAT = 1

#: A part is written after so many seconds, and after this share of the time so far if that is longer: a kill costs at
#: most that much work, and a sweep of many hours still has only hundreds of parts.
PART_S, PART_SHARE = 2.0, 0.01

#: … and as soon as so many bytes of rows wait for it.
PART_BYTES = 64 << 20

#: Some runs' rows of each table.
Rows: TypeAlias = Mapping[str, pl.DataFrame]

_PART = re.compile(r"part-(\d{4,})\.parquet")


class Parts:
    """A sweep's folder, open for writing. Use it in a `with` block."""

    def __init__(self, folder: Path, order: Order, *, command: str = "", fresh: bool = False) -> None:
        """Begins a sweep or goes on with one. Raises `InputError` for a folder that holds something else."""
        self.folder = files.check_name(folder)
        self._check(fresh)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self.folder)
            self._begin(order, command, fresh)
            self.done = self._recover(order)
        except OSError as error:
            raise InputError(f"{folder}: found an error ({error.strerror or error}); expected a folder") from None
        self._following = 1 + max(_numbers(self.folder / f"{RUNS}.parquet"), default=-1)
        self._waiting: list[Rows] = []
        self._begun_s = self._written_s = time.monotonic()

    def __enter__(self) -> Parts:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    def add(self, rows: Rows) -> None:
        """Keeps the rows of some runs; writes a part when it is time."""
        self._waiting.append(rows)
        now_s = time.monotonic()
        due_s = max(PART_S, PART_SHARE * (now_s - self._begun_s))
        if now_s - self._written_s >= due_s or self._waiting_bytes() > PART_BYTES:
            self.write()

    def write(self) -> None:
        """Writes what waits as a part, whole or not at all."""
        if not self._waiting:
            return
        name = f"part-{self._following:04}.parquet"
        for table in sorted(self._waiting[0], key=lambda table: table == RUNS):
            frame = pl.concat([rows[table] for rows in self._waiting])
            place = self.folder / f"{table}.parquet"
            place.mkdir(exist_ok=True)
            put_table(place / name, frame)
        self.done |= {int(run) for rows in self._waiting for run in rows[RUNS]["run"]}
        self._following += 1
        self._waiting, self._written_s = [], time.monotonic()

    def _waiting_bytes(self) -> float:
        return sum(frame.estimated_size() for rows in self._waiting for frame in rows.values())

    def _check(self, fresh: bool) -> None:
        if not self.folder.exists() or is_sweep(self.folder) or _is_unbegun(self.folder):
            return
        kept = "it is left alone, --fresh or not" if fresh else "it is left alone"
        raise InputError(
            f"{self.folder}: found something that is not a sweep ({kept}); expected another folder (--out)"
        )

    def _begin(self, order: Order, command: str, fresh: bool) -> None:
        if fresh:
            _empty(self.folder)
        manifest = self.folder / MANIFEST
        if not manifest.exists():
            text = json.dumps(_manifest(order, command), indent=2, ensure_ascii=False)
            folders.put(manifest, lambda path: path.write_text(text, encoding="utf-8"))
        elif differs := different(read_manifest(self.folder)["sweep"], order.identity()):
            raise InputError(
                f"{self.folder}: found a sweep that differs in its {' and '.join(differs)}; "
                "expected another folder (--out), or --fresh to begin anew"
            )

    def _recover(self, order: Order) -> set[int]:
        """The runs that are in parts; what is left of an unfinished part is removed."""
        complete = _numbers(self.folder / f"{RUNS}.parquet")
        for path in self.folder.glob("*.parquet/*"):
            match = _PART.fullmatch(path.name)
            if path.name.endswith(".tmp") or (match and int(match[1]) not in complete):
                path.unlink()
        return {int(run) for run in scan(self.folder, RUNS).select("run").collect()["run"]} if complete else set()


def is_sweep(folder: Path) -> bool:
    """Whether a folder holds a sweep of whatever format."""
    try:
        return "sweep" in json.loads(files.content(folder / MANIFEST, LONGEST_MANIFEST))
    except (InputError, ValueError, TypeError, RecursionError):
        return False


def read_manifest(folder: Path) -> dict[str, Any]:
    """What the folder's sweep is. Raises `InputError` if it holds none."""
    if not is_sweep(folder):
        raise InputError(f"{folder}: found no sweep; expected a folder that `ackclock sweep` has written")
    manifest: dict[str, Any] = json.loads(files.content(folder / MANIFEST, LONGEST_MANIFEST))
    if manifest.get("format") != FORMAT:
        wrote = f"a sweep of ackclock {manifest.get('ackclock')} in format {manifest.get('format')}"
        raise InputError(f"{folder}: found {wrote}; expected format {FORMAT}: run it again")
    return manifest


def read_table(path: Path) -> pl.DataFrame:
    """A table in one file. Raises `InputError` if it is damaged."""
    files.check(path)
    try:
        return pl.read_parquet(path.absolute(), glob=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"{path}: damaged: {first}") from error


def scan(folder: Path, table: str) -> pl.LazyFrame:
    """A table of all the runs that are in parts, in the order of the parts."""
    paths = sorted((folder.absolute() / f"{table}.parquet").glob("part-*.parquet"))
    for path in paths:
        files.check(path)
    return pl.concat([pl.scan_parquet(path, glob=False) for path in paths])


def put_table(path: Path, frame: pl.DataFrame) -> None:
    """A Parquet file that appears whole or not at all; the same rows give the same bytes."""
    folders.put(path, lambda new: frame.rechunk().write_parquet(new, compression="zstd"))


def _manifest(order: Order, command: str) -> dict[str, Any]:
    from ackclock.engines.engine import circumstances

    known = {"ackclock": _core.version, "format": FORMAT, "name": order.title, "scenario_path": Path(order.name).name}
    return {**known, "sweep": order.identity(), **circumstances(command)}


def _locked(folder: Path) -> IO[str]:
    """Held until it is closed, or the process ends."""
    lock = (folder / LOCK).open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise InputError(f"{folder}: found another ackclock at work in it; expected another folder (--out)") from None
    return lock


def _numbers(place: Path) -> set[int]:
    """Of the parts in a table's folder."""
    return {int(match[1]) for path in place.glob("part-*") if (match := _PART.fullmatch(path.name))}


def _is_unbegun(folder: Path) -> bool:
    """Whether a folder is empty but for what a kill may leave before the manifest is there."""
    return folder.is_dir() and all(path.name in (LOCK, f".{MANIFEST}.tmp") for path in folder.iterdir())


def _empty(folder: Path) -> None:
    """Removes an earlier sweep, the manifest last; what else a user keeps there stays."""
    for path in folder.glob("*.parquet"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (folder / MANIFEST).unlink(missing_ok=True)
