"""Flows of UDP in a capture, QUIC connections among them: their keys in the JSON object, and the sentence on them.

The analysis is in `crates/ackclock-analysis/src/udp.rs`. QUIC is encrypted: what needs its keys is null.

Used by `analysis` and `diagnosis`, and for the table in a terminal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ackclock.figures import numbers
from ackclock.repr_format import counted

if TYPE_CHECKING:
    from ackclock import _core

JsonObject: TypeAlias = dict[str, Any]

#: Share of UDP in the payload from which on the rate that TCP gets is what is left of the path's.
MIN_SHARE = 0.05

#: The entry of a capture without UDP.
NO_UDP: Mapping[str, Any] = {"flows": [], "unlisted": {"flows": 0, "datagrams": 0, "bytes": 0}}


def of_capture(capture: _core.Capture, max_flows: int) -> JsonObject:
    """Return the flows with the most bytes in the order of their first datagrams, and the sum of the others."""
    result: JsonObject = json.loads(capture.udp(max_flows))
    return result


def of_analysis(analysis: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the flows of UDP of an analysis; none if an earlier version of ackclock wrote it."""
    result: Mapping[str, Any] = analysis.get("udp", NO_UDP)
    return result


def connections(analysis: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the flows that are QUIC connections."""
    return [flow for flow in of_analysis(analysis)["flows"] if flow["quic"]]


def tables(flows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, list[Any]]]]:
    """Yield the dataset's tables: a row for each direction with datagrams, and one for each interval of its rate."""
    from ackclock.dataset.tables import SENDERS  # it takes long to import

    both = [(flow, side, end) for flow in flows for side, end in enumerate(SENDERS) if flow[f"from_{end}"]["datagrams"]]
    if not both:
        return
    yield "datagrams", _columns(_row(flow, side, end) for flow, side, end in both)
    rates = [row for flow, side, end in both for row in _rates(flow, side, end)]
    if rates:
        yield "datagram_rates", _columns(rates)


def _columns(rows: Iterable[JsonObject]) -> dict[str, list[Any]]:
    rows = list(rows)
    return {name: [row[name] for row in rows] for name in rows[0]}


def _row(flow: Mapping[str, Any], side: int, end: str) -> JsonObject:
    """Return the row of a direction; what a QUIC connection has as a whole is in the rows of both."""
    of, quic = flow[f"from_{end}"], flow["quic"]
    handshake, spin = (quic["handshake"], quic["spin"]) if quic else ({}, {})
    return {
        "flow": 2 * flow["id"] + side,
        "connection": flow["id"],
        "client": flow["client"],
        "server": flow["server"],
        "sender": end,
        "protocol": flow["protocol"],
        "datagrams": of["datagrams"],
        "bytes": of["bytes"],
        "start_s": of["start_s"],
        "end_s": of["end_s"],
        "min_bytes": of["min_bytes"],
        "max_bytes": of["max_bytes"],
        "rate_bps": of["rate_bps"],
        "max_gap_s": of["max_gap_s"],
        "ack_sized": of["ack_sized"],
        **of["ecn"],
        "icmp_errors": sum(report["errors"] for report in flow["icmp"] if report["sender"] == end),
        "version": quic["version"] if quic else None,
        "handshake": handshake.get("state"),
        "handshake_s": handshake.get("duration_s"),
        "handshake_rtt_s": handshake.get("rtt_s"),
        "spin_rtt_min_s": spin.get("rtt_min_s"),
        "spin_rtt_mean_s": spin.get("rtt_mean_s"),
        "spin_rtt_max_s": spin.get("rtt_max_s"),
        "address_changes": len(quic["address_changes"]) if quic else None,
    }


def _rates(flow: Mapping[str, Any], side: int, end: str) -> Iterator[JsonObject]:
    """Yield the rates of a direction at the ends of the intervals."""
    interval_s = flow["rates"]["interval_s"]
    for place, rate_bps in enumerate(flow["rates"][f"{end}_bps"], 1):
        time_s = flow["start_s"] + place * interval_s
        yield {"time_s": time_s, "flow": 2 * flow["id"] + side, "interval_s": interval_s, "rate_bps": rate_bps}


def shares_path(flows: Sequence[Mapping[str, Any]], datagrams: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if UDP has a part of the payload that may share the path of TCP's data.

    `flows` are TCP's, `datagrams` UDP's. Datagrams to a host that only sends TCP's data, or from one that only
    receives it, go the other way.
    """
    if not datagrams:
        return False
    ways = [(flow["client"], flow["server"])[:: 1 if flow["sender"] == "client" else -1] for flow in flows]
    senders, receivers = ({_host(way[side]) for way in ways} for side in (0, 1))
    only_senders, only_receivers = senders - receivers, receivers - senders
    tcp_bytes = sum(flow["bytes"] or 0 for flow in flows)
    udp_bytes = 0
    for flow in datagrams:
        for source, destination in (("client", "server"), ("server", "client")):
            if _host(flow[source]) not in only_receivers and _host(flow[destination]) not in only_senders:
                udp_bytes += flow[f"from_{source}"]["bytes"]
    return udp_bytes >= MIN_SHARE * (tcp_bytes + udp_bytes) > 0


def _host(end: str) -> str:
    """Return the address of an end, without its port."""
    return end.rpartition(":")[0]


def sentence(udp: Mapping[str, Any]) -> str:
    """Return how many flows of UDP there are, with how much, and how many of them are QUIC; "" without any."""
    flows: Sequence[Mapping[str, Any]] = udp["flows"]
    number = len(flows) + udp["unlisted"]["flows"]
    if not number:
        return ""
    data_bytes = sum(flow["bytes"] for flow in flows) + udp["unlisted"]["bytes"]
    quic = [flow["quic"]["version"] for flow in flows if flow["quic"]]
    versions = ", ".join(sorted({version for version in quic if version}))
    kinds = f", {len(quic):,} of them QUIC" if quic else ""
    kinds += f" (version {versions})" if versions else ""
    return f"{counted(number, 'UDP flow')} with {numbers.value(data_bytes, 'bytes')}{kinds}."
