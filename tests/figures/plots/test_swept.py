"""The figures of sweeps: what is chosen is what is drawn, and what cannot be drawn is said in a line."""

from __future__ import annotations

import re

import numpy as np
import pytest
import rendered
from matplotlib.axes import Axes

import ackclock as ac
from ackclock.errors import InputError
from ackclock.experiments.sweep import result
from ackclock.figures import experiment_figures, plots, sweep_axes
from ackclock.figures.figure_spec import MARKS
from ackclock.figures.plots import pgf

QUEUES = """{ discipline = "pfifo", limit = "20p" }, { discipline = "pfifo", limit = "5p" },
    { discipline = "fq_codel", limit = "1000p" }"""

TEXT = """
name = "of two_keys & more"
duration = "4s"
warmup = "1s"
repeats = 2
network = { topology = "dumbbell", rate = "5Mbit", rtt = "20ms", queue = { discipline = "pfifo", limit = "9p" } }
flows = [{ count = 2, congestion = "cubic" }]
[sweep]
"""


def sweep_of(folder, *keys):
    scenario = folder / "swept.toml"
    scenario.write_text(TEXT + "\n".join(keys))
    return ac.sweep(str(scenario), engine="fluid", out=folder / "out", jobs=1)


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    return ac.sweep(
        ac.loads(TEXT + f'"network.queue" = [{QUEUES}]\n"flows[0].congestion" = ["reno", "cubic"]'),
        out=folder / "out",
        jobs=1,
        metrics=["utilisation", "loss_rate", "goodput_flow_bps"],
    )


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    keys = ('"network.rate" = ["2Mbit", "5Mbit", "10Mbit"]', '"network.queue.limit" = ["0.3bdp", "1bdp", "3bdp"]')
    return sweep_of(tmp_path_factory.mktemp("grid"), *keys)


def names(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_tables_have_short_names_and_what_reports_them_apart(kinds):
    figure = plots.swept(kinds, y="loss_rate", x="network.queue")
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["pfifo 20p", "pfifo 5p", "fq_codel"]
    assert names(figure) == ["reno", "cubic"]
    assert names(plots.swept(kinds, y="loss_rate", x="congestion")) == ["pfifo 20p", "pfifo 5p", "fq_codel"]


def drawn_lines(ax: Axes):
    return [
        line
        for line in ax.lines
        if line.get_linestyle() not in ("None", "none", " ", "") and line.get_marker() in MARKS
    ]


def test_numbers_are_joined_by_lines_and_names_are_not(kinds, grid):
    assert drawn_lines(plots.swept(kinds, y="loss_rate").axes[0]) == []
    assert len(drawn_lines(plots.swept(grid, y="jain", kind="line").axes[0])) == 3
    assert drawn_lines(plots.swept(grid, y="jain", kind="dot").axes[0]) == []


def test_each_line_has_a_marker_and_a_name_that_can_be_replaced(grid):
    lines = drawn_lines(plots.swept(grid, y="jain", kind="line").axes[0])
    assert len({line.get_marker() for line in lines}) == len({line.get_color() for line in lines}) == 3
    with plots.page(labels=["small", "medium", "large"]):
        assert names(plots.swept(grid, y="jain", kind="line")) == ["small", "medium", "large"]
    with plots.page(labels=["small"]), pytest.raises(InputError, match="--label: found 1 name; expected 3, for "):
        plots.swept(grid, y="jain", kind="line")
    with plots.page(labels=["a"]), pytest.raises(InputError, match="expected none: the figure has no legend"):
        plots.swept(grid, y="jain", kind="heatmap")


@pytest.mark.parametrize(
    ("key", "title"),
    [
        ("network.queue.limit", "Queue limit"),
        ("network.queue", "Queueing discipline"),
        ("network.rate", "Link rate"),
        ("flows[1].rtt", "RTT, flows[1]"),
        ("flows[0].congestion", "Congestion control, flows[0]"),
        ("duration", "Duration"),
    ],
)
def test_a_key_has_a_title_for_readers(key, title):
    assert sweep_axes.key_title(key) == title


def test_two_keys_of_numbers_make_a_map_with_each_point_in_its_place(grid):
    assert experiment_figures.is_map([grid])
    chart = experiment_figures.maps(grid, sweep_axes.Choice(metrics=("utilisation",)))["utilisation"]
    assert (chart.x.title, chart.y.title) == ("Link rate (Mb/s)", "Queue limit (BDP)")
    assert [text for _, text in (*chart.x.ticks, *chart.y.ticks)] == ["2", "5", "10", "0.3", "1", "3"]
    (heat,) = chart.layers
    assert heat.unit == "%"
    for point in grid.points:
        row, column = (2, 5, 10).index(int(point["values"]["network.rate"].removesuffix("Mbit"))), None
        column = ("0.3bdp", "1bdp", "3bdp").index(point["values"]["network.queue.limit"])
        assert heat.values[column][row] == pytest.approx(100 * point["summary"]["utilisation"]["mean"])
    figure = plots.swept(grid, y="utilisation")
    assert len(figure.axes) == 2  # the map and its colours
    turned = experiment_figures.maps(grid, sweep_axes.Choice(x="limit", metrics=("utilisation",)))["utilisation"]
    assert turned.layers[0].values.tolist() == heat.values.T.tolist()


def test_a_sweep_of_names_is_no_map(kinds, grid):
    assert not experiment_figures.is_map([kinds])
    assert not experiment_figures.is_map([grid, grid])


def test_boxes_and_distribution_functions_take_every_run_and_every_flow(kinds):
    boxes = experiment_figures.boxes(kinds, sweep_axes.Choice("network.queue", ("goodput_flow",))).layers
    assert [(layer.name, len(layer.values)) for layer in boxes] == [("reno", 3), ("cubic", 3)]
    assert {len(values) for layer in boxes for values in layer.values} == {4}  # two seeds, two flows
    pooled = experiment_figures.steps(kinds, sweep_axes.Choice(None, ("utilisation",), ("flows[0].congestion",))).layers
    assert [(layer.name, layer.x.size) for layer in pooled] == [("reno", 7), ("cubic", 7)]  # each begins at its least
    assert all((np.diff(layer.x) >= 0).all() for layer in pooled)
    assert plots.swept(kinds, y="goodput_flow_bps", kind="ecdf").axes[0].get_ylabel() == "Share at or below"


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"y": "loss_rate", "kind": "dot"},
        {"y": "utilisation", "kind": "heatmap"},
        {"y": "goodput_flow_bps", "kind": "box"},
        {"y": "goodput_flow_bps", "kind": "ecdf"},
    ],
    ids=str,
)
def test_no_word_is_cut_or_overprinted(kinds, grid, chosen):
    for sweep in (kinds, *([grid] if "goodput_flow_bps" not in chosen.values() else [])):
        for width_in, titled in ((7.0, True), (3.5, False)):
            with plots.page(width_in, titled=titled):
                assert rendered.faults(plots.swept(sweep, **chosen)) == []


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"kind": "pie"}, '--kind: found "pie"; expected one of "line", "dot", "heatmap", "ecdf", "box"'),
        ({"x": "rate"}, '--x: found "rate"; expected one of "network.queue", "flows[0].congestion"'),
        ({"y": "los_rate"}, '--y: found "los_rate"; expected "loss_rate" (known: "utilisation", "loss_rate")'),
        (
            {"x": "congestion", "by": "congestion"},
            "--by: found several points at one place; expected network.queue there too",
        ),
        (
            {"y": "utilisation,loss_rate", "kind": "box"},
            "--y: found 2 metrics; expected one whose spread is to be shown",
        ),
        (
            {"y": "congestion", "kind": "line"},
            '--y: found "congestion", a swept key; expected a metric, or --kind heatmap',
        ),
    ],
    ids=lambda given: str(given)[:24],
)
def test_what_cannot_be_drawn_is_reported(kinds, chosen, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        plots.swept(kinds, **chosen)


def test_a_picture_for_latex_is_written_without_tex(kinds, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with plots.page(3.5):
        text = pgf.picture(plots.swept(kinds, y="loss_rate")).decode()
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    assert r"\pgfqpoint{3.500000in}" in text
    assert r"fq\_codel" in text
    assert r"of two\_keys \& more" in text
    assert "pgfimage" not in text


def test_nothing_in_a_name_is_a_command_of_latex():
    assert pgf.text(r"\input{/etc/passwd} $x_1$ 5 % ~") == (
        r"\textbackslash{}input\{/etc/passwd\} \$x\_1\$ 5 % \textasciitilde{}"
    )
    assert pgf.text(r"$\mathdefault{10^{-1}}$") == r"$\mathdefault{10^{-1}}$"
    assert pgf.text(r"$\mathdefault{\input{x}}$").startswith(r"\$")


def test_points_of_a_finished_sweep_are_chosen(kinds):
    some = kinds.only({"network.queue": ["fq_codel", "pfifo 5p"], "flows[0].congestion": ["reno"]})
    assert len(some.points) == 2
    assert [axis.values for axis in some.axes][1] == ("reno",)
    assert {point["values"]["flows[0].congestion"] for point in some.points} == {"reno"}
    assert some.points[0]["summary"] == next(
        p["summary"] for p in kinds.points if p["values"] == some.points[0]["values"]
    )
    with pytest.raises(InputError, match=r'found "sfq"; expected'):
        kinds.only({"network.queue": ["sfq"]})
    assert result.read(kinds.folder).only({}).table.equals(kinds.table)
