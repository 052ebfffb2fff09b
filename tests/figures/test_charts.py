"""Charts of a sweep for figures and the report."""

from __future__ import annotations

import base64
import json
import re

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from small_networks import dumbbell

import ackclock as ac
from ackclock.cli.program import application
from ackclock.errors import InputError
from ackclock.experiments.sweep.result import Sweep
from ackclock.figures import experiment_figures, figure_spec, plots, report, sweep_axes
from ackclock.scenario.points import Axis

LIMIT, CONTROL = "network.queue.limit", "flows[0].congestion"


def sweep_of(limits=("0.1bdp", "1bdp", "10bdp"), controls=("reno", "cubic"), engine="fluid", metrics=("utilisation",)):
    """A finished sweep with made-up utilisations: 0.1 × point + seed / 100."""
    pairs = [(limit, control) for control in controls for limit in limits]
    rows = [
        {"run": 2 * n + seed - 1, "point": n, "seed": seed, CONTROL: control, LIMIT: limit}
        | dict.fromkeys(metrics, 0.1 * n + seed / 100)
        for n, (limit, control) in enumerate(pairs)
        for seed in (1, 2)
    ]
    axes = tuple(
        Axis(key, (key,), ("sweep", key), tuple(values), tuple(range(len(values))))
        for key, values in ((CONTROL, controls), (LIMIT, limits))
    )
    manifest = {
        "ackclock": "0",
        "name": "made up",
        "scenario_path": "x.toml",
        "command": "ackclock sweep x.toml",
        "sweep": {"engine": engine, "metrics": list(metrics), "scenario": "name = '<b>'"},
    }
    return Sweep(None, manifest, axes, pl.DataFrame(rows))


def test_the_axis_across_is_the_numeric_one_and_each_other_value_a_line():
    chart = experiment_figures.charts([sweep_of()])["utilisation"]
    assert (chart.y.unit, chart.x.title) == ("%", "Queue limit (BDP)")
    assert chart.x.logarithmic
    assert [line.name for line in chart.layers] == ["reno", "cubic"]
    reno, cubic = chart.layers
    assert list(reno.x) == [0.1, 1.0, 10.0]
    assert list(reno.y) == pytest.approx([1.5, 11.5, 21.5])
    assert list(cubic.y) == pytest.approx([31.5, 41.5, 51.5])
    assert reno.high[1] - reno.y[1] == pytest.approx(12.706 * 0.5, rel=1e-3)  # Student's, two runs 1 % apart
    assert reno.low[0] == 0.0  # cut at what the metric can be


def test_values_without_numbers_appear_side_by_side():
    chart = experiment_figures.charts([sweep_of(limits=("0.1bdp", "5p"))])["utilisation"]
    assert chart.x == figure_spec.named("Congestion control, flows[0]", ["reno", "cubic"])
    assert [line.name for line in chart.layers] == ["0.1bdp", "5p"]


def test_sweeps_of_several_engines_share_the_axes_and_differ_by_name():
    some = sweep_of(limits=("1bdp",), engine="packet")
    lines = experiment_figures.charts([sweep_of(), some])["utilisation"].layers
    assert [line.name for line in lines] == ["reno, fluid", "cubic, fluid", "reno, packet", "cubic, packet"]
    assert [line.colour for line in lines] == [figure_spec.BLUE, figure_spec.RED] * 2
    assert [line.dash for line in lines] == ["solid", "solid", "longdash", "longdash"]
    assert list(lines[2].x) == [1.0]


def test_of_sweeps_with_other_metrics_what_both_have_is_shown_and_the_rest_is_named():
    one, other = (
        sweep_of(metrics=("utilisation", "jain")),
        sweep_of(metrics=("utilisation", "loss_rate"), engine="packet"),
    )
    page = report.render_sweeps([one, other])
    assert 'id="sweep-utilisation"' in page
    assert 'id="sweep-jain"' not in page
    assert sweep_axes.not_shared([one, other]) == [
        ("Jain's fairness index", ["fluid"]),
        ("Loss rate at the bottleneck", ["packet"]),
    ]
    assert "Loss rate at the bottleneck (only packet)" in page
    assert "Not all have" not in report.render_sweeps([one])
    with pytest.raises(InputError, match="no metric in common"):
        experiment_figures.charts([one, sweep_of(metrics=("loss_rate",))])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1ms", "2s"], ([0.001, 2.0], "s")),
        (["100kbit", "1Mbit"], ([0.1, 1.0], "Mb/s")),
        (["5p", "50p"], ([5.0, 50.0], "packets")),
        (["64KB", "1MB"], ([0.064, 1.0], "MB")),
        ([1, 2.5], ([1.0, 2.5], "")),
        (["5p", "1bdp"], None),
        (["reno"], None),
        ([True, False], None),
    ],
)
def test_quantities_of_one_kind(values, expected):
    assert sweep_axes.quantities(values) == expected


def test_what_cannot_be_drawn_is_reported():
    alone = sweep_of()
    with pytest.raises(ac.InputError, match="found one point, without a swept key"):
        experiment_figures.charts([Sweep(None, alone.manifest, (), alone.table)])


def test_the_figure_has_a_panel_for_each_metric_and_every_line_in_the_legend():
    both = ("utilisation", "jain")
    figure = plots.swept(sweep_of(metrics=both), sweep_of(metrics=both, engine="packet"))
    panels = [ax for ax in figure.axes if ax.axison]
    assert [ax.get_title(loc="left") for ax in panels] == ["Utilisation (%)", "Jain's fairness index"]
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["reno, fluid", "cubic, fluid", "reno, packet", "cubic, packet"]


def test_the_report_holds_the_numbers_and_nothing_that_runs():
    page = report.render_sweeps([sweep_of(), sweep_of(limits=("1bdp",), engine="packet")])
    drawn = json.loads(re.search(r'id="figures">(.*?)</script>', page)[1])
    assert list(drawn) == ["sweep-utilisation"]
    assert [trace["name"] for trace in drawn["sweep-utilisation"]["data"]][2:] == ["reno, packet", "cubic, packet"]
    for trace in drawn["sweep-utilisation"]["data"]:
        assert np.isfinite(np.frombuffer(base64.b64decode(trace["error_y"]["array"]["bdata"]), "<f4")).all()
    assert "<td>reno</td><td>0.1bdp</td><td>2</td><td>1.50 ± 6.35 %</td>" in page
    assert "name = &#39;&lt;b&gt;&#39;" in page
    assert "http" not in page.partition("<script>")[0].replace("http-equiv", "")


def call(*arguments):
    return CliRunner().invoke(application, [str(argument) for argument in arguments])


SCENARIO = f"""
name = "small"
duration = "1s"
{dumbbell("1Mbit", "20ms")}
[[flows]]
congestion = "cubic"
[sweep]
"network.queue.limit" = ["2p", "8p", "9p"]
"flows[0].congestion" = ["reno", "cubic"]
"""


def test_from_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SCENARIO)
    where = ("--where", "network.queue.limit=2p,9p")
    done = call("sweep", "small.toml", *where, "--metrics", "utilisation,loss_rate", "--seed", "2", "--json")
    assert done.exit_code == 0, done.output
    outcome = json.loads(done.stdout)
    assert (outcome["scenario"], outcome["engine"]) == ("small", "packet")
    assert [[*point["values"].values()] for point in outcome["points"]] == [
        ["2p", "reno"], ["2p", "cubic"], ["9p", "reno"], ["9p", "cubic"]
    ]  # fmt: skip
    assert set(outcome["points"][0]["summary"]) == {"utilisation", "loss_rate"}
    assert "wrote results/small-packet-sweep/report.html" in done.stderr
    assert "results/small-packet-sweep/sweep.png" in call("plot", "results/small-packet-sweep", "sweep").stdout
    assert (tmp_path / "results/small-packet-sweep/sweep.png").stat().st_size > 10_000
    assert "wrote both.html" in call("report", *["results/small-packet-sweep"] * 2, "--out", "both.html").stdout
    shown = call("sweep", "small.toml", *where, "--metrics", "utilisation,loss_rate", "--seed", "2", "--no-report")
    assert "4 points, 1 run each" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--where", "network.queue.limit"), '--where: found "network.queue.limit"; expected KEY=VALUE'),
        (("--where", "network.rate=1Mbit"), 'where: found "network.rate"; expected'),
        (("--metrics", "jane"), 'metrics: found "jane"; expected "jain"'),
        (("--seed", "1", "--repeats", "2"), "--seed: found both --seed and --repeats"),
        (("--engine", "fluidd"), 'engine: found "fluidd"; expected'),
    ],
)
def test_the_command_line_rejects_in_one_line(tmp_path, monkeypatch, arguments, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SCENARIO)
    done = call("sweep", "small.toml", *arguments)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(expected)
    assert not (tmp_path / "results").exists()


def test_a_sweep_is_no_result_of_a_run(tmp_path):
    (tmp_path / "small.toml").write_text(SCENARIO)
    refused = call("run", tmp_path / "small.toml")
    assert refused.exit_code == 2
    assert "found a sweep of 6 points; expected one scenario; run `ackclock sweep " in refused.stderr
    assert refused.stderr.count("\n") == 1
    ac.sweep(tmp_path / "small.toml", out=tmp_path / "out", metrics=["jain"])
    with pytest.raises(ac.InputError, match="found a sweep; expected the result of a run"):
        ac.Dataset.read(tmp_path / "out")
    plain = call("plot", tmp_path / "out", "cwnd")
    assert (plain.exit_code, plain.stderr.count("\n")) == (2, 1)
