"""Gaps in the clock of this host: times in which nothing ran here, and why.

`crates/ackclock-linux` (`gaps`) looks at the monotonic and the wall clock, at the processor's counter and at what the
kernel counts, once in a millisecond. Written down, the gaps are the log that `ackclock capture --clock-log` joins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ackclock import _core
from ackclock.capture import clock
from ackclock.dataset import folders
from ackclock.dataset.tables import CLOCK_GAPS, Column
from ackclock.doctor.settings import Finding
from ackclock.errors import AckclockError
from ackclock.figures import numbers
from ackclock.system.files import check_name

#: Period of the watch, and the delay beyond it that makes a gap, in seconds.
PERIOD_S, MIN_S = 1e-3, 1e-3

#: Longest uninterruptible step of the watch, in seconds.
AT_A_TIME_S = 0.1

#: Gaps are worth a word if one is so long, or all are such a share of the time.
WORTH_S, WORTH = 0.01, 0.01

#: Kind of gap → what it was, and what to do about it.
EXPLANATIONS: Mapping[str, tuple[str, str]] = {
    "scheduler": (
        "its kernel ran something else",
        "Give the measuring or sending process a CPU of its own (taskset, chrt, a cgroup), or reduce the load.",
    ),
    "steal": ("the hypervisor ran other guests", "Ask for processors that are not shared with other guests."),
    "stop": ("the process was stopped", "Find out who sends SIGSTOP: job control, a debugger, a checkpoint."),
    "pause": (
        "the machine itself was paused",
        "Look for snapshots, migrations and suspensions at that time; on a shared machine, for its load.",
    ),
    "step": ("somebody set the clock", "Let the clock be slewed (chrony's makestep only at the start)."),
}

#: Columns of the log; of all that is known of a gap.
LOG_COLUMNS = ("start_s", *clock.COLUMNS)
GAP_COLUMNS = (*LOG_COLUMNS, "waited_s", "stolen_s", "stepped_s", "clock_stopped_s")


class WatchError(AckclockError):
    """The clock cannot be watched here."""


@dataclass(frozen=True, slots=True)
class Stalls:
    """Gaps (`start_s` on the monotonic clock, `wall_s` since 1970) in the time watched."""

    gaps: pl.DataFrame
    first_s: float
    first_wall_s: float
    last_s: float
    last_wall_s: float
    counter: bool

    @property
    def watched_s(self) -> float:
        """Return the length of the observation in seconds."""
        return self.last_s - self.first_s

    def by_class(self) -> dict[str, dict[str, Any]]:
        """Return for each kind of gap the count, the total and the longest."""
        rows = self.gaps.group_by("class").agg(
            count=pl.len(), total_s=pl.col("duration_s").sum(), longest_s=pl.col("duration_s").max()
        )
        batches = {row.pop("class"): row for row in rows.iter_rows(named=True)}
        return {name: batches[name] for name in CLOCK_GAPS if name in batches}

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "watched_s": self.watched_s,
            "period_s": PERIOD_S,
            "least_s": MIN_S,
            "counter": self.counter,
            "classes": self.by_class(),
            "gaps": list(self.gaps.iter_rows(named=True)),
        }

    def columns(self) -> dict[str, Column]:
        """Return the rows of the table `clock_gaps`."""
        rows = self.gaps.with_columns(time_s=pl.col("start_s") - self.first_s).drop("start_s")
        return {name: rows[name].to_list() if name == "class" else rows[name].to_numpy() for name in rows.columns}

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each kind of gap that matters, the worst first."""
        classes = self.by_class()
        worth = sorted(filter(self._is_worth, classes), key=lambda name: -classes[name]["total_s"])
        yield from (self._of(name, classes[name]) for name in worth)
        if not worth:
            yield self._sound(max((batches["longest_s"] for batches in classes.values()), default=0.0))

    def _is_worth(self, name: str) -> bool:
        batches = self.by_class()[name]
        return bool(batches["longest_s"] >= WORTH_S or batches["total_s"] >= WORTH * self.watched_s)

    def _of(self, name: str, batches: Mapping[str, Any]) -> Finding:
        was, advice = EXPLANATIONS[name]
        times = "once" if batches["count"] == 1 else f"{batches['count']} times"
        total, longest = (numbers.value(batches[key], "s") for key in ("total_s", "longest_s"))
        share = numbers.value(batches["total_s"] / self.watched_s, "share")
        sentence = (
            f"The clock had a gap {times}, {total} in all ({share} of the time), because {was}; the longest: {longest}."
        )
        return Finding("stalls", sentence, {"class": name, **batches}, advice, bad=True)

    def _sound(self, longest_s: float) -> Finding:
        sentence = f"the longest gap was {numbers.value(longest_s, 's')}" if longest_s else "no gap was found"
        return Finding("stalls", f"The clock ran as it should: {sentence}.", {"watched_s": self.watched_s})


def watch(for_s: float, report_progress: Callable[[float], object] = lambda _: None) -> Stalls:
    """Watch the clock for a time in seconds; `report_progress` is called with the share done. Raises `WatchError`."""
    if not hasattr(_core, "ClockWatch"):
        raise WatchError("the clock can be watched on Linux only")
    try:
        watching = _core.ClockWatch(period_s=PERIOD_S, least_s=MIN_S)
    except OSError as error:
        raise WatchError(f"the clock cannot be watched: {error}") from error
    (first_s, first_wall_s), batches = watching.clocks_s, []
    while (over_s := watching.clocks_s[0] - first_s) < for_s:
        report_progress(over_s / for_s)
        batches.append(pl.DataFrame(watching.watch(min(AT_A_TIME_S, for_s - over_s)), schema=_schema()))
    gaps = pl.concat(batches) if batches else pl.DataFrame(schema=_schema())
    return Stalls(gaps, first_s, first_wall_s, *watching.clocks_s, watching.has_counter)


def _schema() -> dict[str, pl.DataType]:
    return {name: pl.String() if name == "class" else pl.Float64() for name in GAP_COLUMNS}


def write_log(batches: Stalls, path: Path) -> Path:
    """Write the log that `ackclock capture --clock-log` reads; its first and last rows give the time it covers.

    An earlier log is replaced, whole or not at all. Raises `InputError` if it cannot be written.
    """
    place = check_name(path)
    with folders.write_errors(place):
        part = place.with_name(f".{place.name}.part")
        _log(batches).write_csv(part, float_precision=6)
        part.replace(place)
    return place


def _log(batches: Stalls) -> pl.DataFrame:
    first, last = _edge(batches.first_s, batches.first_wall_s), _edge(batches.last_s, batches.last_wall_s)
    return pl.concat([first, batches.gaps.select(LOG_COLUMNS), last])


def _edge(start_s: float, wall_s: float) -> pl.DataFrame:
    """Return a row of duration 0, which marks that the host was watched then."""
    row = {"start_s": start_s, "wall_s": wall_s, "duration_s": 0.0, "class": None}
    return pl.DataFrame([row], schema_overrides={"class": pl.String})
