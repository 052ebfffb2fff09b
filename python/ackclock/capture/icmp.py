"""Findings of ICMP errors that a capture contains.

They are evidence of the path's MTU (RFC 1191, RFC 8201: path MTU discovery) and of why handshakes were not answered
(RFC 1122 section 4.2.3.9: a TCP and ICMP errors; section 4.1.3.3: UDP).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ackclock.capture.findings import Cause, Finding
from ackclock.repr_format import counted

#: Kind of an error → its cause, what it means for a connection that was not answered, and what to do next.
UNREACHABLE: Mapping[str, tuple[Cause, str, str]] = {
    "port_unreachable": (
        Cause.HOST,
        "refused: the port is unreachable",
        "See whether a server listens on that port, and whether a firewall rejects the connection.",
    ),
    "protocol_unreachable": (Cause.HOST, "refused: the host does not speak TCP", "See whether the address is right."),
    "prohibited": (
        Cause.NETWORK,
        "rejected by a firewall: communication is prohibited",
        "Look at the firewall's rules for this port and address.",
    ),
    "host_unreachable": (
        Cause.NETWORK,
        "not possible: the host is unreachable",
        "See whether the host is up, and whether its router reaches it (ARP, neighbour discovery).",
    ),
    "network_unreachable": (
        Cause.NETWORK,
        "not possible: the network is unreachable",
        "Look at the routes to the server's network.",
    ),
    "time_exceeded": (
        Cause.NETWORK,
        "not possible: the hop limit was exceeded in transit",
        "Look for a loop of routes (traceroute).",
    ),
}


#: The same for flows of UDP, which have no handshake of their own to refuse.
UNREACHABLE_BY_UDP: Mapping[str, tuple[Cause, str, str]] = {
    **UNREACHABLE,
    "protocol_unreachable": (Cause.HOST, "refused: the host does not speak UDP", "See whether the address is right."),
}

#: The smallest UDP payload that a path of QUIC has to carry (RFC 9000 section 14), and headers of IP and UDP, in bytes.
QUIC_BYTES, IP4_UDP_BYTES, IP6_UDP_BYTES = 1200, 28, 48


def of_mtu(flows: Iterable[Mapping[str, Any]]) -> Iterable[Finding]:
    """Return the finding of a path MTU that a router reported, and to which large segments were lost."""
    lossy = [flow for flow in flows if flow["segments_lost"] or any(flow["retransmissions"].values())]
    reports = [report for flow in lossy for report in _reports(flow, "too_big")]
    if not reports:
        return
    errors, routers = sum(report["errors"] for report in reports), _reporters(reports)
    sizes = [flow["too_large_bytes"] for flow in lossy if _reports(flow, "too_big") and flow["too_large_bytes"]]
    mtus = [report["mtu"] for report in reports if report["mtu"] is not None]
    mtu = f"The path's MTU is {min(mtus):,} bytes" if mtus else "Packets exceed the path's MTU"
    reported = f"{errors:,} packet{'s' * (errors > 1)} as too large"
    sentence = f"{mtu}: {', '.join(routers)} reported {reported}"
    evidence: dict[str, Any] = {"mtu_bytes": min(mtus, default=None), "routers": routers, "icmp_errors": errors}
    if sizes:
        sentence += f", and segments of {min(sizes):,} bytes were retransmitted and never arrived: an MTU black hole."
        then = "See why the sender ignores ICMP (a firewall in front of it?), or clamp the MSS to the path's MTU."
        evidence["too_large_bytes"] = min(sizes)
    else:
        sentence += ", and they were retransmitted."
        then = "Clamp the MSS to the path's MTU, so that no packet is lost to learn it."
    yield Finding(Cause.NETWORK, sentence, evidence, next=then, shown=("sequence",))


def failed_handshakes(flows: Sequence[Mapping[str, Any]]) -> Iterable[Finding]:
    """Return a finding for each reason that ICMP errors give for handshakes that were not answered."""
    without_answer = [flow for flow in flows if not flow["established"] and not flow["bytes"]]
    for kind, (cause, means, then) in UNREACHABLE.items():
        those = [flow for flow in without_answer if _reports(flow, kind)]
        if not those:
            continue
        reports = [report for flow in those for report in _reports(flow, kind)]
        connections = "One connection was" if len(those) == 1 else f"{len(those):,} connections were"
        sentence = f"{connections} {means}, reported {', '.join(_reporters(reports))}."
        evidence = {
            "connections": len(those),
            "reporters": _reporters(reports),
            "icmp_errors": sum(report["errors"] for report in reports),
        }
        yield Finding(cause, sentence, evidence, next=then)


def of_datagrams(flows: Sequence[Mapping[str, Any]]) -> Iterable[Finding]:
    """Return the findings of ICMP errors about flows of UDP: no answer, and datagrams larger than the path's MTU."""
    without_answer = [flow for flow in flows if not flow["from_server"]["datagrams"]]
    for kind, (cause, means, then) in UNREACHABLE_BY_UDP.items():
        reports = {id(flow): found for flow in without_answer if (found := _reports(flow, kind))}
        if not reports:
            continue
        errors = [report for found in reports.values() for report in found]
        those = f"{counted(len(reports), 'UDP flow')} {'was' if len(reports) == 1 else 'were'}"
        sentence = f"{those} {means}, reported {', '.join(_reporters(errors))}."
        yield Finding(cause, sentence, {"flows": len(reports), **_evidence(errors)}, next=then)
    yield from _datagrams_too_large(flows)


def failure(flow: Mapping[str, Any]) -> Cause | None:
    """Return the cause that ICMP errors give for a flow of UDP that was not answered; None without one."""
    if flow["from_server"]["datagrams"]:
        return None
    causes = [cause for kind, (cause, *_) in UNREACHABLE_BY_UDP.items() if _reports(flow, kind)]
    return causes[0] if causes else None


def _datagrams_too_large(flows: Iterable[Mapping[str, Any]]) -> Iterable[Finding]:
    """Return the finding of a path MTU: less than QUIC needs (RFC 9000 section 14) lets no connection begin."""
    those = [flow for flow in flows if _reports(flow, "too_big")]
    if not those:
        return
    reports = [report for flow in those for report in _reports(flow, "too_big")]
    mtus = [report["mtu"] for report in reports if report["mtu"] is not None]
    mtu = f"The path's MTU is {min(mtus):,} bytes" if mtus else "Datagrams exceed the path's MTU"
    errors = sum(report["errors"] for report in reports)
    sentence = f"{mtu}: {', '.join(_reporters(reports))} reported {counted(errors, 'UDP datagram')} as too large"
    headers = min(IP6_UDP_BYTES if flow["client"].startswith("[") else IP4_UDP_BYTES for flow in those)
    is_too_small = bool(mtus) and min(mtus) < QUIC_BYTES + headers and any(flow["quic"] for flow in those)
    if is_too_small:
        sentence += f"; QUIC needs datagrams of {QUIC_BYTES:,} bytes."
        cause, then = Cause.NETWORK, "Raise the MTU of that link or tunnel: QUIC cannot pass it."
    else:
        sentence += ". Path MTU discovery by probes (RFC 8899) finds a size that passes; other senders lose them."
        cause, then = Cause.NOTHING, ""
    evidence = {"flows": len(those), "mtu_bytes": min(mtus, default=None), **_evidence(reports)}
    yield Finding(cause, sentence, evidence, next=then)


def _evidence(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"reporters": _reporters(reports), "icmp_errors": sum(report["errors"] for report in reports)}


def _reports(flow: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    """Return the errors of one kind about a connection."""
    return [report for report in flow.get("icmp", ()) if report["kind"] == kind]


def _reporters(reports: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(report["reporter"] for report in reports))
