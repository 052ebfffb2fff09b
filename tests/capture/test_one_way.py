"""Captures of one direction, as on asymmetric routes: what passed is counted, each byte once; no more is claimed."""

from __future__ import annotations

import struct

import pytest
from small_networks import dumbbell

import ackclock
from ackclock import capture
from ackclock.capture import match
from ackclock.capture.diagnosis import diagnose
from ackclock.capture.findings import Cause
from ackclock.capture.trace_statistics import trace

SIZES = (2_000_000, 1_234_567, 14_480)

SCENARIO = f"""
duration = "30s"
repeats = 1
{dumbbell("10Mbit", "40ms", "30p")}
loss = {{ probability = 0.01 }}
[record]
pcap = ["senders", "receivers"]
""" + "".join(f'[[flows]]\ncongestion = "cubic"\nsize = "{size}B"\n' for size in SIZES)


@pytest.fixture(scope="module", params=["senders", "receivers"])
def observed(request, tmp_path_factory):
    """Return the analysis of the senders' packets alone, and of all packets."""
    place = tmp_path_factory.mktemp("one-way")
    ackclock.run(ackclock.loads(SCENARIO).plan(), captures=place, seeds=[3])
    path = place / f"seed-3-{request.param}.pcap"
    return capture.read([path], "dst port 5001").analysis, capture.read([path]).analysis


def test_what_passed_is_counted_each_byte_one_time(observed):
    data, both = observed
    assert [flow["bytes"] for flow in data["flows"]] == [flow["bytes"] for flow in both["flows"]] == list(SIZES)
    for flow in data["flows"]:
        duration_s = flow["last_data_s"] - flow["first_data_s"]
        assert flow["goodput_bps"] == pytest.approx(8 * flow["bytes"] / duration_s)


def test_nothing_is_reported_that_only_acknowledgements_report(observed):
    data, both = observed
    assert data["path"]["limiter"] == "undecided"
    assert both["path"]["limiter"] != "undecided"
    assert data["vantage"] is None
    for flow in data["flows"]:
        assert flow["limited"] is flow["rtt_min_s"] is flow["handshake_s"] is flow["congestion"] is None


def test_samples_grow_to_what_passed(tmp_path):
    ackclock.run(ackclock.loads(SCENARIO).plan(), captures=tmp_path, seeds=[3])
    data = capture.read([tmp_path / "seed-3-senders.pcap"], "dst port 5001").data
    assert data.flows["delivered_bytes"].to_list() == list(SIZES)
    for flow, size in enumerate(SIZES):
        sofar = data.flow_samples.filter(data.flow_samples["flow"] == 2 * flow)["delivered_bytes"].drop_nulls()
        assert sofar.is_sorted()
        assert sofar[-1] <= size


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Return the path of a capture at the senders."""
    place = tmp_path_factory.mktemp("acks")
    ackclock.run(ackclock.loads(SCENARIO).plan(), captures=place, seeds=[3])
    return place / "seed-3-senders.pcap"


def test_acks_without_data_show_bytes_but_no_losses(path):
    acks, both = capture.read([path], "src port 5001").analysis, capture.read([path]).analysis
    assert any(flow["segments_lost"] for flow in both["flows"])
    for flow, whole in zip(acks["flows"], both["flows"], strict=True):
        assert (flow["sender"], flow["reverse_bytes"]) == (whole["sender"], 0)
        assert flow["bytes"] == pytest.approx(whole["bytes"], abs=1)  # the last acknowledgement is of the FIN
        assert flow["segments_lost"] is flow["reordered"] is flow["duplicates"] is flow["goodput_bps"] is None
        data = {cause: count for cause, count in flow["retransmissions"].items() if cause != "synack"}
        assert set(data.values()) == {None}
    assert "losses unknown" in acks["summary"]
    diagnosis = diagnose(acks)
    assert diagnosis.verdict is Cause.UNDECIDED
    assert not any("lost:" in finding.sentence for finding in diagnosis.findings)


def test_data_without_acks_show_retransmissions_but_no_causes(path):
    for flow in capture.read([path], "dst port 5001").analysis["flows"]:
        causes = flow["retransmissions"]
        assert causes["fast"] is causes["timeout"] is causes["spurious"] is flow["zero_window"]["count"] is None
        assert flow["segments_lost"] is not None
        assert causes["unknown"] is not None


def test_trace_statistics_have_no_zeros_for_what_was_not_captured(path):
    rows = trace(capture.read([path], "src port 5001", segments=True).data)
    values = {(row["sender"], row["what"]): row["value"] for row in rows.iter_rows(named=True)}
    assert values["client", "retransmission"] is values["client", "syn_packets"] is None
    assert values["server", "syn_packets"] == 0.0


def test_a_snap_length_that_cuts_options_hides_the_losses(path, tmp_path):
    short = tmp_path / "short.pcap"
    short.write_bytes(cut_packets(path.read_bytes(), 54))
    found, whole = capture.read([short]).analysis, capture.read([path]).analysis["flows"]
    assert "snap length" in diagnose(found).findings[0].sentence
    for flow, full in zip(found["flows"], whole, strict=True):
        assert flow["segments_lost"] is flow["retransmissions"]["spurious"] is None
        assert flow["retransmissions"]["unknown"] == sum(full["retransmissions"].values())
        assert flow["limited"] is None


def cut_packets(content: bytes, snap_bytes: int) -> bytes:
    """Return a capture with so many bytes of each packet at most."""
    parts, place = [content[:24]], 24
    while place < len(content):
        seconds, fraction, kept, size = struct.unpack_from("<IIII", content, place)
        short = min(kept, snap_bytes)
        parts.append(struct.pack("<IIII", seconds, fraction, short, size) + content[place + 16 : place + 16 + short])
        place += 16 + kept
    return b"".join(parts)


def test_two_captures_of_acks_show_no_losses_of_data_between_them(path, tmp_path):
    ackclock.run(ackclock.loads(SCENARIO).plan(), captures=tmp_path, seeds=[3])
    joined = match.read(path, tmp_path / "seed-3-receivers.pcap", "src port 5001").analysis["joined"]
    assert joined["segments_lost_between"] is joined["segments_lost_after"] is None
    assert joined["acks_lost_between"] == 0
    both = match.read(path, tmp_path / "seed-3-receivers.pcap").analysis["joined"]
    assert both["segments_lost_between"] > 0
