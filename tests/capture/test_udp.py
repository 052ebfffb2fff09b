"""UDP and QUIC in captures: what the headers, sizes and times of encrypted packets show, and what stays undecided."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from small_networks import dumbbell

import ackclock
from ackclock import capture
from ackclock.capture import qlog, quic, udp
from ackclock.capture.diagnosis import Diagnosis, diagnose
from ackclock.capture.findings import Cause
from ackclock.capture.vantage_points import SeveralVantagePointsError
from ackclock.cli.terminal import capture as terminal

CLIENT, SERVER = ("10.0.0.1", 50000), ("192.0.2.7", 443)

#: Link type of raw IP packets (LINKTYPE_RAW).
RAW = 101

INITIAL, HANDSHAKE = 0xC0, 0xE0
CLIENT_ID, SERVER_ID, ORIGINAL_ID = b"client-1", b"server-1", b"original"

#: A packet: when in seconds, True if the client sends it, its payload's size, and what is captured of that.
Sent = tuple[float, bool, int, bytes]

SCENARIO = f"""\
name = "QUIC"
duration = "4s"
repeats = 1
{dumbbell("10Mbit", "40ms", "50p")}
[[flows]]
count = 2
transport = "quic"
[record]
pcap = ["senders", "receivers"]
"""


def long(first: int, destination: bytes, source: bytes, version: int = 1) -> bytes:
    ids = b"".join(bytes([len(each)]) + each for each in (destination, source))
    return bytes([first]) + struct.pack(">I", version) + ids


def short(destination: bytes) -> bytes:
    return b"\x40" + destination


def handshake() -> list[Sent]:
    """10 ms from the vantage point to the client and back, 30 ms to the server and back."""
    return [
        (0.0, True, 1200, long(INITIAL, ORIGINAL_ID, CLIENT_ID)),
        (0.03, False, 1200, long(INITIAL, CLIENT_ID, SERVER_ID)),
        (0.04, True, 1200, long(HANDSHAKE, SERVER_ID, CLIENT_ID)),
        (0.041, True, 100, short(SERVER_ID)),
        (0.07, False, 100, short(CLIENT_ID)),
    ]


def saved(tmp_path: Path, packets: Sequence[Sent]) -> Path:
    path = tmp_path / "quic.pcap"
    content = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, RAW)
    for number, (at_s, is_client, size, payload) in enumerate(packets):
        source, destination = (CLIENT, SERVER) if is_client else (SERVER, CLIENT)
        header = struct.pack(">BBHHHBBH", 0x45, 0, 28 + size, number, 0x4000, 64, 17, 0)
        ends = socket.inet_aton(source[0]) + socket.inet_aton(destination[0])
        data = header + ends + struct.pack(">HHHH", source[1], destination[1], 8 + size, 0) + payload
        content += struct.pack("<IIII", int(at_s), round(at_s % 1 * 1e6), len(data), 28 + size) + data
    path.write_bytes(content)
    return path


def analysed(tmp_path: Path, packets: Sequence[Sent]) -> dict[str, Any]:
    return dict(capture.summarise(saved(tmp_path, packets)).analysis)


def diagnosed(tmp_path: Path, packets: Sequence[Sent]) -> Diagnosis:
    return diagnose(analysed(tmp_path, packets))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("quic")
    data = ackclock.run(ackclock.loads(SCENARIO).plan(), captures=place, seeds=[1])
    return data, {path.stem.rsplit("-", 1)[1]: path for path in place.iterdir()}


def test_the_engines_captures_have_the_headers_of_the_stack(made):
    data, paths = made
    flows = {point: capture.summarise(path).analysis["udp"]["flows"] for point, path in paths.items()}
    for at_sender, at_receiver in zip(flows["senders"], flows["receivers"], strict=True):
        assert at_sender["quic"]["version"] == at_receiver["quic"]["version"] == "1"
        # 40 ms of propagation, and 1,242 bytes at 10 Mb/s.
        for flow in (at_sender, at_receiver):
            assert 0.04 <= flow["quic"]["handshake"]["rtt_s"] < 0.044
            assert flow["quic"]["spin"]["state"] in ("spinning", "random", "constant")
        assert at_sender["quic"]["handshake"]["to_client_s"] < 0.001 < at_sender["quic"]["handshake"]["to_server_s"]
        assert at_receiver["quic"]["handshake"]["to_server_s"] < 0.001
    assert [flow["from_client"]["datagrams"] for flow in flows["senders"]] == data.flows["sent_packets"].to_list()
    # The dataset counts those that were on their way to the receiver at the end, too.
    for flow, received in zip(flows["receivers"], data.flows["received_packets"], strict=True):
        assert 0.98 * received < flow["from_client"]["datagrams"] <= received


def test_the_spin_bit_agrees_with_the_stacks_rtt(made):
    data, paths = made
    flows = capture.summarise(paths["senders"]).analysis["udp"]["flows"]
    spinning = [(number, flow) for number, flow in enumerate(flows) if flow["quic"]["spin"]["state"] == "spinning"]
    assert spinning
    for number, flow in spinning:
        srtt_s = data.flow_samples.filter(flow=number)["srtt_s"].drop_nulls()
        assert flow["quic"]["spin"]["rtt_min_s"] >= 0.04
        assert flow["quic"]["spin"]["rtt_mean_s"] == pytest.approx(srtt_s.mean(), rel=0.2)


def test_losses_are_unknown_and_the_verdict_is_undecided(made):
    _, paths = made
    analysis = capture.summarise(paths["senders"]).analysis
    assert all(flow["segments_lost"] is None for flow in analysis["udp"]["flows"])
    assert diagnose(analysis).verdict is Cause.UNDECIDED
    assert analysis["summary"].endswith("2 of them QUIC (version 1).")


def test_two_vantage_points_are_recognised_by_datagrams_of_quic(made, tmp_path):
    _, paths = made
    with pytest.raises(SeveralVantagePointsError):
        capture.summarise(list(paths.values()))
    # Two files of one point: datagrams of DNS that are alike are none.
    dns = [(0.0, True, 40, b"\x00\x01\x01" + bytes(20))]
    one, other = tmp_path / "one", tmp_path / "other"
    files = [saved(folder, dns) for folder in (one, other) if folder.mkdir() is None]
    assert capture.summarise(files).analysis["udp"]["flows"][0]["datagrams"] == 2


def test_retransmitted_initials_without_a_response_are_the_networks(tmp_path):
    initial = long(INITIAL, ORIGINAL_ID, CLIENT_ID)
    once = [(0.0, True, 1200, initial)]
    assert diagnosed(tmp_path, once).verdict is Cause.UNDECIDED
    result = diagnosed(tmp_path, [*once, (1.0, True, 1200, initial), (3.0, True, 1200, initial)])
    assert result.verdict is Cause.NETWORK
    assert result.findings[0].sentence == (
        "1 QUIC connection got no answer: the client sent Initials again, for up to 3.00 s."
    )


def test_unsupported_versions_are_the_hosts(tmp_path):
    negotiation = long(0x80, CLIENT_ID, ORIGINAL_ID, version=0) + struct.pack(">II", 0x6B3343CF, 0xFF00001D)
    packets = [(0.0, True, 1200, long(INITIAL, ORIGINAL_ID, CLIENT_ID)), (0.03, False, len(negotiation), negotiation)]
    result = diagnosed(tmp_path, packets)
    assert result.verdict is Cause.HOST
    assert "Version Negotiation: 2, draft-29. 1 connection ended there." in result.findings[0].sentence
    later = [(at_s + 0.04, *rest) for at_s, *rest in handshake()]
    assert diagnosed(tmp_path, [*packets, *later]).verdict is Cause.UNDECIDED


def test_a_pause_of_both_ends_is_an_applications(tmp_path):
    answer = [(5.0, False, 100, short(CLIENT_ID)), (5.01, True, 50, short(SERVER_ID))]
    result = diagnosed(tmp_path, [*handshake(), *answer])
    assert result.verdict is Cause.APPLICATION
    assert result.costs[Cause.APPLICATION] == pytest.approx(4.93 / 5.01)
    assert "The server, or its host, ended 4.93 s of that." in result.findings[0].sentence


def test_a_pause_with_a_timers_backoff_is_undecided(tmp_path):
    probes = [(at_s, True, 50, short(SERVER_ID)) for at_s in (0.5, 1.36, 3.08, 6.52)]
    result = diagnosed(tmp_path, [*handshake(), *probes])
    assert result.verdict is Cause.UNDECIDED
    assert Cause.APPLICATION not in result.costs


def test_a_server_at_the_amplification_limit_is_reported(tmp_path):
    first, *_, done = handshake()
    stopped = [(0.03 + 0.001 * number, False, 1200, long(HANDSHAKE, CLIENT_ID, SERVER_ID)) for number in range(3)]
    later = [(0.34, True, 1200, long(INITIAL, SERVER_ID, CLIENT_ID)), (0.37, False, 1200, stopped[0][3])]
    end = [(0.38, True, 1200, long(HANDSHAKE, SERVER_ID, CLIENT_ID)), (0.4, *done[1:])]
    result = diagnosed(tmp_path, [first, *stopped, *later, *end])
    assert result.verdict is Cause.HOST
    assert result.findings[0].evidence["waited_s"] == pytest.approx(0.338)
    assert result.findings[0].evidence["sent_bytes"] == 3600


def test_a_constant_rate_is_reported_without_a_cause(tmp_path):
    paced = [(0.08 + 0.01 * number, False, 1200, short(CLIENT_ID)) for number in range(300)]
    analysis = analysed(tmp_path, [*handshake(), *paced])
    (flow,) = analysis["udp"]["flows"]
    assert quic.constant_rate_bps(flow) == pytest.approx(8 * 1200 / 0.01, rel=0.05)
    assert any("constant rate, up to 960 kb/s" in finding.sentence for finding in diagnose(analysis).findings)
    halting = [packet for number, packet in enumerate(paced) if number // 50 % 2]
    (flow,) = analysed(tmp_path, [*handshake(), *halting])["udp"]["flows"]
    assert quic.constant_rate_bps(flow) is None


def test_other_udp_has_a_table_and_no_verdict(tmp_path, capsys):
    analysis = analysed(tmp_path, [(0.0, True, 40, b"\x00\x01\x01"), (0.02, False, 120, b"\x00\x01\x81")])
    assert analysis["summary"] == "1 UDP flow with 160 bytes."
    assert diagnose(analysis).verdict is Cause.UNDECIDED
    terminal.print_analysis(analysis)
    printed = capsys.readouterr().out
    assert "10.0.0.1:50000 ← 192.0.2.7:443" in printed


def test_the_terminal_shows_version_rate_and_round_trip(tmp_path, capsys):
    terminal.print_analysis(analysed(tmp_path, handshake()))
    printed = capsys.readouterr().out
    assert "QUIC 1" in printed
    assert "40.0 ms" in printed


def test_a_result_keeps_the_flows_of_udp(tmp_path):
    captured = capture.read(saved(tmp_path, handshake()))
    captured.data.write(tmp_path / "result")
    again = capture.of_result(tmp_path / "result")
    assert again.analysis["udp"] == captured.analysis["udp"]
    assert udp.connections(again.analysis)


def test_results_of_earlier_versions_and_qlogs_have_no_udp():
    assert udp.sentence(udp.of_analysis({})) == ""
    assert qlog.NO_UDP["flows"] == []


def test_the_verdict_is_on_what_has_more_data(tmp_path_factory):
    mixed = SCENARIO.replace("count = 2", "").replace("[record]", '[[flows]]\nsize = "20kB"\n[record]')
    place = tmp_path_factory.mktemp("mixed")
    ackclock.run(ackclock.loads(mixed).plan(), captures=place, seeds=[1])
    analysis = dict(capture.summarise(next(place.glob("*senders*"))).analysis)
    result = diagnose(analysis)
    (of_tcp,) = analysis["flows"]
    without_quic = diagnose({**analysis, "udp": udp.NO_UDP})
    assert result.verdict is Cause.UNDECIDED
    assert result.findings[-len(without_quic.findings) :] == without_quic.findings
    larger = diagnose({**analysis, "flows": [{**of_tcp, "bytes": 10**9}]})
    assert (larger.verdict, larger.costs) == (without_quic.verdict, pytest.approx(without_quic.costs))


@pytest.mark.parametrize(("datagrams", "is_alone"), [("625/s", False), ("20/s", True)])
def test_what_udp_leaves_is_no_rate_of_the_path(datagrams: str, is_alone: bool, tmp_path: Path) -> None:
    """One CUBIC flow through 10 Mb/s, beside 5 Mb/s of datagrams, and beside next to nothing."""
    text = f"""
duration = "20s"
{dumbbell("10Mbit", "40ms")}
[record]
pcap = ["senders"]
[[flows]]
congestion = "cubic"
[[traffic]]
kind = "udp"
rate = "{datagrams}"
packet = "1000B"
"""
    ackclock.run(ackclock.loads(text), captures=tmp_path / "captures")
    analysis = ackclock.capture(list((tmp_path / "captures").iterdir())).analysis
    verdict = diagnose(analysis)
    assert (analysis["path"]["limiter"] == "queue") == is_alone
    assert verdict.verdict is (Cause.NOTHING if is_alone else Cause.UNDECIDED)
    assert any("what UDP left of it" in each.sentence for each in verdict.findings) != is_alone


def test_tables_have_the_flows_by_direction_and_their_rates(tmp_path):
    payload = [(0.1 + 0.01 * n, True, 1000, short(SERVER_ID)) for n in range(50)]
    outcome = capture.read(saved(tmp_path, [*handshake(), *payload]))
    outcome.data.write(tmp_path / "out")
    written = ackclock.Dataset.read(tmp_path / "out")
    table = written.frame("datagrams")
    (flow,) = outcome.analysis["udp"]["flows"]
    assert table["flow"].to_list() == [0, 1]
    assert table["sender"].to_list() == ["client", "server"]
    assert table["bytes"].to_list() == [flow["from_client"]["bytes"], flow["from_server"]["bytes"]]
    assert table["handshake"].to_list() == ["complete", "complete"]
    assert table["start_s"].to_list() == [0.0, pytest.approx(0.03)]
    rates = written.frame("datagram_rates").filter(flow=0)
    carried_bytes = (rates["rate_bps"] * rates["interval_s"]).sum() / 8
    assert carried_bytes == pytest.approx(flow["from_client"]["bytes"])


def test_a_capture_without_udp_has_no_rows_of_it(tmp_path):
    flow = {"flows": []}
    assert list(udp.tables(flow["flows"])) == []


def test_unknown_quic_versions_are_not_named():
    flow = {"bytes": 1000, "quic": {"version": None}}
    sentence = udp.sentence({"flows": [flow], "unlisted": {"flows": 0, "bytes": 0}})
    assert sentence.endswith(", 1 of them QUIC.")


def test_udp_with_bidirectional_tcp_shares_the_path():
    """If each host sends and receives TCP's data, UDP of either way counts."""
    tcp = [{"client": "a:1", "server": "b:2", "sender": sender, "bytes": 1000} for sender in ("client", "server")]
    other = {"client": "a:3", "server": "b:4", "from_client": {"bytes": 900}, "from_server": {"bytes": 0}}
    assert udp.shares_path(tcp, [other])
    assert not udp.shares_path([tcp[1]], [other])  # the other way only
