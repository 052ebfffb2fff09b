"""Marks that AccECN reports (RFC 9768), in captures of simulated L4S flows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ackclock
from ackclock import capture
from ackclock.capture import congestion
from ackclock.capture.diagnosis import diagnose

SCENARIO = """
duration = "2s"
seeds = [1]

[network]
topology = "dumbbell"
rate = "50Mbit"
rtt = "20ms"
queue = { discipline = "fq_codel", ce_threshold = "1ms" }

[[flows]]
congestion = "prague"

[record]
pcap = ["senders", "receivers"]
"""

#: Bytes of a classic pcap file before its records, and of the header of each, whose third field is its length.
FILE_BYTES, RECORD_BYTES = 24, 16


@pytest.fixture(scope="module")
def captures(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("captures")
    ackclock.run(ackclock.loads(SCENARIO).plan(), captures=place)
    return place


def analysis(path: Path) -> dict[str, Any]:
    return capture.summarise([path]).analysis


def mid_stream(path: Path, packets: int) -> Path:
    """Return a copy of a capture without its first packets."""
    content, at = path.read_bytes(), FILE_BYTES
    for _ in range(packets):
        at += RECORD_BYTES + int.from_bytes(content[at + 8 : at + 12], "little")
    cut = path.with_name(f"cut-{path.name}")
    cut.write_bytes(content[:FILE_BYTES] + content[at:])
    return cut


def test_the_sender_learns_of_each_mark_that_the_receiver_saw(captures):
    at_sender, at_receiver = (analysis(captures / f"seed-1-{place}.pcap") for place in ("senders", "receivers"))
    (sender,), (receiver,) = at_sender["flows"], at_receiver["flows"]
    marks = receiver["ecn"]["ce_packets"]
    assert marks > 100
    assert sender["ecn"]["ce_packets"] == 0
    for ecn in (sender["ecn"], receiver["ecn"]):
        assert (ecn["reported_marks"], ecn["reported_is_minimum"]) == (marks, False)
        assert (ecn["ece_packets"], ecn["cwr_packets"]) == (None, None)
    sentences = [finding.sentence for finding in diagnose(at_sender).findings]
    assert any(f"the receiver reported {marks:,} marked packets (AccECN)" in sentence for sentence in sentences)
    assert any(
        "Congestion marks (ECN) keep the window small" in finding.next for finding in diagnose(at_sender).findings
    )


def test_the_counter_is_recognised_without_the_handshake_by_its_values(captures):
    (whole,) = analysis(captures / "seed-1-senders.pcap")["flows"]
    (cut,) = analysis(mid_stream(captures / "seed-1-senders.pcap", 500))["flows"]
    assert cut["ecn"]["ece_packets"] is None
    assert 0 < cut["ecn"]["reported_marks"] < whole["ecn"]["reported_marks"]


def test_without_handshake_and_marks_nothing_is_claimed(captures):
    before_marks = mid_stream(captures / "seed-1-senders.pcap", 3)
    content = bytearray(before_marks.read_bytes())
    at = FILE_BYTES
    while at < len(content):  # as if the counter stood at 0
        captured = int.from_bytes(content[at + 8 : at + 12], "little")
        flags = at + RECORD_BYTES + 14 + 20 + 12
        content[flags : flags + 2] = bytes([content[flags] & 0xF0, content[flags + 1] & 0x3F])
        at += RECORD_BYTES + captured
    before_marks.write_bytes(content)
    (finding, *_) = [one for one in diagnose(analysis(before_marks)).findings if "ECT(1)" in one.sentence]
    assert "not readable from here" in finding.sentence
    assert "None was marked" not in finding.sentence


@pytest.mark.parametrize("end", ["senders", "receivers"])
def test_a_paced_sender_with_marks_has_no_rate_of_its_own(tmp_path, end):
    dual = SCENARIO.replace('"2s"', '"10s"').replace('"50Mbit"', '"20Mbit"')
    dual = dual.replace('"fq_codel", ce_threshold = "1ms"', '"dualpi2"')
    ackclock.run(ackclock.loads(dual).plan(), captures=tmp_path)
    (path,) = tmp_path.glob(f"*{end}.pcap")
    found = analysis(path)
    (flow,) = found["flows"]
    assert flow["limited"]["application"] < 0.1
    diagnosis = diagnose(found)
    assert diagnosis.verdict.name == "NETWORK"
    assert any("Congestion marks (ECN)" in finding.next for finding in diagnosis.findings)


@pytest.mark.parametrize("place", ["senders", "receivers"])
def test_ect1_names_a_scalable_control(captures, place):
    (flow,) = capture.read([captures / f"seed-1-{place}.pcap"]).analysis["flows"]
    assert {one["name"] for one in flow["congestion"]} == {"prague", "unknown"}
    assert congestion.word(flow["congestion"]) == "prague"
