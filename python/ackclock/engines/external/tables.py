"""Output files of another simulator, read into the dataset's tables.

Each writes the same files: `samples` (a line for each flow, `f`, and each link, `q`, at each instant), `drops` (ns-2's
trace lines, of dropped packets only), `losses` (so for random losses, if there are any), `cuts` (ns-2's trace lines of
two counters of each sender), `flows` (when each began and was over) and `links`, both with the counts at the warm-up's
end and at the end. Segments are counted whole. What a queue holds is sampled with the packet in transmission left out;
sojourn times of single packets are not known, nor is a segment's retransmission as an event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from ackclock.dataset import Dataset, Spool
from ackclock.engines.external.planned_traffic import Connection, PlannedTraffic, Stream, draw_traffic
from ackclock.plan import Plan

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: Lines of words, by the first.
Lines: TypeAlias = Mapping[str, list[list[str]]]

#: Columns of the lines, by file and their first word.
SAMPLES_OF_FLOWS = ("time_s", "flow", "cwnd", "ssthresh", "srtt_s", "in_flight", "ack")
SAMPLES_OF_QUEUES = ("time_s", "link", "backlog_p", "backlog_bytes", "departures_p", "drops_p", "departed_bytes")
COUNTS_OF_FLOWS = ("flow", "time_s", "ack", "packets", "resent", "timeouts", "cuts")
COUNTS_OF_STREAMS = ("flow", "time_s", "received")
COUNTS_OF_LINKS = ("link", "time_s", "arrived", "dropped", "departed", "departed_bytes", "packet_s", "byte_s", "marked")

#: Columns of the dataset's flows → counts.
COUNTED = {"sent_packets": "packets", "retransmissions": "resent", "timeouts": "timeouts"}

#: Packets of a link that are counted in the measured part.
COUNTED_PACKETS = ("arrived", "dropped", "departed", "lost", "marked")

#: No count: of a transfer that is not over, of what UDP has not.
NOTHING = np.nan


def dataset(plan: Plan, seed: int, folder: Path, about: Mapping[str, Any], spool_bytes: int) -> Dataset:
    """The run's dataset, of the files in a folder."""
    of, spool = _Run(plan, folder, draw_traffic(plan, seed)), Spool(spool_bytes=spool_bytes)
    spool.append("flows", _flows(of))
    samples = _lines(folder / "samples")
    spool.append("flow_samples", _flow_samples(of, _table(samples.get("f", []), SAMPLES_OF_FLOWS)))
    queues = _table(samples.get("q", []), SAMPLES_OF_QUEUES)
    spool.append("queue_samples", _queue_samples(plan, queues))
    spool.append("events", _events(of))
    spool.append("links", _links(of, _lines(folder / "links")))
    if plan.record.paths:
        spool.append("paths", _paths(of))
    return spool.dataset(about)


@dataclass(frozen=True)
class _Run:
    """The plan, what was sent, and the lines about it."""

    plan: Plan
    folder: Path
    sent: PlannedTraffic

    @cached_property
    def counts(self) -> Lines:
        """The file `flows`."""
        return _lines(self.folder / "flows")

    @cached_property
    def drops(self) -> pl.DataFrame:
        """Dropped packets."""
        return _traced(self.folder / "drops")

    @cached_property
    def losses(self) -> pl.DataFrame:
        """Packets that a link lost by chance."""
        return _traced(self.folder / "losses")

    @property
    def size(self) -> int:
        """One more than the highest number of a flow."""
        return len(self.sent.connections) + len(self.sent.streams)

    def times(self, word: str) -> Array:
        """By flow: when something happened to it first; NaN: never."""
        found = np.full(self.size, np.nan)
        for number, time_s in self.counts.get(word, []):
            if np.isnan(found[int(number)]):
                found[int(number)] = float(time_s)
        return found

    def counted(self, word: str, names: tuple[str, ...]) -> pl.DataFrame:
        """By flow: counts at an instant; 0 where there are none."""
        rows = _table(self.counts.get(word, []), names)
        every = pl.DataFrame({"flow": np.arange(self.size, dtype=np.float64)})
        return every.join(rows.unique("flow", keep="first"), on="flow", how="left", maintain_order="left").fill_null(0)

    def mss_bytes(self, group: int) -> int:
        tcp = self.plan.groups[group].tcp
        return tcp.mss_bytes if tcp else 0

    def marked(self, flow: int) -> bool:
        """Return True if ECN marks reduce the flow's window as well."""
        tcp = self.plan.groups[self.groups[flow]].tcp
        return tcp is not None and tcp.ecn != "off"

    @cached_property
    def groups(self) -> dict[int, int]:
        """By flow."""
        return {each.number: each.group for each in self.sent.connections}

    def packet_bytes(self, group: int) -> int:
        tcp = self.plan.groups[group].tcp
        return tcp.packet_bytes if tcp else 0


def _lines(path: Path) -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = {}
    with path.open(encoding="ascii") as file:
        for line in file:
            word, *rest = line.split()
            found.setdefault(word, []).append(rest)
    return found


def _table(rows: list[list[str]], names: tuple[str, ...]) -> pl.DataFrame:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return pl.DataFrame({name: np.array(column, dtype=np.float64) for name, column in zip(names, columns, strict=True)})


def _to_uint64(column: pl.Series) -> Array:
    whole: Array = np.maximum(column.to_numpy(), 0).astype(np.uint64)
    return whole


def _flows(of: _Run) -> dict[str, Any]:
    """A row for each flow of the plan, and each transfer that began."""
    begun = of.times("begin")
    listed = [each for each in of.sent.connections if not each.generated or not np.isnan(begun[each.number])]
    every: list[Connection | Stream] = [*listed, *of.sent.streams]
    rows = sorted(every, key=lambda each: each.number)
    numbers = np.array([each.number for each in rows], dtype=np.int64)
    columns = {**_ends(of, begun), **_counted(of)}
    return {**_planned(of.plan, rows), **{name: column[numbers] for name, column in columns.items()}}


def _planned(plan: Plan, rows: list[Connection | Stream]) -> dict[str, Any]:
    own = [None if isinstance(each, Connection) and each.generated else each.number for each in rows]
    return {
        "flow": np.array([each.number for each in rows], dtype=np.uint32),
        "group": np.array([each.group for each in rows], dtype=np.uint32),
        "source": [_named(plan, each, "source", number) for each, number in zip(rows, own, strict=True)],
        "destination": [_named(plan, each, "destination", number) for each, number in zip(rows, own, strict=True)],
        "congestion": [_kind(plan, each) for each in rows],
        "base_rtt_s": np.array([each.base_rtt_s for each in rows]),
        "size_bytes": [each.size_bytes if isinstance(each, Connection) else None for each in rows],
    }


def _named(plan: Plan, each: Connection | Stream, end: str, number: int | None) -> str | None:
    """The host at which a flow begins or ends: the plan's node, or one of the flow's own; a transfer has none."""
    if each.ends:
        return plan.nodes[each.ends.source if end == "source" else each.ends.destination].name
    return None if number is None else f"{'sender' if end == 'source' else 'receiver'}-{number}"


def _paths(of: _Run) -> dict[str, Any]:
    """The links that each routed TCP flow's data pass."""
    begun = of.times("begin")
    rows = [each for each in of.sent.connections if not np.isnan(begun[each.number])]
    found = [(each.number, hop, at.link) for each in rows if each.ends for hop, at in enumerate(each.forward.hops)]
    columns = np.array(found, dtype=np.uint32).reshape(-1, 3)
    return dict(zip(("flow", "hop", "link"), columns.T, strict=True))


def _kind(plan: Plan, each: Connection | Stream) -> str:
    congestion = plan.groups[each.group].congestion
    return congestion.kind if congestion else "udp"


def _ends(of: _Run, begun: Array) -> dict[str, Array]:
    over, starts_s = of.times("done"), begun.copy()
    for stream in of.sent.streams:
        starts_s[stream.number] = stream.departures_s[0] if stream.departures_s.size else np.nan
    return {"start_s": starts_s, "end_s": over, "fct_s": over - begun}


def _counted(of: _Run) -> dict[str, Array]:
    """Return the counters; a data segment counts its payload bytes, a packet its header bytes as well."""
    end, warm = (of.counted(word, COUNTS_OF_FLOWS) for word in ("end", "warm"))
    mss, wire, most = _sizes(of)
    delivered, at_warmup = (np.minimum(_to_uint64(rows["ack"]) * mss, most) for rows in (end, warm))
    found = {
        "delivered_bytes": delivered,
        "measured_bytes": delivered - at_warmup,
        "sent_bytes": _to_uint64(end["packets"]) * wire,
        "syn_retransmissions": np.zeros(of.size),
        **{name: _to_uint64(end[count]) for name, count in COUNTED.items()},
        **{f"measured_{name}": _to_uint64(end[count] - warm[count]) for name, count in COUNTED.items()},
        "dropped_packets": _by_flow(of, of.drops) + _by_flow(of, of.losses),
    }
    return _with_streams(of, {name: column.astype(np.float64) for name, column in found.items()})


def _sizes(of: _Run) -> tuple[Array, Array, Array]:
    """By flow: bytes of a full segment, of its packet, and all that are sent."""
    sizes = np.zeros((3, of.size), dtype=np.uint64)
    for each in of.sent.connections:
        most = each.size_bytes if each.size_bytes is not None else 2**63
        sizes[:, each.number] = of.mss_bytes(each.group), of.packet_bytes(each.group), most
    return sizes[0], sizes[1], sizes[2]


def _with_streams(of: _Run, columns: dict[str, Array]) -> dict[str, Array]:
    """UDP sources send when they are told to; their receivers count."""
    end, warm = (of.counted(f"udp-{word}", COUNTS_OF_STREAMS)["received"] for word in ("end", "warm"))
    for stream in of.sent.streams:
        at, size = stream.number, stream.packet_bytes
        before = int(np.searchsorted(stream.departures_s, of.plan.warmup_s))
        payload_bytes = size - of.plan.datagrams[at - len(of.plan.flows)].header_bytes
        told = {
            "delivered_bytes": end[at] * payload_bytes,
            "measured_bytes": (end[at] - warm[at]) * payload_bytes,
            "sent_packets": stream.departures_s.size,
            "sent_bytes": stream.departures_s.size * size,
            "measured_sent_packets": stream.departures_s.size - before,
            "dropped_packets": columns["dropped_packets"][at],
        }
        for name, column in columns.items():
            column[at] = told.get(name, NOTHING)
    return columns


def _by_flow(of: _Run, lost: pl.DataFrame) -> Array:
    flows = lost["flow"].to_numpy()
    return np.bincount(flows[flows < of.size], minlength=of.size)


def _flow_samples(of: _Run, rows: pl.DataFrame) -> dict[str, Any]:
    flow = rows["flow"].to_numpy().astype(np.uint32)
    mss, _, most = _sizes(of)
    srtt_s = rows["srtt_s"].to_numpy()
    return {
        "time_s": rows["time_s"].to_numpy(),
        "flow": flow,
        "cwnd": rows["cwnd"].to_numpy(),
        "ssthresh": rows["ssthresh"].to_numpy(),
        "srtt_s": np.where(srtt_s > 0, srtt_s, np.nan),
        "in_flight": np.maximum(rows["in_flight"].to_numpy(), 0.0),
        "delivered_bytes": np.minimum(_to_uint64(rows["ack"]) * mss[flow], most[flow]),
    }


def _queue_samples(plan: Plan, rows: pl.DataFrame) -> dict[str, Any]:
    """Counts since the sample before, of each link."""
    since = _since(rows, ("departures_p", "drops_p", "departed_bytes"))
    return {
        "time_s": since["time_s"].to_numpy(),
        "link": since["link"].to_numpy().astype(np.uint32),
        "backlog_p": since["backlog_p"].to_numpy(),
        "backlog_bytes": since["backlog_bytes"].to_numpy(),
        "departures_p": _to_uint64(since["departures_p"]),
        "drops_p": _to_uint64(since["drops_p"]),
        "utilisation": _utilisation(plan, since),
    }


def _since(rows: pl.DataFrame, counted: tuple[str, ...]) -> pl.DataFrame:
    return rows.with_columns((pl.col(name) - pl.col(name).shift(1).over("link").fill_null(0)) for name in counted)


def _utilisation(plan: Plan, since: pl.DataFrame) -> Array:
    """Return the utilisation relative to the rate that the link has at that time."""
    link, times_s = since["link"].to_numpy().astype(int), since["time_s"].to_numpy()
    rate_bps = np.array([link.rate_bps for link in plan.links])[link]
    for change in plan.changes:
        if change.rate_bps is not None:
            rate_bps[(link == change.link) & (times_s > change.at_s)] = change.rate_bps
    interval_s = plan.record.interval_s
    work_s = since["departed_bytes"].to_numpy() * 8 / rate_bps
    shares = np.empty(work_s.size)
    for number in np.unique(link):
        shares[link == number] = _busy_for(work_s[link == number], interval_s) / interval_s
    return shares


def _busy_for(work_s: Array, interval_s: float) -> Array:
    """Return for how long a link was busy in each interval; a packet counts when its transmission begins."""
    behind_s = np.cumsum(work_s - interval_s)
    left_s = behind_s - np.minimum(np.minimum.accumulate(behind_s), 0.0)
    busy_s: Array = work_s + np.concatenate([[0.0], left_s[:-1]]) - left_s
    return busy_s


def _traced(path: Path) -> pl.DataFrame:
    """Time, flow and link of each packet of a trace, if there is one: `d TIME FROM TO KIND BYTES FLAGS FLOW …`."""
    links: dict[tuple[str, str], int] = {}
    found: list[tuple[float, int, int]] = []
    for words in _split_lines(path):
        if words[0] == "link":
            links[words[2], words[3]] = int(words[1])
        elif words[0] == "d":
            found.append((float(words[1]), int(words[7]), links[words[2], words[3]]))
    schema = {"time_s": pl.Float64, "flow": pl.Int64, "link": pl.Int64}
    return pl.DataFrame(found, schema=schema, orient="row")


def _split_lines(path: Path) -> Iterator[list[str]]:
    if path.exists():
        with path.open(encoding="ascii") as file:
            yield from map(str.split, file)


#: Counters of a sender: how often it cut its window, and how often for a timeout.
CUTS, TIMEOUTS = "ncwndcuts_", "nrexmit_"


def _cuts(of: _Run) -> dict[str, pl.DataFrame]:
    """When senders cut their windows, of lines `TIME NODE PORT NODE PORT COUNTER VALUE`; with ECN at timeouts alone."""
    flows: dict[tuple[str, str], int] = {}
    found: dict[str, dict[tuple[float, int], None]] = {CUTS: {}, TIMEOUTS: {}}
    for words in _split_lines(of.folder / "cuts"):
        if words[0] == "agent":
            flows[words[2], words[3]] = int(words[1])
        elif words[6] != "0":
            found[words[5]][float(words[0]), flows[words[1], words[2]]] = None
    other = [key for key in found[CUTS] if key not in found[TIMEOUTS] and not of.marked(key[1])]
    rows = {"recovery": other, "timeout": [*found[TIMEOUTS]]}
    return {kind: _no_link(of, keys) for kind, keys in rows.items()}


def _no_link(of: _Run, keys: Sequence[tuple[float, int]]) -> pl.DataFrame:
    """Events of flows."""
    return pl.DataFrame([(*key, None) for key in keys], schema=of.drops.schema, orient="row")


def _events(of: _Run) -> dict[str, Any]:
    over = _no_link(of, [(float(time_s), int(flow)) for flow, time_s in of.counts.get("done", [])])
    changes = [(change.at_s, None, change.link) for change in of.plan.changes if change.at_s < of.plan.duration_s]
    changed = pl.DataFrame(changes, schema=of.drops.schema, orient="row")
    kinds = {"drop": of.drops, "loss": of.losses, **_cuts(of), "finished": over, "link_change": changed}
    rows = pl.concat([found.with_columns(kind=pl.lit(kind)) for kind, found in kinds.items()])
    rows = rows.sort("time_s", "flow", maintain_order=True)
    return {name: _cells(rows[name]) for name in rows.columns}


def _cells(column: pl.Series) -> Array | list[Any]:
    """A column as numbers, or as a list with what is not there."""
    return column.to_numpy() if column.dtype.is_numeric() and not column.null_count() else column.to_list()


def _links(of: _Run, counts: Lines) -> dict[str, Any]:
    """The measured part's counts are those at the end less those at the end of the warm-up.

    Mean sojourn times are what waited, summed over the time, for each packet that left: Little's law. A packet that was
    lost by chance has arrived.
    """
    end, warm = (_of_links(of, counts, word) for word in ("end", "warm"))
    links = [of.plan.links[int(number)] for number in end["link"]]
    measured = {name: (end[name] - warm[name]).to_numpy() for name in end.columns[1:]}
    return {
        "link": end["link"].to_numpy().astype(np.uint32),
        "name": [link.name for link in links],
        "bottleneck": np.array([link.bottleneck for link in links], dtype=np.bool_),
        **{f"{name}_total_p": _to_uint64(end[name]) for name in ("arrived", "dropped", "departed", "lost")},
        **_measured(measured, np.array([link.rate_bps for link in links])),
        "busy_s": _busy_s(of.plan, end["link"].to_numpy(), measured["departed_bytes"]),
    }


def _busy_s(plan: Plan, numbers: Array, departed_bytes: Array) -> Array:
    """Return for how long each link was busy; NaN where its rate has changed."""
    changed = {change.link for change in plan.changes if change.rate_bps is not None}
    rates_bps = [np.nan if number in changed else plan.links[int(number)].rate_bps for number in numbers]
    busy_s: Array = departed_bytes * 8 / np.array(rates_bps)
    return busy_s


def _of_links(of: _Run, counts: Lines, word: str) -> pl.DataFrame:
    rows = _table(counts.get(word, []), COUNTS_OF_LINKS).sort("link")
    until_s = of.plan.warmup_s if word == "warm" else np.inf
    lost = of.losses.filter(pl.col("time_s") <= until_s)["link"].to_numpy()
    gone = np.bincount(lost, minlength=len(of.plan.links))[rows["link"].to_numpy().astype(int)]
    return rows.with_columns(pl.col("arrived") + gone, lost=pl.Series(gone.astype(np.float64)))


def _measured(counts: Mapping[str, Array], rate_bps: Array) -> dict[str, Any]:
    measured_s = np.maximum(counts["time_s"], 1e-12)
    return {
        "rate_bps": rate_bps,
        **{f"{name}_p": counts[name].astype(np.uint64) for name in COUNTED_PACKETS},
        "departed_bytes": counts["departed_bytes"].astype(np.uint64),
        "backlog_mean_p": counts["packet_s"] / measured_s,
        "backlog_mean_bytes": counts["byte_s"] / measured_s,
        "sojourn_mean_s": counts["packet_s"] / np.maximum(counts["departed"], 1),
    }
