"""Sweeps of very many points: a sample is checked before anything runs, each other point when it is dealt out."""

from __future__ import annotations

import json
import pickle
from concurrent.futures import Future

import pytest
from small_networks import dumbbell

from ackclock.errors import ScenarioError
from ackclock.experiments.sweep import folder, run
from ackclock.experiments.sweep.run import prepare
from ackclock.experiments.sweep.spec import Run, Runs
from ackclock.scenario import planning

#: 200 packets at 100/s take 2 s: only together with 1 s between bursts it does not fit.
THREE_KEYS = f"""
duration = "5s"
{dumbbell("10Mbit", "20ms")}
[[traffic]]
kind = "udp"
packet = "100B"
rate = "1000/s"
burst = {{ packets = 10, every = "2s" }}
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


def test_a_sweep_of_a_million_points_starts_without_checking_each(monkeypatch):
    looked_at = []
    point = planning.Loaded.point
    monkeypatch.setattr(planning.Loaded, "point", lambda self, number: looked_at.append(number) or point(self, number))
    shares = []
    job = prepare(planning.loads(many(577)), progress=shares.append)
    assert len(job.runs) == 577 * 577 * 3
    assert len(looked_at) <= 2 * planning.SAMPLED + 3
    assert shares == sorted(shares)
    assert len(shares) > 5
    assert job.runs[998_000] == Run(998_000, 998_000, 1)


def test_seeds_that_differ_are_counted_at_every_point(monkeypatch):
    monkeypatch.setattr(planning, "MAX_CHECKED", 20)
    job = prepare(planning.loads(many(4) + '\n"repeats" = [1, 3]\n'))
    assert len(job.runs) == 48 * 4


def test_a_sample_has_the_ends_of_the_sweep_and_values_of_each_key(monkeypatch):
    loaded = planning.loads(many(40))
    sample = loaded.sample()
    assert sample == sorted(set(sample))
    assert {0, loaded.count - 1} <= {*sample}
    assert [{loaded.sweep.places(number)[axis] for number in sample} for axis in range(3)] == [
        {*range(40)},
        {*range(40)},
        {0, 1, 2},
    ]
    monkeypatch.setattr(planning, "MAX_CHECKED", loaded.count)
    assert loaded.sample() == [*range(loaded.count)]


class Here:
    """An executor that makes its calls at once."""

    slots = 1

    def submit(self, function, *arguments) -> Future:
        future: Future = Future()
        try:
            future.set_result(function(*arguments))
        except ScenarioError as error:
            future.set_exception(error)
        return future


def test_a_mistake_in_an_unchecked_point_ends_the_sweep_with_its_place(monkeypatch, tmp_path):
    """200 packets at 100/s take 2 s: only with 1 s between bursts they do not fit."""
    text = THREE_KEYS.replace("1000/s", "100/s") + "\n".join(
        ('"traffic[0].burst.packets" = [10, 20, 200]', '"traffic[0].burst.every" = ["2s", "1s", "3s"]')
    )
    monkeypatch.setattr(planning.Loaded, "sample", lambda self: [0])
    job = prepare(planning.loads(text, "x.toml"))
    with folder.Parts(tmp_path / "out", job.spec) as parts:
        with pytest.raises(ScenarioError, match=r"^x.toml:15: .*burst.every\[1\]: .* 200 datagrams take$") as caught:
            run._drain(Here(), pickle.dumps(job.spec), run.Tasks(job.runs), parts, [].append, bool)
        parts.write()
        assert {0, 1, 2, 3, 4, 5, 6} <= parts.done <= {0, 1, 2, 3, 4, 5, 6, 8}
    assert "\n" not in str(caught.value)
