"""Log of gaps in a host's clock, and the stalls of captures that it explains.

Two forms are read. A table of gaps is CSV with a header; further columns are left alone:

    start_s,wall_s,duration_s,class
    12031.250,1722945600.125,0.480,steal

`wall_s` is when the gap began, in seconds since 1970, `duration_s` how long it was, `class` one of `CLOCK_GAPS`.
`start_s`, the same on a clock that nobody sets, may be missing. A row of duration 0 is no gap: it gives that the host
was watched then, so a first and a last one tell which time the log is of; it has no class, or is a `step` that set the
clock back. Rows are in the order of time, but for what follows a `step`.

A log of the clock itself has a line a second that begins with the time, in seconds since 1970 (`date +%s.%N`): where a
line is late, the host did not run. Nothing tells why.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.dataset.tables import CLOCK_GAPS
from ackclock.errors import InputError
from ackclock.system import files as regular
from ackclock.system.files import readable

#: Class of a late line of a clock log.
LATE = "scheduler"

#: The class of a clock that was set; if backwards, of no length.
STEP = "step"

#: Columns of a table of gaps that must be there.
COLUMNS = ("wall_s", "duration_s", "class")

#: A line of a clock log is due after a second; one that is later by less is not late.
DUE_S, LATE_S = 1.0, 0.1

#: Latest plausible time in seconds since 1970 (the year 5138), and no gap is longer than a year.
LATEST_S, LONGEST_S = 1e11, 366 * 86400.0

#: A gap explains a stall of which it takes this share.
EXPLAINS = 0.5

#: Confidence in a log's class for a stall half of which, or all of which, is within the gap.
CONFIDENCE = (0.9, 0.99)

EXPECTED = (
    f"a log of a host's clock: CSV with the header start_s,{','.join(COLUMNS)}, or a line a second that begins with "
    "the seconds since 1970"
)

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ClockLog:
    """Gaps in the order of time, which do not overlap, and the time that was watched; in seconds since 1970."""

    path: Path
    begin_s: Floats
    end_s: Floats
    classes: npt.NDArray[np.uint8]
    first_s: float
    last_s: float

    def within(self, begin_s: Floats, end_s: Floats) -> Floats:
        """Return how many seconds of each interval were gaps."""
        return self._until(end_s) - self._until(begin_s)

    def _until(self, time_s: Floats) -> Floats:
        edges_s = np.ravel(np.column_stack([self.begin_s, self.end_s]))
        lengths_s = np.cumsum(self.end_s - self.begin_s)
        spent_s = np.ravel(np.column_stack([lengths_s - (self.end_s - self.begin_s), lengths_s]))
        return np.interp(time_s, edges_s, spent_s) if len(edges_s) else np.zeros_like(time_s)

    def explains(
        self, begin_s: Floats, duration_s: Floats
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.uint8], Floats]:
        """Return the stalls that coincide with gaps: their indices, classes (indices of `CLOCK_GAPS`), confidence."""
        share = self.within(begin_s, begin_s + duration_s) / np.maximum(duration_s, 1e-9)
        which = np.flatnonzero(share > EXPLAINS)
        middle_s = begin_s[which] + duration_s[which] / 2  # in the gap that takes more than half
        gap = np.searchsorted(self.begin_s, middle_s, side="right") - 1
        least, most = CONFIDENCE
        sure = least + (most - least) * (np.minimum(share[which], 1.0) - EXPLAINS) / (1 - EXPLAINS)
        return which, self.classes[np.maximum(gap, 0)], sure

    def check(self, first_s: float, last_s: float) -> None:
        """Raise `InputError` unless the log overlaps the time of a capture."""
        if self.first_s > last_s or self.last_s < first_s:
            raise InputError(
                f"{readable(self.path)}: found a log from {_moment(self.first_s)} to {_moment(self.last_s)}; expected "
                f"one of the capture's time, {_moment(first_s)} to {_moment(last_s)}"
            )


def read(path: Path | str) -> ClockLog:
    """Read a log of either form. Raises `InputError` for anything else."""
    place = Path(path)
    words = _header(place).replace(",", " ").replace(";", " ").split()
    if words and _is_number(words[0]):
        return _of_lines(place, _table(place, header=False))
    return _of_gaps(place, _table(place, header=True))


def _header(path: Path) -> str:
    _check_regular(path)
    try:
        with path.open(encoding="utf-8") as file:
            return file.readline()
    except (OSError, UnicodeDecodeError) as error:
        raise _rejected(path, "a file that is no text") from error


def _check_regular(path: Path) -> None:
    try:
        regular.check(path)
    except regular.UnreadableError as error:
        raise _rejected(path, error.found) from error


def _table(path: Path, *, header: bool) -> pl.DataFrame:
    separator = "," if header else "\n"
    try:
        return pl.read_csv(path, has_header=header, separator=separator, infer_schema=False, quote_char=None)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _rejected(path, "a file that is no table") from error


def _of_lines(path: Path, lines: pl.DataFrame) -> ClockLog:
    times_s = _numbers(path, lines.to_series(0).str.extract(r"^\s*([^\s,;]+)"), "the seconds since 1970", 1)
    before_s, after_s = times_s[:-1], times_s[1:]
    _check_order(path, times_s, "the seconds since 1970", 1)
    late = after_s - before_s > DUE_S + LATE_S
    kinds = np.full(int(late.sum()), CLOCK_GAPS.index(LATE), np.uint8)
    return _ordered(path, before_s[late], after_s[late], kinds, times_s)


def _of_gaps(path: Path, rows: pl.DataFrame) -> ClockLog:
    _check_rows(path, rows)
    begin_s = _numbers(path, rows["wall_s"], "wall_s, in seconds")
    duration_s = _numbers(path, rows["duration_s"], "duration_s, in seconds")
    classes = rows["class"].str.strip_chars().fill_null("")
    _check_order(path, begin_s, "wall_s", 2, may_fall=(classes == STEP).to_numpy())
    _check_lengths(path, rows, duration_s, classes)
    gaps = duration_s > 0
    _check_classes(path, rows, gaps, classes)
    words = classes.filter(pl.Series(gaps))
    kinds = words.cast(pl.Enum(CLOCK_GAPS)).to_physical().to_numpy().astype(np.uint8)
    watched_s = np.concatenate([begin_s, begin_s + duration_s])
    return _ordered(path, begin_s[gaps], (begin_s + duration_s)[gaps], kinds, watched_s)


def _check_rows(path: Path, rows: pl.DataFrame) -> None:
    if missing := [name for name in COLUMNS if name not in rows.columns]:
        raise _rejected(path, f"no column {missing[0]}")
    if not rows.height:
        raise _rejected(path, "no rows")


def _check_classes(path: Path, rows: pl.DataFrame, gaps: npt.NDArray[np.bool_], classes: pl.Series) -> None:
    unknown = gaps & ~classes.is_in(CLOCK_GAPS).to_numpy()
    if wrong := np.flatnonzero(unknown).tolist():
        result = readable(str(rows["class"][wrong[0]]))
        raise _wrong(path, wrong[0] + 2, "class", result, f"one of {', '.join(CLOCK_GAPS)}")


def _check_order(
    path: Path, times_s: Floats, what: str, first_line: int, may_fall: npt.NDArray[np.bool_] | None = None
) -> None:
    """Reject times that no clock shows, and times that go back where no step has set the clock."""
    if wrong := np.flatnonzero((times_s < 0) | (times_s > LATEST_S)).tolist():
        result = f"{times_s[wrong[0]]:g}"
        raise _wrong(path, wrong[0] + first_line, what, result, "seconds since 1970")
    if wrong := np.flatnonzero(_falls(times_s, may_fall)).tolist():
        before_s, found_s = times_s[wrong[0] : wrong[0] + 2]
        result = f"{_moment(found_s)} behind {_moment(before_s)}"
        raise _wrong(path, wrong[0] + 1 + first_line, what, result, "rows in the order of time")


def _falls(times_s: Floats, may_fall: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_]:
    """Return where a time precedes the one before it and may not."""
    falls = np.diff(times_s) < 0
    return falls if may_fall is None else falls & ~may_fall[:-1]


def _wrong(path: Path, line: int, what: str, result: str, expected: str) -> InputError:
    return InputError(f"{readable(path)}:{line}: {what}: found {result}; expected {expected}")


def _check_lengths(path: Path, rows: pl.DataFrame, duration_s: Floats, classes: pl.Series) -> None:
    no_gap = (duration_s == 0) & classes.is_in(["", STEP]).to_numpy()
    if wrong := np.flatnonzero(~no_gap & ((duration_s <= 0) | (duration_s > LONGEST_S))).tolist():
        result = readable(str(rows["duration_s"][wrong[0]]))
        expected = f"more than 0 and at most {LONGEST_S:.0f}, in seconds, or 0 without a class or of a step"
        raise _wrong(path, wrong[0] + 2, "duration_s", result, expected)


def _ordered(path: Path, begin_s: Floats, end_s: Floats, kinds: npt.NDArray[np.uint8], watched_s: Floats) -> ClockLog:
    """Sort the gaps by time; an overlapping gap begins where the one before it ends."""
    order = np.argsort(begin_s, kind="stable")
    ends_s = np.maximum.accumulate(end_s[order])
    begins_s = np.maximum(begin_s[order], np.concatenate([[-np.inf], ends_s[:-1]]))
    return ClockLog(path, begins_s, ends_s, kinds[order], float(watched_s.min()), float(watched_s.max()))


def _numbers(path: Path, column: pl.Series, expected: str, first_line: int = 2) -> Floats:
    values = column.str.strip_chars().cast(pl.Float64, strict=False).to_numpy()
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"{readable(path)}:{row + first_line}: found {readable(str(column[row]))}; expected {expected}"
        )
    return values


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _rejected(path: Path, result: str) -> InputError:
    return InputError(f"{readable(path)}: found {result}; expected {EXPECTED}")


def _moment(time_s: float) -> str:
    return f"{time_s:.3f} s"
