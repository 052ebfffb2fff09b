"""Diagnosis of captures of live hosts, against what was imposed (`live/README.md`)."""

from pathlib import Path

import pytest

from ackclock import capture
from ackclock.capture import match
from ackclock.capture.diagnosis import diagnose
from ackclock.capture.findings import Cause

LIVE = Path(__file__).parent / "live"

#: Bits on Ethernet for each bit of IP packets of 1,496 bytes.
FRAME_PER_IP_PACKET = 1514 / 1496


@pytest.mark.parametrize(
    ("name", "verdict", "dropped"),
    [
        ("rcv-stops-sender", Cause.RECEIVER, 111),
        ("http-think-sender", Cause.APPLICATION, 0),
        ("app-lossy-trickle-sender", Cause.APPLICATION, 14),
        ("app-lossy-trickle-receiver", Cause.APPLICATION, 14),
        ("policer-reno-deep-receiver", Cause.SHAPER, 774),
    ],
)
def test_verdict_and_losses(name, verdict, dropped):
    analysis = capture.read([LIVE / f"{name}.pcap.xz"]).analysis
    assert diagnose(analysis).verdict is verdict
    assert sum(flow["segments_lost"] for flow in analysis["flows"]) == dropped


def test_merged_segments_of_both_ends_are_matched():
    ends = (LIVE / f"app-lossy-trickle-{end}.pcap.xz" for end in ("sender", "receiver"))
    joined = match.read(*ends).analysis["joined"]
    assert joined["segments_lost_between"] == 14
    assert (joined["acks_lost_between"], joined["missed_by_first"], joined["missed_by_second"]) == (0, 0, 0)
    assert joined["delay_forward_s"]["min"] + joined["delay_back_s"]["min"] == pytest.approx(0.03, rel=0.03)


def test_segments_smaller_than_the_mss_are_matched_where_offloads_merged_them():
    ends = (LIVE / f"mtu-probed-{end}.pcap.xz" for end in ("sender", "receiver"))
    joined = match.read(*ends).analysis["joined"]
    assert joined["segments_lost_between"] == 37
    assert (joined["missed_by_first"], joined["missed_by_second"], joined["unresolved"]) == (0, 0, 0)


def test_rate_and_depth_of_the_policer():
    path = capture.read([LIVE / "policer-reno-deep-receiver.pcap.xz"]).analysis["path"]
    assert path["limiter"] == "policer"
    assert path["rate_bps"] == pytest.approx(4e6 * FRAME_PER_IP_PACKET, rel=0.01)
    assert path["depth_bytes"] == pytest.approx(500e3, rel=0.02)


def test_a_policer_with_a_bucket_of_four_packets_has_an_interval_of_rates_at_the_sender_only():
    sender, receiver = (
        capture.read([LIVE / f"policer-small-{end}.pcap.xz"]).analysis for end in ("sender", "receiver")
    )
    for path in (sender["path"], receiver["path"]):
        assert path["limiter"] == "policer" and path["rate_bps"] is None
    low_bps, high_bps = sender["path"]["rate_ci95"]
    assert low_bps < 3.61e6 * FRAME_PER_IP_PACKET < high_bps
    assert "of at least" in diagnose(sender).findings[0].sentence
    assert receiver["path"]["rate_ci95"] is None
    assert "an unknown rate" in diagnose(receiver).findings[0].sentence


def test_an_outage_that_lasts_to_the_end_of_a_short_capture():
    sender, receiver = (capture.read([LIVE / f"outage-early-{end}.pcap.xz"]) for end in ("sender", "receiver"))
    assert diagnose(sender.analysis).verdict is Cause.NETWORK
    assert diagnose(receiver.analysis).verdict is Cause.UNDECIDED


def test_a_rise_of_the_base_rtt_is_not_called_bufferbloat():
    analysis = capture.read([LIVE / "path-step-sender.pcap.xz"]).analysis
    (flow,) = analysis["flows"]
    step = flow["rtt_step"]
    assert (step["from_s"], step["to_s"]) == pytest.approx((0.03, 0.2), abs=0.005)
    assert step["at_s"] == pytest.approx(3.0, abs=0.2)
    diagnosis = diagnose(analysis)
    assert diagnosis.verdict is Cause.NOTHING
    assert not any("queue is standing" in finding.sentence for finding in diagnosis.findings)


def test_stalls_of_the_server_are_its_thinking_time():
    (flow,) = capture.read([LIVE / "http-think-sender.pcap.xz"]).analysis["flows"]
    assert [stall["class"] for stall in flow["stalls"]] == ["application"] * 8
    durations_s = [stall["duration_s"] for stall in flow["stalls"]]
    assert durations_s == pytest.approx([0.6, 1.4] * 4, abs=0.05)
