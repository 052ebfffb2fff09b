"""Sums over all connections."""

from __future__ import annotations

import numpy as np

from ackclock import _core
from ackclock.captures.tally import Tally

SENDER, MIDDLE = (_core.CAPTURE_VANTAGES.index(word) for word in ("sender", "middle"))


def rows(flow, payload_bytes, vantage, capture_lost=0, data_segments=1):
    ones = np.ones(len(flow), np.uint64)
    return {
        "flow": np.array(flow, np.uint32),
        "payload_bytes": np.array(payload_bytes, np.uint64),
        "vantage": np.array(vantage, np.uint8),
        "capture_lost": capture_lost * ones,
        "data_segments": data_segments * ones,
    }


def test_of_a_vantage_all_directions_are_summed():
    tally = Tally(10)
    tally.add(rows([0, 1], [100, 50], [SENDER, MIDDLE], capture_lost=2))
    tally.add(rows([2], [7], [SENDER], data_segments=5))
    sender, middle = tally.seen()
    assert sender == {
        "vantage": "sender",
        "directions": 2,
        "payload_bytes": 107,
        "capture_lost": 2,
        "data_segments": 6,
    }
    assert (middle["vantage"], middle["directions"], middle["payload_bytes"]) == ("middle", 1, 50)


def test_the_largest_connections_are_those_of_most_bytes_in_both_directions():
    tally = Tally(2)
    tally.add(rows([0, 2, 3, 4], [100, 60, 60, 110], [SENDER] * 4))
    tally.add(rows([6, 8], [5, 115], [SENDER] * 2))
    assert tally.largest().tolist() == [1, 4]


def test_no_connection_is_none():
    tally = Tally(2)
    tally.add(rows([], [], []))
    assert (tally.seen(), tally.largest().tolist()) == ([], [])
