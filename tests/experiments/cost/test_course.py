"""Progress of a run's work over time: compared with events in real runs, counted, not timed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ackclock as ac
from ackclock.cli.terminal.progress import TimeLeft
from ackclock.experiments import runner
from ackclock.experiments.cost import cost, packet
from ackclock.experiments.cost import course as courses
from ackclock.experiments.cost.course import EVEN, Course, course, drawn

NETWORK = """
duration = "40s"
[network]
topology = "dumbbell"
rate = "20Mbit"
rtt = "20ms"
queue = { discipline = "pfifo", limit = "1bdp" }
[record]
interval = "100ms"
traffic = true
"""
CONSTANT = '[[flows]]\ncount = 4\ncongestion = "cubic"\n'
LATER = """
[[flows]]
application_rate = "2500kbit"
[[flows]]
count = 3
start = "20s"
"""
BURST = """
[[flows]]
application_rate = "500kbit"
[[traffic]]
kind = "poisson"
rate = "40/s"
size = "30KB"
start = "25s"
stop = "30s"
"""


@pytest.fixture(autouse=True)
def _any_run_is_long(monkeypatch):
    monkeypatch.setattr(courses, "LITTLE_S", 0.0)
    monkeypatch.setattr(courses, "WORTH", 1e9)


def counted(plan) -> np.ndarray:
    """Return the cumulative work at each hundredth of the run, each event weighted by its cost; from 0 to 1."""
    data = ac.run(replace(plan, seeds=(1,)))
    at_s = np.linspace(0.0, plan.duration_s, 101)

    def until(table: str, column: str) -> np.ndarray:
        return np.searchsorted(np.sort(data.frame(table)[column].to_numpy()), at_s, side="right")

    departures = np.concatenate([[0], np.cumsum(data.queue_samples["departures_p"].to_numpy())])
    packets = departures[until("queue_samples", "time_s")]
    counts = {
        "packet": packets,
        "hop": packets,
        "sample": until("flow_samples", "time_s") + until("queue_samples", "time_s"),
        "transfer": until("flows", "start_s"),
        "event": until("events", "time_s"),
    }
    done = sum(packet.UNITS_US[name] * count for name, count in counts.items())
    return np.asarray((done - done[0]) / (done[-1] - done[0]))


@pytest.mark.parametrize("traffic", [CONSTANT, LATER, BURST])
def test_the_time_left_is_right_to_a_fifth_after_a_tenth_of_the_work(traffic):
    plan = ac.loads(NETWORK + traffic).plan()
    work, expected = counted(plan), course(plan, "packet")
    now = [0.0]
    left = TimeLeft(lambda: now[0])
    for step in range(1, 100):
        now[0] = work[step]
        left.update(expected.at(step / 100))
        if work[step] >= 0.1:
            assert left.left_s is not None
            assert now[0] + left.left_s == pytest.approx(1.0, rel=0.2), step


def test_an_even_load_makes_no_difference():
    found = course(ac.loads(NETWORK + CONSTANT).plan(), "packet")
    assert [found.at(time) for time in (0.0, 0.25, 0.5, 1.0)] == pytest.approx([0.0, 0.25, 0.5, 1.0], abs=0.02)


def test_a_short_run_is_not_sampled(monkeypatch):
    monkeypatch.undo()
    assert course(ac.loads(NETWORK + LATER).plan(), "packet") is EVEN


def test_an_unannounced_step_is_located_by_bisection():
    found = drawn(lambda time: 5.0 + (time > 0.3), [], 20)
    assert found.at(0.299) < 0.01
    assert found.at(0.301) > 0.99


def test_work_is_never_undone():
    found = drawn(lambda time: 1.0 - (0.4 < time < 0.6) + time, [0.5], 8)
    assert list(found.done) == sorted(found.done)
    assert found.done[-1] == 1.0


def test_nothing_expected_is_even():
    assert drawn(lambda time: 1.0, [], 4) is EVEN


@pytest.mark.parametrize(("worth", "looks"), [(0.0, 1), (1.0, 24), (1e9, 51)])
def test_sampling_effort_is_bounded_by_the_work(monkeypatch, worth, looks):
    looked = []
    monkeypatch.setattr(courses, "WORTH", worth)
    monkeypatch.setattr(courses, "cost", lambda plan, engine: looked.append(1) or cost(plan, engine))
    plan = ac.loads(NETWORK + '[[flows]]\ncount = 30\nstart = { every = "500ms" }\n').plan()
    found = course(plan, "packet")
    assert len(looked) <= looks
    assert (found is EVEN) == (worth == 0.0)


def test_progress_goes_by_the_work(monkeypatch):
    """No event falls in the first half of the time, so its progress is zero."""
    monkeypatch.setattr(runner, "course", lambda plan, engine: Course((0.0, 0.5, 1.0), (0.0, 0.0, 1.0)))
    shares: list[float] = []
    runner.run(ac.loads(NETWORK + LATER).plan(), seeds=[1], progress=shares.append)
    assert shares[len(shares) // 2 - 1] == 0.0
    assert shares[-1] == pytest.approx(1.0)
