"""The dataset's tables: every column, its type, its unit, and whether it may be null.

One place for all engines. A column's name carries its unit (`_s` seconds, `_bps` bit/s, `_bytes` bytes, `_p` packets;
windows are in segments). A nullable column is null where an engine does not model the quantity or the quantity does
not exist (an endless transfer's completion); nothing is invented.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock import _core

#: A column as an engine hands it over.
Column: TypeAlias = "np.ndarray[Any, Any] | Sequence[Any]"

#: Kinds of events, in the dataset's order.
EVENT_KINDS = (
    "drop",
    "loss",
    "mark",
    "recovery",
    "timeout",
    "retransmission",
    "syn_retransmission",
    "tail_probe",
    "established",
    "finished",
    "mark_reaction",
    "link_change",
    "synack_retransmission",
    "spurious_retransmission",
    "reordering",
    "duplicate",
    "capture_loss",
    "stall",
    "undo",
    "corruption",
    "circuit_breaker",
)

#: Events of a packet in the per-packet log.
PACKET_ACTIONS = ("enqueue", "dequeue", "drop", "loss", "arrive")

#: Ends of a flow that send packets.
ENDS = ("sender", "receiver")

#: Why a packet was sent.
CAUSES = (
    "opening",
    "opening_again",
    "new_data",
    "limited_transmit",
    "fast_retransmit",
    "tail_probe",
    "timeout",
    "after_timeout",
    "other",
)

#: Fates of a packet.
FATES = ("delivered", "duplicate", "dropped", "lost", "under_way")

#: Limits that delayed a segment.
LIMITS = ("nothing", "application", "receiver", "slow_start", "cwnd", "recovery", "pacing", "send_buffer")

#: Ends of a captured connection that send a flow's data.
SENDERS = ("client", "server")

#: Cause of a gap in a host's clock by its log: its scheduler ran something else; its hypervisor did; the process that
#: watches was stopped; the machine was; somebody set the clock.
CLOCK_GAPS = ("scheduler", "steal", "stop", "pause", "step")

#: Causes of a stall, from the packets or from a clock log.
STALL_CLASSES = (*_core.CAPTURE_STALLS, *CLOCK_GAPS)

#: Place of a loss relative to two vantage points; or the point whose capture missed a packet that arrived.
PLACES = ("before", "between", "after", "missed_by_first", "missed_by_second")

#: Operations of a disk benchmark, and their targets.
DISK_OPERATIONS, DISK_TARGETS = ("write", "read"), ("file", "device")

#: Columns of words, which may come as codes.
CATEGORICAL = (pl.Enum, pl.Categorical)

F64, U32, U64, BOOL, STR = pl.Float64(), pl.UInt32(), pl.UInt64(), pl.Boolean(), pl.String()


@dataclass(frozen=True, slots=True)
class Field:
    """A column: its type and whether it may be null."""

    dtype: pl.DataType
    nullable: bool = False


def _required(dtype: pl.DataType, names: str) -> dict[str, Field]:
    return {name: Field(dtype) for name in names.split()}


def _nullable(dtype: pl.DataType, names: str) -> dict[str, Field]:
    return {name: Field(dtype, nullable=True) for name in names.split()}


FLOWS = {
    **_required(U32, "run flow group"),
    **_nullable(STR, "source destination"),
    **_required(STR, "congestion"),
    **_nullable(F64, "base_rtt_s path_rate_bps start_s established_s end_s fct_s delay_mean_s"),
    **_nullable(F64, "measured_delay_mean_s measured_delay_p95_s"),
    **_nullable(
        U64,
        "size_bytes delivered_bytes measured_bytes sent_packets sent_bytes received_packets dropped_packets "
        "retransmissions timeouts syn_retransmissions recoveries tail_probes "
        "measured_sent_packets measured_retransmissions measured_timeouts",
    ),
}

FLOW_SAMPLES = {
    **_required(U32, "run"),
    **_required(F64, "time_s"),
    **_required(U32, "flow"),
    **_nullable(F64, "cwnd ssthresh srtt_s in_flight"),
    **_nullable(U64, "delivered_bytes"),
}

CUBIC_SAMPLES = {
    **_required(U32, "run"),
    **_required(F64, "time_s"),
    **_required(U32, "flow"),
    **_required(F64, "cwnd target w_cubic"),
    **_nullable(F64, "w_max"),
    **_required(F64, "origin k_s w_est"),
    **_nullable(F64, "count delay_min_s"),
}

PATHS = {**_required(U32, "run flow hop link")}

QUEUE_SAMPLES = {
    **_required(U32, "run"),
    **_required(F64, "time_s"),
    **_required(U32, "link"),
    **_nullable(F64, "backlog_p backlog_bytes sojourn_s"),
    **_nullable(U64, "departures_p drops_p marks_p"),
    **_nullable(F64, "utilisation"),
}

EVENTS = {
    **_required(U32, "run"),
    **_required(F64, "time_s"),
    **_nullable(U32, "flow link"),
    **_required(pl.Enum(EVENT_KINDS), "kind"),
    **_nullable(F64, "value"),
}

LINKS = {
    **_required(U32, "run link"),
    **_required(STR, "name"),
    **_required(BOOL, "bottleneck"),
    **_required(F64, "rate_bps"),
    **_nullable(U64, "arrived_p dropped_p lost_p marked_p departed_p departed_bytes"),
    **_nullable(F64, "busy_s empty_s backlog_mean_p backlog_mean_bytes sojourn_mean_s sojourn_max_s"),
    **_nullable(pl.List(pl.Float64), "sojourn_edges_s"),
    **_nullable(pl.List(pl.UInt64), "sojourn_counts"),
    **_nullable(U64, "arrived_total_p dropped_total_p lost_total_p departed_total_p"),
    **_nullable(U64, "corrupted_total_p duplicated_total_p reordered_total_p"),
}

PACKETS = {
    **_required(U32, "run"),
    **_required(F64, "time_s"),
    **_nullable(U32, "flow link"),
    **_required(pl.Categorical(), "kind"),
    **_nullable(U64, "sequence"),
    **_required(U32, "wire_bytes"),
    **_required(pl.Enum(PACKET_ACTIONS), "what"),
}

TRANSMISSIONS = {
    **_required(U32, "run"),
    **_required(F64, "time_s"),
    **_required(U32, "flow"),
    **_required(pl.Enum(ENDS), "end"),
    **_required(pl.Categorical(), "kind"),
    **_required(U32, "identification"),
    **_nullable(U64, "sequence segment"),
    **_required(U32, "payload_bytes"),
    **_required(pl.Enum(CAUSES), "cause"),
    **_required(pl.Enum(FATES), "fate"),
    **_nullable(U32, "link"),
    **_nullable(F64, "arrival_s cwnd"),
    **_nullable(U32, "in_flight"),
    **_required(pl.Enum(LIMITS), "limit"),
}

CAPTURED = {
    **_required(U32, "run flow connection"),
    **_required(STR, "client server"),
    **_required(pl.Enum(SENDERS), "sender"),
    **_required(pl.Enum(_core.CAPTURE_VANTAGES), "vantage"),
    **_nullable(F64, "vantage_confidence rtt_receiver_side_s rtt_sender_side_s handshake_s goodput_bps"),
    **_required(BOOL, "opened closed reset sack timestamps ecn"),
    **_nullable(U32, "mss peer_mss window_scale initial_window"),
    **_nullable(U64, "received_packets received_bytes payload_bytes data_packets data_segments super_segments"),
    **_nullable(U64, "delivered_bytes"),
    **_nullable(F64, "first_data_s last_data_s last_ack_s"),
    **_nullable(F64, "rtt_min_s rtt_mean_s rtt_max_s rtt_timestamps_min_s rtt_timestamps_mean_s"),
    **_nullable(F64, "rtt_sides_min_s rtt_sides_mean_s cwnd_max"),
    **_nullable(U64, "rtt_samples rtt_timestamps_samples receiver_window_max_bytes"),
    **_nullable(U64, "delivered lost lost_upstream reordered duplicates spurious not_captured unresolved"),
    **_nullable(U64, "retransmissions_fast retransmissions_tail_probe retransmissions_timeout"),
    **_nullable(U64, "retransmissions_spurious retransmissions_unknown synack_retransmissions"),
    **_nullable(U64, "window_probes duplicate_acks congestion_marks bad_checksums"),
    **_nullable(U32, "nagle_waits zero_windows largest_delivered_bytes smallest_stuck_bytes"),
    **_nullable(U32, "ece_packets cwr_packets sack_reneged hop_changes keep_alives keep_alives_unanswered"),
    **_nullable(U32, "fast_open_bytes fast_open_accepted_bytes"),
    **_nullable(U64, "ect1_packets reported_marked_bytes"),
    **_nullable(U32, "reported_marks"),
    **_nullable(BOOL, "reported_is_minimum"),
    **_nullable(F64, "nagle_wait_s zero_window_s ack_wait_s rtt_step_at_s rtt_step_from_s rtt_step_to_s"),
    **_nullable(F64, "limited_application_s limited_receiver_s limited_cwnd_s limited_slow_start_s"),
    **_nullable(F64, "limited_bottleneck_s limited_shared_bottleneck_s limited_send_buffer_s"),
    **_nullable(F64, "limited_unknown_window_s limited_unknown_s"),
}

DATAGRAMS = {
    **_required(U32, "run flow connection"),
    **_required(STR, "client server"),
    **_required(pl.Enum(SENDERS), "sender"),
    **_nullable(STR, "protocol"),
    **_required(U64, "datagrams bytes"),
    **_nullable(F64, "start_s end_s"),
    **_nullable(U32, "min_bytes max_bytes"),
    **_nullable(F64, "rate_bps max_gap_s"),
    **_nullable(U64, "ack_sized"),
    **_required(U64, "ect0 ect1 ce icmp_errors"),
    **_nullable(STR, "version"),
    **_nullable(STR, "handshake"),
    **_nullable(F64, "handshake_s handshake_rtt_s spin_rtt_min_s spin_rtt_mean_s spin_rtt_max_s"),
    **_nullable(U32, "address_changes"),
}

DATAGRAM_RATES = {
    **_required(U32, "run"),
    **_required(F64, "time_s"),
    **_required(U32, "flow"),
    **_required(F64, "interval_s rate_bps"),
}

STALLS = {
    **_required(U32, "run"),
    **_required(F64, "time_s"),
    **_required(U32, "flow"),
    **_required(F64, "duration_s"),
    **_required(pl.Enum(STALL_CLASSES), "class"),
    **_required(F64, "confidence"),
}

WINDOWS = {
    **_required(U32, "run"),
    **_required(F64, "time_s"),
    **_required(U32, "flow"),
    **_nullable(F64, "receiver_window_bytes"),
    **_required(pl.Enum(_core.CAPTURE_LIMITS), "limit"),
}

SEGMENTS = {
    **_required(U32, "run"),
    **_required(F64, "time_s"),
    **_required(U32, "flow"),
    **_required(U64, "offset_bytes"),
    **_required(U32, "payload_bytes segments"),
    **_required(BOOL, "seen"),
    **_required(pl.Enum(_core.CAPTURE_FATES), "fate"),
    **_required(pl.Enum(_core.CAPTURE_CAUSES), "cause"),
    **_required(F64, "confidence"),
}

DELAYS = {
    **_required(U32, "run"),
    **_required(F64, "time_s"),
    **_required(U32, "flow packets"),
    **_required(F64, "delay_min_s delay_mean_s delay_max_s"),
    **_nullable(F64, "error_s"),
}

FRAMES = {
    **_required(U32, "run"),
    **_required(F64, "time_s"),
    **_required(U32, "flow"),
    **_required(U64, "frame"),
    **_required(U32, "bytes"),
    **_required(F64, "delay_s"),
}

PLACED = {
    **_required(U32, "run"),
    **_required(F64, "time_s"),
    **_required(U32, "flow"),
    **_required(pl.Enum(PLACES), "place"),
    **_required(U32, "payload_bytes"),
}

ACKNOWLEDGEMENTS = {
    **_required(U32, "run"),
    **_required(F64, "time_s"),
    **_required(U32, "flow"),
    **_required(U64, "offset_bytes"),
    **_nullable(U64, "receiver_window_bytes sack_start_bytes sack_end_bytes"),
}

LEVELS = {
    **_required(U32, "run"),
    **_required(F64, "time_s level_bytes"),
    **_required(BOOL, "lost"),
}

CLOCK_GAP_ROWS = {
    **_required(U32, "run"),
    **_required(F64, "time_s wall_s duration_s"),
    **_required(pl.Enum(CLOCK_GAPS), "class"),
    **_required(F64, "waited_s stolen_s stepped_s clock_stopped_s"),
}

DISK = {
    **_required(U32, "run"),
    **_required(F64, "time_s"),
    **_required(U32, "repeat"),
    **_required(pl.Enum(DISK_OPERATIONS), "operation"),
    **_required(pl.Enum(DISK_TARGETS), "target"),
    **_required(BOOL, "cached"),
    **_required(U32, "block_bytes"),
    **_required(U64, "bytes"),
    **_required(F64, "duration_s call_max_s"),
}

#: Table name → column name → field.
TABLES: Mapping[str, Mapping[str, Field]] = {
    "flows": FLOWS,
    "flow_samples": FLOW_SAMPLES,
    "cubic_samples": CUBIC_SAMPLES,
    "paths": PATHS,
    "queue_samples": QUEUE_SAMPLES,
    "events": EVENTS,
    "links": LINKS,
    "packets": PACKETS,
    "transmissions": TRANSMISSIONS,
    "captured": CAPTURED,
    "stalls": STALLS,
    "windows": WINDOWS,
    "segments": SEGMENTS,
    "delays": DELAYS,
    "frames": FRAMES,
    "placed": PLACED,
    "acknowledgements": ACKNOWLEDGEMENTS,
    "levels": LEVELS,
    "datagrams": DATAGRAMS,
    "datagram_rates": DATAGRAM_RATES,
    "clock_gaps": CLOCK_GAP_ROWS,
    "disk": DISK,
}


def schema(table: str) -> pl.Schema:
    """Return the Polars schema of a table. Raises `KeyError` for an unknown table."""
    return pl.Schema({name: field.dtype for name, field in TABLES[table].items()})


def empty(table: str) -> pl.DataFrame:
    """Return a table without rows."""
    return pl.DataFrame(schema=schema(table))


def check(table: str, columns: Mapping[str, Column], names: Mapping[str, Sequence[str]]) -> None:
    """Raise `ValueError` for columns of which no frame can be made: see `frame`."""
    if table not in TABLES:
        raise ValueError(f"unknown table {table!r}; the dataset has {', '.join(TABLES)}")
    if unknown := columns.keys() - TABLES[table].keys():
        raise ValueError(f"table {table!r} has no column {', '.join(sorted(unknown))}; its columns are in tables.py")
    if missing := _required_of(table) - columns.keys():
        raise ValueError(f"table {table!r} needs the column {min(missing)!r}")
    for name in _categorical(table) & columns.keys():
        if f"{table}.{name}" not in names and _are_codes(columns[name]):
            key = f"{table}.{name}"
            raise ValueError(f"{key} came as codes; give their names as Spool(names={{{key!r}: …}})")


@cache
def _required_of(table: str) -> frozenset[str]:
    return frozenset(name for name, field in TABLES[table].items() if not field.nullable) - {"run"}


@cache
def _categorical(table: str) -> frozenset[str]:
    return frozenset(name for name, field in TABLES[table].items() if isinstance(field.dtype, CATEGORICAL))


def frame(
    table: str,
    columns: Mapping[str, Column],
    run: int | npt.NDArray[np.uint32],
    names: Mapping[str, Sequence[str]] | None = None,
) -> pl.DataFrame:
    """Return rows as a frame with the table's schema: those of one run, or each of the run with its number.

    Columns that are missing become null, the `run` column is added. In nullable columns NaN and infinity, and the
    greatest value of an unsigned integer type, mean null. Integer codes are turned into words by `names`, keyed
    `table.column`. Raises `ValueError` for an unknown table or column, and for codes without names.
    """
    check(table, columns, names or {})
    return pl.DataFrame(list(_series(table, columns, run, names or {})))


def _series(
    table: str, columns: Mapping[str, Column], run: int | npt.NDArray[np.uint32], names: Mapping[str, Sequence[str]]
) -> Iterator[pl.Series]:
    rows = max(map(len, columns.values()), default=0)
    for name, field in TABLES[table].items():
        if name == "run":
            yield pl.Series(name, np.full(rows, run, dtype=np.uint32))
        elif name in columns:
            yield _one(f"{table}.{name}", columns[name], field, names).alias(name)
        else:
            yield pl.Series(name, [None], dtype=field.dtype).new_from_index(0, rows)


def _one(key: str, column: Column, field: Field, names: Mapping[str, Sequence[str]]) -> pl.Series:
    if isinstance(field.dtype, CATEGORICAL):
        return _category_series(key, column, field.dtype, names)
    if isinstance(field.dtype, pl.List):
        return pl.Series([None if item is None else list(item) for item in column], dtype=field.dtype)
    if isinstance(field.dtype, pl.String):
        return pl.Series(column, dtype=field.dtype)
    series = pl.Series(column) if isinstance(column, np.ndarray) else pl.Series(list(column), strict=False)
    return (_without_sentinels(series) if field.nullable else series).cast(field.dtype)


def _without_sentinels(series: pl.Series) -> pl.Series:
    values = series.to_numpy()
    if values.dtype.kind == "f":
        absent = ~np.isfinite(values)
    elif values.dtype.kind == "u":
        absent = values == np.iinfo(values.dtype).max
    else:
        return series
    return series.set(pl.Series(absent), None) if absent.any() else series


def _category_series(
    key: str, column: Column, dtype: pl.Enum | pl.Categorical, names: Mapping[str, Sequence[str]]
) -> pl.Series:
    if not _are_codes(column):
        return pl.Series(column, dtype=pl.String).cast(dtype)
    return pl.Series(names[key], dtype=dtype)[column]


def _are_codes(column: Column) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind in "iu"
