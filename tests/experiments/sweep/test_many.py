"""Sweeps of very many points: some are looked at before, the others beside the work."""

from __future__ import annotations

import json
import time

import pytest

from ackclock.errors import ScenarioError
from ackclock.experiments.sweep import check, spec
from ackclock.experiments.sweep.run import prepare
from ackclock.experiments.sweep.runs import Run, Runs
from ackclock.input.source import Source
from ackclock.scenario import planning
from ackclock.scenario.scenario import checked

#: 200 packets at 100/s take 2 s: only together with 1 s between bursts it does not fit.
THREE_KEYS = """
duration = "5s"
[network]
topology = "dumbbell"
rate = "10Mbit"
rtt = "20ms"
queue = { discipline = "pfifo", limit = "1bdp" }
[[traffic]]
kind = "udp"
packet = "100B"
rate = "1000/s"
burst = { packets = 10, every = "2s" }
[sweep]
"""


def list_of(values) -> str:
    return json.dumps(list(values))


def many(length: int) -> str:
    """`length`² × 3 points. What is wrong is wrong in a point that has neither a pair nor a corner."""
    return THREE_KEYS + "\n".join(
        (
            f'"network.rate" = {list_of(f"{rate}Mbit" for rate in range(1, length + 1))}',
            f'"traffic[0].burst.packets" = {list_of(range(1, length + 1))}',
            '"traffic[0].burst.every" = ["2s", "1s", "3s"]',
        )
    )


def test_runs_are_numbered_by_points_and_seeds():
    runs = Runs([(1, 2), (7,), (1, 2)])
    expected = [Run(0, 0, 1), Run(1, 0, 2), Run(2, 1, 7), Run(3, 2, 1), Run(4, 2, 2)]
    assert list(runs) == expected
    assert runs[1:4] == expected[1:4]
    left = runs.without({0, 2, 3})
    assert list(left) == [expected[1], expected[4]]
    assert list(left.points) == [0, 2]
    assert not runs.without(range(5))


def test_a_point_of_checked_tables_is_the_scenario_that_one_would_write():
    text = many(3).replace("[sweep]", '[[flows]]\nsize = "1MB"\n[sweep]\n"flows" = [[{}], [{ count = 2 }]]')
    loaded = planning.loads(text)
    for point in loaded.points():
        content, source = loaded.sweep.content(point.number)
        assert point.plan == planning.Loaded(checked(content, source), Source(source.name, source.text)).plan()


def test_a_sweep_of_a_million_points_starts_without_checking_each(monkeypatch):
    looked_at = []
    point = planning.Loaded.point
    monkeypatch.setattr(planning, "MAX_CHECKED", 600)
    monkeypatch.setattr(planning.Loaded, "point", lambda self, number: looked_at.append(number) or point(self, number))
    shares = []
    job = prepare(planning.loads(many(577)), progress=shares.append)
    assert len(job.runs) == 577 * 577 * 3
    assert len(looked_at) < 2500
    assert shares == sorted(shares)
    assert len(shares) > 5
    assert job.runs[998_000] == Run(998_000, 998_000, 1)
    assert sum(runs for _, runs in job.costs()) == len(job.runs)


def test_seeds_that_differ_are_counted_at_every_point(monkeypatch):
    monkeypatch.setattr(planning, "MAX_CHECKED", 20)
    job = prepare(planning.loads(many(4) + '\n"repeats" = [1, 3]\n'))
    assert len(job.runs) == 48 * 4


def test_a_mistake_in_an_unchecked_point_ends_the_sweep_with_its_place():
    """Not in the points that are looked at before; the process beside the work finds it."""
    text = many(60).replace('rate = "1000/s"', 'rate = "58.5/s"')
    loaded = planning.loads(text)
    with pytest.raises(ScenarioError):
        prepare(loaded)  # the last values alone are wrong already
    good = planning.loads(text.replace('"1s", "3s"]', '"1.5s", "3s"]'))
    settings = spec.SweepSpec(text, "x.toml", "packet", None, (), False)
    left = Runs([(1,)] * good.count)
    until_s = time.monotonic() + 120
    with (
        pytest.raises(ScenarioError, match="burst.every"),
        check.checking(good, settings, left, lambda _: None) as tell,
    ):
        while time.monotonic() < until_s:
            tell(0.5)
            time.sleep(0.05)


def test_few_points_take_no_extra_process():
    loaded = planning.loads(many(2))

    def progress(share: float) -> None:
        """Ignore the progress."""

    with check.checking(loaded, spec.SweepSpec("", "", "packet", None, (), False), Runs([(1,)]), progress) as tell:
        assert tell is progress
