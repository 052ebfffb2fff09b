"""Clock offsets and drift, from exchanges with known delays."""

from __future__ import annotations

import random

import pytest

from ackclock.hosts.clocks import ClockDrift, Exchange, Offset, offset


def exchange(asked_ns: int, there_ns: int, back_ns: int, ahead_ns: int) -> Exchange:
    """A question that takes `there_ns` to a clock that is ahead, and an answer that takes `back_ns`."""
    return Exchange(asked_ns, asked_ns + there_ns + ahead_ns, asked_ns + there_ns + back_ns)


def test_the_offset_is_that_of_the_shortest_exchange():
    found = offset([exchange(0, 900, 100, 5_000), exchange(10_000, 60, 40, 5_000), exchange(20_000, 100, 900, 5_000)])
    assert found == Offset(at_ns=10_050, ahead_ns=5_010, error_ns=50)
    assert found.to_remote(1_000) == 6_010


@pytest.mark.parametrize("ahead_ns", [0, 7_000_000_000, -3_000])
def test_the_offset_is_within_its_error(ahead_ns: int):
    chance = random.Random(ahead_ns)
    for _ in range(200):
        each = [
            exchange(1000 * n, chance.randrange(10, 5000), chance.randrange(10, 5000), ahead_ns)
            for n in range(chance.randrange(1, 9))
        ]
        found = offset(each)
        assert abs(found.ahead_ns - ahead_ns) <= found.error_ns


def test_a_drift_above_the_error_stretches_durations():
    before, after = Offset(0, 1_000, 10), Offset(10**9, 101_000, 10)
    fast = ClockDrift(before, after)
    assert fast.drift == pytest.approx(1e-4)
    assert fast.stretch == pytest.approx(1 / 1.0001)


def test_a_drift_within_the_error_is_ignored():
    assert ClockDrift(Offset(0, 1_000, 10), Offset(10**9, 1_015, 10)).stretch == 1.0
