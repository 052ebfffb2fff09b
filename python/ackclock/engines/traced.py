"""Other simulators: their program is run, and what it wrote becomes the dataset's tables.

Each of them writes the same files: `samples` (a line for each flow, `f`, and each link, `q`, at each instant), `drops`
(ns-2's trace lines, of dropped packets only), `flows` and `links` (the counts at the warm-up's end and at the end).
Segments are counted whole. What a queue holds is sampled with the packet in transmission left out; sojourn times of
single packets are not known, nor is a segment's retransmission as an event.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from ackclock.dataset import Dataset, Spool, folders
from ackclock.engines.engine import Engine, RunOptions, manifest
from ackclock.errors import AckclockError, UnsupportedError
from ackclock.plan import Plan, TcpPlan
from ackclock.system import signals

#: Columns of the lines, by file and their first word.
SAMPLES_OF_FLOWS = ("time_s", "flow", "cwnd", "ssthresh", "srtt_s", "in_flight", "ack")
SAMPLES_OF_QUEUES = ("time_s", "link", "backlog_p", "backlog_bytes", "departures_p", "drops_p", "departed_bytes")
COUNTS_OF_FLOWS = ("flow", "time_s", "ack", "packets", "resent", "timeouts", "cuts")
COUNTS_OF_LINKS = ("link", "time_s", "arrived", "dropped", "departed", "departed_bytes", "packet_s", "byte_s")

#: Columns of the dataset's flows → counts.
COUNTED = {"sent_packets": "packets", "retransmissions": "resent", "timeouts": "timeouts"}

#: How often it is asked whether to go on, in seconds.
LOOK_S = 0.2

#: The last bytes of a file of samples that tell how far the run is.
TAIL_BYTES = 4096


class SimulatorError(AckclockError):
    """Another simulator is not there, or failed."""


class Simulator(Engine, Protocol):
    """An engine that is another simulator."""

    def lacking(self) -> str | None:
        """What this machine lacks to run it."""

    def make(self, plan: Plan, seed: int, folder: Path) -> Sequence[Sequence[str]]:
        """Writes a run's program into a folder; the commands that run it there, one after the other."""


def carried_out(simulator: Simulator, plan: Plan, seed: int, around: RunOptions) -> Dataset:
    """One run. Raises `UnsupportedError`, and `SimulatorError` if the simulator is not there or fails."""
    if reasons := simulator.check(plan):
        raise UnsupportedError(reasons)
    if lack := simulator.lacking():
        raise SimulatorError(lack)
    with folders.private() as folder:
        with folders.writing(folder):
            commands = simulator.make(plan, seed, folder)
        for command in commands:
            run(command, folder, around, plan.duration_s)
        return dataset(plan, folder, manifest(plan, simulator.name, seed, around.command), around.spool_bytes)


def starts_s(plan: Plan, seed: int) -> list[float]:
    """When each flow begins: drawn from the seed, if the plan lets it. Not as the packet engine draws."""
    draw = np.random.default_rng(seed)
    return [flow.start_s + draw.random() * flow.start_jitter_s for flow in plan.flows]


def run(command: Sequence[str], folder: Path, around: RunOptions, duration_s: float) -> list[str]:
    """Runs a program in a folder and follows its samples; the lines that it said. Raises `SimulatorError`.

    Whatever `around.progress` raises ends it.
    """
    with (folder / "said").open("wb") as said, _started(command, folder, said.fileno()) as process:
        while _waits(process):
            around.progress(_share(folder, duration_s))
    lines = (folder / "said").read_text(encoding="utf-8", errors="replace").splitlines()
    if process.returncode:
        raise SimulatorError(f"{Path(command[0]).name} failed: {_why(lines, process.returncode)}")
    return lines


def _why(lines: Sequence[str], status: int) -> str:
    """What of a program's words says what went wrong."""
    marked = [line for line in lines if re.search(r"\b(error|ns|aborted|assert)\b", line, re.IGNORECASE)]
    return next(iter([*marked, *lines]), f"status {status}")[:300]


def _waits(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(LOOK_S)
    except subprocess.TimeoutExpired:
        return True
    return False


@contextmanager
def _started(command: Sequence[str], folder: Path, said: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
    )

    def end() -> None:
        process.kill()
        process.wait()

    with signals.undoing(end):
        yield process


def _share(folder: Path, duration_s: float) -> float:
    """How far a run is, by the last sample that is on disk."""
    try:
        return min(_last_s(folder / "samples") / duration_s, 1.0)
    except (OSError, IndexError, ValueError):
        return 0.0


def _last_s(samples: Path) -> float:
    with samples.open("rb") as file:
        file.seek(max(samples.stat().st_size - TAIL_BYTES, 0))
        return float(file.read().split(b"\n")[-2].split()[1])


def dataset(plan: Plan, folder: Path, about: Mapping[str, Any], spool_bytes: int) -> Dataset:
    """The run's dataset, of the files in a folder."""
    spool = Spool(spool_bytes=spool_bytes)
    counts = _lines(folder / "flows")
    spool.append("flows", _flows(plan, counts, _dropped(plan, folder / "drops")))
    samples = _lines(folder / "samples")
    spool.append("flow_samples", _flow_samples(plan, _table(samples.get("f", []), SAMPLES_OF_FLOWS)))
    queues = _table(samples.get("q", []), SAMPLES_OF_QUEUES)
    spool.append("queue_samples", _queue_samples(plan, queues))
    spool.append("events", _events(folder / "drops", counts))
    spool.append("links", _links(plan, _lines(folder / "links")))
    return spool.dataset(about)


def _lines(path: Path) -> dict[str, list[list[str]]]:
    """Lines of words, by the first."""
    found: dict[str, list[list[str]]] = {}
    with path.open(encoding="ascii") as file:
        for line in file:
            word, *rest = line.split()
            found.setdefault(word, []).append(rest)
    return found


def _table(rows: list[list[str]], names: tuple[str, ...]) -> pl.DataFrame:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return pl.DataFrame({name: np.array(column, dtype=np.float64) for name, column in zip(names, columns, strict=True)})


def _counts(lines: Mapping[str, list[list[str]]], names: tuple[str, ...]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """At the end, and at the end of the warm-up, of each flow or link: what the first name says."""
    end, warm = (_table(lines.get(word, []), names).sort(names[0]) for word in ("end", "warm"))
    return end, warm


def _whole(column: pl.Series) -> np.ndarray[Any, np.dtype[np.uint64]]:
    whole: np.ndarray[Any, np.dtype[np.uint64]] = np.maximum(column.to_numpy(), 0).astype(np.uint64)
    return whole


def _tcps(plan: Plan) -> list[TcpPlan]:
    """By flow."""
    found = [plan.groups[flow.group].tcp for flow in plan.flows]
    return [tcp for tcp in found if tcp is not None]


def _flows(plan: Plan, counts: Mapping[str, list[list[str]]], dropped: np.ndarray[Any, Any]) -> dict[str, Any]:
    end, warm = _counts(counts, COUNTS_OF_FLOWS)
    begun, over = (_times(counts.get(word, []), len(plan.flows)) for word in ("begin", "done"))
    ends = {"start_s": begun, "end_s": over, "completion_s": over - begun}
    return {**_planned(plan), **ends, **_counted(plan, end, warm), "dropped_packets": dropped}


def _planned(plan: Plan) -> dict[str, Any]:
    numbers = range(len(plan.flows))
    return {
        "flow": np.arange(len(plan.flows), dtype=np.uint32),
        "group": np.array([flow.group for flow in plan.flows], dtype=np.uint32),
        "source": [f"sender-{number}" for number in numbers],
        "destination": [f"receiver-{number}" for number in numbers],
        "congestion": [_kind(plan, number) for number in numbers],
        "base_rtt_s": np.array([flow.base_rtt_s for flow in plan.flows]),
        "size_bytes": [flow.size_bytes for flow in plan.flows],
    }


def _counted(plan: Plan, end: pl.DataFrame, warm: pl.DataFrame) -> dict[str, Any]:
    """What is counted; a segment of data has its bytes, a packet those of its headers too."""
    mss, wire = (
        np.array([getattr(tcp, name) for tcp in _tcps(plan)], np.uint64) for name in ("mss_bytes", "packet_bytes")
    )
    delivered, at_warmup = (_whole(rows["ack"]) * mss for rows in (end, warm))
    return {
        "delivered_bytes": delivered,
        "measured_bytes": delivered - at_warmup,
        "sent_bytes": _whole(end["packets"]) * wire,
        "syn_retransmissions": np.zeros(len(plan.flows), dtype=np.uint64),
        **{name: _whole(end[count]) for name, count in COUNTED.items()},
        **{f"measured_{name}": _whole(end[count] - warm[count]) for name, count in COUNTED.items()},
    }


def _kind(plan: Plan, number: int) -> str:
    congestion = plan.groups[plan.flows[number].group].congestion
    return congestion.kind if congestion else ""


def _times(rows: list[list[str]], count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    found = np.full(count, np.nan)
    for number, time_s in rows:
        if np.isnan(found[int(number)]):
            found[int(number)] = float(time_s)
    return found


def _flow_samples(plan: Plan, rows: pl.DataFrame) -> dict[str, Any]:
    flow = rows["flow"].to_numpy().astype(np.uint32)
    mss = np.array([tcp.mss_bytes for tcp in _tcps(plan)], dtype=np.uint64)
    srtt_s = rows["srtt_s"].to_numpy()
    return {
        "time_s": rows["time_s"].to_numpy(),
        "flow": flow,
        "cwnd": rows["cwnd"].to_numpy(),
        "ssthresh": rows["ssthresh"].to_numpy(),
        "srtt_s": np.where(srtt_s > 0, srtt_s, np.nan),
        "in_flight": np.maximum(rows["in_flight"].to_numpy(), 0.0),
        "delivered_bytes": _whole(rows["ack"]) * mss[flow],
    }


def _queue_samples(plan: Plan, rows: pl.DataFrame) -> dict[str, Any]:
    """Counts since the sample before, of each link."""
    since = _since(rows, ("departures_p", "drops_p", "departed_bytes"))
    return {
        "time_s": since["time_s"].to_numpy(),
        "link": since["link"].to_numpy().astype(np.uint32),
        "backlog_p": since["backlog_p"].to_numpy(),
        "backlog_bytes": since["backlog_bytes"].to_numpy(),
        "departures_p": _whole(since["departures_p"]),
        "drops_p": _whole(since["drops_p"]),
        "utilisation": _utilisation(plan, since),
    }


def _since(rows: pl.DataFrame, counted: tuple[str, ...]) -> pl.DataFrame:
    return rows.with_columns((pl.col(name) - pl.col(name).shift(1).over("link").fill_null(0)) for name in counted)


def _utilisation(plan: Plan, since: pl.DataFrame) -> np.ndarray[Any, np.dtype[np.float64]]:
    rate = np.array([link.rate_bps for link in plan.links])[since["link"].to_numpy().astype(int)]
    used = since["departed_bytes"].to_numpy() * 8 / (rate * plan.record.interval_s)
    shares: np.ndarray[Any, np.dtype[np.float64]] = np.minimum(used, 1.0)
    return shares


def _traced(path: Path) -> Iterator[tuple[float, int, int]]:
    """Time, flow and link of each dropped packet: `d TIME FROM TO KIND BYTES FLAGS FLOW …`."""
    links: dict[tuple[str, str], int] = {}
    with path.open(encoding="ascii") as file:
        for line in file:
            words = line.split()
            if words[0] == "link":
                links[words[2], words[3]] = int(words[1])
            elif words[0] == "d":
                yield float(words[1]), int(words[7]), links[words[2], words[3]]


def _dropped(plan: Plan, path: Path) -> np.ndarray[Any, Any]:
    flows = np.fromiter((flow for _, flow, _ in _traced(path)), dtype=np.int64)
    return np.bincount(flows[flows < len(plan.flows)], minlength=len(plan.flows)).astype(np.uint64)


def _events(path: Path, counts: Mapping[str, list[list[str]]]) -> dict[str, Any]:
    drops = [(time_s, flow, link, "drop") for time_s, flow, link in _traced(path)]
    ends = [(float(time_s), int(flow), None, "finished") for flow, time_s in counts.get("done", [])]
    rows = sorted([*drops, *ends], key=lambda row: row[:2])
    return {
        "time_s": np.array([row[0] for row in rows]),
        "flow": [row[1] for row in rows],
        "link": [row[2] for row in rows],
        "kind": [row[3] for row in rows],
    }


def _links(plan: Plan, counts: Mapping[str, list[list[str]]]) -> dict[str, Any]:
    """The measured part's counts are those at the end less those at the end of the warm-up.

    Mean sojourn times are what waited, summed over the time, for each packet that left: Little's law.
    """
    end, warm = _counts(counts, COUNTS_OF_LINKS)
    links = [plan.links[int(number)] for number in end["link"]]
    measured = {name: (end[name] - warm[name]).to_numpy() for name in COUNTS_OF_LINKS[1:]}
    return {
        "link": end["link"].to_numpy().astype(np.uint32),
        "name": [link.name for link in links],
        "bottleneck": np.array([link.bottleneck for link in links], dtype=np.bool_),
        **{f"{name}_total_p": _whole(end[name]) for name in ("arrived", "dropped", "departed")},
        **{f"{name}_p": np.zeros(len(links), dtype=np.uint64) for name in ("lost", "marked", "lost_total")},
        **_measured(measured, np.array([link.rate_bps for link in links])),
    }


def _measured(counts: Mapping[str, np.ndarray[Any, Any]], rate_bps: np.ndarray[Any, Any]) -> dict[str, Any]:
    measured_s = np.maximum(counts["time_s"], 1e-12)
    return {
        "rate_bps": rate_bps,
        **{f"{name}_p": counts[name].astype(np.uint64) for name in ("arrived", "dropped", "departed")},
        "departed_bytes": counts["departed_bytes"].astype(np.uint64),
        "busy_s": counts["departed_bytes"] * 8 / rate_bps,
        "backlog_mean_p": counts["packet_s"] / measured_s,
        "backlog_mean_bytes": counts["byte_s"] / measured_s,
        "sojourn_mean_s": counts["packet_s"] / np.maximum(counts["departed"], 1),
    }
