"""Handling of ended tasks in a sweep's waiting process."""

from __future__ import annotations

import signal
import time
from concurrent.futures import Future
from multiprocessing import get_context

import pytest

from ackclock.experiments import executors
from ackclock.experiments.sweep.run import Tasks, _drain
from ackclock.experiments.sweep.worker import Done


class Ended:
    """An executor whose calls have all ended by the time anyone looks: one of them with an error."""

    def __init__(self, slots: int, run_s: float, fails: int | None = None) -> None:
        self.slots, self.run_s, self.fails, self.submitted = slots, run_s, fails, 0

    def submit(self, _function, _order, runs) -> Future[Done]:
        self.submitted += 1
        future: Future[Done] = Future()
        if self.submitted == self.fails:
            future.set_exception(ZeroDivisionError("oh"))
        else:
            future.set_result(Done({"runs": tuple(runs)}, len(runs) * self.run_s))
        return future


class Kept:
    def __init__(self) -> None:
        self.rows = []

    def add(self, rows) -> None:
        self.rows.extend(rows["runs"])


def test_runs_that_end_with_a_failed_one_are_kept():
    kept, shares, ended = Kept(), [], Ended(slots=3, run_s=1.0, fails=2)
    with pytest.raises(ZeroDivisionError, match="oh"):
        _drain(ended, b"", Tasks(range(12)), kept, shares.append, lambda: False)
    assert sorted(kept.rows) == [0, 2, 3, 4, 5]
    assert shares == [5 / 12]


def test_many_short_runs_take_few_messages():
    """A task takes half a second, 100 runs of 5 ms, but for the first ones and those at the end."""
    kept, shares, ended = Kept(), [], Ended(slots=2, run_s=0.005)
    _drain(ended, b"", Tasks(range(10_000)), kept, shares.append, lambda: False)
    assert sorted(kept.rows) == [*range(10_000)]
    assert 10_000 / 100 < ended.submitted < 150
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def taken(tasks: Tasks, run_s: dict[int, float]) -> list[list[int]]:
    """The tasks, one after another, in a process whose runs take so long."""
    found = []
    while tasks.left:
        task = tasks.next(1)
        found.append([*task])
        tasks.took(len(task), sum(run_s[run] for run in task))
    return found


def test_tasks_take_about_as_long_however_long_their_runs_take():
    run_s = {run: 0.01 if run < 200 else 0.2 for run in range(400)}
    found = taken(Tasks([*run_s]), run_s)
    assert found[0] == [0]
    assert [run for task in found for run in task] == [*run_s]
    assert {len(task) for task in found if task[0] >= 1 and task[-1] < 200} <= {49, 50}
    assert {len(task) for task in found if task[0] >= 260} <= {1, 2, 3}


def test_the_share_that_is_done_is_of_the_runs():
    tasks = Tasks(range(4))
    shares = []
    while tasks.left:
        tasks.took(len(tasks.next(1)), 1.0)
        shares.append(tasks.share)
    assert shares == [0.25, 0.5, 0.75, 1.0]


def _deaf(hears_nothing) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hears_nothing.set()
    time.sleep(600)


def test_a_process_that_ignores_termination_is_killed(monkeypatch):
    monkeypatch.setattr(executors, "END_S", 0.1)
    context = get_context("spawn")
    hears_nothing = context.Event()
    process = context.Process(target=_deaf, args=(hears_nothing,), daemon=True)
    process.start()
    assert hears_nothing.wait(60)
    executors._end({process})
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
