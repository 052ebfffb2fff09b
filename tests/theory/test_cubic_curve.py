"""CUBIC's curve around its plateau: Belhareth 2014, section 5.5.1."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from ackclock import theory


def test_the_times_after_the_plateau_are_the_published_ones():
    # section 5.5.1, cut to 0.05 s
    after_s = theory.time_after_plateau(np.array([1.0, 2, 3, 4]))
    assert after_s == pytest.approx([1.35, 1.70, 1.95, 2.15], abs=0.011)


def test_the_steps_are_those_of_figure_5_14():
    assert theory.steps_after_plateau(4) == pytest.approx([1.35, 0.35, 0.25, 0.20], abs=0.011)


@pytest.mark.parametrize(("w_max", "beta", "c"), [(80, 0.8, 0.4), (1000, 0.7, 0.4), (80, 0.8, 0.04)])
def test_the_curve_begins_after_the_decrease_and_is_flat_at_its_maximum(w_max, beta, c):
    k = theory.cubic_k(w_max, c=c, beta=beta)
    assert theory.cubic_curve(0.0, w_max, c=c, beta=beta) == pytest.approx(beta * w_max)
    assert theory.cubic_curve(k, w_max, c=c, beta=beta) == pytest.approx(w_max)
    for packets in (-2, 1, 4):
        when_s = k + theory.time_after_plateau(float(packets), c=c)
        assert theory.cubic_curve(when_s, w_max, c=c, beta=beta) == pytest.approx(w_max + packets)


def played(w_max: float, capacity: int, rtt_s: float) -> int:
    """The window, watched each millisecond: where it is a round trip after it first exceeds the capacity."""
    times = np.arange(0, 60, 1e-3)
    windows = np.floor(theory.cubic_curve(times, w_max, beta=0.8) + 1e-9)
    over = int(np.argmax(windows > capacity))
    return int(windows[over + round(rtt_s / 1e-3)])


@pytest.mark.parametrize("rtt_s", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("w_max", [60, 79, 80, 81, 83, 95, 200])
def test_the_next_maximum_is_the_window_a_round_trip_after_the_capacity(w_max, rtt_s):
    assert theory.next_w_max(w_max, 80, rtt_s, beta=0.8) == pytest.approx(played(w_max, 80, rtt_s), abs=1)


@pytest.mark.parametrize("start", [40, 70, 80, 81, 90, 150])
@pytest.mark.parametrize("rtt_s", [0.1, 0.5, 1.3])
def test_it_converges_to_one_packet_above_the_capacity_from_anywhere(start, rtt_s):
    # figure 5.15: BDP + BS = 80
    *_, last = islice(theory.cubic_convergence(start, 80, rtt_s, beta=0.8), 80)
    assert last == 81


def test_from_an_rtt_of_1_36_s_on_it_does_not():
    *_, last = islice(theory.cubic_convergence(81, 80, 1.4, beta=0.8), 80)
    assert last > 81


def test_the_three_scenarios_of_the_section():
    """A second window increase within the round trip: from RTTs of 0.35, 0.25 and 1.35 s on."""
    for w_max, rtt_s in ((80, 0.353), (79, 0.248), (81, 1.358)):
        below, above = (theory.next_w_max(w_max, 80, rtt_s + step, beta=0.8) for step in (-0.01, 0.01))
        assert (below, above) == (81, 82)
