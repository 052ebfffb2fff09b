"""After a tenth of a sweep's time it is known, within a fifth, how long the rest takes: with a clock that we turn."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from rich.console import Console

from ackclock.cli.terminal.output import bar
from ackclock.experiments.sweep.run import Tasks
from ackclock.experiments.sweep.spec import Runs

#: CPU time of a run at each of twelve points with its metrics, in ms, as it was measured.
MEASURED_MS = [23.7, 30.5, 43.3, 34.6, 34.0, 57.7, 34.2, 38.2, 56.6, 59.2, 55.3, 75.0]


def completions(run_s: np.ndarray, jobs: int) -> Iterator[tuple[float, float]]:
    """When which share of the runs is done, by processes that take so long for each run."""
    tasks = Tasks([run.number for run in Runs([(0,)] * run_s.size).mixed()])
    busy: list[tuple[float, int, list[int]]] = []
    now_s = 0.0
    while busy or tasks.left:
        while tasks.left and len(busy) < jobs:
            task = tasks.next(jobs)
            heapq.heappush(busy, (now_s + run_s[task].sum(), tasks.left, task))
        now_s, _, task = heapq.heappop(busy)
        tasks.took(len(task), run_s[task].sum())
        yield now_s, tasks.share


def estimate_at_a_tenth(run_s: np.ndarray, jobs: int) -> float:
    """Return the total time estimated after a tenth of it, relative to the actual one."""
    moments = [*completions(run_s, jobs)]
    end_s, now = moments[-1][0], [0.0]
    shown = bar(Console(quiet=True), lambda: now[0])
    task = shown.add_task("", total=1.0)
    for now[0], share in moments:
        shown.update(task, completed=share)
        if now[0] >= end_s / 10:
            break
    return (now[0] + shown.tasks[0].time_remaining) / end_s


RIGHT = pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("jobs", [1, 2, 8])
def test_points_that_were_measured(jobs):
    point = np.repeat(np.arange(12), 100)
    run_s = 1e-2 * np.array(MEASURED_MS)[point] * np.random.default_rng(1).lognormal(sigma=0.1, size=point.size)
    assert estimate_at_a_tenth(run_s, jobs) == RIGHT


@pytest.mark.parametrize("jobs", [1, 2, 8])
def test_points_a_thousandfold_apart(jobs):
    assert estimate_at_a_tenth(0.1 * np.repeat(np.logspace(0, 3, 100), 10), jobs) == RIGHT


def test_each_stretch_of_a_sweep_is_a_sample_of_all_of_it():
    runs = Runs([tuple(range(10))] * 500)
    mixed = runs.mixed()
    assert sorted(mixed, key=lambda run: run.number) == [*runs]
    assert [run.point for run in mixed] == mixed.point_numbers.tolist()
    tenths = [np.mean([run.number for run in mixed[first : first + 500]]) for first in range(0, 5000, 500)]
    assert tenths == pytest.approx([2500] * 10, rel=0.1)
    changes = sum(one.point != other.point for one, other in pairwise(mixed))
    assert changes < 800  # a point's runs stay together: 500 points, 200 blocks


def test_the_time_left_is_unknown_before_the_second_update():
    now = [0.0]
    shown = bar(Console(quiet=True), lambda: now[0])
    task = shown.add_task("", total=1.0)
    shown.update(task, completed=0.5)  # as much was there before
    assert shown.tasks[0].time_remaining is None
    now[0] = 10.0
    shown.update(task, completed=0.6)
    assert shown.tasks[0].time_remaining == pytest.approx(40, abs=1)
