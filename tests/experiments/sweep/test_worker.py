"""Handling of runs in a sweep's worker process."""

from __future__ import annotations

import threading

import polars as pl
import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock import engines
from ackclock.dataset import tables
from ackclock.experiments import executors
from ackclock.experiments.executors import StoppedError
from ackclock.experiments.sweep import worker as workers
from ackclock.experiments.sweep.run import prepare
from ackclock.experiments.sweep.worker import Worker

SCENARIO = f"""\
duration = "1s"
{dumbbell("1Mbit", "20ms")}
[[flows]]
count = 2
congestion = "cubic"
[sweep]
"flows[0].count" = [1, 2]
"""


def test_all_seeds_of_a_point_share_a_plan_in_any_order(monkeypatch):
    planned = []
    whole = engines.resolve_inputs
    monkeypatch.setattr(engines, "resolve_inputs", lambda engine, plan: planned.append(plan) or whole(engine, plan))
    job = prepare(ac.loads(SCENARIO), seeds=[1, 2, 3], metrics=["jain", "goodput_flow_bps"])
    planned.clear()
    worker = Worker(job.spec)
    for number in (0, 3, 1, 4, 2, 5):
        rows = worker.rows([job.runs[number]])
        assert rows["runs"].select("run", "point", "seed").rows() == [(number, number // 3, number % 3 + 1)]
    assert len(planned) == 2


def test_the_rows_of_many_runs_are_those_of_each():
    job = prepare(ac.loads(SCENARIO), seeds=[1, 2], metrics=["jain", "goodput_flow_bps"], samples=True)
    worker = Worker(job.spec)
    together = worker.rows([*job.runs])
    each = [worker.rows([run]) for run in job.runs]
    assert set(together) == {*job.spec.tables, "runs"}
    for table, rows in together.items():
        assert rows.equals(pl.concat([one[table] for one in each])), table
        assert rows.columns[:2] == ["run", "point"]
    assert together["flows"]["run"].to_list() == [0, 1, 2, 2, 3, 3]
    assert together["flows"]["point"].to_list() == [0, 0, 1, 1, 1, 1]


def test_each_table_of_many_runs_becomes_a_single_frame(monkeypatch):
    made = []
    whole = tables.frame
    monkeypatch.setattr(tables, "frame", lambda table, *more: made.append(table) or whole(table, *more))
    job = prepare(ac.loads(SCENARIO), seeds=[1, 2, 3])
    Worker(job.spec).rows([*job.runs])
    assert sorted(made) == ["flows", "links"]


def test_a_run_checks_periodically_for_a_stop_request(monkeypatch):
    stop = threading.Event()
    monkeypatch.setattr(executors, "_stop", [stop])
    job = prepare(ac.loads(SCENARIO), seeds=[1])
    stop.set()
    with pytest.raises(StoppedError):
        Worker(job.spec).rows([job.runs[0]])
    monkeypatch.setattr(workers, "POLL_INTERVAL_S", 1e9)
    asked = []
    monkeypatch.setattr(threading.Event, "is_set", lambda self: bool(asked.append(1)))
    Worker(job.spec).rows([job.runs[0]])
    assert len(asked) <= 1
