"""Representations of results: three lines, a table in a notebook, frames of pandas."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import polars as pl
import pytest

import ackclock as ac
from ackclock.dataset import Part
from ackclock.dataset.lazy_frame import pandas_frame

NAME = "<b>Two & 'more'</b>"


@pytest.fixture(scope="module")
def scenario():
    labels = {"flows[0].name": "bulk", "network.queue.limit": "20p"}
    return ac.scenario(rate="2Mbit", rtt="20ms", flows=2, duration="3s", name=NAME, repeats=2).with_(labels)


@pytest.fixture(scope="module")
def data(scenario):
    return ac.run(scenario)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    made = ac.scenario(rate="1Mbit", rtt="20ms", duration="2s", name=NAME, repeats=2,
                       sweep={"network.queue.limit": ["8p", "50p"]})  # fmt: skip
    return ac.sweep(made, metrics=["utilisation", "queue_delay_mean_s"], jobs=1, out=tmp_path_factory.mktemp("s") / "s")


@pytest.fixture(scope="module")
def compared(scenario):
    return ac.compare(scenario, ["packet", "fluid"])


def test_three_lines(scenario, data, swept, compared):
    assert repr(scenario.plan()).split("\n") == [
        f'Plan "{NAME}": 3 s, the first 0.75 s not measured; seeds 1, 2',
        "2 flows (bulk) over 1 link",
        "bottleneck: 2 Mbit/s, pfifo (limit_packets 20); base RTT 20 ms, bandwidth–delay product 5,000 bytes",
    ]
    first, second, third = repr(data).split("\n")
    assert first == f'Dataset "{NAME}": engine packet, 2 runs (seeds 1, 2)'
    assert second == "3 s, the first 0.75 s not measured"
    assert third.startswith("rows: flows 4, flow_samples ")
    first, second, third = repr(swept).split("\n")
    assert first == f'Sweep "{NAME}": engine packet, 2 points, 4 runs'
    assert second == "network.queue.limit: 8p, 50p"
    assert third.startswith("table: 4 rows, 7 columns; folder ")
    assert repr(compared).split("\n") == [
        f'Comparison "{NAME}": packet, fluid', "packet: 2 runs; fluid: 2 runs", "differences are to the first"
    ]  # fmt: skip


def test_a_scenario_is_its_file(scenario):
    swept = ac.scenario(rate="1Mbit", rtt="1ms", sweep={"network.rtt": ["1ms", "2ms"], "flows[0].count": [1, 2]})
    assert repr(swept).split("\n") == [
        'Scenario "scenario" (scenario)',
        "4 points: network.rtt, flows[0].count",
        ".plan() completes it, .source.text is its file",
    ]
    assert repr(scenario).split("\n")[:2] == [f'Scenario "{NAME}" (scenario)', "one scenario, no sweep"]
    assert "<pre>duration = &quot;3s&quot;\n" in scenario._repr_html_()
    assert scenario._repr_html_().count("<b>") == 1


def test_long_names_and_lists_stay_three_lines(data, scenario):
    many = replace(scenario.plan(), name="x\ny" * 200, seeds=tuple(range(500)))
    assert [len(line) <= 110 for line in repr(many).split("\n")] == [True] * 3
    assert "0, 1, 2, 3, 4, 5, 6, 7 and 492 more" in repr(replace(many, name=""))
    bare = ac.Dataset({"ackclock": "0", "runs": []}, {})
    assert repr(bare).split("\n") == ["Dataset without a name: 0 runs", "measured, not planned", "rows: none"]
    assert len(repr(replace(data, manifest={**data.manifest, "plan": {"warmup_s": "no"}})).split("\n")) == 3


class Cells(HTMLParser):
    """The texts of a table's cells, and all tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_data(self, data):
        if self.tags[-1] in ("td", "th"):
            self.rows[-1].append(data)


def test_tables_in_a_notebook_are_text_and_numbers(scenario, data, swept, compared):
    assert Cells(scenario.plan()._repr_html_()).rows[1] == ["bottleneck", "2", "0", "pfifo", "limit_packets 20"]
    result = data.metrics()["summary"]["utilisation"]
    (row,) = [row for row in Cells(data._repr_html_()).rows if row[0] == "Utilisation"]
    assert row[1] == f"{100 * result['mean']:.1f} %"
    points = Cells(swept._repr_html_())
    assert points.rows[0] == ["limit", "Utilisation", "Mean queueing delay"]
    assert [row[0] for row in points.rows[1:]] == ["8p", "50p"]
    assert re.fullmatch(r"[\d.]+( ± [\d.]+)? %", points.rows[1][1])
    both = Cells(compared._repr_html_())
    assert both.rows[0] == ["metric", "packet", "fluid"]
    assert {"Utilisation", "Mean queueing delay"} <= {row[0] for row in both.rows}
    for each in (scenario.plan(), data, swept, compared):
        text = each._repr_html_()
        assert text.count("<b>") == 1, "a name from a file is text"
        assert "&lt;b&gt;Two &amp; &#x27;more&#x27;" in text


def test_flows_have_the_names_of_their_groups(data, scenario):
    assert data.flows.columns[:4] == ["run", "flow", "group", "name"]
    assert data.flows["name"].to_list() == ["bulk"] * 4
    assert "name" not in data.frame("flows").columns, "only what is shown has it"
    assert data.flows.drop("name").equals(data.frame("flows"))
    assert replace(data, parts={"flows": (Part(data.flows),)}).flows.equals(data.flows)
    unnamed = replace(data, manifest={**data.manifest, "plan": {}})
    assert unnamed.flows["name"].to_list() == ["cubic"] * 4


def test_the_goodput_of_each_flow_is_the_metric(data):
    result = data.flow_goodput()
    assert result.columns == ["run", "seed", "flow", "group", "name", "congestion", "goodput_bps"]
    assert result.select("run", "seed", "flow").rows() == [(0, 1, 0), (0, 1, 1), (1, 2, 0), (1, 2, 1)]
    assert result["name"].to_list() == ["bulk"] * 4
    listed = [value for run in data.metrics()["runs"] for value in run["metrics"]["goodput_flow_bps"]]
    assert result["goodput_bps"].to_list() == listed
    counted = data.frame("flows").sort("run", "flow")["measured_bytes"] * 8 / 2.25  # of 3 s a quarter is not measured
    assert result["goodput_bps"].to_list() == pytest.approx(counted.to_list())
    part = data.flow_goodput(between=(1, 2))
    assert part.height == 4
    assert part["goodput_bps"].to_list() != listed


def test_short_flows_have_distinct_labels():
    """The second group begins when the measured part is over, the third is done before it begins."""
    text = """
duration = "6s"
warmup = "3s"
network = { topology = "dumbbell", rate = "4Mbit", rtt = "20ms", queue = { discipline = "pfifo", limit = "20p" } }
flows = [
    { congestion = "reno", start = "1s" },
    { congestion = "cubic", size = "10KB", name = "early" },
    { congestion = "cubic", start = "5s", name = "late" },
]
"""
    result = ac.run(text).flow_goodput()
    assert result.select("flow", "name", "congestion").rows() == [(0, "reno", "reno"), (2, "late", "cubic")]


def test_pandas_has_the_same_values(data, swept, compared):
    pandas = pytest.importorskip("pandas")
    flows = data.to_pandas()
    assert list(flows.columns) == data.flows.columns
    assert flows["measured_bytes"].tolist() == data.flows["measured_bytes"].to_list()
    assert flows["size_bytes"].isna().all()  # endless transfers have none
    assert data.to_pandas("events")["kind"].tolist() == data.events["kind"].to_list()
    assert swept.to_pandas()["network.queue.limit_p"].tolist() == [8.0, 8.0, 50.0, 50.0]
    assert len(swept.to_pandas("links")) == 4
    assert set(compared.to_pandas()["engine"]) == {"packet", "fluid"}
    mixed = pandas_frame(pl.DataFrame({"a": [1, None], "b": ["x", None], "c": [True, None], "d": [[1.0], None]}))
    assert isinstance(mixed, pandas.DataFrame)
    assert mixed["a"].tolist()[0] == 1.0
    assert mixed.isna().iloc[1].all()
    assert mixed["d"][0] == [1.0]


def test_without_pandas_one_line_reports_what_to_install(data, swept, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for given in (data, swept):
        with pytest.raises(ac.InputError, match=r"^found no pandas \(.*\); expected ackclock\[pandas\]: pip install"):
            given.to_pandas()


def test_a_table_that_present_is_not(data, swept):
    with pytest.raises(ac.InputError, match='^table: found "nope"; expected one of flows'):
        data.to_pandas("nope")
    with pytest.raises(ac.InputError, match="no table 'events'; expected a sweep that was run with --samples"):
        swept.to_pandas("events")
