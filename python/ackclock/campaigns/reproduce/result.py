"""The result of an entry: judged rows, as a table on disk and in JSON."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ackclock.campaigns.reproduce.verdict import Row, worst
from ackclock.errors import InputError

FULL, QUICK = "full", "quick"


@dataclass(frozen=True, slots=True)
class Judged:
    """A row's outcome with one engine: mean and 95 % interval over `n` runs, the verdict and its reason."""

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

    @staticmethod
    def of(row: Row, engine: str, unit: str, scale: str) -> Judged:
        """The outcome of a row."""
        found = row.summary
        numbers = (found.mean, found.ci95_low, found.ci95_high, found.n)
        return Judged(engine, row.claim, row.at, *numbers, row.verdict, row.why(unit), not row.aside, scale)


@dataclass(frozen=True, slots=True)
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
    def verdict(self) -> str:
        """Over all: the worst of the rows that count."""
        return worst(row.verdict for row in self.rows if row.counts)

    def beside(self, new: Result) -> Result:
        """With another result's rows in place of its own of the same engines; those of new engines come last."""
        taken = {**_by_engine(self.rows), **_by_engine(new.rows)}
        return Result(self.id, [row for rows in taken.values() for row in rows])

    def as_dict(self) -> dict[str, Any]:
        """For JSON: rows by engine."""
        rows = {name: [asdict(row) for row in self.rows if row.engine == name] for name in self.engines}
        return {"id": self.id, "scale": self.scale, "verdict": self.verdict, "engines": rows}

    def write(self, path: Path) -> None:
        """Writes `reproduced.csv`."""
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(_COLUMNS)
            writer.writerows([_text(getattr(row, name)) for name in _COLUMNS] for row in self.rows)

    @staticmethod
    def read(path: Path, entry_id: str) -> Result:
        """Reads `reproduced.csv`. Raises `InputError` if it is another table."""
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) != _COLUMNS:
                raise InputError(f"{path}: found the columns {reader.fieldnames}; expected {', '.join(_COLUMNS)}")
            return Result(entry_id, [_judged(row) for row in reader])


def _by_engine(rows: Sequence[Judged]) -> dict[str, list[Judged]]:
    found: dict[str, list[Judged]] = {}
    for row in rows:
        found.setdefault(row.engine, []).append(row)
    return found


_COLUMNS = tuple(field.name for field in fields(Judged))


def _text(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _judged(row: dict[str, str]) -> Judged:
    numbers = {name: float(row[name]) if row[name] else None for name in ("reproduced", "ci95_low", "ci95_high")}
    return Judged(**{**row, **numbers, "n": int(row["n"]), "counts": row["counts"] == "true"})  # type: ignore[arg-type]
