"""The closed-form engine: what it answers, what it refuses, and what every view makes of averages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from polars.testing import assert_frame_equal

import ackclock as ac
from ackclock import engines, metrics
from ackclock.cli.program import application
from ackclock.dataset import tables
from ackclock.engines import theory
from ackclock.engines.theory.model import ModelResult
from ackclock.engines.theory.pendulum import Pendulum
from ackclock.errors import InputError, UnsupportedError
from ackclock.reproductions import pendulum as tilts
from ackclock.theory import pendulum

UP = 'up = { rate = "2Mbit", delay = "21ms", queue = { discipline = "bfifo", limit = "36KB" } }'
LINE = f"""
name = "a line"
duration = "200s"
warmup = "40s"
[network]
topology = "asymmetric"
frame_overhead = "8B"
down = {{ rate = "10Mbit", delay = "21ms", queue = {{ discipline = "bfifo", limit = "150KB" }} }}
{UP}
[[flows]]
congestion = "reno"
[[flows]]
congestion = "reno"
direction = "up"
[record]
interval = "100ms"
"""


class Averages:
    """A model that knows two numbers and no tables."""

    name = "averages"

    def unsupported(self, plan):
        return []

    def is_stochastic(self, plan):
        return False

    def evaluate(self, plan, seed):
        return ModelResult(metrics={"goodput_bps": 8.5e6, "queue_delay_mean_s": 0.02, "goodput_flow_bps": [8e6, 5e5]})


def plan(text: str = LINE) -> ac.plan.Plan:
    return ac.loads(text).plan()


@pytest.fixture(scope="module")
def data():
    return ac.run(plan(), engine="theory")


@pytest.fixture
def averages(monkeypatch):
    monkeypatch.setattr(theory, "MODELS", (Averages(),))


def line() -> tuple[pendulum.Side, pendulum.Side]:
    """`LINE` for the library."""
    return tuple(
        pendulum.side(rate_bps, 0.042, queue_bytes=limit, packet_bytes=1508)
        for rate_bps, limit in ((10e6, 150e3), (2e6, 36e3))
    )


def call(*arguments: object):
    return CliRunner().invoke(application, [str(argument) for argument in arguments])


def test_every_listed_engine_has_a_description():
    """The contract of all engines: a name, features in the known words, and refusals that name where else to go."""
    algorithms = ("congestion control ", "queue discipline ")
    for name in engines.ENGINES:
        made = engines.engine(name)
        assert made.name == name
        words = {what for what in made.supported_features if not what.startswith(algorithms)}
        assert words <= engines.features.ALL | engines.features.OF_TESTBEDS


def test_no_engine_reads_a_clock_or_the_systems_randomness():
    """But for the manifest's date, which is of no engine, and for real hosts, whose clocks are the world's."""
    from pathlib import Path

    folder = Path(engines.__file__).parent
    for path in set(folder.rglob("*.py")) - set((folder / "linux" / "testbed").rglob("*.py")):
        text = (
            path.read_text("utf-8").replace("datetime.now(UTC)", "").replace("from datetime import UTC, datetime", "")
        )
        for word in ("import time", "datetime", "perf_counter", "import random", "os.urandom", "default_rng()"):
            assert word not in text, f"{path}: {word}"


def test_the_pendulum_fills_the_tables(data):
    assert data.manifest["engine"] == "theory"
    assert data.manifest["model"] == "pendulum"
    for table in ("flows", "flow_samples", "queue_samples", "events", "links"):
        frame = data.frame(table)
        assert frame.height > 0
        assert frame.schema == tables.schema(table)
    assert data.flow_samples.height == data.queue_samples.height == 2 * 2001
    assert data.flows["congestion"].to_list() == ["reno", "reno"]
    assert data.flows["recoveries"].sum() * 2 == data.events.height


def test_its_samples_are_the_librarys(data):
    """Flow 0 downloads: 1508 B a packet on the wire (1448 + 52 + 8), begun with 10 segments."""
    way = pendulum.follow(*line(), 200, begin_p=(10, 10))
    times = np.arange(2001) / 10
    samples = data.flow_samples.sort("flow", "time_s")
    np.testing.assert_allclose(samples["cwnd"].to_numpy(), way.windows_p(times).T.reshape(-1), rtol=1e-9)
    np.testing.assert_allclose(samples["srtt_s"].to_numpy(), way.rtts_s(times).T.reshape(-1), rtol=1e-9)
    queues = data.queue_samples.sort("link", "time_s")
    np.testing.assert_allclose(queues["sojourn_s"].to_numpy(), way.waits_s(times).T.reshape(-1), atol=1e-9)
    np.testing.assert_allclose(queues["backlog_bytes"].to_numpy(), 1508 * way.queues_p(times).T.reshape(-1), atol=1e-6)
    measured = np.diff(way.delivered_p([40, 200]), axis=0)[0]
    np.testing.assert_allclose(data.flows["measured_bytes"].to_numpy(), measured * 1448, rtol=1e-6)
    np.testing.assert_allclose(data.links["departed_bytes"].to_numpy(), measured * 1508, rtol=1e-6)
    mean = np.array(way.mean_queues_p(40, 200)) * 1508
    np.testing.assert_allclose(data.links["backlog_mean_bytes"].to_numpy(), mean, rtol=1e-9)


def test_both_begin_when_the_later_one_does():
    """At 10 s and half of the jitter; nothing happens before, and means are over what is left of the measured part."""
    late = ac.run(
        plan(LINE.replace('direction = "up"', 'direction = "up"\nstart = { at = "10s", jitter = "2s" }')), "theory"
    )
    begun = ac.run(plan(), engine="theory")
    assert late.flows["start_s"].to_list() == [11, 11]
    samples = [data.flow_samples.sort("flow", "time_s").filter(pl.col("flow") == 0) for data in (late, begun)]
    np.testing.assert_allclose(samples[0]["cwnd"][110:].to_numpy(), samples[1]["cwnd"][:-110].to_numpy(), rtol=1e-6)
    assert samples[0]["delivered_bytes"][:111].sum() == 0
    before = late.queue_samples.filter(pl.col("time_s") < 11)
    assert before["backlog_bytes"].sum() == before["sojourn_s"].sum() == 0
    way = pendulum.follow(*line(), 189, begin_p=(10, 10))
    np.testing.assert_allclose(late.links["backlog_mean_bytes"].to_numpy(), np.array(way.mean_queues_p(29, 189)) * 1508)


def test_standard_metrics_are_computed_from_them(data):
    """The tilts that the metric finds in samples are those of the machine, but for those that a loss overtakes."""
    found = data.metrics()["runs"][0]["metrics"]
    drops = data.events.filter(pl.col("kind") == "drop", pl.col("time_s") >= 40)
    assert found["congestion_epochs"] == drops["time_s"].n_unique()
    assert 0.5 < found["utilisation"] < 1
    assert found["loss_rate"] is None
    view = next(metrics.runs(data))
    free = tilts.tilts(view).filter(pl.col("loss").not_())
    assert free.height == tilts.tilts_without_loss(view) > 10
    assert set(free["to"]) == {"up"}


def test_an_upload_that_is_written_first_is_flow_0():
    swapped = LINE.replace(
        '[[flows]]\ncongestion = "reno"\n[[flows]]\ncongestion = "reno"\ndirection = "up"\n',
        '[[flows]]\ncongestion = "reno"\ndirection = "up"\n[[flows]]\ncongestion = "reno"\n',
    )
    assert swapped != LINE
    one, other = (ac.run(plan(text), engine="theory") for text in (LINE, swapped))
    for column in ("measured_bytes", "recoveries"):
        assert one.flows[column].to_list() == other.flows[column].to_list()[::-1]
    assert_frame_equal(one.queue_samples, other.queue_samples)
    last = [data.flow_samples.filter(pl.col("time_s") == 200.0)["cwnd"].to_list() for data in (one, other)]
    assert last[0] == last[1][::-1]
    assert one.events.filter(pl.col("flow") == 0)["time_s"].to_list() == (
        other.events.filter(pl.col("flow") == 1)["time_s"].to_list()
    )


def test_queues_in_packets_hold_acks_too():
    text = LINE.replace('"bfifo", limit = "150KB"', '"pfifo", limit = "100p"').replace(
        '"bfifo", limit = "36KB"', '"pfifo", limit = "24p"'
    )
    data = ac.run(plan(text), engine="theory")
    up = data.queue_samples.filter(pl.col("link") == 1, pl.col("backlog_bytes") > 0)
    assert (up["backlog_p"] > up["backlog_bytes"] / 1508).all()
    assert float(up["backlog_p"].max()) <= 24 * (1 + 1e-9)
    assert float(up["backlog_p"].max()) > 23


def test_growth_by_acks_is_half_with_delayed_acks():
    """The same way at half the speed: at time 2 t the windows of the one are those of the other at t."""
    by_rtt, by_acks = (
        ac.run(plan(text), engine="theory").flow_samples.filter(pl.col("flow") == 0)["cwnd"].to_numpy()
        for text in (LINE, LINE + '[theory.pendulum]\ngrowth = "acks"\n')
    )
    before_the_first_loss = 20
    np.testing.assert_allclose(by_acks[: 2 * before_the_first_loss : 2], by_rtt[:before_the_first_loss], rtol=1e-9)


def test_the_same_seed_gives_the_same_and_another_one_another():
    text = (
        LINE.replace("36KB", "105KB").replace('rate = "2Mbit"', 'rate = "1Mbit"')
        + "[theory.pendulum]\nsimultaneous_loss = 0.5"
    )
    runs = [ac.run(plan(text), engine="theory", seeds=[seed]) for seed in (1, 1, 2)]
    for table in ("flows", "flow_samples", "queue_samples", "events", "links"):
        assert_frame_equal(runs[0].frame(table), runs[1].frame(table))
    assert not runs[0].flow_samples.equals(runs[2].flow_samples)
    expected = text + '\nsimultaneous_losses = "expected"'
    one, other = (ac.run(plan(expected), engine="theory", seeds=[seed]) for seed in (1, 2))
    assert one.flow_samples.equals(other.flow_samples)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (('[[flows]]\ncongestion = "reno"\n', '[[flows]]\ncongestion = "cubic"\n'), 'congestion control "cubic"'),
        (('"bfifo", limit = "36KB"', '"pie", limit = "24p"'), 'queue discipline "pie"'),
        (
            ('[[flows]]\ncongestion = "reno"\n', '[[flows]]\ncount = 2\ncongestion = "reno"\n'),
            "traffic but one flow in each direction of a line",
        ),
        (('direction = "up"', 'direction = "up"\nstart = "41s"'), "starts after the warm-up"),
        (('direction = "up"', 'direction = "up"\nsize = "1MB"'), "finite transfers"),
        ((UP, UP.replace("2Mbit", "10kbit").replace("36KB", "1600B")), "less than two packets"),
        (('direction = "up"', 'direction = "up"\ntcp.receive_window = "20KB"'), "receive window"),
        (('direction = "up"', 'direction = "up"\ntcp.delayed_ack = false'), "differ in delayed ACKs"),
    ],
)
def test_what_does_not_fit_is_one_line_that_names_who_can(change, what):
    changed = plan(LINE.replace(*change, 1) + '[theory]\nmodel = "pendulum"\n')
    (reason,) = engines.unsupported(engines.engine("theory"), changed)
    assert what in str(reason)
    assert str(reason).startswith('Unsupported: engine "theory" has no model of this: "pendulum" has no ')
    assert reason.available_in == ("packet", "linux")
    with pytest.raises(UnsupportedError):
        ac.run(changed, engine="theory")


def test_of_several_models_the_nearest_is_named(monkeypatch):
    class Nothing(Averages):
        name = "nothing"

        def unsupported(self, plan):
            return ["this", "that"]

    monkeypatch.setattr(theory, "MODELS", (Nothing(), Pendulum()))
    refused = plan(LINE.replace('congestion = "reno"', 'congestion = "cubic"', 1))
    (reason,) = theory.TheoryEngine().unsupported(refused)
    assert reason.what == 'model of this: the nearest, "pendulum", has no congestion control "cubic"'
    monkeypatch.setattr(theory, "MODELS", (Nothing(), Averages()))
    assert theory.TheoryEngine().unsupported(refused) == []
    assert theory.TheoryEngine().run(refused, 1).manifest["model"] == "averages"


def test_a_model_can_be_selected():
    chosen = replace(plan(), options={**plan().options, "theory": {**plan().options["theory"], "model": "pendulum"}})
    assert theory.TheoryEngine().run(chosen, 1).manifest["model"] == "pendulum"


@pytest.mark.parametrize(
    ("option", "found"),
    [
        ("pendulum.simultaneous_loss = 1.5", "1.5"),
        ('pendulum.growth = "bytes"', '"bytes"'),
        ('model = "pendulom"', '"pendulom"'),
    ],
)
def test_options_are_checked(option, found):
    with pytest.raises(InputError, match=rf"theory\.[\w.]+: found {found}; expected"):
        plan(LINE + f"[theory]\n{option}\n")


@pytest.mark.usefixtures("averages")
def test_averages_are_metrics_of_the_run():
    found = ac.run(plan(), engine="theory").metrics()
    assert found["summary"]["goodput_bps"]["mean"] == 8.5e6
    assert found["runs"][0]["metrics"]["goodput_flow_bps"] == [8e6, 5e5]
    assert found["summary"]["loss_rate"]["mean"] is None


@pytest.mark.usefixtures("averages")
def test_averages_are_printed_reported_and_not_drawn(tmp_path):
    """A sensible table, a report that opens, and a line instead of a figure."""
    scenario = tmp_path / "line.toml"
    scenario.write_text(LINE)
    out = tmp_path / "out"
    done = call("run", scenario, "--engine", "theory", "--out", out)
    assert done.exit_code == 0, done.output
    assert "8.50 Mb/s" in done.output
    assert "20.0 ms" in done.output
    assert "theory engine (averages)" in done.output
    assert "8.50 Mb/s" in (out / "report.html").read_text("utf-8")
    assert call("report", out, "--out", tmp_path / "again.html").exit_code == 0
    for kind in ("cwnd", "cwnd_total", "goodput", "queue", "cdf", "epochs", "response"):
        drawn = call("plot", out, kind, "--out", tmp_path / f"{kind}.png")
        assert drawn.exit_code == 2, kind
        assert drawn.stderr.strip().count("\n") == 0
        assert "no " in drawn.stderr


@pytest.mark.usefixtures("averages")
def test_averages_are_compared_with_another_result(tmp_path):
    """In a report of both, and as a level in the other's figures."""
    averages = ac.run(plan(), engine="theory")
    other = ac.run(replace(plan(), duration_s=5.0, warmup_s=1.0), engine="packet")
    for data, name in ((averages, "theory"), (other, "packet")):
        data.write(tmp_path / name)
    assert call("report", tmp_path / "packet", tmp_path / "theory", "--out", tmp_path / "both.html").exit_code == 0
    assert "8.50 Mb/s" in (tmp_path / "both.html").read_text("utf-8")
    over = ("--overlay", tmp_path / "theory", "--out", tmp_path / "over.png")
    assert call("plot", tmp_path / "packet", "goodput", *over).exit_code == 0
    assert "theory: " in call("plot", tmp_path / "packet", "cwnd", *over).stderr
