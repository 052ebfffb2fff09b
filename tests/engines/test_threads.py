"""One run on several threads: the same rows, and a reason where a run stays on one thread."""

from collections.abc import Callable
from pathlib import Path

import pytest

import ackclock as ac
from ackclock import engines
from ackclock.dataset.tables import TABLES
from ackclock.engines.engine import Progress
from ackclock.experiments import runner

SCENARIOS = Path(__file__).parents[2] / "scenarios"

#: Scenarios of networks that can be divided, and simulated times that give rows in every table. With a link delay of
#: 1 µs there are many windows, in which the threads of a busy machine wait long for each other.
DIVIDED = {
    "fat-tree": ("2ms", "1ms"),
    "leaf-spine": ("4ms", "1ms"),
    "parking-lot": ("3s", "1s"),
    "two-bottlenecks": ("6ms", "1ms"),
}

#: Scenarios that stay on one thread, and a part of the reason.
ONE_THREAD = {
    "dumbbell": "fixed paths",
    "link-failure": "links change",
    "web": "fixed paths",
}


def rows(data: ac.Dataset) -> dict[str, list[dict[str, object]]]:
    """Return all rows by table; NaN is equal to itself as text."""
    return {table: [str(row) for row in data.scan(table).collect().to_dicts()] for table in TABLES}


@pytest.mark.parametrize("name", DIVIDED)
def test_threads_do_not_change_a_row(name: str) -> None:
    duration, warmup = DIVIDED[name]
    plan = ac.load(SCENARIOS / f"{name}.toml").with_({"duration": duration, "warmup": warmup}).plan()
    used, reason = engines.engine("packet").threads(plan, 2)
    assert (used, reason) == (2, "")
    alone = rows(ac.run(plan, seeds=[1]))
    assert rows(ac.run(plan, seeds=[1], threads=2)) == alone
    assert min(len(alone[table]) for table in ("flows", "links", "events", "queue_samples")) > 2


@pytest.mark.parametrize("name", ONE_THREAD)
def test_a_run_that_stays_on_one_thread_has_a_reason(name: str) -> None:
    used, reason = engines.engine("packet").threads(ac.load(SCENARIOS / f"{name}.toml").plan(), 4)
    assert used == 1
    assert ONE_THREAD[name] in reason


def test_other_engines_use_one_thread() -> None:
    plan = ac.load(SCENARIOS / "dumbbell.toml").plan()
    assert engines.engine("fluid").threads(plan, 4) == (1, "the engine fluid uses one")


def test_runs_that_stay_on_one_thread_use_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[int] = []

    def run_parallel(
        calls: list[Callable[[Progress], ac.Dataset]], at_a_time: int, progress: Progress
    ) -> list[ac.Dataset]:
        jobs.append(at_a_time)
        return [call(progress) for call in calls]

    monkeypatch.setattr(runner, "run_parallel", run_parallel)
    monkeypatch.setattr(runner, "cores", lambda: 8)
    for name, duration, warmup in (("dumbbell", "2s", "1s"), ("leaf-spine", *DIVIDED["leaf-spine"])):
        plan = ac.load(SCENARIOS / f"{name}.toml").with_({"duration": duration, "warmup": warmup}).plan()
        ac.run(plan, seeds=[1, 2], threads=2)
    assert jobs == [8, 4]
