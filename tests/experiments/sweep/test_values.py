"""Values of swept keys of every type, alone and mixed, in each view of a sweep."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_networks import dumbbell

import ackclock as ac
from ackclock.cli.program import application
from ackclock.experiments.sweep import result
from ackclock.figures import sweep_axes
from ackclock.input.source import Source
from ackclock.scenario import points

SCENARIO = f"""\
name = "small"
duration = "1s"
{dumbbell("1Mbit", "20ms")}
[[flows]]
congestion = "cubic"
[sweep]
"""
MIXES = {
    "integer and float": '"network.loss.probability" = [0, 0.01]',
    "float": '"network.loss.probability" = [0.0, 0.01]',
    "integers": '"flows[0].count" = [1, 2]',
    "booleans": '"tcp.sack" = [true, false]',
    "texts": '"flows[0].congestion" = ["reno", "cubic"]',
    "text and table": '"flows[0].rtt" = ["20ms", { from = "20ms", to = "30ms" }]',
    "two tables": '"network.queue" = [{ discipline = "codel" }, { discipline = "codel", ecn = true }]',
    "several keys": '"network.loss.probability" = [0, 0.01]\n"tcp.sack" = [true, false]\n"flows[0].count" = [1, 2]',
}
VALUES = st.one_of(
    st.booleans(),
    st.integers(-1000, 1000),
    st.floats(-1000, 1000),
    st.sampled_from(["0", "0.0", "true", "1bdp", "fq_codel", "-0.5"]),
    st.fixed_dictionaries({"kind": st.just("exponential"), "mean": st.integers(0, 3) | st.floats(0, 3)}),
    st.lists(st.integers(0, 3), max_size=2),
)


@pytest.mark.parametrize("mix", MIXES.values(), ids=MIXES)
def test_every_view_has_every_point(mix, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "swept.toml").write_text(SCENARIO + mix)
    key = mix.split('"')[1]
    sweep = ["sweep", "swept.toml", "--repeats", "2", "--jobs", "1", "--out", "swept", "--metrics", "goodput,jain"]
    for command in (
        sweep,
        [*sweep, "--json"],
        ["table", "swept"],
        ["table", "swept", "--out", "table.tex"],
        ["plot", "swept", "--out", "figure.svg"],
        ["plot", "swept", "--x", key, "--out", "figure.svg"],
        ["effects", "swept", "--metric", "goodput"],
    ):
        with pytest.raises(SystemExit) as end:
            application.main(command)
        assert end.value.code == 0, (command, capsys.readouterr().err)
    swept = result.read("swept")
    assert key in repr(swept)
    assert swept._repr_html_().count("<tr") == len(swept.points) + 1
    for axis in swept.axes:
        for value in axis.values:
            some = swept.only({axis.key: [points.label(value)]})
            assert len(some.points) == len(swept.points) / len(axis.values)


@given(st.lists(VALUES, min_size=1, max_size=5, unique_by=(points.exact, points.label)))
def test_the_table_of_points_has_each_value_under_its_label(values):
    axis = points.Axis("key", ("key",), ("sweep", "key"), tuple(values), tuple(range(len(values))))
    labels = [points.label(value) for value in result._column("key", values)]
    assert labels == list(map(points.label, values))
    assert list(sweep_axes.short_names(values)) == labels
    assert list(sweep_axes.places("key", values)[0]) == labels
    for value in values:
        some = points.Sweep((axis,), {}, Source("", "")).only({"key": [points.label(value)]})
        assert any(value is other for other in some.axes[0].values)


@pytest.mark.parametrize("twice", ["[0, 0.0]", '[1, "1"]', '[true, "true"]', "[{ a = 1, b = 2 }, { b = 2.0, a = 1 }]"])
def test_values_with_one_label_are_rejected(twice):
    with pytest.raises(ac.ScenarioError, match="found one value twice"):
        ac.loads(SCENARIO + f'"flows[0].size" = {twice}')
