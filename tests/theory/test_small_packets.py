"""Small packets in a queue of places: closed forms beside a queue that is filled place by place."""

from __future__ import annotations

import numpy as np
import pytest

from ackclock import theory


@pytest.mark.parametrize(("sizes", "reduction", "overhead"), [(52, 8.5, 0.148), (18.3, 6.7, 0.33)])
def test_ten_places_a_segment(sizes, reduction, overhead):
    assert theory.delay_reduction(10, sizes) == pytest.approx(reduction, rel=0.01)
    assert theory.small_packets_overhead(10, sizes) == pytest.approx(overhead, rel=0.01)


def test_the_thesis_s_tenth_of_the_delay_for_15_per_cent():
    # section 6.1.4: “divided by 10 for a loss of 15 % of the capacity”: the 15 % hold, the 10 are 8.5
    assert theory.small_packets_overhead(10, 1500 / 29) == pytest.approx(0.15, abs=0.005)
    assert theory.delay_reduction(10, 1500 / 29) < 10


@pytest.mark.parametrize("slots", [2, 5, 10])
def test_a_full_queue_takes_so_much_less_time(slots):
    """120 places, every `slots`-th with 1500 bytes and the others with 29."""
    places = np.where(np.arange(120) % slots == 0, 1500, 29)
    assert theory.delay_reduction(slots, 1500 / 29) == pytest.approx(120 * 1500 / places.sum())
    share = places[places == 29].sum() / places.sum()
    assert theory.small_packets_overhead(slots, 1500 / 29) == pytest.approx(share)


def test_the_rates_fill_the_link():
    slots, capacity_bps = 4.0, 800e3
    segments_hz = theory.tcp_rate_with_small_packets(slots, capacity_bps, 1500, 29)
    assert 8 * segments_hz * (1500 + 3 * 29) == pytest.approx(capacity_bps)
    assert theory.slots_per_segment(3 * segments_hz, capacity_bps, 1500, 29) == pytest.approx(slots)
    # 6.6 takes all of the link for TCP: a little more
    assert theory.small_packets_rate(slots, capacity_bps, 1500) == pytest.approx(3 * 800e3 / 12e3)
    assert theory.small_packets_rate(slots, capacity_bps, 1500) > 3 * segments_hz


def test_no_small_packets_change_nothing():
    assert theory.slots_per_segment(0.0, 800e3, 1500, 29) == 1
    assert theory.delay_reduction(1, 52) == 1
    assert theory.small_packets_overhead(1, 52) == 0
