"""The result of an entry: judged rows, as a table on disk and in JSON."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ackclock.errors import InputError
from ackclock.gallery.verdict import CONTRADICTS, Row, best, worst

FULL, QUICK = "full", "quick"


@dataclass(frozen=True, slots=True)
class Judged:
    """A row's outcome with one engine: mean and 95 % interval over `n` runs, the verdict and its reason.

    `reading` is the interpretation of the paper that it was run by; empty where there is one only, or none that changes
    it.
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
    decides: bool = False

    @staticmethod
    def of(row: Row, engine: str, unit: str, scale: str, reading: str = "") -> Judged:
        """The outcome of a row."""
        found = row.summary
        numbers = (found.mean, found.ci95_low, found.ci95_high, found.n)
        judged = (row.verdict, row.why(unit), not row.aside, scale)
        return Judged(engine, row.claim, row.at, *numbers, *judged, reading, row.decides)


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
        """The verdict of the best interpretation that the paper's own figures do not refute; without any, of all rows.

        If they refute every interpretation that was measured, none of them is what the paper did: contradicts.
        """
        left = self._left()
        return best(left.values()) if left else CONTRADICTS

    @property
    def counting(self) -> list[Judged]:
        """The rows that count: of the interpretation that gives the verdict, if there are any.

        If all of them are refuted, of the first.
        """
        left = self._left()
        names = [name for name, verdict in left.items() if verdict == self.verdict] or self.readings
        return [row for row in self._of(names[0] if names else "") if row.counts]

    def _left(self) -> dict[str, str]:
        """The verdict of each interpretation that is not refuted."""
        every = {name: self.of_reading(name) for name in self.readings or ("",)}
        return {name: verdict for name, verdict in every.items() if not self.refuted(name)}

    @property
    def readings(self) -> list[str]:
        """The interpretations that rows are of, in their order."""
        return list(dict.fromkeys(row.reading for row in self.rows if row.reading))

    def of_reading(self, name: str) -> str:
        """An interpretation's verdict: the worst of its rows that count, with those that are of every one."""
        return worst(row.verdict for row in self._of(name) if row.counts)

    def refuted(self, name: str) -> list[Judged]:
        """The rows by which the paper's own figures contradict an interpretation. Without any, none."""
        found = [row for row in self._of(name) if row.decides and row.verdict == CONTRADICTS]
        return found if self.readings else []

    def _of(self, name: str) -> list[Judged]:
        return [row for row in self.rows if row.reading in ("", name)]

    def merged(self, new: Result) -> Result:
        """Replace rows by another result's of the same engines and interpretations; new ones come last."""
        taken = {**_by_origin(self.rows), **_by_origin(new.rows)}
        return Result(self.id, [row for rows in taken.values() for row in rows])

    def as_dict(self) -> dict[str, Any]:
        """For JSON: rows by engine."""
        rows = {name: [asdict(row) for row in self.rows if row.engine == name] for name in self.engines}
        told: dict[str, Any] = {"id": self.id, "scale": self.scale, "verdict": self.verdict}
        if self.readings:
            told["readings"] = {name: self._summary(name) for name in self.readings}
        return {**told, "engines": rows}

    def _summary(self, name: str) -> dict[str, Any]:
        return {"verdict": self.of_reading(name), "refuted_by": [row.claim for row in self.refuted(name)]}

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
        """Reads `reproduced.csv`, also without the columns of readings. Raises `InputError` if it is another table."""
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) not in (_COLUMNS, _BEFORE_READINGS):
                raise InputError(f"{path}: found the columns {reader.fieldnames}; expected {', '.join(_COLUMNS)}")
            return Result(entry_id, [_judged(row) for row in reader])


def _by_origin(rows: Sequence[Judged]) -> dict[tuple[str, str], list[Judged]]:
    found: dict[tuple[str, str], list[Judged]] = {}
    for row in rows:
        found.setdefault((row.engine, row.reading), []).append(row)
    return found


_COLUMNS = tuple(field.name for field in fields(Judged))

#: Tables that were written before there were readings lack these, and are read as if they had none.
_BEFORE_READINGS = tuple(name for name in _COLUMNS if name not in ("reading", "decides"))


def _text(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _judged(row: Mapping[str, str]) -> Judged:
    numbers = {name: float(row[name]) if row[name] else None for name in ("reproduced", "ci95_low", "ci95_high")}
    marks = {"counts": row["counts"] == "true", "decides": row.get("decides") == "true"}
    return Judged(**{**row, **numbers, **marks, "n": int(row["n"])})  # type: ignore[arg-type]
