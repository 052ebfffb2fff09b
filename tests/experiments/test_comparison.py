"""Comparisons: what is set side by side, and how sure a difference is."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from click.testing import CliRunner
from scipy import stats
from small_networks import dumbbell

import ackclock as ac
from ackclock import engines
from ackclock.cli.program import application
from ackclock.engines.engine import Engine, manifest
from ackclock.engines.packet import PacketEngine
from ackclock.errors import Unsupported
from ackclock.experiments.comparison import Sample, difference

SCENARIO = f"""\
name = "small"
duration = "3s"
warmup = "1s"
repeats = 4

{dumbbell("2Mbit", "20ms")}

[[flows]]
count = 2
congestion = "cubic"
start = {{ jitter = "100ms" }}
"""


class OtherSeeds(PacketEngine):
    """The packet engine with other seeds: alike, not the same."""

    name = "twin"

    def run(self, plan, seed, options=None):
        found = super().run(plan, seed + 100, options)
        run = {**found.runs[0], "seed": seed}
        return replace(found, manifest={**found.manifest, "engine": self.name, "runs": [run]})


class Model(Engine):
    """Knows one mean, is deterministic, and cannot do everything."""

    name = "model"
    supported_features = frozenset()

    def unsupported(self, plan):
        return [Unsupported("more than two flows", self.name)] if len(plan.flows) > 2 else []

    def is_stochastic(self, plan):
        return False

    def run(self, plan, seed, options=None):
        return ac.Dataset(manifest(plan, self.name, seed, "", {"utilisation": 0.9}), {})


@pytest.fixture(autouse=True)
def more_engines(monkeypatch):
    monkeypatch.setitem(engines.ENGINES, "twin", (__name__, "Twin"))
    monkeypatch.setitem(engines.ENGINES, "model", (__name__, "Model"))
    made = {"twin": OtherSeeds, "model": Model}
    known = engines.engine
    monkeypatch.setattr(engines, "engine", lambda name: made[name]() if name in made else known(name))


def test_welch_as_scipy_has_it():
    first, second = [1.0, 2.0, 4.0, 4.5], [3.0, 3.5, 9.0]
    found = difference(Sample(first), Sample(second))
    expected = stats.ttest_ind(second, first, equal_var=False).confidence_interval(0.95)
    assert found is not None
    assert found.mean == pytest.approx(31 / 6 - 23 / 8)
    assert (found.ci95_low, found.ci95_high) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_against_an_exact_value_it_is_students_interval_of_the_other():
    drawn = [1.0, 2.0, 4.0]
    expected = stats.t.interval(0.95, 2, 7 / 3 - 5.0, stats.sem(drawn))
    found = difference(Sample([5.0], exact=True), Sample(drawn))
    assert (found.ci95_low, found.ci95_high) == (pytest.approx(expected[0]), pytest.approx(expected[1]))


def test_one_run_of_what_is_drawn_has_no_interval():
    found = difference(Sample([5.0]), Sample([1.0, 2.0]))
    assert (found.mean, found.ci95_low, found.ci95_high) == (-3.5, None, None)
    assert difference(Sample([]), Sample([1.0])) is None
    both = difference(Sample([5.0], exact=True), Sample([4.0], exact=True))
    assert (both.mean, both.ci95_low, both.ci95_high) == (-1.0, -1.0, -1.0)


def test_engines_side_by_side():
    found = ac.compare(ac.loads(SCENARIO).plan(), ["packet", "twin", "model"])
    assert found.engines == ["packet", "twin", "model"]
    rows = {(row["metric"], row["engine"]): row for row in found.table.iter_rows(named=True)}
    packet, twin, model = (rows["utilisation", engine] for engine in found.engines)
    own = ac.run(ac.loads(SCENARIO).plan()).metrics()["summary"]["utilisation"]
    assert {key: packet[key] for key in own} == own
    assert (packet["difference"], packet["difference_low"]) == (None, None)
    assert twin["difference"] == pytest.approx(twin["mean"] - packet["mean"])
    assert twin["difference_low"] < twin["difference"] < twin["difference_high"]
    assert (model["mean"], model["n"], model["ci95_low"]) == (0.9, 1, None)
    half = packet["ci95_high"] - packet["mean"]
    cut = packet["ci95_high"] == max(1.0, packet["mean"])
    assert model["difference_high"] - model["difference"] == pytest.approx(half) or cut
    assert rows["loss_rate", "model"]["mean"] is None
    assert rows["loss_rate", "model"]["difference"] is None
    assert found.runs.group_by("engine", maintain_order=True).len()["len"].to_list() == [4, 4, 1]


def test_a_scenario_is_compared_as_its_plan():
    found = ac.compare(ac.loads(SCENARIO), ["model", "twin"], seeds=[1])
    assert found.name == "small"
    assert found.table.equals(ac.compare(ac.loads(SCENARIO).plan(), ["model", "twin"], seeds=[1]).table)


def test_an_engine_is_compared_with_itself_without_a_difference():
    class Same(PacketEngine):
        name = "twin"

    engines.engine = lambda name, known=engines.engine: Same() if name == "twin" else known(name)
    found = ac.compare(ac.loads(SCENARIO).plan(), ["packet", "twin"], [1, 2])
    apart = found.table.drop_nulls("difference")
    assert apart.height > 20
    assert apart["difference"].abs().max() == 0


def test_what_an_engine_cannot_run_is_left_out_with_the_reason():
    plan = ac.loads(SCENARIO.replace("count = 2", "count = 3").replace("repeats = 4", "")).plan()
    found = ac.compare(plan, ["model", "packet"])
    assert found.engines == ["packet"]
    (reason,) = map(str, found.unsupported["model"])
    assert reason.startswith('Unsupported: engine "model" has no more than two flows')


def test_invalid_comparisons_are_rejected():
    plan = ac.loads(SCENARIO.replace("count = 2", "count = 3")).plan()
    with pytest.raises(ac.InputError, match="engine: found packet; expected two engines or more"):
        ac.compare(plan, ["packet", "packet"])
    with pytest.raises(ac.InputError, match='engine: found "pocket"'):
        ac.compare(plan, ["packet", "pocket"])
    with pytest.raises(ac.InputError, match="seeds: found"):
        ac.compare(plan, ["packet", "twin"], [1, 1])


def call(*arguments):
    return CliRunner().invoke(application, ["compare", *map(str, arguments)])


def test_the_command_prints_a_table_and_writes_a_folder(tmp_path):
    (tmp_path / "small.toml").write_text(SCENARIO)
    done = call(tmp_path / "small.toml", "--engine", "packet,twin,model", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "packet: 4 runs; twin: 4 runs; model: deterministic, one run" in " ".join(done.stdout.split())
    names = {path.name for path in (tmp_path / "out").iterdir()}
    figures = {"metrics.png", "cwnd.png", "queue.png"}
    assert names == {
        "manifest.json",
        "comparison.json",
        "comparison.parquet",
        "packet",
        "twin",
        "model",
        "report.html",
        *figures,
    }
    assert ac.Dataset.read(tmp_path / "out" / "twin").manifest["engine"] == "twin"
    again = call(tmp_path / "small.toml", "--engine", "twin,model", "--out", tmp_path / "out", "--json", "--seed", "3")
    found = json.loads(again.stdout)
    assert found["engines"] == ["twin", "model"]
    assert found["metrics"]["utilisation"]["model"]["n"] == 1
    assert found["metrics"]["utilisation"]["model"]["difference_low"] is None
    assert not (tmp_path / "out" / "packet").exists()
    assert math.isfinite(found["metrics"]["goodput_bps"]["twin"]["mean"])


def test_the_command_rejects_in_one_line(tmp_path):
    (tmp_path / "three.toml").write_text(SCENARIO.replace("count = 2", "count = 3"))
    (tmp_path / "swept.toml").write_text(SCENARIO + '[sweep]\n"network.rate" = ["1Mbit"]\n')
    (tmp_path / "notes.txt").write_text("mine")
    some = ("--engine", "packet,twin")
    for arguments, status, expected in (
        ((tmp_path / "three.toml", *some, "--out", tmp_path), 2, "found something that is not an ackclock result"),
        ((tmp_path / "swept.toml", *some), 2, "found a sweep of 1 points; expected one scenario; run `ackclock sweep"),
        ((tmp_path / "three.toml", *some, "--seed", "-1"), 2, "--seed: found -1"),
    ):
        done = call(*arguments)
        assert (done.exit_code, done.stdout) == (status, "")
        assert expected in done.stderr
        assert done.stderr.count("\n") == 1


def test_status_3_only_if_no_engine_can_run_it(tmp_path, monkeypatch):
    (tmp_path / "three.toml").write_text(SCENARIO.replace("count = 2", "count = 3").replace("repeats = 4", ""))
    monkeypatch.chdir(tmp_path)
    able = call("three.toml", "--engine", "model,packet")
    assert able.exit_code == 0
    assert 'Unsupported: engine "model" has no more than two flows' in able.stdout
    assert "–" in able.stdout
    monkeypatch.setattr(OtherSeeds, "unsupported", lambda self, plan: [Unsupported("patience", "twin")])
    none = call("three.toml", "--engine", "model,twin")
    assert none.exit_code == 3
    assert none.stderr.count("Unsupported: ") == 2
