"""Runs of several seeds: their order, their parallelism, their end. With an engine made for it."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock import engines
from ackclock.dataset import Dataset, Spool
from ackclock.engines.engine import Engine, RunOptions, manifest
from ackclock.errors import InputError, Unsupported, UnsupportedError
from ackclock.experiments import runner

TEXT = f"""
duration = "1s"
seeds = [30, 10, 20]
{dumbbell("10Mbit", "20ms", "50p")}
[[flows]]
congestion = "cubic"
"""


class FakeEngine(Engine):
    """Writes the seed into the flows table; later seeds finish first."""

    name = "fake"
    missing: tuple[str, ...] = ()
    fails_with: Exception | None = None
    started: list[int]
    threads: set[int]

    def __init__(self) -> None:
        self.started, self.threads = [], set()

    def unsupported(self, plan):
        return [Unsupported(name, self.name, ("linux",)) for name in self.missing]

    def is_stochastic(self, plan):
        return True

    def run(self, plan, seed, options: RunOptions | None = None) -> Dataset:
        around = options or RunOptions()
        self.started.append(seed)
        self.threads.add(threading.get_ident())
        if self.fails_with and seed == plan.seeds[-1]:
            raise self.fails_with
        for step in range(20):
            time.sleep(0.001 * (1 + (seed == plan.seeds[0])))
            around.progress((step + 1) / 20)
        spool = Spool()
        spool.append("flows", {"flow": [0], "group": [0], "congestion": [f"seed {seed}"]})
        return spool.dataset(manifest(plan, self.name, seed, around.command))


@pytest.fixture
def fake(monkeypatch):
    engine = FakeEngine()
    monkeypatch.setattr(engines, "engine", lambda name: engine)
    return engine


@pytest.fixture
def plan():
    return ac.loads(TEXT).plan()


def test_results_are_in_the_order_of_the_seeds_whoever_finishes_first(fake, plan):
    data = runner.run(plan, jobs=3, command="ackclock run x")
    assert [(run["run"], run["seed"]) for run in data.runs] == [(0, 30), (1, 10), (2, 20)]
    assert data.flows.select("run", "congestion").rows() == [(0, "seed 30"), (1, "seed 10"), (2, "seed 20")]
    assert data.manifest["command"] == "ackclock run x"
    assert data.manifest["plan"]["seeds"] == (30, 10, 20)


def test_seeds_can_be_given(fake, plan):
    data = runner.run(plan, seeds=range(1, 3))
    assert [run["seed"] for run in data.runs] == [1, 2]
    assert data.manifest["plan"]["seeds"] == (1, 2)


def test_a_scenario_is_run_as_its_plan(fake):
    data = ac.run(ac.loads(TEXT))
    assert [run["seed"] for run in data.runs] == [30, 10, 20]
    assert [run["seed"] for run in ac.run(ac.loads(TEXT), seeds=[4]).runs] == [4]


def test_a_scenario_with_a_sweep_has_no_plan_to_run(fake):
    swept = ac.loads(TEXT + '[sweep]\n"network.rate" = ["1Mbit", "2Mbit"]\n', "swept.toml")
    with pytest.raises(ac.ScenarioError, match="a sweep of 2 points; expected one scenario; run `ackclock sweep"):
        ac.run(swept)
    assert fake.started == []


@pytest.mark.parametrize("seeds", [[], [1, 1], [-1], [2**63]])
def test_bad_seeds(fake, plan, seeds):
    with pytest.raises(InputError, match=r"seeds(\[0\])?: found .*; expected (one or more different|a) whole numbers?"):
        runner.run(plan, seeds=seeds)


def test_jobs_limit_the_threads(fake, plan):
    runner.run(plan, jobs=1)
    assert len(fake.threads) == 1


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_progress_is_the_share_of_all_runs(fake, plan, jobs):
    shares: list[float] = []
    runner.run(plan, jobs=jobs, progress=shares.append)
    assert len(shares) == 60
    assert shares == pytest.approx(sorted(shares))
    assert shares[-1] == pytest.approx(1.0)
    if jobs == 1:
        assert shares == pytest.approx([step / 60 for step in range(1, 61)])


def test_one_failure_ends_the_others_and_is_reported(fake, plan):
    fake.fails_with = RuntimeError("out of luck")
    began = time.perf_counter()
    with pytest.raises(RuntimeError, match="out of luck"):
        runner.run(plan, seeds=range(100), jobs=2)
    assert len(fake.started) == 100 or time.perf_counter() - began < 10
    fake.started.clear()
    fake.fails_with = RuntimeError("at once")
    with pytest.raises(RuntimeError, match="at once"):
        runner.run(plan, seeds=[5], jobs=2)


def test_an_interrupt_ends_all_runs(fake, plan):
    def interrupt(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.run(plan, seeds=range(50), jobs=1, progress=interrupt)
    assert len(fake.started) < 50


def test_unsupported_features_are_reported_before_a_run(fake, plan):
    fake.missing = ("fq_codel",)
    with pytest.raises(UnsupportedError, match='engine "fake" has no fq_codel; available in "linux"') as caught:
        runner.run(plan)
    assert caught.value.exit_status == 3
    assert fake.started == []


def test_an_unknown_engine():
    with pytest.raises(InputError, match='engine: found "flud"; expected "fluid"'):
        engines.engine("flud")


def test_the_manifest_is_sufficient_for_a_rerun(plan):
    found = manifest(plan, "packet", 7, "ackclock run x.toml")
    assert found["scenario"] == TEXT
    assert found["runs"] == [{"run": 0, "point": 0, "seed": 7}]
    assert set(found) == {
        "ackclock",
        "engine",
        "scenario",
        "scenario_path",
        "plan",
        "runs",
        "versions",
        "created",
        "platform",
        "command",
    }
    assert Path(found["scenario_path"]).name == found["scenario_path"]
