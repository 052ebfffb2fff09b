"""Tilts of the pendulum from backlogs made by hand: 1 Mb/s down, 100 kb/s up, samples each 50 ms, an RTT of 0.4 s."""

import numpy as np
import pytest
import synthetic

from ackclock import metrics
from ackclock.dataset.tables import EVENT_KINDS
from ackclock.metrics import RunView
from ackclock.reproductions.pendulum import queueing_delays_s, tilts, tilts_with_loss, tilts_without_loss

RATES_BPS = {"down": 1e6, "up": 1e5}
STEP_S = 0.05


def view(
    down_s: list[tuple[float, float]],
    up_s: list[tuple[float, float]],
    cuts: list[tuple[float, str]] = (),
    **plan: float,
) -> RunView:
    """Queueing delays as corners (time, delay) of straight lines over 20 s, and the cuts of windows."""
    times = np.round(np.arange(1, round(20 / STEP_S) + 1) * STEP_S, 9)
    bytes_ = [
        np.interp(times, *np.array(corners).T) * rate / 8
        for corners, rate in zip((down_s, up_s), RATES_BPS.values(), strict=True)
    ]
    made = synthetic.plan(rate_bps=1e6, duration_s=20, **plan)
    rows = {
        "flows": synthetic.flows(2, base_rtt_s=np.full(2, 0.4)),
        "links": {
            "link": np.array([0, 1], np.uint32),
            "name": [*RATES_BPS],
            "bottleneck": [True, True],
            "rate_bps": [*RATES_BPS.values()],
        },
        "queue_samples": {
            "time_s": np.repeat(times, 2),
            "link": np.tile(np.array([0, 1], np.uint32), times.size),
            "backlog_bytes": np.column_stack(bytes_).reshape(-1),
        },
        "events": {
            "time_s": np.array([at for at, _ in cuts], dtype=float),
            "flow": np.zeros(len(cuts), np.uint32),
            "link": np.zeros(len(cuts), np.uint32),
            "kind": np.array([EVENT_KINDS.index(kind) for _, kind in cuts], np.uint8),
        },
    }
    return next(metrics.runs(synthetic.dataset(made, rows)))


#: The down queue holds 1 s of backlog until 5 s, the up queue from 7 s on; in between one drains as the other fills.
DOWN = [(0, 1.0), (5, 1.0), (7, 0.0), (20, 0.0)]
UP = [(0, 0.0), (5, 0.0), (7, 1.0), (20, 1.0)]


def counts(result: RunView) -> tuple[float | None, float | None]:
    return tuple(count(result) for count in (tilts_without_loss, tilts_with_loss))


def test_a_tilt_lies_between_three_quarters_and_three_quarters() -> None:
    """The down queue has 75 % until a quarter of the way from 5 to 7 s; the up queue from three quarters on."""
    result = tilts(view(DOWN, UP))
    assert result["start_s"].to_list() == [5.5]
    assert result["end_s"].to_list() == [6.5]
    assert result["to"].to_list() == ["up"]
    assert result["loss"].to_list() == [False]
    assert counts(view(DOWN, UP)) == (1, 0)


def test_the_other_way_round() -> None:
    assert tilts(view(UP, DOWN))["to"].to_list() == ["down"]


def test_delays_are_compared_and_not_bytes() -> None:
    """1 s is 125,000 bytes down and 12,500 bytes up; in bytes the down queue would hold on for much longer."""
    _, delays_s = queueing_delays_s(view(DOWN, UP))
    assert delays_s.max(axis=0) == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize(("at_s", "loss"), [(4.69, False), (4.71, True), (5.6, True), (6.49, True), (6.51, False)])
@pytest.mark.parametrize("kind", ["recovery", "timeout"])
def test_a_cut_within_two_rtts_before_or_in_the_tilt_is_its_cause(at_s: float, loss: bool, kind: str) -> None:
    """Two RTTs before 5.5 s: 4.7 s."""
    assert tilts(view(DOWN, UP, [(at_s, kind)]))["loss"].to_list() == [loss]


def test_what_is_no_cut_is_no_cause() -> None:
    assert counts(view(DOWN, UP, [(5.4, "drop"), (5.4, "retransmission")])) == (1, 0)


def test_a_hold_shorter_than_an_rtt_is_a_part_of_the_tilt() -> None:
    """Between 6 and 6.3 s the backlog is back in the down queue: still one tilt, until 7 s."""
    down = [(0, 1.0), (5.5, 1.0), (5.55, 0.0), (5.95, 0.0), (6, 1.0), (6.3, 1.0), (6.35, 0.0), (20, 0.0)]
    up = [(0, 0.0), (5.5, 0.0), (5.55, 1.0), (5.85, 1.0), (5.9, 0.0), (7, 0.0), (7.05, 1.0), (20, 1.0)]
    result = tilts(view(down, up))
    assert result["to"].to_list() == ["up"]
    assert result["start_s"].to_list() == [5.5]
    assert result["end_s"].to_list() == [7.05]


def test_a_lasting_return_is_two_tilts_more() -> None:
    down = [(0, 1.0), (5.5, 1.0), (5.55, 0.0), (8.95, 0.0), (9, 1.0), (12, 1.0), (12.05, 0.0), (20, 0.0)]
    up = [(0, 0.0), (5.5, 0.0), (5.55, 1.0), (8.95, 1.0), (9, 0.0), (12, 0.0), (12.05, 1.0), (20, 1.0)]
    assert tilts(view(down, up))["to"].to_list() == ["up", "down", "up"]


def test_less_than_a_packet_is_no_backlog() -> None:
    """A packet of 1514 bytes takes 0.121 s at 100 kb/s."""
    assert counts(view(DOWN, [(0, 0.0), (7, 0.0), (7.05, 0.12), (20, 0.12)])) == (0, 0)
    assert counts(view(DOWN, [(0, 0.0), (7, 0.0), (7.05, 0.122), (20, 0.122)])) == (1, 0)


def test_the_warm_up_does_not_count() -> None:
    assert counts(view(DOWN, UP, warmup_s=6.0)) == (0, 0)


def test_empty_queues_do_not_tilt() -> None:
    nothing = [(0, 0.0), (20, 0.0)]
    assert counts(view(nothing, nothing)) == (0, 0)


def test_other_topologies_have_no_pendulum() -> None:
    result = next(metrics.runs(synthetic.sawtooth(flow_count=2, seeds=1, duration_s=12.0, warmup_s=2.0)))
    assert counts(result) == (None, None)
    assert tilts(result).height == 0


def test_a_short_excursion_is_no_tilt() -> None:
    """For 0.3 s the backlog is in the up queue, and then in the down queue again."""
    down = [(0, 1.0), (5.5, 1.0), (5.55, 0.0), (5.85, 0.0), (5.9, 1.0), (20, 1.0)]
    up = [(0, 0.0), (5.5, 0.0), (5.55, 1.0), (5.85, 1.0), (5.9, 0.0), (20, 0.0)]
    assert counts(view(down, up)) == (0, 0)
