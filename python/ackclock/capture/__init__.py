"""Analyse packet captures: the TCP connections in them become the dataset that engines write; `udp` has the rest.

`crates/ackclock-analysis` reads and analyses; its rows become tables (`tables`), and its findings a JSON object
(`analysis`), which needs no tables and is faster alone. Called, the package is `read`: `ackclock.capture("slow.pcap")`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ackclock import _core, repr_format
from ackclock.capture import congestion
from ackclock.capture.analysis import AT_A_TIME, MAX_FLOWS, summarise_capture
from ackclock.errors import InputError
from ackclock.input import arguments
from ackclock.input.arguments import checked, one_or_several, optional
from ackclock.system import files as regular
from ackclock.system.callable_package import make_callable
from ackclock.system.files import readable

if TYPE_CHECKING:
    from ackclock.capture.clock import ClockLog
    from ackclock.dataset import Dataset

#: Captures: a path, or several.
Files: TypeAlias = "Path | str | Sequence[Path | str]"

#: Standard input, among the files.
STANDARD_INPUT = "-"

#: A flow is sampled at most once in this time, in seconds.
INTERVAL_S = 0.1

#: Columns of a flow in a notebook, with their units.
SHOWN = (("bytes", "bytes"), ("goodput_bps", "bit/s"), ("rtt_mean_s", "s"), ("segments_lost", ""))

#: Arguments that select captures, and which of their packets.
READ = {
    "files": one_or_several(arguments.PATH, "paths of captures"),
    "expression": arguments.TEXT,
    "clock_log": optional(arguments.PATH),
}


@dataclass(frozen=True, slots=True)
class CaptureSummary:
    """Analysis of captures without tables: the JSON object (see `analysis`), and why files could not be read."""

    analysis: Mapping[str, Any]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Captured:
    """Analysis of captures with its tables."""

    data: Dataset
    analysis: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return repr_format.lines("Captured", self.analysis["summary"], *self.notes)

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the summary, and the flows with the most data."""
        flows = sorted(self.analysis["flows"], key=lambda flow: -(flow["bytes"] or 0))[: repr_format.MAX_ROWS]
        heads = ("client", "server", "sender", "data", "goodput", "RTT", "lost")
        rows = [[flow[key] for key in heads[:3]] + [repr_format.value(flow[key], unit) for key, unit in SHOWN]
                for flow in flows]  # fmt: skip
        return repr_format.html("Captured", [self.analysis["summary"], *self.notes], heads if rows else (), rows)


@checked(**READ)
def summarise(files: Files, expression: str = "", *, clock_log: Path | str | None = None) -> CaptureSummary:
    """Return the analysis of `read` without its tables: several times as fast where there are many connections.

    Raises:
        InputError: as for `read`.
    """
    capture = _opened(files, expression, interval_s=0.0, events=False)
    log = _log(clock_log)
    while capture.skim(AT_A_TIME):
        pass
    notes = _checked(capture, log)
    return CaptureSummary(summarise_capture(capture, congestion.rankings(capture), log), notes)


@checked(
    **READ,
    interval_s=arguments.number(1e-6, expected="a time in seconds"),
    segments=arguments.FLAG,
    command=optional(arguments.TEXT),
)
def read(
    files: Files,
    expression: str = "",
    *,
    interval_s: float = INTERVAL_S,
    segments: bool = False,
    clock_log: Path | str | None = None,
    command: str | None = None,
) -> Captured:
    """Analyse captures (pcap or pcapng, also as gz, zst or xz; `-` is standard input) as one, in the order of time.

    Several are files of one vantage point: `match.read` joins two that have the same packets.

    Args:
        files: the captures, or one.
        expression: only these packets, in the language of pcap-filter(7).
        interval_s: flows are sampled at most once in this time, in seconds.
        segments: also the fate of each copy of each data segment and each acknowledgement, as the tables `segments`
            and `acknowledgements`.
        clock_log: a log of gaps in the clock of the host (see `clock`): stalls that coincide with one have its class.
        command: for the manifest.

    Raises:
        InputError: nothing could be read, the expression is none, the log is none of the captures' time, or the files
            have the same packets (`vantage_points`).
    """
    from ackclock.capture import tables

    capture = _opened(files, expression, interval_s=interval_s, segments=segments)
    log = _log(clock_log)
    spool = tables.spooled(capture, interval_s, log)
    notes = _checked(capture, log)
    rankings = congestion.rankings(capture)
    told = summarise_capture(capture, rankings, log)
    return Captured(tables.dataset(spool, capture, rankings, told, command), told, notes)


@checked(folder=arguments.PATH, clock_log=optional(arguments.PATH))
def of_result(folder: Path | str, clock_log: Path | str | None = None) -> Captured:
    """Return the analysis that a result's folder holds. Raises `InputError` if it is none, and for a clock log."""
    from ackclock.dataset import Dataset, result_kind
    from ackclock.dataset.result_kind import Kind

    if clock_log is not None:
        raise InputError(
            f"--clock-log: found {readable(folder)}, a result; expected captures, which a log is joined with"
        )
    data = Dataset.read(folder)
    if "capture" not in data.manifest:
        pcap = next(iter(sorted(Path(folder, "captures").glob("*.pcap"))), None)
        example = f", or one of its captures, such as {readable(pcap)}" if pcap else ""
        raise InputError(
            f"{readable(folder)}: found {result_kind.of(data.manifest).value}; expected {Kind.CAPTURE.value}{example}"
        )
    return Captured(data, data.manifest["capture"])


def _opened(files: Files, expression: str, **options: Any) -> _core.Capture:
    files = [files] if isinstance(files, (str, Path)) else files
    if not files:
        raise InputError("files: found none; expected paths of captures")
    names = [str(path) for path in files]
    if twice := next((name for place, name in enumerate(names) if name in names[:place]), None):
        raise InputError(f"files: found {readable(twice)} twice; expected each once")
    for path in map(Path, files):
        if str(path) != STANDARD_INPUT:
            _check(path)
    try:
        capture = _core.Capture(list(files), expression, max_connections=MAX_FLOWS, **options)
    except ValueError as error:
        from ackclock.input.fields import shown

        raise InputError(f"--filter {shown(expression)}: {error}") from error
    if len(names) > 1 and STANDARD_INPUT not in names:
        from ackclock.capture import vantage_points

        vantage_points.check([Path(name) for name in names], expression)
    return capture


def _check(path: Path) -> None:
    try:
        regular.check(path)
    except regular.UnreadableError as error:
        raise InputError(f"{readable(path)}: found {error.found}; expected a capture (pcap or pcapng)") from error


def _log(path: Path | str | None) -> ClockLog | None:
    if path is None:
        return None
    from ackclock.capture import clock

    return clock.read(path)


def _checked(capture: _core.Capture, log: ClockLog | None) -> tuple[str, ...]:
    """Return why files, or the rest of them, could not be read, and warnings about the analysis."""
    result = capture.files()
    notes = tuple(f"{readable(file['path'])}: {file['note']}" for file in result if file["note"])
    if all(file["refused"] for file in result):
        raise InputError("\n".join(notes))
    if log is not None:
        origin_s = 1e-9 * (capture.origin_ns or 0)
        log.check(origin_s, origin_s + capture.duration_s)
    return notes + tuple(_doubts(capture, result))


def _doubts(capture: _core.Capture, files: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield warnings: packets without times or with impossible ones, connections cut short for want of memory."""
    for file in files:
        if untimed := file["without_time"]:
            those = f"{untimed:,} of {file['packets']:,} packets"
            yield f"{readable(file['path'])}: {those} have no time; each takes that of the packet before it"
    if far := capture.clamped_timestamps:
        those = "1 segment is" if far == 1 else f"{far:,} segments are"
        yield f"{those} 4.5 years or more from the first by the clock, and counted as exactly that far"
    if cut := capture.evicted_connections:
        yield (
            f"{cut:,} connections were ended before their time, for want of memory, and may count as several; "
            "--filter takes some addresses or ports only"
        )


make_callable(__name__, __name__, "read")
