"""The pendulum: closed forms against numerical integration, published and independent values, properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp

from ackclock.errors import InputError
from ackclock.theory import pendulum
from ackclock.theory.pendulum import Filling, Side

RTT_S, PACKET_BYTES = 0.042, 1508


def line(down_mbps: float, up_mbps: float, down_kb: float, up_kb: float) -> tuple[Side, Side]:
    """A line of table 4.3."""
    made = [
        pendulum.side(rate * 1e6, RTT_S, queue_bytes=limit * 1e3, packet_bytes=PACKET_BYTES)
        for rate, limit in ((down_mbps, down_kb), (up_mbps, up_kb))
    ]
    return made[0], made[1]


def table_4_2() -> tuple[Side, Side]:
    down = pendulum.side(2.4e6, 0.042, queue_bytes=120e3, packet_bytes=PACKET_BYTES)
    return down, pendulum.side(0.4e6, 0.242, queue_bytes=20e3, packet_bytes=PACKET_BYTES)


@pytest.mark.parametrize(
    ("of", "ratio"),
    [
        ((10, 1, 150, 75), 2.78),
        ((10, 1, 150, 105), 1.98),
        ((10, 2, 150, 36), 4.26),
        ((20, 4, 300, 72), 4.31),
        ((10, 5, 150, 75), 2.01),
        ((10, 5, 150, 36), 2.58),
    ],
)
def test_mean_windows_are_those_of_an_independent_implementation(of, ratio):
    """To 1 %: computed beforehand from the same equations, every loss that can be simultaneous being so."""
    assert pendulum.follow(*line(*of), 2000).window_ratio(300, 2000) == pytest.approx(ratio, rel=0.01)


def test_the_scale_does_not_matter():
    """Twice the rates and queues, at an RTT of many packets: the same ratio."""
    small, large = (pendulum.follow(*line(*of), 2000) for of in ((10, 2, 150, 36), (20, 4, 300, 72)))
    assert large.window_ratio(300, 2000) == pytest.approx(small.window_ratio(300, 2000), rel=0.02)


def test_tilts_without_loss_go_from_the_down_to_the_up_queue():
    """Table 4.2, where the thesis forces them: many, and never the reverse."""
    result = pendulum.follow(*table_4_2(), 1000).tilts()
    assert len(result) > 20
    assert {tilt.to for tilt in result} == {1}


def test_a_long_upload_tilts_the_other_way_too():
    """With C_u τ_u > C_d τ_d the download's w*/C grows faster until the delay is (C_u τ_u − C_d τ_d) / (C_d − C_u)."""
    down, up = Side(100, 100, 0.1), Side(50, 100, 2.0)
    way = pendulum.follow(down, up, 3000)
    border_s = (50 * 2.0 - 100 * 0.1) / (100 - 50)
    to_down = [tilt.time_s for tilt in way.tilts() if tilt.to == 0]
    assert to_down
    waits_s = way.waits_s(np.array(to_down) - 1e-6).sum(axis=1)
    assert np.all(waits_s < border_s)


def integrated(state: Filling, until_s: float) -> tuple[float, float]:
    """Both windows by dw/dt = growth / RTT, RTTs as they are with the backlog in this queue."""

    def slopes(_: float, windows: np.ndarray) -> list[float]:
        wait_s = state.mine.wait_s(windows[0])
        return [state.growth_p / (side.base_rtt_s + wait_s) for side in (state.mine, state.other)]

    done = solve_ivp(slopes, (0, until_s), [state.mine_p, state.other_p], rtol=1e-10, atol=1e-9)
    return float(done.y[0, -1]), float(done.y[1, -1])


sides = st.builds(Side, st.floats(20, 2000), st.floats(5, 300), st.floats(0.005, 0.5), st.booleans())


@st.composite
def fillings(draw: st.DrawFn) -> Filling:
    """A state in which the backlog may be on this side: this flow's w*/C is positive and the greater one."""
    mine, other = draw(sides), draw(sides)
    mine_p = mine.pipe_p + draw(st.floats(0, 1)) * mine.queue_p
    maximum = other.rate_p * (mine.wait_s(mine_p) + other.base_rtt_s)
    growth = draw(st.sampled_from([1.0, 0.5]))
    return Filling(
        mine, other, max(mine_p, 1.0), maximum * draw(st.floats(0.05, 1)), growth, draw(st.sampled_from([1, 2]))
    )


@given(fillings(), st.floats(0.1, 20))
@settings(max_examples=60)
def test_windows_grow_as_the_differential_equation_has_it(state, until_s):
    window, other = integrated(state, until_s)
    assert state.lasts_s(window) == pytest.approx(until_s, rel=1e-5)
    assert state.other_at(window) == pytest.approx(other, rel=1e-6)


@given(fillings())
@settings(max_examples=300)
def test_a_tilt_is_the_first_crossing(state):
    """On a fine grid up to the overflow the lead stays positive before the tilt, and everywhere if there is none."""
    end, tilt = state.overflow(), state.tilt()

    def lead(windows: np.ndarray) -> np.ndarray:
        own = windows / state.mine.rate_p - state.mine.base_rtt_s
        others = np.array([state.other_at(window) for window in windows])
        return own - (others / state.other.rate_p - state.other.base_rtt_s)

    scale = 1e-7 * (1 + end / state.mine.rate_p)
    before = np.linspace(state.mine_p, end if tilt is None else tilt, 200)
    assert np.all(lead(before) > -scale)
    if tilt is not None:
        assert state.mine_p <= tilt <= end * (1 + 1e-12)
        assert abs(lead(np.array([tilt]))[0]) < scale


@given(fillings())
@settings(max_examples=300)
def test_overflow_fills_the_queue(state):
    """w*_i, and in packets the other flow's ACKs with it, are the queue's limit; or it is full already."""
    end = state.overflow()
    content = end - state.mine.pipe_p + (state.acks_p(end) if state.mine.counts_acks else 0)
    if end > state.mine_p:
        assert content == pytest.approx(state.mine.queue_p, rel=1e-7)
    else:
        assert content >= state.mine.queue_p * (1 - 1e-9)


def test_overflow_in_packets_with_equal_rtts_solves_the_quadratic_with_one_packet_an_ack():
    """D = w_j0 − w_i0, K = C_i τ, G = D − 2K − Q: w_i = [−G + √(G² + 8 D K)] / 4."""
    mine, other = Side(100, 50, 0.1, counts_acks=True), Side(800, 50, 0.1)
    gap, pipe = 60.0 - 20.0, 10.0
    g = gap - 2 * pipe - 50
    expected = (-g + np.sqrt(g * g + 8 * gap * pipe)) / 4
    assert Filling(mine, other, 20, 60, acked=1).overflow() == pytest.approx(expected)


def test_the_corrected_tilt():
    """C_i = 100, C_j = 50, w_i0 = 60, w_j0 = 20: w_i = 100 · (20 − 60) / (50 − 100) = 80, where 80/100 = 40/50."""
    state = Filling(Side(100, 500, 0.1), Side(50, 500, 0.1), 60, 20)
    assert state.tilt() == pytest.approx(80)
    assert state.other_at(80) == pytest.approx(40)
    assert state.lasts_s(80) == pytest.approx(((100 * -40 / -50) ** 2 - 60**2) / (2 * 100))


def test_after_a_tilt_the_backlog_stays_while_its_side_leads():
    """At a tie with C_i RTT_i < C_j RTT_j the lead of i grows first: w = C_j a / (C_i − C_j) is where it turns."""
    mine, other = Side(100, 500, 0.1), Side(50, 500, 2.0)
    turn = 50 * 100 * 1.9 / (100 - 50)
    tied = Filling(mine, other, 60, 50 * (60 / 100 - 0.1 + 2.0))
    assert tied.tilt() > turn > 60


def test_acks_in_a_queue_are_the_other_flows_rate_by_b():
    way = pendulum.follow(*table_4_2(), 100, acked=2)
    state = next(s for s in way.states if s.side == 1 and s.end_s > 20)
    at_s = (state.begin_s + state.end_s) / 2
    down, up = way.windows_p([at_s])[0]
    mine, other = way.sides[1], way.sides[0]
    rate_p = down / (other.base_rtt_s + mine.wait_s(up))
    assert way.acks_p([at_s])[0] == pytest.approx([0, rate_p / 2 * mine.wait_s(up)])


@pytest.mark.parametrize("of", [(10, 2, 150, 36), (10, 1, 150, 75)])
def test_areas_and_bytes_are_integrals_of_the_curves(of):
    """Closed forms of the mean windows, mean queues and delivered packets against quadrature of the curves."""
    _compare(pendulum.follow(*line(*of), 60))


def test_areas_and_bytes_with_unequal_rtts():
    _compare(pendulum.follow(*table_4_2(), 60))
    _compare(pendulum.follow(*table_4_2(), 60, growth_p=0.5))


def _compare(way: pendulum.Trajectory) -> None:
    begin_s, end_s = 11.3, 47.9
    corners = [s.end_s for s in way.states if begin_s < s.end_s < end_s]
    for side in (0, 1):
        for curve, mean in (
            (way.windows_p, way.mean_windows_p(begin_s, end_s)[side]),
            (way.queues_p, way.mean_queues_p(begin_s, end_s)[side]),
            (lambda t: way.windows_p(t) / way.rtts_s(t), _rate(way, begin_s, end_s)[side]),
        ):
            parts = zip([begin_s, *corners], [*corners, end_s], strict=True)
            area = sum(_area(curve, side, low, high) for low, high in parts)
            assert mean == pytest.approx(area / (end_s - begin_s), rel=1e-6, abs=1e-6)


def _area(curve: object, side: int, low: float, high: float) -> float:
    inside = 1e-9 * (high - low)  # a state's own values, not those of the next one
    return quad(lambda t: float(curve([t])[0, side]), low + inside, high - inside)[0] if high > low else 0.0


def _rate(way: pendulum.Trajectory, begin_s: float, end_s: float) -> np.ndarray:
    return np.diff(way.delivered_p([begin_s, end_s]), axis=0)[0] / (end_s - begin_s)


def followed(line, duration_s, **rules):
    """The pendulum swings, unless a queue is too short for the other flow's ACKs."""
    try:
        return pendulum.follow(*line, duration_s, **rules)
    except InputError as error:
        assert "ACKs keep full" in str(error) and any(side.counts_acks for side in line)
        reject()


def test_a_queue_that_acks_single_keep_full_is_rejected():
    """20 packets/s and 5 places beside 1000 packets/s: the other window never falls, its ACKs take all."""
    line = pendulum.Side(20.0, 5.0, 0.005, True), pendulum.Side(1000.0, 5.0, 0.005, True)
    with pytest.raises(InputError, match="ACKs keep full; expected a longer one"):
        pendulum.follow(*line, 200, simultaneous=0.0, growth_p=0.5)


@given(
    st.tuples(sides, sides),
    st.sampled_from([0.0, 0.33, 1.0]),
    st.sampled_from([None, 7]),
    st.sampled_from([0.5, 1.0]),
)
@settings(max_examples=80)
def test_what_holds_whatever_the_line(line, simultaneous, seed, growth):
    """Only one queue at a time, none beyond its limit, no link faster than its rate, states without a gap."""
    way = followed(line, 200, simultaneous=simultaneous, seed=seed, growth_p=growth)
    times = np.linspace(0, 200, 2001)
    waits, rates = way.waits_s(times), way.windows_p(times) / way.rtts_s(times)
    assert np.all((waits > 0).sum(axis=1) <= 1)
    for n, side in enumerate(line):
        assert np.all(way.queues_p(times)[:, n] <= side.queue_p * (1 + 1e-9))
        assert np.all(rates[:, n] <= side.rate_p * (1 + 1e-9))
    assert np.all(np.diff(way.delivered_p(times), axis=0) >= 0)
    for one, following in zip(way.states, way.states[1:], strict=False):
        assert one.end_s == following.begin_s
        assert one.then == following.side
        if not one.hit:
            assert one.after_p == following.before_p
        else:
            grown = [window + growth for window in one.after_p]
            assert following.before_p[one.hit[0]] == pytest.approx(grown[one.hit[0]] / 2)


@given(st.tuples(sides, sides), st.integers(0, 2**63 - 1))
@settings(max_examples=20)
def test_the_same_seed_gives_the_same(line, seed):
    one, other = (followed(line, 100, simultaneous=0.5, seed=seed) for _ in range(2))
    assert one.states == other.states


def test_simultaneous_losses_are_drawn_with_their_probability():
    """10/1 Mb/s, 75 KB: where the download's window is too large for its queue when the upload loses."""
    way = pendulum.follow(*line(10, 1, 150, 75), 100_000, simultaneous=0.4, seed=3)
    full = way.sides[0].full_p
    able = [s for s in way.states if s.hit and s.side == 1 and s.after_p[0] + 1 > full]
    share = np.mean([len(s.hit) == 2 for s in able])
    assert len(able) > 500
    assert share == pytest.approx(0.4, abs=4 * np.sqrt(0.24 / len(able)))


def test_an_expected_value_leaves_a_part_of_the_window():
    way = pendulum.follow(*line(10, 1, 150, 75), 500, simultaneous=0.4)
    pairs = zip(way.states, way.states[1:], strict=False)
    both = [(one, following) for one, following in pairs if len(one.hit) == 2 and one.hit[0] == 1]
    assert both
    for one, following in both:
        assert following.before_p[0] == pytest.approx(0.8 * (one.after_p[0] + 1))
    none = pendulum.follow(*line(10, 1, 150, 75), 500, simultaneous=0.0)
    assert all(len(loss.flows) == 1 for loss in none.losses())


@pytest.mark.parametrize(
    "wrong",
    [
        {"rate_bps": 0.0},
        {"queue_packets": 5.0},
        {"queue_bytes": None},
        {"queue_bytes": 100.0, "rate_bps": 1e4},
    ],
)
def test_a_line_that_cannot_be_is_rejected(wrong):
    given = {"rate_bps": 1e6, "base_rtt_s": 0.05, "queue_bytes": 1e5, "packet_bytes": 1500.0, **wrong}
    with pytest.raises(InputError, match=r"^pendulum: found"):
        pendulum.side(given.pop("rate_bps"), given.pop("base_rtt_s"), **given)


@pytest.mark.parametrize("wrong", [{"simultaneous": 1.2}, {"growth_p": 0.0}, {"begin_p": (0.0, 1.0)}])
def test_parameters_that_cannot_be_are_rejected(wrong):
    with pytest.raises(InputError, match="found"):
        pendulum.follow(*table_4_2(), 10, **wrong)
