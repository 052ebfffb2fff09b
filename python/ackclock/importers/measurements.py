"""Measurements before they become a dataset: flows and queues with samples; None is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any, TypeVar

import numpy as np

from ackclock import _core
from ackclock.dataset import Dataset, Spool
from ackclock.dataset.tables import TABLES, Column
from ackclock.errors import InputError
from ackclock.system.files import printable

#: The congestion control of a flow of which none is known, and of one that has none.
UNKNOWN, DATAGRAMS = "unknown", "udp"

#: Most samples of all files together.
MAX_SAMPLES = 20_000_000


@dataclass(frozen=True, slots=True)
class FlowSample:
    """One flow at one instant: windows in segments, times in seconds, bytes since its first sample."""

    time_s: float
    cwnd: float | None = None
    ssthresh: float | None = None
    srtt_s: float | None = None
    in_flight: float | None = None
    delivered_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class QueueSample:
    """One queue at one instant; packets that left, were dropped or marked count since the sample before."""

    time_s: float
    backlog_p: float | None = None
    backlog_bytes: float | None = None
    departures_p: float | None = None
    drops_p: float | None = None
    marks_p: float | None = None


Sample = TypeVar("Sample", FlowSample, QueueSample)


@dataclass(frozen=True)
class Flow:
    """A transfer. `group` names it and those like it; `counts` are columns of `flows`.

    `direction` is "up" or "down", as the measuring host sees the data.
    """

    group: str
    direction: str | None = None
    samples: Sequence[FlowSample] = ()
    congestion: str = UNKNOWN
    source: str | None = None
    destination: str | None = None
    start_s: float | None = None
    end_s: float | None = None
    base_rtt_s: float | None = None
    counts: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Queue:
    """A queue and its qdisc, in tc's terms."""

    name: str
    discipline: str
    samples: Sequence[QueueSample]
    bottleneck: bool


@dataclass(frozen=True)
class Run:
    """One measurement. `began_s` is its time 0 in seconds since 1970, if that is known.

    `loaded_s` is the part in which data flowed, if that is less than the whole; `metrics` are those that the program
    itself computed; `notes` are warnings.
    """

    flows: Sequence[Flow] = ()
    queues: Sequence[Queue] = ()
    began_s: float | None = None
    name: str | None = None
    loaded_s: tuple[float, float] | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def seconds(ms: float | None) -> float | None:
    """Convert milliseconds to seconds; None stays None."""
    return None if ms is None else 1e-3 * ms


def merge(first: Run, second: Run) -> Run:
    """Merge two logs of the same time; both must have a start time."""
    begin_s = min(first.began_s or 0.0, second.began_s or 0.0)
    parts = [_later(run, (run.began_s or 0.0) - begin_s) for run in (first, second)]
    return Run([f for run in parts for f in run.flows], [q for run in parts for q in run.queues], begin_s)


def dataset(runs: Sequence[Run], files: Sequence[Mapping[str, Any]], command: str) -> Dataset:
    """Return the dataset of some runs; `files` are their sources. Raises `InputError` for too many samples."""
    _check_count(runs, files)
    groups = list(dict.fromkeys(flow.group for run in runs for flow in run.flows))
    queues = {queue.name: queue for run in runs for queue in run.queues}
    plan = _plan(runs, groups, queues.values(), printable(PurePath(files[0]["path"]).name))
    notes = [note for run in runs for note in run.notes]
    imported = {"files": list(files), "began_s": [run.began_s for run in runs], **({"notes": notes} if notes else {})}
    numbered = [{"run": number, **({"metrics": run.metrics} if run.metrics else {})} for number, run in enumerate(runs)]
    about = {
        "ackclock": _core.version,
        "runs": numbered,
        **({"command": command} if command else {}),
        "plan": plan,
        "imported": imported,
    }
    result = [_of_run(number, _tables(run, groups, list(queues)), about) for number, run in enumerate(runs)]
    return replace(Dataset.concat(result), manifest=about)


def _check_count(runs: Sequence[Run], files: Sequence[Mapping[str, Any]]) -> None:
    of_flows = sum(len(flow.samples) for run in runs for flow in run.flows)
    of_queues = sum(len(queue.samples) for run in runs for queue in run.queues)
    if (count := of_flows + of_queues) > MAX_SAMPLES:
        raise InputError(f"{files[0]['path']}: found {count} samples; expected at most {MAX_SAMPLES}")


def _of_run(number: int, tables: Mapping[str, Mapping[str, Column]], about: Mapping[str, Any]) -> Dataset:
    spool = Spool(run=number)
    for table, columns in tables.items():
        spool.append(table, columns)
    return spool.dataset({**about, "runs": [about["runs"][number]]})


def _later(run: Run, by_s: float) -> Run:
    flows = [_flow_later(flow, by_s) for flow in run.flows]
    queues = [replace(queue, samples=_samples_later(queue.samples, by_s)) for queue in run.queues]
    return replace(run, flows=flows, queues=queues)


def _flow_later(flow: Flow, by_s: float) -> Flow:
    start_s, end_s = (None if time_s is None else time_s + by_s for time_s in (flow.start_s, flow.end_s))
    return replace(flow, samples=_samples_later(flow.samples, by_s), start_s=start_s, end_s=end_s)


def _samples_later(samples: Sequence[Sample], by_s: float) -> Sequence[Sample]:
    return [replace(one, time_s=one.time_s + by_s) for one in samples] if by_s else samples


def _plan(runs: Sequence[Run], groups: Sequence[str], queues: Iterable[Queue], default: str) -> dict[str, Any]:
    """Return the known parts of a plan."""
    name = next((run.name for run in runs if run.name), default)
    links = [
        {
            "name": queue.name,
            "queue": {"discipline": queue.discipline, "parameters": {}},
            "bottleneck": queue.bottleneck,
        }
        for queue in queues
    ]
    known = {"name": name, "links": links, "groups": [_group(runs, label) for label in groups]}
    return {**known, **_measured_part(runs)}


def _group(runs: Sequence[Run], label: str) -> dict[str, Any]:
    directions = {flow.direction for run in runs for flow in run.flows if flow.group == label}
    known = directions.pop() if len(directions) == 1 else None
    return {"name": label, **({"direction": known} if known else {})}


def _measured_part(runs: Sequence[Run]) -> dict[str, float]:
    """Return the part of the time in which data flowed in all runs, as a plan has it; nothing if that is unknown."""
    parts = [run.loaded_s for run in runs if run.loaded_s]
    if len(parts) < len(runs):
        return {}
    begin_s, end_s = max(begin_s for begin_s, _ in parts), min(end_s for _, end_s in parts)
    return {"warmup_s": begin_s, "duration_s": end_s} if begin_s < end_s else {}


def _tables(run: Run, groups: Sequence[str], queues: Sequence[str]) -> dict[str, dict[str, Column]]:
    flows = [(number, one) for number, flow in enumerate(run.flows) for one in flow.samples]
    links = [(queues.index(queue.name), one) for queue in run.queues for one in queue.samples]
    of_flows, of_links = _samples("flow_samples", "flow", flows), _samples("queue_samples", "link", links)
    return {"flows": _flows(run.flows, groups), "flow_samples": of_flows, "queue_samples": of_links}


def _flows(flows: Sequence[Flow], groups: Sequence[str]) -> dict[str, Column]:
    counts = {name for flow in flows for name in flow.counts}
    return {
        "flow": np.arange(len(flows), dtype=np.uint32),
        "group": np.array([groups.index(flow.group) for flow in flows], dtype=np.uint32),
        "congestion": [flow.congestion for flow in flows],
        "source": [flow.source for flow in flows],
        "destination": [flow.destination for flow in flows],
        **{name: _column("flows", name, [getattr(flow, name) for flow in flows]) for name in _TIMES},
        **{name: _column("flows", name, [flow.counts.get(name) for flow in flows]) for name in sorted(counts)},
    }


#: Columns of `flows` that are times.
_TIMES = ("start_s", "end_s", "base_rtt_s")


def _samples(table: str, of: str, rows: Sequence[tuple[int, Any]]) -> dict[str, Column]:
    """Return rows in the order of time."""
    rows = sorted(rows, key=lambda row: (row[1].time_s, row[0]))
    names = [name for name in TABLES[table] if rows and hasattr(rows[0][1], name)]
    values = {name: _column(table, name, [getattr(one, name) for _, one in rows]) for name in names}
    return {of: np.array([number for number, _ in rows], dtype=np.uint32), **values}


def _column(table: str, name: str, values: Sequence[float | None]) -> Column:
    """Return numbers in the table's type, with its sentinel for null."""
    if TABLES[table][name].dtype.is_float():
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return np.array([2**64 - 1 if value is None else int(value) for value in values], dtype=np.uint64)
