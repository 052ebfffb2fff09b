"""Verdicts on analyses with one cause each."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ackclock.capture import analysis as capture_analysis
from ackclock.capture.diagnosis import diagnose
from ackclock.capture.findings import LIMIT_ADVICE, LIMITS, STALL_ADVICE, STALLS, Cause
from ackclock.capture.observations import NO_ECN
from ackclock.dataset.tables import CLOCK_GAPS

POLICER = {
    "limiter": "policer",
    "rate_bps": 1.5e6,
    "rate_ci95": [1.4e6, 1.6e6],
    "depth_bytes": 24e3,
    "depth_ci95": [2e4, 3e4],
    "burst_bytes": None,
}


def reported(*, path: Any = capture_analysis.NO_PATH, lost_share: float = 0.0, **flow: Any) -> dict[str, Any]:
    """One connection of 10 s: 1.25 MB at 1 Mb/s."""
    return {
        "packets": 1000,
        "connections": 1,
        "path": dict(path),
        "capture_loss": {"packets": round(1000 * lost_share), "share": lost_share},
        "clock_steps": {"count": 0, "seconds": 0.0},
        "flows": [
            {
                "bytes": 1_250_000,
                "goodput_bps": 1e6,
                "rtt_min_s": 0.05,
                "rtt_mean_s": 0.06,
                "handshake_s": 0.05,
                "packets": 1000,
                "sender": "client",
                "vantage": "sender",
                "segments_lost": 0,
                "duplicates": 0,
                "nagle": {"waits": 0, "seconds": 0.0},
                "too_large_bytes": None,
                "largest_delivered_bytes": None,
                "zero_window": {"count": 0, "seconds": 0.0, "share": 0.0},
                "reverse_bytes": 0,
                "id": 0,
                "first_data_s": 0.0,
                "last_data_s": 10.0,
                "ecn": dict(NO_ECN),
                "sack_reneged": 0,
                "keep_alives": {"probes": 0, "unanswered": 0},
                "fast_open": None,
                "ack_wait_s": 0.0,
                "hop_changes": 0,
                "rtt_step": None,
                "refused": False,
                "closed": True,
                "established": True,
                "icmp": [],
                "retransmissions": dict.fromkeys(capture_analysis.RETRANSMISSIONS, 0),
                "limited": None,
                "stalls": [],
                **flow,
            }
        ],
    }


def limited(**shares: float) -> dict[str, float]:
    return {**dict.fromkeys(capture_analysis.LIMITS, 0.0), **shares}


def several(count: int, rate_bps: float) -> dict[str, Any]:
    """Return connections of 1 Mb/s at the same time, all classified as sharing a link of that rate."""
    flow = {"sender": "client", "first_data_s": 0.0, "last_data_s": 10.0, "goodput_bps": 1e6}
    of_one = reported(
        limited=limited(shared_bottleneck=1.0), path={**POLICER, "limiter": "queue", "rate_bps": rate_bps}, **flow
    )
    return {**of_one, "flows": of_one["flows"] * count}


def test_flows_that_are_faster_jointly_than_their_link_do_not_share_it():
    assert diagnose(several(4, 4e6)).verdict is Cause.NETWORK
    assert diagnose(several(4, 1e6)).verdict is Cause.NOTHING
    other_way = several(2, 1e6)
    other_way["flows"] = [
        {**flow, "sender": end} for flow, end in zip(other_way["flows"], ("client", "server"), strict=True)
    ]
    assert diagnose(other_way).verdict is Cause.NETWORK


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (reported(limited=limited(application=1.0)), Cause.APPLICATION),
        (reported(limited=limited(receiver=0.6, bottleneck=0.4)), Cause.RECEIVER),
        (reported(limited=limited(cwnd=1.0), segments_lost=3), Cause.NETWORK),
        (reported(limited=limited(cwnd=1.0), ecn={**NO_ECN, "reported_marks": 3}), Cause.NETWORK),
        (reported(limited=limited(cwnd=1.0)), Cause.UNDECIDED),  # nothing shows why the window is small
        (reported(limited=limited(cwnd=1.0), rtt_mean_s=0.2), Cause.NETWORK),  # the queue that stands does
        (reported(limited=limited(shared_bottleneck=1.0)), Cause.NETWORK),
        (reported(limited=limited(bottleneck=1.0)), Cause.NOTHING),
        (reported(limited=limited(bottleneck=1.0), rtt_mean_s=0.2), Cause.NETWORK),  # a queue that stands
        (reported(limited=limited(cwnd=1.0), path=POLICER), Cause.SHAPER),
        (reported(limited=limited(application=0.9, cwnd=0.1), path=POLICER), Cause.APPLICATION),
        (reported(limited=limited(cwnd=1.0), lost_share=0.2), Cause.CAPTURE),
        (reported(limited=limited(bottleneck=0.97, application=0.03)), Cause.NOTHING),  # not worth a word
        (reported(goodput_bps=None), Cause.UNDECIDED),
    ],
)
def test_the_greatest_cost_is_the_verdict(given, verdict):
    assert diagnose(given).verdict is verdict


def test_a_small_window_without_a_loss_is_not_put_down_to_losses():
    (finding,) = diagnose(reported(limited=limited(cwnd=1.0), rtt_mean_s=0.2)).findings
    assert "Nothing was lost" in finding.next


def test_the_round_trips_of_a_stall_are_not_counted_repeatedly():
    stall = {"start_s": 1.0, "duration_s": 4.0, "class": "host", "sender": "client"}
    result = diagnose(reported(limited=limited(cwnd=0.5, bottleneck=0.5), stalls=[stall], segments_lost=1))
    assert result.verdict is Cause.HOST
    assert result.costs == pytest.approx({Cause.HOST: 0.4, Cause.NETWORK: 0.1, Cause.NOTHING: 0.5})
    (stall,) = (finding for finding in result.findings if finding.cause is Cause.HOST)
    assert "40.0 % of the time went into one stall" in stall.sentence
    assert stall.evidence["longest_s"] == 4.0


def test_a_host_that_stalls_is_not_an_application_as_well():
    stall = {"start_s": 1.0, "duration_s": 4.0, "class": "host", "sender": "client"}
    result = diagnose(reported(limited=limited(application=0.45, bottleneck=0.55), stalls=[stall]))
    assert result.verdict is Cause.HOST
    assert result.costs[Cause.APPLICATION] == pytest.approx(0.05)


def test_a_stall_that_no_limit_has_takes_of_all_of_them():
    stall = {"start_s": 1.0, "duration_s": 4.0, "class": "host", "sender": "client"}
    result = diagnose(reported(limited=limited(receiver=0.5, bottleneck=0.5), stalls=[stall]))
    assert result.costs == pytest.approx({Cause.HOST: 0.4, Cause.RECEIVER: 0.3, Cause.NOTHING: 0.3})


def test_costs_are_shares_of_the_complete():
    stall = {"start_s": 1.0, "duration_s": 20.0, "class": "timeout"}  # longer than the data took
    result = diagnose(reported(limited=limited(cwnd=1.0), stalls=[stall]))
    assert sum(result.costs.values()) == pytest.approx(1.0)


def test_a_stall_before_the_first_data_is_not_in_the_time_that_the_data_took():
    stall = {"start_s": 0.1, "duration_s": 5.9, "class": "application", "sender": "server"}
    slow_start = reported(limited=limited(bottleneck=1.0), stalls=[stall], first_data_s=6.0, last_data_s=16.0)
    result = diagnose(slow_start)
    assert result.costs == pytest.approx({Cause.APPLICATION: 5.9 / 15.9, Cause.NOTHING: 10 / 15.9})
    assert any("the flow filled a link by itself" in finding.sentence for finding in result.findings)


def test_waits_for_delayed_acks_have_their_time_to_themselves():
    short = diagnose(reported(limited=limited(application=0.9, cwnd=0.1), nagle={"waits": 200, "seconds": 8.0}))
    assert short.verdict is Cause.APPLICATION
    assert [finding.share for finding in short.findings] == pytest.approx([0.8, 0.1, 0.1])
    # One wait of 0.2 s is a stall, too, and no other's: neither the network's nor of an idle application.
    stall = {"start_s": 0.0, "duration_s": 0.21, "class": "nagle", "sender": "client"}
    waits = {"waits": 1, "seconds": 0.2}
    few = diagnose(reported(limited=limited(application=1.0), stalls=[stall], nagle=waits, bytes=100, goodput_bps=8e4))
    assert (few.verdict, len(few.findings)) == (Cause.APPLICATION, 1)
    assert few.costs == pytest.approx({Cause.APPLICATION: 1.0})


def test_a_zero_window_without_round_trips_is_the_receivers():
    closed = {"count": 1, "seconds": 0.01, "share": 0.9}
    without = {"goodput_bps": None, "rtt_min_s": None, "rtt_mean_s": None, "handshake_s": None, "established": False}
    result = diagnose(reported(zero_window=closed, **without))
    assert result.verdict is Cause.RECEIVER
    assert result.findings[0].sentence == "The receive window was closed once, for 10.0 ms in all (zero window)."
    brief = {**closed, "share": 0.01}
    assert diagnose(reported(zero_window=brief, **without)).verdict is Cause.UNDECIDED


def test_a_request_without_a_response_suggests_a_capture_at_the_other_end():
    asked = reported(sender="client", goodput_bps=None, bytes=68)
    (finding,) = diagnose(asked).findings
    assert finding.sentence == "68 bytes from the client were acknowledged, but no data from the server was captured."
    assert finding.next.startswith("Capture at the server:")
    (other,) = diagnose(reported(sender="client", goodput_bps=None, bytes=68, reverse_bytes=10)).findings
    assert other.next.startswith("Capture both directions")


def test_what_is_reported_has_its_figures_and_is_json():
    result = diagnose(reported(limited=limited(cwnd=1.0), segments_lost=7, path=POLICER)).as_dict()
    assert json.loads(json.dumps(result, allow_nan=False))["verdict"] == "shaper"
    (limiter,) = [one for one in result["findings"] if "policer" in one["sentence"]]
    assert limiter["evidence"]["rate_ci95"] == [1.4e6, 1.6e6]
    assert limiter["sentence"] == "A policer drops what exceeds 1.50 Mb/s, after a burst of 24.0 kB."
    (losses,) = [one for one in result["findings"] if "lost" in one["sentence"]]
    assert losses["evidence"]["segments_lost"] == 7


def test_queues_at_all_times_have_a_remedy():
    shared = several(4, 4e6)
    (calm,) = diagnose(shared).findings
    for flow in shared["flows"]:
        flow["rtt_mean_s"] = 0.2
    (stands,) = diagnose(shared).findings
    assert "Its queue is standing" in stands.sentence and "Its queue is standing" not in calm.sentence
    assert stands.next.startswith("Look for what else uses the link. Give the bottleneck a smaller buffer")
    assert calm.next == "Look for what else uses the link."


def test_a_single_flow_does_not_share_a_link():
    queue = {**POLICER, "limiter": "queue"}
    assert diagnose(reported(limited=limited(shared_bottleneck=1.0), path=queue)).verdict is Cause.NOTHING
    (finding,) = diagnose(reported(limited=limited(shared_bottleneck=1.0))).findings
    assert finding.evidence["limited"] == "varying_bottleneck"
    unsteady = {**capture_analysis.NO_PATH, "queue_busy": 0.6, "queue_steady": 0.2}
    result = diagnose(reported(limited=limited(bottleneck=1.0), path=unsteady))
    assert result.verdict is Cause.NETWORK


def test_a_sender_that_paces_at_the_rate_of_a_limiter_is_not_its_applications():
    path = {**POLICER, "rate_bps": 1e6}
    assert diagnose(reported(limited=limited(application=0.7, cwnd=0.3), path=path)).verdict is Cause.SHAPER
    assert diagnose(reported(limited=limited(application=0.7, cwnd=0.3), path=POLICER)).verdict is Cause.APPLICATION


def test_full_speed_outweighs_small_causes():
    assert diagnose(reported(limited=limited(application=0.15, bottleneck=0.85))).verdict is Cause.NOTHING
    assert diagnose(reported(limited=limited(application=0.3, bottleneck=0.7))).verdict is Cause.APPLICATION


def test_nagle_sizes_distance_and_faults_of_the_capture_have_findings():
    nagle = reported(limited=limited(application=1.0), nagle={"waits": 200, "seconds": 8.0})
    assert any("200 times 40.0 ms: Nagle's algorithm" in finding.sentence for finding in diagnose(nagle).findings)
    for delivered_bytes, words in ((200, "did: an MTU black hole."), (None, "or an outage from the first data on.")):
        stuck = reported(limited=limited(cwnd=1.0), too_large_bytes=1460, largest_delivered_bytes=delivered_bytes)
        assert any(finding.sentence.endswith(words) for finding in diagnose(stuck).findings)
    far = diagnose(reported(limited=limited(slow_start=1.0), handshake_s=0.7, rtt_min_s=0.7))
    assert far.verdict is Cause.NETWORK and "700 ms" in far.findings[0].sentence
    twice = reported(limited=limited(bottleneck=1.0), duplicates=100)
    assert any("contains 100 segments twice" in finding.sentence for finding in diagnose(twice).findings)
    stepped = {**reported(limited=limited(bottleneck=1.0)), "clock_steps": {"count": 1, "seconds": 2.0}}
    assert diagnose(stepped).verdict is Cause.CAPTURE


def test_without_round_trips_handshakes_and_timers_decide():
    nothing = {"goodput_bps": None, "bytes": 0}
    assert diagnose(reported(**nothing)).verdict is Cause.UNDECIDED
    refused = diagnose(reported(**nothing, refused=True))
    assert refused.verdict is Cause.HOST and "One connection was refused" in refused.findings[0].sentence
    assert diagnose(reported(**nothing, handshake_s=0.9, rtt_min_s=None)).verdict is Cause.NETWORK
    timeouts = {**dict.fromkeys(capture_analysis.RETRANSMISSIONS, 0), "timeout": 5}
    assert diagnose(reported(**nothing, retransmissions=timeouts)).verdict is Cause.NETWORK


def test_a_window_of_unknown_scale_decides_nothing():
    cut = reported(limited=limited(cwnd=0.4, unknown_window=0.6), handshake_s=None)
    assert diagnose(cut).verdict is Cause.UNDECIDED


def test_a_full_link_is_unknown_if_the_connections_began_before_the_capture():
    queue = {**POLICER, "limiter": "queue"}
    cut = reported(limited=limited(bottleneck=1.0), path=queue, established=False)
    result = diagnose(cut)
    assert result.verdict is Cause.UNDECIDED and "began before the capture" in result.findings[0].sentence
    mixed = reported(limited=limited(bottleneck=0.6, application=0.4), path=queue, established=False)
    assert diagnose(mixed).verdict is Cause.APPLICATION
    standing = reported(limited=limited(bottleneck=1.0), path=queue, established=False, rtt_mean_s=0.2)
    assert diagnose(standing).verdict is Cause.NETWORK


def test_heavy_losses_of_which_the_beginning_is_missing_may_be_a_policers():
    cut = {"limited": limited(application=0.7, cwnd=0.3), "established": False, "segments_lost": 50}
    assert diagnose(reported(**cut)).verdict is Cause.UNDECIDED
    assert diagnose(reported(**{**cut, "established": True})).verdict is Cause.APPLICATION
    assert diagnose(reported(**{**cut, "segments_lost": 5})).verdict is Cause.APPLICATION
    by_chance = {**capture_analysis.NO_PATH, "limiter": "none"}
    assert diagnose(reported(path=by_chance, **cut)).verdict is Cause.APPLICATION
    assert diagnose(reported(path=by_chance, **{**cut, "vantage": "receiver"})).verdict is Cause.UNDECIDED


def test_a_bucket_of_a_policer_or_of_a_queue_leaves_the_cause_of_losses_undecided():
    for explained, verdict in ((0.97, Cause.UNDECIDED), (0.05, Cause.NETWORK), (None, Cause.NETWORK)):
        path = {**capture_analysis.NO_PATH, "losses_explained": explained}
        diagnosis = diagnose(reported(limited=limited(cwnd=1.0), segments_lost=36, path=path))
        assert diagnosis.verdict is verdict
        assert any("burst of a few segments" in one.sentence for one in diagnosis.findings) is (explained == 0.97)


def test_a_stall_of_an_application_names_the_end():
    stall = {"start_s": 1.0, "duration_s": 6.0, "class": "application", "sender": "client"}
    result = diagnose(reported(limited=limited(application=1.0), stalls=[stall]))
    assert any("the client's application sent nothing" in finding.sentence for finding in result.findings)


def test_stalls_of_segments_that_are_too_large_have_no_other_advice():
    stall = {"start_s": 1.0, "duration_s": 6.0, "class": "double_retransmission", "sender": "client"}
    result = diagnose(reported(limited=limited(cwnd=1.0), stalls=[stall], too_large_bytes=1460))
    (advice,) = (finding.next for finding in result.findings if finding.evidence.get("class"))
    assert advice == "The segments that never arrived explain it."


def test_less_than_a_round_trip_is_too_little():
    assert diagnose(reported(limited=limited(slow_start=1.0), goodput_bps=1e9, bytes=1000)).verdict is Cause.UNDECIDED


def test_a_short_capture_that_ends_in_slow_start_is_undecided():
    short = {"limited": limited(slow_start=0.9, cwnd=0.1), "bytes": 50_000, "goodput_bps": 1e6}
    cut = diagnose(reported(closed=False, **short))
    assert cut.verdict is Cause.UNDECIDED and "capture at the sender" in cut.findings[0].next
    assert diagnose(reported(closed=True, **short)).verdict is Cause.NOTHING
    assert diagnose(reported(closed=False, **{**short, "bytes": 500_000})).verdict is Cause.NOTHING


def test_every_class_of_the_analysis_has_a_cause_and_texts():
    from ackclock import _core

    valid = {*_core.CAPTURE_STALLS, *CLOCK_GAPS} - {"unknown"}
    assert valid == set(STALLS) == set(STALL_ADVICE)
    assert (
        set(_core.CAPTURE_LIMITS) - {"unknown"}
        == set(capture_analysis.LIMITS)
        == set(LIMITS) - {"varying_bottleneck", "unknown_bottleneck", "bottleneck_beside_udp", "unexplained_window"}
    )
    assert set(LIMITS) == set(LIMIT_ADVICE)


def test_each_verdict_has_its_exit_status():
    statuses = [cause.exit_status for cause in Cause]
    assert len(set(statuses)) == len(statuses)
    assert not {1, 2, 3} & set(statuses)


def sentences(given: dict[str, Any]) -> list[tuple[str, str]]:
    return [(result.sentence, result.next) for result in diagnose(given).findings]


def test_a_flow_behind_a_policer_shares_no_link_and_nothing_is_held_back():
    (_, (message, then)) = sentences(reported(path=POLICER, limited=limited(shared_bottleneck=1.0)))
    assert message == "For 100 % of the time the flow had what the policer let through."
    assert then == "That is the policer's doing: what exceeds its rate is dropped."
    shaper = {**POLICER, "limiter": "shaper"}
    (_, (message, then)) = sentences(reported(path=shaper, limited=limited(bottleneck=1.0)))
    assert "the shaper let through" in message
    assert then.endswith("held back.")


def test_a_rate_or_depth_that_is_hardly_given_is_reported_as_a_range():
    wide = {**POLICER, "rate_bps": None, "rate_ci95": [0.9e6, 1.8e6], "depth_is_minimum": True}
    first = sentences(reported(path=wide, limited=limited(cwnd=1.0)))[0][0]
    burst = "after a burst of 24.0 kB, or more if it was not full at first."
    assert first == f"A policer drops what exceeds a rate of at least 900 kb/s and at most 1.80 Mb/s, {burst}"


def test_a_rate_that_is_not_stated_is_reported_as_unknown():
    path = {**POLICER, "rate_bps": None, "rate_ci95": None}
    (finding, *_) = diagnose(reported(limited=limited(cwnd=1.0), path=path)).findings
    assert "drops what exceeds an unknown rate" in finding.sentence


def test_slow_start_behind_timeouts_is_no_short_transfer():
    timeouts = {**dict.fromkeys(capture_analysis.RETRANSMISSIONS, 0), "timeout": 3}
    (short, *_) = sentences(reported(limited=limited(slow_start=1.0)))
    (after, *_) = sentences(reported(limited=limited(slow_start=1.0), retransmissions=timeouts))
    assert "Transfers are short" in short[1]
    assert after[1] == "Each timeout begins it anew: find where packets are lost."


def test_where_nothing_is_given_of_the_time_nothing_is_decided():
    assert diagnose(reported()).verdict is Cause.UNDECIDED
    none = {**reported(), "connections": 0, "flows": []}
    assert sentences(none)[0][0] == "The capture contains no connection of TCP or QUIC."
