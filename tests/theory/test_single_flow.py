"""One CUBIC flow through one buffer: closed forms against time stepping, quadrature, and the equations themselves."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq

from ackclock.errors import InputError
from ackclock.theory import single_flow as sf
from ackclock.theory.single_flow.stages import CUBIC, QUEUED, Cubic, Line, Root, cubic_to_tcp_s, tcp_to_cubic_s

#: The eleven ways through the states (Belhareth 2014, section 2.3.1.2).
PATHS = (
    "A-B-D-E",
    "A-C-E",
    "A-C-D-E",
    "C-D-E",
    "C-E",
    "B-D-E",
    "B-D-C-E",
    "B-A-C-E",
    "B-A-C-D-E",
    "D-C-E",
    "D-E",
)
GROWTHS = ("acks", "rtt")


def stepped(flow: sf.SingleFlow, epoch: sf.Epoch, step_s: float) -> dict[str, float | str]:
    """Window, queue and packets by small steps in time, from the rules alone, until the window is W_E.

    The window is the greater of the cubic and the estimate. By ACKs the estimate grows by a / R(t) per second; by RTT
    it is W1 + a t / R with the R = max(τ, (W − a)/C) of its own window, found by bisection.
    """
    v = math.cbrt((epoch.plateau - epoch.start) / flow.c)
    reno, t, sent, area, states = epoch.start, 0.0, 0.0, 0.0, []
    while True:
        cubic = flow.c * (t - v) ** 3 + epoch.plateau
        if flow.growth == "rtt":
            reno = _by_rtt(flow, epoch.start, t, flow.full_p)
        window = max(cubic, reno)
        if window >= flow.full_p:
            break
        trip_s = max(flow.rtt_s, window / flow.capacity_pps)
        queued, leads = window > flow.pipe_p, cubic > reno
        states.append({(0, 0): "A", (1, 0): "B", (0, 1): "C", (1, 1): "D"}[leads, queued])
        sent += window / trip_s * step_s
        area += max(0.0, window - flow.pipe_p) * step_s
        if flow.growth == "acks":
            reno += flow.growth_p / trip_s * step_s
        t += step_s
    path = "-".join([*(state for state, _ in itertools.groupby(states[1:])), "E"])
    return {"end_s": t, "sent": sent, "area": area, "path": path}


def _by_rtt(flow: sf.SingleFlow, start: float, t: float, most: float) -> float:
    low, high = start, most + 1
    for _ in range(50):
        middle = (low + high) / 2
        trip_s = max(flow.rtt_s, (middle - flow.growth_p) / flow.capacity_pps)
        low, high = (middle, high) if start + flow.growth_p * t / trip_s > middle else (low, middle)
    return low


def set_ups(growth: str) -> dict[str, tuple[sf.SingleFlow, sf.Epoch]]:
    """A set-up for each path, by search; after a loss at W_E, with or without fast convergence, or at a smaller one.

    The last is a flow whose path has grown: without it A-B-D-E cannot be.
    """
    rng = np.random.default_rng(7)
    result: dict[str, tuple[sf.SingleFlow, sf.Epoch]] = {}
    for _ in range(20_000):
        if set(PATHS) <= result.keys():
            break
        capacity, rtt_s, buffer_p = (
            10 ** rng.uniform(2.5, 4.5),
            10 ** rng.uniform(-2.5, -0.7),
            10 ** rng.uniform(0, 2.5),
        )
        flow = sf.SingleFlow(
            capacity, rtt_s, buffer_p, rng.uniform(0.1, 0.5), 10 ** rng.uniform(-1.5, 0.5), growth=growth
        )
        window = flow.full_p * rng.choice([1.0, rng.uniform(0.1, 1.0)])
        epoch = sf.after_loss(flow, window, rng.choice([0.0, math.inf]))
        cycle = sf.cycle(flow, epoch)
        longest_s = max(stage.end_s - stage.start_s for stage in cycle.stages)
        if all(stage.end_s - stage.start_s > 0.02 * longest_s for stage in cycle.stages):
            result.setdefault(cycle.path, (flow, epoch))
    return result


SET_UPS = {growth: set_ups(growth) for growth in GROWTHS}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("growth", GROWTHS)
def test_each_path_is_what_small_steps_give(path: str, growth: str) -> None:
    flow, epoch = SET_UPS[growth][path]
    cycle = sf.cycle(flow, epoch)
    steps = stepped(flow, epoch, cycle.end_s / 20_000)
    assert steps["path"] == cycle.path == path
    assert steps["end_s"] == pytest.approx(cycle.end_s, rel=1e-3)
    assert steps["sent"] == pytest.approx(sf.packets_sent(cycle), rel=1e-3)
    assert steps["area"] == pytest.approx(sf.queue_area(cycle), rel=3e-3, abs=1e-3)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("growth", GROWTHS)
def test_areas_and_packets_are_those_of_quadrature(path: str, growth: str) -> None:
    """∫ W dt and ∫ W/R dt of the window as it is, from stage to stage; and the window has no gap."""
    flow, epoch = SET_UPS[growth][path]
    cycle = sf.cycle(flow, epoch)
    sent = 0.0
    for stage in cycle.stages:
        area, _ = quad(lambda t, curve=stage.curve: float(curve.at(t)), stage.start_s, stage.end_s)
        assert stage.curve.area(stage.start_s, stage.end_s) == pytest.approx(area, rel=1e-9)

        def rate(t: float, curve=stage.curve) -> float:  # type: ignore[no-untyped-def]
            window = float(curve.at(t))
            return window / max(flow.rtt_s, window / flow.capacity_pps)

        sent += quad(rate, stage.start_s, stage.end_s)[0]
    assert sf.packets_sent(cycle) == pytest.approx(sent, rel=1e-9)
    for one, following in itertools.pairwise(cycle.stages):
        assert one.end_s == following.start_s
        assert float(one.curve.at(one.end_s)) == pytest.approx(float(following.curve.at(following.start_s)), rel=1e-9)
    assert float(cycle.stages[-1].curve.at(cycle.end_s)) == pytest.approx(flow.full_p, rel=1e-9)


def test_round_trips_under_a_cubic_are_those_of_quadrature() -> None:
    cubic = Cubic(0.4, 6.0, 400.0)
    expected, _ = quad(lambda t: 1 / float(cubic.at(t)), 1.0, 11.0)
    assert cubic.rounds(1.0, 11.0) == pytest.approx(expected, rel=1e-12)


def test_growth_by_acks_is_a_packets_per_window() -> None:
    """The mean of √(W0² + 2aC t): dW/dt = aC/W."""
    curve = Root(2.0, 0.0, 300.0, 2 * 0.3 * 8000)
    for t in (2.0, 5.0, 60.0):
        slope = (float(curve.at(t + 1e-4)) - float(curve.at(t))) / 1e-4
        assert slope == pytest.approx(0.3 * 8000 / float(curve.at(t)), rel=1e-4)
    assert curve.when(float(curve.at(33.0))) == pytest.approx(33.0)


def test_growth_by_rtt_is_equation_2_11() -> None:
    """(W − W1)(W − a) = aCt, and t_CE = (W_E − W1)(W_E − a)/(aC)."""
    flow = sf.SingleFlow(16_667, 0.01, 50, growth="rtt")
    cycle = sf.cycle(flow, sf.Epoch(175.0, 217.0))
    a, curve = flow.growth_p, cycle.stages[-1].curve
    for t in (0.2, 1.0, 1.5):
        window = float(curve.at(t))
        assert (window - 175) * (window - a) == pytest.approx(a * flow.capacity_pps * t)
    assert cycle.path == "C-E"
    assert cycle.end_s == pytest.approx((flow.full_p - 175) * (flow.full_p - a) / (a * flow.capacity_pps))


def test_by_rtt_the_rtt_is_never_less_than_without_a_queue() -> None:
    """A cubic that is passed at W = 100.1, with Cτ = 100 and a = 1/3: the estimate is still W1 + a t/τ there."""
    passed_s = (100.1 - 80) * 3 * 0.05
    c = brentq(lambda c: c * (passed_s - math.cbrt(20 / c)) ** 3 - 0.1, 20 / passed_s**3, 1e6)
    flow = sf.SingleFlow(2000, 0.05, 20, c=c, growth="rtt")
    stages = sf.cycle(flow, sf.Epoch(80.0, 100.0)).stages
    first_c = next(stage for stage in stages if stage.state == "C")
    assert first_c.start_s == pytest.approx(passed_s, rel=1e-9)
    assert float(first_c.curve.at(passed_s)) == pytest.approx(100.1)


def test_crossings_without_a_queue_solve_their_equation() -> None:
    """c (t − V)³ + cV³ = a t/τ at 3V/2 ± √σ, and at no other time after 0."""
    a, c, rtt_s, v = 1 / 3, 0.4, 0.05, 2.5
    times_s = [cubic_to_tcp_s(a, c, rtt_s, v), tcp_to_cubic_s(a, c, rtt_s, v)]
    for time_s in times_s:
        assert c * (time_s - v) ** 3 + c * v**3 == pytest.approx(a * time_s / rtt_s, rel=1e-12)
    assert 0 < times_s[0] < times_s[1]
    assert cubic_to_tcp_s(a, c, 0.2, v) == tcp_to_cubic_s(a, c, 0.2, v) == math.inf
    assert cubic_to_tcp_s(a, c, 0.002, v) == math.inf, "behind the loss"


def test_the_times_of_table_2_5() -> None:
    cubic, line = Cubic(0.4, 6.0, 468.0), Line(0.0, 374.0, (1 / 3) / 0.05)
    assert line.when(416.0) == pytest.approx(0.05 * 3 * (416 - 374))
    assert cubic.when(416.0) == pytest.approx(6.0 - math.cbrt(52 / 0.4))
    assert cubic.when(500.0) == pytest.approx(6.0 + math.cbrt(32 / 0.4))


def test_what_a_loss_leaves() -> None:
    """Equations 2.12 and 2.13: V is ∛(βW/c), and ∛(βW/2c) after a fast convergence."""
    flow = sf.SingleFlow(8333, 0.05, 50)
    usual, lowered = sf.after_loss(flow, 400.0, 400.0), sf.after_loss(flow, 400.0, 401.0)
    assert usual == sf.Epoch(320.0, 400.0)
    assert usual.to_plateau_s(flow.c) == pytest.approx((0.2 * 400 / 0.4) ** (1 / 3))
    assert lowered == sf.Epoch(320.0, 360.0)
    assert lowered.to_plateau_s(flow.c) == pytest.approx((0.2 * 400 / 0.8) ** (1 / 3))
    without = sf.SingleFlow(8333, 0.05, 50, fast_convergence=False)
    assert sf.after_loss(without, 400.0, 401.0) == usual


def test_the_growth_and_the_window_of_a_loss() -> None:
    assert sf.SingleFlow(8333, 0.05, 50).growth_p == pytest.approx(3 * 0.2 / 1.8)
    assert sf.SingleFlow(8333, 0.05, 50, packets_per_ack=2).growth_p == pytest.approx(3 * 0.2 / (2 * 1.8))
    assert sf.SingleFlow(10_000, 0.05, 50).loss_window == 551.0
    assert sf.SingleFlow(10_000, 0.05, 50, rounding="loss").loss_window == 552.0, "551 packets fit"
    assert sf.SingleFlow(10_010, 0.05, 50, rounding="loss").loss_window == 552.0, "551.5 would"


def test_thresholds_of_cubic_mode() -> None:
    """38.0 ms at 100 Mb/s and 15.1 ms at 1 Gb/s without a buffer, from τ V² = 4β / (c (2 − β)); the print: 39, 18."""
    assert sf.cubic_threshold_rtt_s(1e8 / 12_000) == pytest.approx(0.0380, abs=5e-5)
    assert sf.cubic_threshold_rtt_s(1e9 / 12_000) == pytest.approx(0.0151, abs=5e-5)
    for buffer_p, packets_per_ack in ((0, 1), (50, 1), (500, 2)):
        rtt_s = sf.cubic_threshold_rtt_s(8333, buffer_p, packets_per_ack=packets_per_ack)
        v = math.cbrt(0.2 * (8333 * rtt_s + buffer_p) / 0.4)
        assert rtt_s * v**2 == pytest.approx(4 * 0.2 / (0.4 * 1.8 * packets_per_ack))


def test_at_the_threshold_the_minimum_difference_is_zero() -> None:
    """And it is the least of the difference, found by looking."""
    rtt_s = sf.cubic_threshold_rtt_s(8333, 50)
    for factor, cubic in ((0.9, False), (1.1, True)):
        flow = sf.SingleFlow(8333, factor * rtt_s, 50)
        assert sf.always_cubic(flow) is cubic
        w_max = flow.pipe_p + 50
        v = math.cbrt(0.2 * w_max / 0.4)
        times_s = np.linspace(v, 3 * v, 100_001)
        difference = 0.4 * (times_s - v) ** 3 + 0.2 * w_max - flow.growth_p * times_s / flow.rtt_s
        assert sf.min_difference(flow, w_max) == pytest.approx(difference.min(), abs=1e-6)
        assert (sf.min_difference(flow, w_max) > 0) is cubic


def test_the_modes_of_the_five_set_ups() -> None:
    """Section 2.4.2: cubic mode at 100 Mb/s and 50 ms, TCP mode at 200 Mb/s and 10 ms."""
    (cubic,) = sf.stationary(sf.SingleFlow(1e8 / 12_000, 0.05, 50))
    (tcp,) = sf.stationary(sf.SingleFlow(2e8 / 12_000, 0.01, 50))
    assert (cubic.path, tcp.path) == ("B-D-E", "C-E")


def test_without_delay_every_loss_is_at_the_same_window() -> None:
    for growth in GROWTHS:
        assert len(sf.stationary(sf.SingleFlow(1e8 / 12_000, 0.05, 50, growth=growth))) == 1


def test_losses_captured_an_rtt_later_take_turns_in_cubic_mode() -> None:
    """After a fast convergence the window is steep at W_E and overshoots; then the plateau is high and it does not."""
    flow = sf.SingleFlow(1e8 / 12_000, 0.05, 50, rounding="window", loss_detection="rtt_later")
    long, short = sorted(sf.stationary(flow), key=lambda cycle: -cycle.end_s)
    assert long.end_s > 1.8 * short.end_s
    assert (long.lost_p, short.lost_p) == (2, 1)
    assert long.epoch.plateau == math.floor(0.9 * short.end_window)
    assert short.epoch.plateau == long.end_window
    assert long.end_s - long.lost_s == pytest.approx(flow.full_p / flow.capacity_pps)


def test_rounds_observe_a_loss_at_fractions_and_complete_packets_do_not() -> None:
    """Section 2.4.1.3: the level differs by fractions of a packet, and fast convergence follows; rounded, none."""
    fractions = sf.SingleFlow(2e8 / 12_000, 0.01, 50, loss_detection="next_round")
    levels = [cycle.end_window for cycle in itertools.islice(sf.cycles(fractions), 12)]
    assert np.ptp(levels) > 0.01
    assert min(levels) >= fractions.full_p
    assert max(levels) < fractions.full_p + fractions.growth_p
    whole = sf.SingleFlow(2e8 / 12_000, 0.01, 50, loss_detection="next_round", rounding="loss")
    assert {cycle.end_window for cycle in itertools.islice(sf.cycles(whole), 12)} == {218.0}


def test_rounds_are_those_of_the_window() -> None:
    """t_(k+1) = t_k + R(t_k): the time at which the loss is seen is the end of one (appendix A.2)."""
    flow = sf.SingleFlow(2e8 / 12_000, 0.01, 50, loss_detection="next_round")
    cycle = next(itertools.islice(sf.cycles(flow), 3, None))
    ends_s = [0.0]
    while ends_s[-1] < cycle.lost_s:
        window = min(float(cycle.windows([ends_s[-1]])[0]), flow.full_p)
        ends_s.append(ends_s[-1] + max(flow.rtt_s, window / flow.capacity_pps))
    assert cycle.end_s == pytest.approx(ends_s[-1])


def test_complete_windows_are_rounded_towards_the_plateau() -> None:
    """Linux's window is w_max ± ⌊c |t − V|³⌋: the last packet below the plateau comes when the curve is one short."""
    flow = sf.SingleFlow(3e8 / 12_000, 0.02, 50, rounding="window")
    cycle = sf.cycle(flow, sf.after_loss(flow, 552.0, 552.0))
    v = math.cbrt((552 - 441) / 0.4)
    assert cycle.epoch == sf.Epoch(441.0, 552.0)
    assert cycle.end_s == pytest.approx(v - math.cbrt(1 / 0.4))
    times_s = np.linspace(0.01, cycle.end_s * 0.999, 500)
    assert np.array_equal(cycle.windows(times_s), 552 - np.floor(0.4 * (v - times_s) ** 3))


def test_averages_are_those_of_the_trajectory() -> None:
    """A.5–A.9 of two cycles that take turns, against samples over a thousand cycles."""
    flow = sf.SingleFlow(1e8 / 12_000, 0.05, 50, loss_detection="rtt_later", rounding="loss", c=0.9)
    result = sf.averages(flow)
    seen = sf.trajectory(flow, 5_000.0, 0.01)
    queue = np.clip(seen.windows - flow.pipe_p, 0, flow.buffer_p + 1)
    rate = seen.windows / np.maximum(flow.rtt_s, seen.windows / flow.capacity_pps)
    assert result.queue_p == pytest.approx(queue.mean(), rel=5e-3)
    assert result.throughput_pps == pytest.approx(rate.mean(), rel=1e-3)
    assert result.window_p == pytest.approx(seen.windows.mean(), rel=1e-3)
    assert result.delay_s == pytest.approx(result.queue_p / flow.capacity_pps)
    assert result.rtt_s == pytest.approx(flow.rtt_s + result.delay_s)
    cycles = [cycle for _, cycle in sf.timeline(flow, 5_000.0)]
    lost, sent = sum(cycle.lost_p for cycle in cycles), result.throughput_pps * 5_000
    assert result.loss_rate == pytest.approx(lost / sent, rel=0.01)
    assert result.period_s == pytest.approx(5_000 / len(cycles), rel=5e-3)


def test_a_trajectory_follows_its_cycles() -> None:
    flow = sf.SingleFlow(1e7 / 12_000, 0.05, 10)
    seen = sf.trajectory(flow, 20.0, 0.01)
    assert seen.times_s[[0, -1]] == pytest.approx([0.01, 20.0])
    assert seen.times_s.size == seen.windows.size == seen.queue.size == 2000
    falls_s = seen.times_s[1:][np.diff(seen.windows) < -1]
    starts_s = [start_s for start_s, _ in sf.timeline(flow, 20.0)][1:]
    assert falls_s == pytest.approx(starts_s, abs=0.011)
    assert seen.queue == pytest.approx(np.clip(seen.windows - flow.pipe_p - 1, 0, 10))


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [({"capacity_pps": 0}, "positive"), ({"buffer_p": -1}, "0 or more"), ({"beta": 1.0}, "between 0 and 1")],
)
def test_what_is_no_set_up(wrong: dict[str, float], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        sf.SingleFlow(**{"capacity_pps": 1000.0, "rtt_s": 0.1, "buffer_p": 10.0, **wrong})


FLOWS = st.builds(
    sf.SingleFlow,
    capacity_pps=st.floats(50, 1e6),
    rtt_s=st.floats(1e-4, 0.5),
    buffer_p=st.floats(0, 2000),
    beta=st.floats(0.05, 0.7),
    c=st.floats(0.01, 5),
    packets_per_ack=st.sampled_from([1.0, 2.0, 6.0]),
    fast_convergence=st.booleans(),
    growth=st.sampled_from(GROWTHS),
    rounding=st.sampled_from(["nothing", "loss", "window"]),
    loss_detection=st.sampled_from(["at_once", "rtt_later"]),
)


@settings(max_examples=300)
@given(FLOWS)
def test_any_flow_goes_round_and_nothing_is_lost_on_the_way(flow: sf.SingleFlow) -> None:
    for cycle in itertools.islice(sf.cycles(flow), 4):
        assert cycle.end_s > 0
        assert cycle.end_s >= cycle.lost_s >= 0
        assert cycle.stages[0].start_s == 0
        assert cycle.stages[-1].end_s == cycle.end_s
        for one, following in itertools.pairwise(cycle.stages):
            assert one.end_s == following.start_s
            there, then = float(one.curve.at(one.end_s)), float(following.curve.at(one.end_s))
            assert there == pytest.approx(then, rel=1e-6)
        for stage in cycle.stages:
            assert stage.end_s >= stage.start_s
            middle = float(stage.curve.at((stage.start_s + stage.end_s) / 2))
            assert (middle >= flow.pipe_p * (1 - 1e-9)) is (stage.state in QUEUED)
            if stage.state in CUBIC:
                assert middle >= cycle.epoch.start + min(0.0, -1e-9)
        assert sf.packets_sent(cycle) <= flow.capacity_pps * cycle.end_s * (1 + 1e-9)
        assert 0 <= sf.queue_area(cycle) <= (flow.buffer_p + 1) * cycle.end_s * (1 + 1e-9)
        assert cycle.end_window >= flow.loss_window * (1 - 1e-9)
        assert cycle.lost_p >= 1


@settings(max_examples=40)
@given(FLOWS.filter(lambda flow: flow.rtt_s > 0.005))
def test_rounds_end_less_than_a_round_after_the_loss(flow: sf.SingleFlow) -> None:
    rounds = dataclasses.replace(flow, loss_detection="next_round")
    for cycle in itertools.islice(sf.cycles(rounds), 3):
        longest_s = flow.full_p / flow.capacity_pps
        assert 0 <= cycle.end_s - cycle.lost_s <= longest_s * (1 + 1e-9)
        assert cycle.end_s > 0


@settings(max_examples=60)
@given(FLOWS)
def test_averages_of_any_flow_are_possible(flow: sf.SingleFlow) -> None:
    result = sf.averages(flow)
    assert 0 < result.throughput_pps <= flow.capacity_pps * (1 + 1e-9)
    assert 0 <= result.queue_p <= (flow.buffer_p + 1) * (1 + 1e-9)
    assert result.loss_rate > 0
    assert result.low_p < result.high_p
    assert result.period_s > 0
