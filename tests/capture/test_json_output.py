"""The JSON of captures: a connection of two directions, what is None, and whose numbers are whose."""

from __future__ import annotations

import pytest

from ackclock.capture import analysis as capture_analysis

COUNTS = (
    "lost",
    "lost_upstream",
    "reordered",
    "not_captured",
    "data_segments",
    "duplicates",
    "nagle_waits",
    "zero_windows",
    "congestion_marks",
    "ect1_packets",
    "ece_packets",
    "cwr_packets",
    "reported_marks",
    "reported_is_minimum",
    "reported_marked_bytes",
    "sack_reneged",
    "hop_changes",
    "keep_alives",
    "keep_alives_unanswered",
    "fast_open_bytes",
    "fast_open_accepted_bytes",
    *capture_analysis.RETRANSMISSIONS.values(),
)


def row(flow: int, **more: object) -> dict[str, object]:
    """A direction: one with a few packets of data."""
    return {
        "flow": flow,
        "connection": flow // 2,
        "client": "10.0.0.1:50000",
        "server": "10.0.0.2:80",
        "sender": ("client", "server")[flow % 2],
        "vantage": ("sender", "receiver")[flow % 2],
        "vantage_confidence": 0.9,
        "sent_packets": 10,
        "received_packets": 7,
        "payload_bytes": 1000,
        "delivered_bytes": 900,
        "handshake_s": 0.04,
        "goodput_bps": 8e3,
        "rtt_min_s": 0.04,
        "rtt_mean_s": 0.05,
        "start_s": 0.0,
        "end_s": 2.0,
        "zero_window_s": 0.0,
        "first_data_s": 0.1,
        "last_data_s": 1.0,
        **dict.fromkeys(COUNTS, 0),
        **dict.fromkeys(("ack_wait_s", "rtt_step_at_s", "rtt_step_from_s", "rtt_step_to_s")),
        **dict.fromkeys(("nagle_wait_s", "largest_delivered_bytes", "smallest_stuck_bytes", "established_s")),
        "opened": True,
        "reset": False,
        "closed": True,
        **{f"limited_{limit}_s": 0.0 for limit in capture_analysis.LIMITS},
        **more,
    }


def test_figures_are_of_the_direction_with_more_data_and_counts_of_both():
    request = row(0, lost=1, syn_retransmissions=2, retransmissions_fast=1)
    answer = row(
        1,
        payload_bytes=10**6,
        delivered_bytes=999_000,
        zero_windows=2,
        zero_window_s=0.5,
        lost=3,
        syn_retransmissions=2,
        goodput_bps=2e6,
    )
    (reported,) = capture_analysis.of_flows([request, answer], [], {})
    assert reported["id"] == 0
    assert reported["sender"] == "server"
    assert reported["vantage"] == "receiver"
    assert (reported["bytes"], reported["reverse_bytes"]) == (999_000, 1000)
    assert reported["zero_window"] == {"count": 2, "seconds": 0.5, "share": 0.25}
    assert reported["goodput_bps"] == 2e6
    assert reported["packets"] == 20  # each direction's own
    assert reported["segments_lost"] == 4
    assert reported["retransmissions"]["syn"] == 2  # of the connection, not of each direction
    assert reported["retransmissions"]["fast"] == 1
    assert reported["congestion"] is None


def test_a_connection_of_one_direction_has_the_packets_of_both():
    (reported,) = capture_analysis.of_flows([row(6)], [], {})
    assert reported["id"] == 3
    assert reported["packets"] == 17


def test_limits_are_shares_of_the_time_in_which_something_is_given():
    (reported,) = capture_analysis.of_flows([row(0, limited_receiver_s=3.0, limited_cwnd_s=1.0)], [], {})
    assert reported["limited"] == {**dict.fromkeys(capture_analysis.LIMITS, 0.0), "receiver": 0.75, "cwnd": 0.25}
    (reported,) = capture_analysis.of_flows([row(0)], [], {})
    assert reported["limited"] is None


def test_stalls_appear_with_their_connection():
    stalls = [
        {"time_s": 1.0, "flow": 3, "duration_s": 0.5, "class": "timeout", "confidence": 1.0},
        {"time_s": 2.0, "flow": 0, "duration_s": 0.25, "class": "host", "confidence": 0.5},
    ]
    first, second = capture_analysis.of_flows([row(0), row(3)], stalls, {})
    assert first["stalls"] == [{"start_s": 2.0, "duration_s": 0.25, "class": "host", "sender": "client"}]
    assert second["stalls"] == [{"start_s": 1.0, "duration_s": 0.5, "class": "timeout", "sender": "server"}]


def row_of_vantage(vantage, *, directions=1, payload_bytes=1000, not_captured=0, data_segments=1):
    return {
        "vantage": vantage,
        "directions": directions,
        "payload_bytes": payload_bytes,
        "not_captured": not_captured,
        "data_segments": data_segments,
    }


def test_the_vantage_is_where_maximum_data_was_captured_from():
    observed = [
        row_of_vantage("sender"),
        row_of_vantage("middle", payload_bytes=10**6),
        row_of_vantage("unknown", payload_bytes=10**7),
    ]
    assert capture_analysis.vantage(observed) == "middle"
    assert capture_analysis.vantage([row_of_vantage("unknown")]) is None
    assert capture_analysis.vantage([]) is None


def test_capture_loss_is_a_share_of_what_arrived():
    rows = [row_of_vantage("sender", not_captured=5, data_segments=45), row_of_vantage("middle", data_segments=50)]
    assert capture_analysis.capture_loss(rows) == {"packets": 5, "share": pytest.approx(0.05)}
    assert capture_analysis.capture_loss([row_of_vantage("sender", data_segments=0)]) == {"packets": 0, "share": None}


def test_sizes_that_do_not_fit_the_path():
    def too_large(**more):
        (reported,) = capture_analysis.of_flows([row(0, **more)], [], {})
        return reported["too_large_bytes"]

    assert too_large(smallest_stuck_bytes=1448, largest_delivered_bytes=1000) == 1448
    assert too_large(smallest_stuck_bytes=1448, largest_delivered_bytes=1448) is None
    assert too_large(smallest_stuck_bytes=300, largest_delivered_bytes=200) is None
    assert too_large(smallest_stuck_bytes=1448) == 1448  # the handshake passed
    assert too_large(smallest_stuck_bytes=1448, handshake_s=None) is None
    assert too_large(smallest_stuck_bytes=648) is None
