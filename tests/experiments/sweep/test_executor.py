"""Handling of ended tasks in a sweep's waiting process."""

from __future__ import annotations

import signal
import time
from concurrent.futures import Future
from multiprocessing import get_context

import pytest

from ackclock.experiments.sweep import executor
from ackclock.experiments.sweep.worker import Done


class Ended:
    """A pool whose tasks have all ended by the time anyone looks: the second one with an error."""

    def __init__(self) -> None:
        self.submitted = 0

    def submit(self, _work, runs) -> Future[Done]:
        self.submitted += 1
        future: Future[Done] = Future()
        if self.submitted == 2:
            future.set_exception(ZeroDivisionError("oh"))
        else:
            future.set_result(Done({"runs": tuple(runs)}, len(runs), 1.0))
        return future


class Kept:
    def __init__(self) -> None:
        self.rows = []

    def add(self, rows) -> None:
        self.rows.extend(rows["runs"])


def test_runs_that_end_with_a_failed_one_are_kept():
    kept, shares = Kept(), []
    with pytest.raises(ZeroDivisionError, match="oh"):
        executor._drain(Ended(), executor.Tasks([*range(12)], [1.0] * 12, jobs=3), kept, shares.append, lambda: False)
    assert sorted(kept.rows) == [0, 2, 3, 4, 5]
    assert shares == [0.0, 5.5 / 12]  # the failed one was under way


def taken(tasks: executor.Tasks, run_s: dict[int, float]) -> list[list[int]]:
    """The tasks, one after another, in a process whose runs take so long."""
    found = []
    while tasks.left:
        task = tasks.next()
        found.append([*task.runs])
        tasks.took(task, sum(run_s[run] for run in task.runs))
    return found


def test_tasks_take_about_as_long_whatever_their_runs_weigh():
    run_s = {run: 0.01 if run < 100 else 0.2 for run in range(200)}
    found = taken(executor.Tasks([*run_s], [*run_s.values()], jobs=1), run_s)
    assert found[0] == [0]
    assert [run for task in found for run in task] == [*run_s]
    assert {len(task) for task in found if task[0] >= 1 and task[-1] < 100} <= {49, 50}
    assert {len(task) for task in found if task[0] >= 100} <= {1, 2}


def test_the_share_that_is_done_is_of_the_weights():
    tasks = executor.Tasks([*range(3)], [1.0, 2.0, 7.0], jobs=1)
    shares = []
    while tasks.left:
        tasks.took(tasks.next(), 1.0)
        shares.append(tasks.share)
    assert shares == pytest.approx([0.1, 0.3, 1.0])


def _deaf(hears_nothing) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hears_nothing.set()
    time.sleep(600)


def test_a_process_that_ignores_termination_is_killed(monkeypatch):
    monkeypatch.setattr(executor, "END_S", 0.1)
    context = get_context("spawn")
    hears_nothing = context.Event()
    process = context.Process(target=_deaf, args=(hears_nothing,), daemon=True)
    process.start()
    assert hears_nothing.wait(60)
    executor._end({process})
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
