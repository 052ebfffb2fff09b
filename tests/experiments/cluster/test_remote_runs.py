"""Runs of searches and galleries on a cluster: the same results, in the order of the seeds."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from clusters import cluster

import ackclock as ac
from ackclock.cli.program import application
from ackclock.experiments import cluster as clusters
from ackclock.experiments.cluster import Target

SCENARIO = """
duration = "5s"
repeats = 3
network = { topology = "dumbbell", rate = "5Mbit", rtt = "20ms", queue = { discipline = "pfifo", limit = "1bdp" } }
flows = [{ count = 2, congestion = "reno", start = { jitter = "1s" } }]
"""


@pytest.fixture(scope="module")
def one():
    with cluster(workers=1) as made:
        yield made


def test_runs_give_the_same_tables(one):
    plan = ac.loads(SCENARIO).plan()
    here, shares = ac.run(plan, jobs=1), []
    with clusters.opened(Target(address=one.address), ["packet"]) as executor:
        there = ac.run(plan, progress=shares.append, executor=executor)
    assert there.flows.equals(here.flows)
    assert there.queue_samples.equals(here.queue_samples)
    assert [run["seed"] for run in there.runs] == [1, 2, 3]
    assert shares[-1] == 1.0


def test_remote_failures_are_reported_like_local_ones(one):
    with (
        clusters.opened(Target(address=one.address), ["packet"]) as executor,
        pytest.raises(ac.UnsupportedError, match="ns2|ns-2"),
    ):
        ac.run(ac.loads(SCENARIO.replace('"reno"', '"bbr"')).plan(), "ns2", executor=executor)


def test_find_gives_the_same_result(one, tmp_path):
    (tmp_path / "mine.toml").write_text(SCENARIO)
    asked = ("find", "mine.toml", "--require", "queue_delay_mean <= 15ms", "--vary", "limit=0.5bdp,1bdp", "--json")

    def call(*more: str):
        command = [sys.executable, "-m", "ackclock", *asked, *more]
        environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 4, 5), done.stderr
        return {**json.loads(done.stdout), "cpu_s": None}

    assert call("--out", "there", "--scheduler", one.address) == call("--out", "here", "--jobs", "1")


@pytest.mark.parametrize("also", [(), ("--ablation", "all")])
def test_published_results_and_their_mechanisms_go_to_the_scheduler(also, tmp_path, monkeypatch):
    monkeypatch.setattr(clusters, "RESPONSE_S", 0.5)
    words = ["reproduce", "B2.7", "--quick", "--scheduler", "tcp://127.0.0.1:1", "--out", str(tmp_path / "out"), *also]
    done = CliRunner().invoke(application, words)
    assert done.exit_code == 2
    assert done.stderr.startswith("--scheduler: found no scheduler at tcp://127.0.0.1:1; expected the address")
    assert not (tmp_path / "out").exists()


def test_an_evaluation_gives_the_same_dossier(one, tmp_path):
    def call(name: str, *more: str) -> str:
        words = ["evaluate", "reno", "--quick", "--section", "7.2", "--out", str(tmp_path / name), "--json", *more]
        done = CliRunner().invoke(application, words)
        assert done.exit_code == 0, done.stderr
        return done.stdout

    assert call("there", "--scheduler", one.address) == call("here", "--jobs", "1")
