"""Keys of `ackclock capture --json`, as one JSON object. Unknown values are None.

What a capture does not have, it cannot count: without the data of a direction, its losses and retransmissions are None.

A flow is a connection of TCP. Its counts are of both directions, its figures of the one that carries more data:
`sender` gives which end that is. Of very many connections those with the most data are listed; `connections` counts
all. Flows of UDP have their own key, `udp`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ackclock import _core, repr_format
from ackclock.capture import udp
from ackclock.capture.congestion import Ranking
from ackclock.figures import numbers

if TYPE_CHECKING:
    from ackclock.capture.clock import ClockLog

Row: TypeAlias = Mapping[str, Any]
JsonObject: TypeAlias = dict[str, Any]

#: Senders of flows by their parity: a flow is twice the connection's number, plus one if the server sends.
ENDS_OF_FLOWS = ("client", "server")

#: Limits of a sender.
LIMITS = (
    "application",
    "receiver",
    "cwnd",
    "slow_start",
    "bottleneck",
    "shared_bottleneck",
    "send_buffer",
    "unknown_window",
)

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
    *("first_data_s", "last_data_s", "rtt_min_s", "rtt_mean_s", "lost", "lost_upstream", "reordered", "not_captured"),
    *("opened", "reset", "established_s", "closed", "duplicates", "nagle_waits", "nagle_wait_s"),
    *("start_s", "end_s", "zero_windows", "zero_window_s"),
    *(
        "largest_delivered_bytes",
        "smallest_stuck_bytes",
        "congestion_marks",
        "ect1_packets",
        "ece_packets",
        "cwr_packets",
        "reported_marks",
        "reported_is_minimum",
        "reported_marked_bytes",
    ),
    *("sack_reneged", "hop_changes", "keep_alives", "keep_alives_unanswered", "fast_open_bytes"),
    *("fast_open_accepted_bytes", "ack_wait_s", "rtt_step_at_s", "rtt_step_from_s", "rtt_step_to_s"),
    *RETRANSMISSIONS.values(),
    *(f"limited_{limit}_s" for limit in LIMITS),
)

#: Every path passes the 576 bytes that IPv4 hosts must accept (RFC 1122 section 3.3.2): what is smaller and does not
#: arrive is lost for another reason.
MIN_TOO_LARGE = 536

#: The same where no data passed at all: nearly every path passes 1,280 bytes, IPv6's minimum (RFC 8200 section 5).
MIN_FULL_SEGMENT = 1220

#: Entry of an unknown path.
NO_PATH: Mapping[str, Any] = {
    "limiter": "undecided",
    "rate_bps": None,
    "rate_ci95": None,
    "depth_bytes": None,
    "depth_ci95": None,
}


def of_flows(
    rows: Iterable[Row],
    stalls: Iterable[Row],
    congestion: Mapping[int, Sequence[Row]],
    icmp: Iterable[Row] = (),
) -> list[JsonObject]:
    """Return each connection in the order of the first packets.

    `rows` are those of the table `captured`, one for each direction with data; `stalls` events of that kind;
    `congestion` rankings by the number of the direction; `icmp` the ICMP errors that quote segments.
    """
    connections: dict[int, list[Row]] = {}
    for row in rows:
        connections.setdefault(row["connection"], []).append(row)
    by_connection: dict[int, list[JsonObject]] = {}
    for stall in stalls:
        entry = {
            "start_s": stall["time_s"],
            "duration_s": stall["duration_s"],
            "class": stall["class"],
            "sender": ENDS_OF_FLOWS[stall["flow"] % 2],
        }
        by_connection.setdefault(stall["flow"] // 2, []).append(entry)
    reports: dict[int, list[JsonObject]] = {}
    for report in icmp:
        entry = {"sender": ENDS_OF_FLOWS[report["flow"] % 2], **report}
        del entry["flow"]
        reports.setdefault(report["flow"] // 2, []).append(entry)
    return [
        {
            **_connection(number, directions, congestion),
            "stalls": by_connection.get(number, []),
            "icmp": reports.get(number, []),
        }
        for number, directions in sorted(connections.items())
    ]


def _bytes(row: Row) -> int:
    """Return the bytes that a direction sent: those captured, or else those that the other end acknowledged."""
    return max(row["payload_bytes"] or 0, row["delivered_bytes"] or 0)


def _connection(
    number: int,
    directions: Sequence[Row],
    congestion: Mapping[int, Sequence[Row]],
) -> JsonObject:
    main = max(directions, key=_bytes)

    def total(name: str) -> int | None:
        return _sum(row[name] for row in directions)

    others = [row for row in directions if row is not main]
    waits_s = [row["nagle_wait_s"] for row in directions]
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
        "reverse_bytes": _sum(_bytes(row) if row["lost"] is not None else row["delivered_bytes"] for row in others),
        "handshake_s": main["handshake_s"],
        "goodput_bps": main["goodput_bps"],
        "first_data_s": main["first_data_s"],
        "last_data_s": main["last_data_s"],
        "rtt_min_s": main["rtt_min_s"],
        "rtt_mean_s": main["rtt_mean_s"],
        "segments_lost": _sum(row[name] for row in directions for name in ("lost", "lost_upstream")),
        "reordered": total("reordered"),
        "not_captured": total("not_captured"),
        "duplicates": total("duplicates"),
        "nagle": {
            "waits": total("nagle_waits"),
            "seconds": math.fsum(waits_s) if None not in waits_s else None,
        },
        "zero_window": _zero_window(main),
        "too_large_bytes": _too_large(directions),
        "largest_delivered_bytes": main["largest_delivered_bytes"],
        "ecn": {
            "ce_packets": total("congestion_marks"),
            "ect1_packets": total("ect1_packets"),
            "ece_packets": main["ece_packets"],
            "cwr_packets": main["cwr_packets"],
            "reported_marks": main["reported_marks"],
            "reported_is_minimum": main["reported_is_minimum"],
            "reported_marked_bytes": main["reported_marked_bytes"],
        },
        "sack_reneged": total("sack_reneged"),
        "keep_alives": {"probes": main["keep_alives"], "unanswered": main["keep_alives_unanswered"]},
        "fast_open": _fast_open(main),
        "ack_wait_s": main["ack_wait_s"],
        "hop_changes": total("hop_changes"),
        "rtt_step": _rtt_step(main),
        "established": main["established_s"] is not None,
        "closed": bool(main["closed"]),
        "refused": bool(main["opened"] and main["reset"] and main["established_s"] is None and not _bytes(main)),
        "retransmissions": {cause: _retransmissions(directions, column) for cause, column in RETRANSMISSIONS.items()},
        "limited": _limited(main),
        "congestion": list(congestion.get(main["flow"], ())) or None,
    }


def _zero_window(row: Row) -> JsonObject:
    """Return how often and how long the receiver advertised a zero window, and the share of the connection's time."""
    count, seconds, life_s = row["zero_windows"], row["zero_window_s"], row["end_s"] - row["start_s"]
    if count is None:
        return {"count": None, "seconds": None, "share": None}
    return {"count": count, "seconds": seconds, "share": seconds / life_s if life_s > 0 else 0.0}


def _too_large(directions: Iterable[Row]) -> int | None:
    """Return the size from which on no segment passed, though smaller packets did: None without such segments."""
    return min((row["smallest_stuck_bytes"] for row in directions if _is_too_large(row)), default=None)


def _is_too_large(row: Row) -> bool:
    stuck_bytes, passed_bytes = row["smallest_stuck_bytes"], row["largest_delivered_bytes"]
    if stuck_bytes is None:
        return False
    if passed_bytes is None:  # nothing passed but the handshake
        return bool(row["handshake_s"] is not None and stuck_bytes >= MIN_FULL_SEGMENT)
    return bool(max(passed_bytes + 1, MIN_TOO_LARGE) <= stuck_bytes)


def _fast_open(row: Row) -> JsonObject | None:
    """Return the bytes of data in the SYN, and how many of them the SYN/ACK acknowledged; None without data."""
    sent_bytes = row["fast_open_bytes"]
    return {"bytes": sent_bytes, "accepted_bytes": row["fast_open_accepted_bytes"]} if sent_bytes else None


def _rtt_step(row: Row) -> JsonObject | None:
    """Return when the RTT rose at once and for good, and the least before and since; None if it did not."""
    if row["rtt_step_at_s"] is None:
        return None
    return {name: row[f"rtt_step_{name}"] for name in ("at_s", "from_s", "to_s")}


def _sum(values: Iterable[int | None]) -> int | None:
    """Return the sum of counts; None if one of them is unknown."""
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)


def partial_sum(counts: Iterable[int | None]) -> int | None:
    """Return the sum of the known counts; None if none is."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _retransmissions(directions: Sequence[Row], column: str) -> int | None:
    """Return the retransmissions of a connection; those of a handshake stand in each of its rows."""
    return directions[0][column] if column.startswith("syn") else _sum(row[column] for row in directions)


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
        lost += row["not_captured"]
        weights += row["data_segments"]
    return {"packets": lost, "share": lost / (lost + weights) if lost + weights else None}


#: Why it is unknown how many segments of a connection were lost.
UNSEEN = "their data, or the options that report losses, were not captured"

#: Vantage → where that is.
PLACES = {"sender": "at the sender", "receiver": "at the receiver", "middle": "on the way"}


#: Columns that the summary sums over all connections; `flows` lists the largest only.
COUNTED = ("delivered_bytes", "lost", "unseen")


def sentence(analysis: Mapping[str, Any], data_bytes: int, lost: int, unseen: int = 0) -> str:
    """Return how much was captured, at which vantage point, what was lost, what limits the path; and of UDP.

    `unseen` is the number of connections with data that were not captured.
    """
    of_udp = udp.sentence(udp.of_analysis(analysis))
    if not analysis["connections"]:
        return of_udp or _no_connection(analysis["files"])
    where = f", seen {PLACES[analysis['vantage']]}" if analysis["vantage"] else ""
    data = numbers.value(data_bytes, "bytes") if data_bytes else "no data"
    seen = f"{repr_format.counted(analysis['connections'], 'connection')} with {data}{where}"
    parts = [seen, *_losses(analysis["connections"], lost, unseen)]
    if analysis["capture_loss"]["packets"]:
        parts.append(f"{repr_format.counted(analysis['capture_loss']['packets'], 'segment')} missed by the capture")
    return "; ".join(parts) + "." + _path(analysis["path"]) + (of_udp and f" {of_udp}")


def _losses(connections: int, lost: int, unseen: int) -> Iterable[str]:
    """Return what was lost, and of how many connections that is unknown."""
    if unseen < connections:
        yield f"{repr_format.counted(lost, 'segment')} lost"
    if unseen == connections:
        yield f"losses unknown, as {UNSEEN}"
    elif unseen:
        yield f"losses unknown for {repr_format.counted(unseen, 'more connection')}, as {UNSEEN}"


def _no_connection(files: Sequence[Mapping[str, Any]]) -> str:
    packets = sum(file["packets"] for file in files)
    filtered = sum(file.get("filtered", 0) for file in files)
    others = sum(file.get("not_tcp", 0) for file in files)
    if packets and filtered == packets:
        return f"None of {repr_format.counted(packets, 'packet')} matches the filter."
    packets -= filtered
    if packets and others == packets:
        return f"No TCP among {repr_format.counted(packets, 'packet')}."
    return f"No connection among {repr_format.counted(packets, 'packet')}."


def _path(path: Mapping[str, Any]) -> str:
    if path["limiter"] in ("policer", "shaper"):
        depth = f", {depth_of(path, ' deep')}" if path["depth_bytes"] else ""
        return f" A {path['limiter']} of {rate_of(path)}{depth}."
    if path["limiter"] == "queue":
        rate = numbers.value(path["rate_bps"], "bit/s")
        return f" A queue before a link of {rate}."
    return ""


def rate_of(path: Mapping[str, Any]) -> str:
    """Return the limiter's rate, as a range if it is uncertain, or `an unknown rate`."""
    if path["rate_bps"] is None and path["rate_ci95"]:
        low, high = (numbers.value(end, "bit/s") for end in path["rate_ci95"])
        return f"a rate of at least {low} and at most {high}"
    return "an unknown rate" if path["rate_bps"] is None else numbers.value(path["rate_bps"], "bit/s")


def depth_of(path: Mapping[str, Any], word: str = "") -> str:
    """Return the limiter's depth with a suffix; "or more" if its bucket may have been partly empty at first."""
    or_more = ", or more if it was not full at first" if path.get("depth_is_minimum") else ""
    return numbers.value(path["depth_bytes"], "bytes") + word + or_more


#: Connections of TCP, and flows of UDP, that the JSON object lists. The tables have all connections.
MAX_FLOWS = 10_000

#: Segments that are analysed before the rows found are put away; and somebody may want it to end.
AT_A_TIME = 50_000

#: Columns of the analysis of which a row of the table `captured` is made here.
ENDS = ("client_port", "server_port")
ANALYSIS_COLUMNS = (*(name for name in COLUMNS if name not in ("connection", "sender")), *ENDS)


def summarise_capture(
    capture: _core.Capture, rankings: Mapping[int, Ranking], log: ClockLog | None = None
) -> JsonObject:
    """Return the analysis of a capture of which all rows were taken.

    A stall that coincides with a gap in the log of the host's clock has its class.
    """
    seen = capture.seen()
    stalls = capture.top_talker_stalls()
    told: JsonObject = {
        "files": [_file(file) for file in capture.files()],
        "vantage": vantage(seen),
        "packets": capture.segments,
        "connections": capture.connections,
        "path": capture.path() or dict(NO_PATH),
        "capture_loss": capture_loss(seen),
        "clock_steps": dict(zip(("count", "seconds"), capture.clock_steps, strict=True)),
        "flows": of_flows(
            map(_direction, capture.largest(ANALYSIS_COLUMNS)),
            stalls if log is None else _logged(stalls, log, capture),
            rankings,
            capture.icmp_reports(),
        ),
        "udp": udp.of_capture(capture, MAX_FLOWS),
    }
    if told["path"]["limiter"] in ("shaper", "queue") and udp.shares_path(told["flows"], told["udp"]["flows"]):
        told["path"] = {**told["path"], **NO_PATH}  # its rate is what was left for TCP
    return {
        **told,
        "summary": sentence(told, *(sum(row[what] for row in seen) for what in COUNTED)),
    }


def _direction(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the analysis in the form of the table `captured`."""
    flow = row["flow"]
    return {
        **row,
        "connection": flow // 2,
        "sender": ENDS_OF_FLOWS[flow % 2],
        "client": end(row["client"], row["client_port"]),
        "server": end(row["server"], row["server_port"]),
        "vantage": _core.CAPTURE_VANTAGES[row["vantage"]],
    }


def end(address: str, port: int) -> str:
    """Return address and port: `192.0.2.1:443`, `[2001:db8::1]:443`."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _logged(stalls: Sequence[dict[str, Any]], log: ClockLog, capture: _core.Capture) -> list[dict[str, Any]]:
    """Give the stalls that coincide with gaps in the clock log their class."""
    import numpy as np

    from ackclock.dataset.tables import CLOCK_GAPS

    begin_s = 1e-9 * (capture.origin_ns or 0) + np.array([stall["time_s"] for stall in stalls])
    which, classes, _ = log.explains(begin_s, np.array([stall["duration_s"] for stall in stalls]))
    told = list(stalls)
    for place, gap in zip(which, classes, strict=True):
        told[place] = {**told[place], "class": CLOCK_GAPS[gap]}
    return told


def _file(file: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts of a file that are not zero."""
    always = ("path", "packets", "segments", "note")
    return {key: value for key, value in file.items() if key in always or (value and key != "refused")}
