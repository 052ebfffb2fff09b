"""Silences with causes of which the truth is known (`impose` puts them into captures), beside what an analysis says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from ackclock.reproductions.pcap import Record

#: The analysis's classes, by cause. A handshake that is not answered is the transport's too.
CLASSES = {
    "host": {"host"},
    "machine": {"machine"},
    "capture": {"capture_loss"},
    "receiver": {"receiver"},
    "application": {"application"},
    "transport": {
        "timeout",
        "tail_loss",
        "double_retransmission",
        "small_window",
        "continuous_loss",
        "ack_delay",
        "handshake",
    },
}

#: A longer pause is one of the flow's own.
REST_NS = 150_000_000

#: No time at all.
NOTHING = (-1.0, -1.0)

#: Flow → when its silence begins and ends, in seconds of the run; None: it is not looked at.
Windows: TypeAlias = dict[int, tuple[float, float] | None]


def resting(records: Iterable[Record], at_ns: int) -> set[int]:
    """Flows that are silent by themselves at a time, or not yet at work: what is imposed then is not all of it."""
    before: dict[int, int] = {}
    after: dict[int, int] = {}
    for record in records:
        if record.time_ns < at_ns:
            before[record.flow] = record.time_ns
        else:
            after.setdefault(record.flow, record.time_ns)
    near = {flow for flow in before.keys() & after.keys() if after[flow] - before[flow] < REST_NS}
    return (before.keys() | after.keys()) - near


def judged(
    answers: Any, imposed: Mapping[str, Windows], otherwise: str, origin_s: float = 0.0
) -> Iterator[tuple[str, str]]:
    """Cause and class of each silence that answers tell of; a class is "" of one that was imposed and not found.

    A silence that is mostly in a window of `imposed` has its cause, else it is `otherwise`. Flows that a cause does not
    look at are left out. `origin_s` is when the capture begins, in seconds of the run.
    """
    for flow in answers["flows"]:
        number = _number(flow["client"])
        windows = {cause: of_flows.get(number, NOTHING) for cause, of_flows in imposed.items()}
        known = {cause: window for cause, window in windows.items() if window is not None}
        if len(known) < len(windows):
            continue
        found = [(_cause(stall, known, origin_s) or otherwise, stall["class"]) for stall in flow["stalls"]]
        yield from found
        told = {cause for cause, _ in found}
        yield from ((cause, "") for cause, window in known.items() if window != NOTHING and cause not in told)


def _cause(stall: Any, windows: Mapping[str, tuple[float, float]], origin_s: float) -> str | None:
    """The cause in whose window most of a silence lies."""
    begin_s = stall["start_s"] + origin_s
    for cause, (first_s, last_s) in windows.items():
        within_s = min(begin_s + stall["duration_s"], last_s + 0.1) - max(begin_s, first_s)
        if within_s > 0.5 * stall["duration_s"]:
            return cause
    return None


def _number(client: str) -> int:
    """A flow's, from its sender's address."""
    _, high, middle, low = map(int, client.split(":", maxsplit=1)[0].split("."))
    return (high % 128 << 16 | middle << 8 | low) - 1
