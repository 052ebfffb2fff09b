"""Estimates from pilots, and their words."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock.engines.engine import cores
from ackclock.experiments import pilot
from ackclock.experiments.pilot import Estimate, Forecast
from ackclock.experiments.sweep.run import prepare

SCENARIO = f"""
duration = "60s"
seeds = [1, 2, 3]
{dumbbell("10Mbit", "20ms")}
[[flows]]
congestion = "cubic"
start = {{ jitter = "1s" }}
"""


class Clock:
    """A process whose CPU time is what the work says: 0.1 s, and 1 s for each simulated second."""

    now_s = 0.0

    def run(self, plan, seed):
        self.now_s += 0.1 + plan.duration_s
        return plan


def test_a_pilot_is_extrapolated_to_the_full_run(monkeypatch):
    """Pilots of 0.12 and 0.94 s are enough for a run of 60 s."""
    clock, lengths_s = Clock(), []
    monkeypatch.setattr(pilot.time, "process_time", lambda: clock.now_s)
    monkeypatch.setattr(pilot.engines, "engine", lambda name: clock)
    monkeypatch.setattr(pilot.engines, "resolve_inputs", lambda engine, plan: plan)

    def finish(plan) -> float:
        lengths_s.append(plan.duration_s)
        return 1000 + 50 * plan.duration_s

    found = pilot.pilot(ac.loads(SCENARIO).plan(), "packet", finish)
    assert lengths_s == [60 / 4096, 60 / 512, 60 / 64]
    assert found == pytest.approx((60.1, 4000))


def test_all_runs_share_the_cores(monkeypatch):
    monkeypatch.setattr(pilot, "pilot", lambda plan, engine, finish: Estimate(10.0, 1e6))
    plan = ac.loads(SCENARIO).plan()
    found = pilot.of_runs([(plan, "packet"), (plan, "fluid")], 2, report=False)
    assert found == Forecast(6, 2, 60.0, 30.0, 6e6)
    assert pilot.of_runs([(plan, "packet")], 16, report=False).wall_s == 10.0


def test_an_engine_outside_this_process_has_no_estimate():
    plan = ac.loads(SCENARIO).plan()
    found = pilot.of_runs([(plan, "packet"), (plan, "ns2")], 2, report=True)
    assert (found.runs, found.wall_s, found.bytes) == (6, None, None)
    assert str(found) == "6 runs on 2 cores; no estimate"
    assert found.shortage(Path()) is None


def test_a_sweep_is_estimated_from_some_of_its_points():
    job = prepare(ac.loads(SCENARIO + '[sweep]\n"network.rtt" = ["10ms", "20ms"]\n'), "fluid")
    found = job.forecast()
    assert (found.runs, found.jobs) == (6, min(6, cores()))
    assert 0 < found.wall_s <= found.cpu_s < 60
    assert 100 < found.bytes < 1e6


def test_text_of_a_forecast():
    found = Forecast(200, 2, 9600.0, 4800.0, 2.1e7)
    assert str(found) == "about 1 h 20 min of work on 2 cores (200 runs), about 21.0 MB on disk"
    tiny = Forecast(1, 1, 0.1, 0.1, 999)
    assert str(tiny) == "less than a second of work on 1 core (1 run), about 999 bytes on disk"


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "5 s"), (65, "1 min 5 s"), (3600, "1 h"), (86_400, "1 day"), (277_200, "3 days 5 h")]
)
def test_a_duration_has_no_more_than_two_numbers(seconds, text):
    assert pilot.duration(seconds) == text


def test_too_little_room_is_a_warning(tmp_path):
    found = Forecast(1, 1, 1.0, 1.0, 1e18)
    assert "about 1,000,000 TB will be written, and" in found.shortage(tmp_path / "new" / "folder")
    assert Forecast(1, 1, 1.0, 1.0, 1.0).shortage(tmp_path) is None
