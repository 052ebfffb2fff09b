"""ICMP errors in a capture: they are read, counted by the connection that they quote, and explain it."""

from __future__ import annotations

import ipaddress
import itertools
import struct
from collections import defaultdict
from pathlib import Path

import pytest

from ackclock import capture
from ackclock.capture.diagnosis import diagnose

CLIENT, SERVER, ROUTER = "10.0.0.1", "192.0.2.7", "10.0.0.254"
CLIENT_6, SERVER_6, ROUTER_6 = "2001:db8::1", "2001:db8:1::7", "2001:db8::fe"

#: Link type of raw IP packets (LINKTYPE_RAW).
RAW = 101

SYN, ACK = 0x02, 0x10

#: IP identifications of each host: the same one twice would be a packet that was captured twice.
NUMBERS: defaultdict[str, itertools.count[int]] = defaultdict(itertools.count)


def packet(source: str, destination: str, protocol: int, payload: bytes) -> bytes:
    """Return an IP packet of either version, without checksums."""
    ends = [ipaddress.ip_address(end).packed for end in (source, destination)]
    if len(ends[0]) == 16:
        return struct.pack(">IHBB", 6 << 28, len(payload), protocol, 64) + ends[0] + ends[1] + payload
    number = next(NUMBERS[source])
    header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), number, 0x4000, 64, protocol, 0)
    return header + ends[0] + ends[1] + payload


def tcp(source: str, destination: str, flags: int, **fields: int) -> bytes:
    """Return a segment from port 40000 to 443, or from 443 if the server sends it."""
    ports = (443, 40000) if source in (SERVER, SERVER_6) else (40000, 443)
    numbers = (fields.get("sequence", 1000), fields.get("acknowledgement", 0))
    header = struct.pack(">HHIIBBHHH", *ports, *numbers, 0x50, flags, 65535, 0, 0)
    return packet(source, destination, 6, header + bytes(fields.get("payload", 0)))


def error(reporter: str, quoted: bytes, kind: int, code: int, mtu: int = 0) -> bytes:
    """Return an ICMP error to the sender of a packet, with as little of it as RFC 792 requires."""
    is_six = ":" in reporter
    host = str(ipaddress.ip_address(quoted[8:24] if is_six else quoted[12:16]))
    rest = quoted[: 48 if is_six else 28]
    field = struct.pack(">I" if is_six else ">HH", *((mtu,) if is_six else (0, mtu)))
    return packet(reporter, host, 58 if is_six else 1, struct.pack(">BBH", kind, code, 0) + field + rest)


def saved(tmp_path: Path, packets: list[tuple[float, bytes]]) -> Path:
    path = tmp_path / "icmp.pcap"
    content = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, RAW)
    for at_s, data in packets:
        content += struct.pack("<IIII", 1_700_000_000 + int(at_s), round(at_s % 1 * 1e6), len(data), len(data)) + data
    path.write_bytes(content)
    return path


#: Type, code, kind and verdict; the second half for ICMPv6.
REASONS = [
    (3, 0, "network_unreachable", "network"),
    (3, 1, "host_unreachable", "network"),
    (3, 2, "protocol_unreachable", "host"),
    (3, 3, "port_unreachable", "host"),
    (3, 10, "prohibited", "network"),
    (3, 13, "prohibited", "network"),
    (11, 0, "time_exceeded", "network"),
]
REASONS_6 = [
    (1, 0, "network_unreachable", "network"),
    (1, 1, "prohibited", "network"),
    (1, 3, "host_unreachable", "network"),
    (1, 4, "port_unreachable", "host"),
    (3, 0, "time_exceeded", "network"),
]


@pytest.mark.parametrize("times_s", [(0.0,), (0.0, 1.0, 3.0)])
@pytest.mark.parametrize(
    ("ends", "reason"),
    [((CLIENT, SERVER, ROUTER), reason) for reason in REASONS]
    + [((CLIENT_6, SERVER_6, ROUTER_6), reason) for reason in REASONS_6],
)
def test_icmp_errors_explain_failed_handshakes(tmp_path, ends, reason, times_s):
    client, server, router = ends
    kind, code, name, verdict = reason
    packets = []
    for at_s in times_s:
        syn = tcp(client, server, SYN)
        packets += [(at_s, syn), (at_s + 0.01, error(router, syn, kind, code))]
    analysis = capture.summarise([saved(tmp_path, packets)]).analysis
    (flow,) = analysis["flows"]
    (report,) = flow["icmp"]
    assert (report["kind"], report["sender"], report["reporter"]) == (name, "client", router)
    assert (report["errors"], report["mtu"], report["first_s"]) == (len(times_s), None, pytest.approx(0.01))
    result = diagnose(analysis)
    assert result.verdict.name.lower() == verdict
    (finding,) = [one for one in result.findings if "reported" in one.sentence]
    assert finding.sentence.startswith("One connection was ")
    assert finding.sentence.endswith(f"reported {router}.")
    assert finding.evidence["icmp_errors"] == len(times_s)


def opened(client: str, server: str) -> list[tuple[float, bytes]]:
    """Return a handshake, and the capture at the server."""
    return [
        (0.0, tcp(client, server, SYN)),
        (0.0001, tcp(server, client, SYN | ACK, sequence=5000, acknowledgement=1001)),
        (0.02, tcp(client, server, ACK, sequence=1001, acknowledgement=5001)),
    ]


@pytest.mark.parametrize(
    ("ends", "kind", "code"), [((CLIENT, SERVER, ROUTER), 3, 4), ((CLIENT_6, SERVER_6, ROUTER_6), 2, 0)]
)
def test_a_reported_mtu_explains_large_segments_that_never_arrive(tmp_path, ends, kind, code):
    client, server, router = ends
    small = tcp(server, client, ACK, sequence=5001, acknowledgement=1001, payload=200)
    packets = opened(client, server)
    packets += [(0.03, small), (0.05, tcp(client, server, ACK, sequence=1001, acknowledgement=5201))]
    for at_s in (0.06, 0.3, 0.7, 1.5, 3.1):
        large = tcp(server, client, ACK, sequence=5201, acknowledgement=1001, payload=1440)
        packets += [(at_s, large), (at_s + 0.01, error(router, large, kind, code, mtu=1400))]
    result = diagnose(capture.summarise([saved(tmp_path, packets)]).analysis)
    assert result.verdict.name == "NETWORK"
    (finding,) = [one for one in result.findings if "MTU" in one.sentence]
    assert finding.sentence == (
        f"The path's MTU is 1,400 bytes: {router} reported 5 packets as too large, and segments of 1,440 bytes were "
        "retransmitted and never arrived: an MTU black hole."
    )
    assert finding.evidence["mtu_bytes"] == 1400


def test_errors_about_other_packets_are_no_evidence(tmp_path):
    client, server, router = CLIENT, SERVER, ROUTER
    datagram = packet(client, server, 17, struct.pack(">HHHH", 40000, 443, 8, 0))
    other = tcp(client, "192.0.2.99", SYN)
    echo = packet(router, client, 1, struct.pack(">BBHHH", 8, 0, 0, 1, 1) + tcp(client, server, SYN)[:28])
    packets = [
        *opened(client, server),
        (0.03, error(router, datagram, 3, 3)),
        (0.04, error(router, other, 3, 1)),
        (0.05, echo),
        (0.06, error(router, tcp(client, server, SYN), 3, 1)[:40]),
    ]
    analysis = capture.summarise([saved(tmp_path, packets)]).analysis
    assert [flow["icmp"] for flow in analysis["flows"]] == [[]]


def test_errors_in_several_files_are_not_counted_twice(tmp_path):
    syn = tcp(CLIENT, SERVER, SYN)
    packets = [(float(at_s), syn) for at_s in range(2)] + [(1.5, error(ROUTER, syn, 3, 1)), (2.0, syn)]
    (tmp_path / "one").mkdir()
    files = [saved(tmp_path / "one", packets)]
    for number in range(6):
        (tmp_path / str(number)).mkdir()
        files.append(saved(tmp_path / str(number), [(10.0 + number, tcp(f"10.0.1.{number}", SERVER, SYN))]))
    analysis = capture.summarise(files).analysis
    assert [report["errors"] for flow in analysis["flows"] for report in flow["icmp"]] == [1]


# --- UDP ---------------------------------------------------------------------------------------------------------


def datagram(client: str, server: str, payload: bytes, size: int = 1200) -> bytes:
    """Return a UDP datagram from port 50000 to 443, or from 443 if the server sends it."""
    ports = (443, 50000) if client in (SERVER, SERVER_6) else (50000, 443)
    content = payload + bytes(size - len(payload))
    return packet(client, server, 17, struct.pack(">HHHH", *ports, 8 + size, 0) + content)


def initial(number: int = 0) -> bytes:
    """Return the beginning of a client's Initial of QUIC, version 1, with another byte behind its header each time."""
    ids = b"\x08original\x08client-1"
    return b"\xc0" + struct.pack(">I", 1) + ids + bytes([0, 0x44, number])


@pytest.mark.parametrize("times_s", [(0.0,), (0.0, 1.0, 3.0)])
@pytest.mark.parametrize(
    ("ends", "reason"),
    [((CLIENT, SERVER, ROUTER), reason) for reason in REASONS]
    + [((CLIENT_6, SERVER_6, ROUTER_6), reason) for reason in REASONS_6],
)
def test_icmp_errors_give_the_cause_of_failed_quic_handshakes(tmp_path, ends, reason, times_s):
    client, server, router = ends
    kind, code, name, verdict = reason
    packets = []
    for number, at_s in enumerate(times_s):
        first = datagram(client, server, initial(number))
        packets += [(at_s, first), (at_s + 0.01, error(router, first, kind, code))]
    analysis = capture.summarise([saved(tmp_path, packets)]).analysis
    (flow,) = analysis["udp"]["flows"]
    (report,) = flow["icmp"]
    assert (report["kind"], report["sender"], report["reporter"]) == (name, "client", router)
    assert (report["errors"], report["mtu"], report["first_s"]) == (len(times_s), None, pytest.approx(0.01))
    result = diagnose(analysis)
    assert result.verdict.name.lower() == verdict
    assert result.findings[0].sentence.startswith("1 UDP flow was ")
    assert result.findings[0].sentence.endswith(f"reported {router}.")
    assert not any("Initials again" in each.sentence for each in result.findings)


def test_an_error_about_a_port_that_sends_data_is_no_failure(tmp_path):
    first = datagram(CLIENT, SERVER, b"question", 40)
    packets = [(0.0, first), (0.01, datagram(SERVER, CLIENT, b"answer", 80))]
    packets += [(0.02, error(SERVER, first, 3, 3))]
    analysis = capture.summarise([saved(tmp_path, packets)]).analysis
    assert analysis["udp"]["flows"][0]["icmp"][0]["kind"] == "port_unreachable"
    assert not any("refused" in each.sentence for each in diagnose(analysis).findings)


@pytest.mark.parametrize(("mtu", "verdict"), [(1400, "UNDECIDED"), (1000, "NETWORK")])
def test_the_mtu_that_a_router_reports_of_quic_is_compared_with_its_smallest(tmp_path, mtu, verdict):
    packets = []
    for number in range(3):
        first = datagram(CLIENT, SERVER, initial(number), 1450)
        packets += [(1.0 * number, first), (1.0 * number + 0.01, error(ROUTER, first, 3, 4, mtu))]
    if mtu == 1400:
        packets.append((2.1, datagram(SERVER, CLIENT, b"\xc0" + struct.pack(">I", 1) + b"\x08client-1\x08server-1")))
    finding = diagnose(capture.summarise([saved(tmp_path, packets)]).analysis).findings[0]
    assert f"{mtu:,} bytes" in finding.sentence and ROUTER in finding.sentence
    assert finding.cause.name == {"UNDECIDED": "NOTHING"}.get(verdict, verdict)
    assert finding.evidence == {"flows": 1, "mtu_bytes": mtu, "reporters": [ROUTER], "icmp_errors": 3}


def test_an_error_about_a_flow_that_was_not_captured_counts_for_none(tmp_path):
    packets = [(0.0, datagram(CLIENT, SERVER, initial()))]
    packets.append((0.1, error(ROUTER, datagram(CLIENT, "192.0.2.99", initial()), 3, 3)))
    assert capture.summarise([saved(tmp_path, packets)]).analysis["udp"]["flows"][0]["icmp"] == []
