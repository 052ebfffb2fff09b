"""Overhead of a cluster per point: client, scheduler and worker, in CPU time."""

from __future__ import annotations

import time
from dataclasses import replace
from threading import Event

import pytest
from clusters import cluster

from ackclock.experiments.cluster.target import Place
from ackclock.experiments.sweep.run import prepare
from ackclock.experiments.sweep.worker import _Worker

#: The limit of the overhead per point, in ms.
MAX_MS = 3.0


def tiny(path, points: int):
    """A sweep of so many points, each of which takes the fluid engine a moment."""
    rtts = ", ".join(f'"{10 + number / 1000:.3f}ms"' for number in range(points))
    path.write_text(f"""
duration = "1s"
network = {{ topology = "dumbbell", rate = "5Mbit", rtt = "20ms", queue = {{ discipline = "pfifo", limit = "1bdp" }} }}
flows = [{{ congestion = "reno" }}]
[sweep]
"network.rtt" = [{rtts}]
""")
    return path


@pytest.mark.parametrize("points", [600, pytest.param(10_000, marks=pytest.mark.oracle)])
def test_a_tiny_point_costs_little_more_than_its_work(tmp_path, points):
    """Subtract the cost of a connection, which is that of a sweep of ten points."""
    few, many = tiny(tmp_path / "few.toml", 10), tiny(tmp_path / "many.toml", points)
    own_s = _own_s(many) - _own_s(few)
    with cluster(workers=1) as made:
        _remote_s(few, made)  # imports
        spent_s = -_remote_s(few, made)
        spent_s += _remote_s(many, made)
    each_ms = 1e3 * (spent_s - own_s) / (points - 10)
    print(f"{points} points: {own_s:.2f} s of work, {spent_s:.2f} s in all, {each_ms:.2f} ms a point more")
    assert each_ms <= MAX_MS


def _own_s(scenario) -> float:
    """Return the CPU time of its runs in this process."""
    job = prepare(scenario, "fluid", metrics=["utilisation"])
    itself = _Worker(job.order, Event())
    itself.rows(job.runs[:1])
    began_s = time.process_time()
    for first in range(0, len(job.runs), 100):
        itself.rows(job.runs[first : first + 100])
    return time.process_time() - began_s


def _remote_s(scenario, made) -> float:
    """Return the CPU time on a cluster, of all processes, and without the preparation that each sweep has."""
    job = replace(prepare(scenario, "fluid", metrics=["utilisation"]), place=Place(address=made.address))
    began_s, others_s = time.process_time(), _others_s(made)
    assert job.perform().table.height == len(job.runs)
    return time.process_time() - began_s + _others_s(made) - others_s


def _others_s(made) -> float:
    return made.scheduler.cpu_s() + made.workers[0].cpu_s()
