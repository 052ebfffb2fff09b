"""Findings that stand beside a verdict, on captures of live hosts and on made analyses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.capture.test_diagnosis import limited, reported

from ackclock import capture
from ackclock.capture.observations import NO_ECN, observations

#: The feedback of a connection whose handshake was not captured.
UNREADABLE = dict.fromkeys(("ece_packets", "cwr_packets"))

LIVE = Path(__file__).parent / "live"


def observed(name: str, vantage: str) -> list[str]:
    flows = capture.summarise([LIVE / f"{name}-{vantage}.pcap.xz"]).analysis["flows"]
    return [finding.sentence for finding in observations(flows)]


@pytest.mark.parametrize("vantage", ["sender", "receiver"])
@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("fast-open-accepted", "13 connections sent data in the SYN (TCP Fast Open), and the server accepted them."),
        (
            "fast-open-refused",
            "14 connections sent data in the SYN (TCP Fast Open); the SYN/ACK did not acknowledge them",
        ),
        ("ecn-marks", "96 acknowledgements echoed it (ECE), and the sender reduced its window 10 times (CWR)."),
        ("keep-alives", "18 keep-alives were exchanged"),
        ("keep-alives-unanswered", "keep-alives in a row were not answered"),
        ("outage-data", "an outage of the path."),
        ("route-change", "The shortest RTT rose from 36.7 ms to 7"),
        ("acks-slow", "the return path is congested."),
    ],
)
def test_what_was_imposed_is_the_only_finding(name, part, vantage):
    (sentence,) = observed(name, vantage)
    assert part in sentence


@pytest.mark.parametrize(
    "name",
    ["rcv-stops-sender", "http-think-sender", "app-lossy-trickle-sender", "app-lossy-trickle-receiver"],
)
def test_other_causes_have_none(name):
    assert not observed(*name.rsplit("-", 1))


def test_the_hop_count_shows_behind_the_change_and_marks_behind_the_link():
    assert "TTL of the packets changed once" in observed("route-change", "receiver")[0]
    assert "TTL" not in observed("route-change", "sender")[0]
    assert observed("ecn-marks", "receiver")[0].startswith("58 packets were CE-marked")


def test_data_that_the_server_did_not_take_from_the_syn_is_not_lost():
    for vantage in ("sender", "receiver"):
        flows = capture.summarise([LIVE / f"fast-open-refused-{vantage}.pcap.xz"]).analysis["flows"]
        assert sum(flow["segments_lost"] for flow in flows) == 0


def sentences(*flows: dict[str, Any]) -> list[str]:
    return [finding.sentence for finding in observations(flows)]


def flow(**more: Any) -> dict[str, Any]:
    (made,) = reported(**more)["flows"]
    return made


def lossy(*spans: tuple[float, float]) -> list[dict[str, Any]]:
    return [
        {"start_s": start_s, "duration_s": for_s, "class": "double_retransmission", "sender": "client"}
        for start_s, for_s in spans
    ]


THREE = lossy((2.0, 0.4), (2.4, 0.8), (3.2, 1.6))


def test_an_outage_stops_all_flows_after_data_has_passed():
    (sentence,) = sentences(flow(stalls=THREE))
    assert sentence.startswith("Nothing passed from 2.00 s on, for at least 800 ms and at most 2.80 s; 3 copies")
    assert not sentences(flow(stalls=THREE), flow(id=1)), "another flow went on"
    assert sentences(flow(stalls=THREE), flow(id=1, stalls=THREE))
    assert not sentences(flow(stalls=THREE, first_data_s=1.95)), "too large for the path from the start"
    assert not sentences(flow(stalls=lossy((2.0, 0.4), (4.0, 0.8)))), "two losses, not in a row"


def test_the_wait_for_the_timer_outlasts_an_outage():
    (until_the_end,) = sentences(flow(stalls=THREE, last_data_s=4.8))
    assert until_the_end.startswith("Nothing passed from 2.00 s on, for at least 800 ms; 3 copies"), "was it over?"
    # At the receiver what ends a stall has passed, and the next stall is another wait for a timer.
    behind = lossy((2.0, 4.0), (6.0, 2.6))
    (at_receiver,) = sentences(flow(stalls=behind, vantage="receiver"))
    assert at_receiver == "Nothing passed from 2.00 s on, for at most 4.00 s: an outage of the path."


@pytest.mark.parametrize("vantage", ["sender", "receiver"])
def test_an_outage_of_5_s_is_within_its_bounds(vantage):
    flows = capture.summarise([LIVE / f"outage-both-{vantage}.pcap.xz"]).analysis["flows"]
    (found,) = [one for one in observations(flows) if "outage" in one.sentence]
    assert found.evidence["outages"] == 1
    assert found.evidence["begin_s"] == pytest.approx(2.0, abs=0.5)
    passed_s = 7.0 - found.evidence["begin_s"]
    assert found.evidence.get("min_s", 0.0) <= passed_s <= found.evidence["max_s"]


def test_a_stall_in_which_lost_data_waits_is_no_applications():
    (one,) = capture.summarise([LIVE / "outage-both-sender.pcap.xz"]).analysis["flows"]
    classes = [stall["class"] for stall in one["stalls"]]
    assert classes == [*["double_retransmission"] * 4, "tail_loss"]


def test_waiting_acknowledgements_dominate_the_delay():
    slow = {"ack_wait_s": 0.1, "rtt_min_s": 0.05, "rtt_mean_s": 0.2}
    assert sentences(flow(**slow))
    assert not sentences(flow(**{**slow, "ack_wait_s": 0.019})), "jitter"
    assert not sentences(flow(**{**slow, "rtt_mean_s": 0.4})), "the data waits longer"
    late = {"vantage": "receiver", "limited": limited(application=0.9, cwnd=0.1)}
    assert not sentences(flow(**slow, **late)), "its application writes late"


def test_a_few_packets_are_no_evidence():
    assert not sentences(flow(keep_alives={"probes": 0, "unanswered": 0}))
    (exchanged,) = sentences(flow(keep_alives={"probes": 2, "unanswered": 2}))
    assert "exchanged" in exchanged
    syn_lost = {**flow()["retransmissions"], "syn": 1}
    ignored = {"bytes": 100, "accepted_bytes": 0}
    assert not sentences(flow(fast_open=ignored, retransmissions=syn_lost)), "the SYN with the data was lost"


def test_reneging_and_l4s_have_a_sentence():
    assert "SACK reneging" in sentences(flow(sack_reneged=3))[0]
    l4s = {**NO_ECN, **UNREADABLE, "ect1_packets": 9}
    none = {**l4s, "reported_marks": 0}
    assert sentences(flow(ecn=none)) == ["Nine packets carried ECT(1) (L4S). None was marked."]
    (not_readable,) = sentences(flow(ecn=l4s))
    assert not_readable.startswith("Nine packets carried ECT(1) (L4S). What the receiver reported of marks is not read")
    assert "None was marked" not in not_readable
    (partly,) = sentences(flow(ecn={**l4s, "ce_packets": 2}))
    assert partly.startswith("Two packets were CE-marked instead of dropped (ECN): what the receiver reported of marks")


def test_the_counter_of_accecn_is_read_instead_of_ece_and_cwr():
    accurate = {**NO_ECN, **UNREADABLE, "ect1_packets": 90, "reported_marks": 12}
    (reported_marks,) = sentences(flow(ecn=accurate))
    assert reported_marks.startswith(
        "Packets were CE-marked instead of dropped (ECN): the receiver reported twelve marked"
    )
    around = {**accurate, "ce_packets": 20, "reported_is_minimum": True, "reported_marked_bytes": 29_000}
    (at_least,) = sentences(flow(ecn=around))
    assert "the receiver reported at least twelve marked packets with 29.0 kB of data (AccECN)" in at_least
    assert "ECE" not in at_least
    assert "CWR" not in at_least


def test_one_packet_is_spoken_of_in_the_singular():
    (exchanged,) = sentences(flow(keep_alives={"probes": 1, "unanswered": 0}))
    assert exchanged.startswith("One keep-alive was exchanged")
    l4s = {**NO_ECN, "ce_packets": 1, "ect1_packets": 1, "ece_packets": 1, "cwr_packets": 1}
    (marked,) = sentences(flow(ecn=l4s))
    assert marked.startswith("One packet was CE-marked instead of dropped (ECN): one acknowledgement echoed it")
    assert sentences(flow(sack_reneged=1))[0].startswith("One segment was retransmitted")
