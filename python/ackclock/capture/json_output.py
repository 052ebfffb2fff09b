"""Keys of `ackclock capture --json`, as one JSON object. Unknown values are None.

A flow is a connection. Its counts are of both directions, its figures of the one that carries more data: `sender` gives
which end that is. Of very many connections those with the most data are listed; `connections` counts all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

Row: TypeAlias = Mapping[str, Any]
JsonObject: TypeAlias = dict[str, Any]

#: What may hold a sender back.
LIMITS = ("application", "receiver", "control", "slow_start", "bottleneck", "shared_bottleneck")

#: Causes of a repair, and the column that counts them.
RETRANSMISSIONS = {
    "fast": "retransmissions_fast",
    "tail_probe": "retransmissions_tail_probe",
    "timeout": "retransmissions_timeout",
    "syn": "syn_retransmissions",
    "synack": "synack_retransmissions",
    "spurious": "retransmissions_spurious",
    "unknown": "retransmissions_unknown",
}

#: Columns of the table `captured` that tell of a direction.
COLUMNS = (
    *("flow", "connection", "client", "server", "sender", "vantage", "vantage_confidence"),
    *("sent_packets", "received_packets", "payload_bytes", "delivered_bytes", "handshake_s", "goodput_bps"),
    *("first_data_s", "last_data_s", "rtt_min_s", "rtt_mean_s", "lost", "lost_before", "reordered", "capture_lost"),
    *RETRANSMISSIONS.values(),
    *(f"limited_{limit}_s" for limit in LIMITS),
)

#: Of a path of which nothing is known.
NO_PATH: Mapping[str, Any] = {
    "limiter": "undecided",
    "rate_bps": None,
    "rate_ci95": None,
    "depth_bytes": None,
    "depth_ci95": None,
}


def of_flows(rows: Iterable[Row], stalls: Iterable[Row], congestion: Mapping[int, Sequence[Row]]) -> list[JsonObject]:
    """Return each connection in the order of the first packets.

    `rows` are those of the table `captured`, one for each direction with data; `stalls` events of that kind;
    `congestion` rankings by the number of the direction.
    """
    connections: dict[int, list[Row]] = {}
    for row in rows:
        connections.setdefault(row["connection"], []).append(row)
    stalls_by_flow: dict[int, list[JsonObject]] = {}
    for stall in stalls:
        entry = {"start_s": stall["time_s"], "duration_s": stall["duration_s"], "class": stall["class"]}
        stalls_by_flow.setdefault(stall["flow"], []).append(entry)
    return [
        _connection(number, directions, stalls_by_flow, congestion)
        for number, directions in sorted(connections.items())
    ]


def _connection(
    number: int,
    directions: Sequence[Row],
    stalls: Mapping[int, list[JsonObject]],
    congestion: Mapping[int, Sequence[Row]],
) -> JsonObject:
    main = max(directions, key=lambda row: row["payload_bytes"] or 0)

    def total(name: str) -> int:
        return sum(row[name] or 0 for row in directions)

    return {
        "id": number,
        "flow": main["flow"],
        "client": main["client"],
        "server": main["server"],
        "sender": main["sender"],
        "vantage": main["vantage"],
        "vantage_confidence": main["vantage_confidence"],
        "packets": total("sent_packets") if len(directions) > 1 else main["sent_packets"] + main["received_packets"],
        "bytes": main["delivered_bytes"],
        "handshake_s": main["handshake_s"],
        "goodput_bps": main["goodput_bps"],
        "first_data_s": main["first_data_s"],
        "last_data_s": main["last_data_s"],
        "rtt_min_s": main["rtt_min_s"],
        "rtt_mean_s": main["rtt_mean_s"],
        "segments_lost": total("lost") + total("lost_before"),
        "reordered": total("reordered"),
        "capture_lost": total("capture_lost"),
        "retransmissions": {cause: _retransmissions(directions, column) for cause, column in RETRANSMISSIONS.items()},
        "limited": _limited(main),
        "stalls": [stall for row in directions for stall in stalls.get(row["flow"], ())],
        "congestion": list(congestion.get(main["flow"], ())) or None,
    }


def _retransmissions(directions: Sequence[Row], column: str) -> int:
    """Return the retransmissions of a connection; those of a handshake stand in each of its rows."""
    values = [row[column] or 0 for row in directions]
    return max(values) if column.startswith("syn") else sum(values)


def _limited(row: Row) -> dict[str, float] | None:
    """Return each limit's share of the time in which the limit is known."""
    seconds = {limit: row[f"limited_{limit}_s"] or 0.0 for limit in LIMITS}
    total_s = math.fsum(seconds.values())
    return {limit: value / total_s for limit, value in seconds.items()} if total_s > 0 else None


def vantage(rows: Iterable[Row]) -> str | None:
    """Return the vantage point of most data, None if it is unknown. A row is of one vantage."""
    weights = {row["vantage"]: row["directions"] + row["payload_bytes"] for row in rows}
    located = {place: data_bytes for place, data_bytes in weights.items() if place != "unknown"}
    return max(located, key=lambda place: located[place]) if located else None


def capture_loss(rows: Iterable[Row]) -> JsonObject:
    """Return the data segments that arrived but are missing from the capture; None without data."""
    lost = weights = 0
    for row in rows:
        lost += row["capture_lost"]
        weights += row["data_segments"]
    return {"packets": lost, "share": lost / (lost + weights) if lost + weights else None}
