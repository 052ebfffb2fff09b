"""The result of an entry: judged rows, as a table on disk and in JSON.

A stored result is current if nothing that it comes of has changed since it was made. So the same command goes on where
it was interrupted, and a row that is there is by the current engines.
"""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from ackclock import repr_format
from ackclock.dataset import manifests
from ackclock.dataset.result_kind import Kind
from ackclock.errors import InputError
from ackclock.gallery import cases
from ackclock.gallery.entry import REPRODUCTIONS, Entry
from ackclock.gallery.rows import Row
from ackclock.metrics.summary import summarise

FULL, QUICK = "full", "quick"

#: Table of an entry's result, in its folder and in the entry's.
TABLE = "reproduced.csv"

#: The key of a result's manifest that says of what it was made.
KEY = "made_of"

#: Names of written files in an entry's folder.
MADE = (TABLE, cases.SWITCHED, "__pycache__")

#: File that is read when pages are made.
TEXT = "README.md"


@dataclass(frozen=True, slots=True)
class Judged:
    """A row's outcome with one engine: mean and 95 % interval over `n` runs, the verdict and its reason.

    `reading` is the interpretation of the paper that it was run by; empty where there is one only, or none that changes
    it. `perturbed` and its interval are of the perturbed runs, where those were made.
    """

    engine: str
    claim: str
    at: str
    reproduced: float | None
    ci95_low: float | None
    ci95_high: float | None
    n: int
    verdict: str
    why: str
    counts: bool
    scale: str
    reading: str = ""
    perturbed: float | None = None
    perturbed_low: float | None = None
    perturbed_high: float | None = None

    @staticmethod
    def of(row: Row, engine: str, unit: str, scale: str, reading: str = "") -> Judged:
        """The outcome of a row."""
        found, noisy = row.summary, summarise(row.perturbed)
        numbers = (found.mean, found.ci95_low, found.ci95_high, found.n)
        judged = (row.verdict, row.why(unit), not row.aside, scale)
        perturbed = (noisy.mean, noisy.ci95_low, noisy.ci95_high)
        return Judged(engine, row.claim, row.at, *numbers, *judged, reading, *perturbed)


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """All rows of an entry, of one engine after the other."""

    id: str
    rows: Sequence[Judged]

    @property
    def scale(self) -> str:
        """`full` or `quick`."""
        return self.rows[0].scale if self.rows else FULL

    @property
    def engines(self) -> list[str]:
        """The engines, in their order."""
        return list(dict.fromkeys(row.engine for row in self.rows))

    @property
    def readings(self) -> list[str]:
        """The interpretations that rows are of, in their order."""
        return list(dict.fromkeys(row.reading for row in self.rows if row.reading))

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{count:,} {verdict}" for verdict, count in Counter(row.verdict for row in self.rows).items()
        )
        scale = f"at the {self.scale} scale, with {repr_format.listed(self.engines)}"
        return repr_format.lines(f"Reproduction {self.id}, {scale}", counts or "no rows")

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: each row with its verdict."""
        heads = ("engine", "claim", "at", "mean", "95 % interval", "verdict", "why")
        rows = [(row.engine, row.claim, row.at, *repr_format.interval(row.reproduced, row.ci95_low, row.ci95_high, ""),
                 row.verdict, row.why) for row in self.rows]  # fmt: skip
        return repr_format.html(repr(self).split("\n")[0], (), heads, rows)

    def merged(self, new: Result) -> Result:
        """Replace rows by another result's of the same engines and interpretations; new ones come last."""
        taken = {**_by_origin(self.rows), **_by_origin(new.rows)}
        return Result(self.id, [row for rows in taken.values() for row in rows])

    def as_dict(self) -> dict[str, Any]:
        """For JSON: rows by engine."""
        rows = {name: [asdict(row) for row in self.rows if row.engine == name] for name in self.engines}
        return {"id": self.id, "scale": self.scale, "engines": rows}

    def write(self, path: Path) -> None:
        """Writes `reproduced.csv`."""
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(_COLUMNS)
            writer.writerows([_text(getattr(row, name)) for name in _COLUMNS] for row in self.rows)

    @staticmethod
    def last(path: Path, entry_id: str) -> Result:
        """Return the result of an entry's last run at full scale; without rows if there is none."""
        return Result.read(path, entry_id) if path.is_file() else Result(entry_id, ())

    @staticmethod
    def read(path: Path, entry_id: str) -> Result:
        """Reads `reproduced.csv`. Raises `InputError` if it is another table."""
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) != _COLUMNS:
                raise InputError(f"{path}: found the columns {reader.fieldnames}; expected {', '.join(_COLUMNS)}")
            return Result(entry_id, [_judged(row) for row in reader])


def _by_origin(rows: Sequence[Judged]) -> dict[tuple[str, str], list[Judged]]:
    found: dict[tuple[str, str], list[Judged]] = {}
    for row in rows:
        found.setdefault((row.engine, row.reading), []).append(row)
    return found


_COLUMNS = tuple(field.name for field in fields(Judged))
_NUMBERS = ("reproduced", "ci95_low", "ci95_high", "perturbed", "perturbed_low", "perturbed_high")


def _text(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _judged(row: Mapping[str, str]) -> Judged:
    numbers = {name: float(row[name]) if row[name] else None for name in _NUMBERS}
    return Judged(**{**row, **numbers, "counts": row["counts"] == "true", "n": int(row["n"])})  # type: ignore[arg-type]


def made_of(entry: Entry, scale: str, lacks: Mapping[str, str | None], mechanisms: Iterable[str] = ()) -> str:
    """Return a SHA-256 of what a result comes of: the program with its engines, the entry's files, what is run of them.

    Of the programs beside it, ns-2, ns-3 and the guest's kernel, it has only whether they are there.
    """
    of = hashlib.sha256(_program())
    names = list(mechanisms)
    for path in _files(entry.folder, () if names else (cases.MECHANISMS,)):
        of.update(path.name.encode() + b"\0" + path.read_bytes())
    there = [engine for engine, lack in lacks.items() if not lack]
    for chosen in ((scale,), there, entry.only, entry.read, names):
        of.update("\0".join(chosen).encode() + b"\1")
    return of.hexdigest()


def current_result(entry: Entry, folder: Path, table: str, made: str) -> Result | None:
    """Return the stored result of a folder, if its inputs and its files are unchanged; else None."""
    try:
        manifest = manifests.read(folder, Kind.REPRODUCTION)
    except (InputError, OSError):  # whoever writes there says what is wrong with the place
        return None
    if manifest.about["reproduction"].get(KEY) != made or manifest.problems():
        return None
    return Result.read(folder / table, entry.id)


@cache
def _program() -> bytes:
    """A digest of the package's files and of its library; the entries have their own."""
    package, of = REPRODUCTIONS.parent, hashlib.sha256()
    for path in sorted(_within(package)):
        of.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    return of.digest()


def _within(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_file():
            yield path
        elif path.name not in MADE and path != REPRODUCTIONS:
            yield from _within(path)


def _files(folder: Path, others: Iterable[str]) -> list[Path]:
    left_out = (*MADE, TEXT, *others)
    return sorted(path for path in folder.iterdir() if path.is_file() and path.name not in left_out)
