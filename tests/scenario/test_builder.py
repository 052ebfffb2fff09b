"""Scenarios without a file: of a rate and a round-trip time, of a mapping, of a text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ackclock as ac
from ackclock.cli import find
from ackclock.errors import InputError, ScenarioError

REQUESTED = {"rate": "8Mbit", "rtt": "40ms", "flows": 3}


def test_it_has_the_requested_network_and_flows():
    plan = ac.scenario(**REQUESTED, congestion={"kind": "cubic", "beta": 0.8}, limit="0.5bdp", duration="8s").plan()
    link = plan.bottleneck_link
    assert (link.rate_bps, plan.mean_base_rtt_s, len(plan.flows)) == (8e6, 0.04, 3)
    assert (plan.duration_s, plan.warmup_s, plan.seeds) == (8.0, 2.0, (1,))
    assert link.queue.parameters == {"limit_packets": 13}  # half of 8 Mbit/s × 40 ms, in packets of 1514 bytes
    assert plan.groups[0].congestion.parameters["beta"] == 0.8


@pytest.mark.parametrize(
    ("discipline", "limit"),
    [("fq_codel", {"limit_packets": 10_240}), ("bfifo", {"limit_bytes": 40_000}), ("pfifo", {"limit_packets": 26})],
)
def test_a_qdisc_has_its_default_limit_or_one_bandwidth_delay_product(discipline, limit):
    parameters = ac.scenario(**REQUESTED, discipline=discipline).plan().bottleneck_link.queue.parameters
    assert limit.items() <= parameters.items()


def test_it_is_the_scenario_of_find():
    network = {"rate": "8Mbit", "rtt": "40ms", "discipline": None}
    text, _ = find._scenario_text(None, {**network, "flows": 3})
    assert ac.loads(text, "scenario.toml").plan() == ac.scenario(**REQUESTED, name="scenario").plan()


def test_titles_repeats_sweeps_and_other_keys():
    swept = ac.scenario(**REQUESTED, name="Mine", repeats=2, sweep={"network.queue.limit": ["1bdp", "2bdp"]})
    assert [(point.values["network.queue.limit"], point.plan.seeds, point.plan.name) for point in swept.points()] == [
        ("1bdp", (1, 2), "Mine"),
        ("2bdp", (1, 2), "Mine"),
    ]
    assert ac.scenario(**REQUESTED).with_({"flows[0].count": np.int64(5)}).plan().flows[4].group == 0


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        (
            {"rate": "1Gbps"},
            ScenarioError,
            r'scenario: network.rate: found "1Gbps"; expected a rate such as 100Mbit \(',
        ),
        (
            {"rate": 5},
            ScenarioError,
            r"scenario: network.rate: found 5; expected a rate such as 100Mbit \(a number needs",
        ),
        ({"rate": None}, TypeError, r"rate: found None; expected what TOML has"),
        ({"flows": 0}, ScenarioError, r"scenario: flows\[0\].count: found 0; expected at least 1"),
        ({"duration": "x"}, InputError, r'duration: found "x"; expected a time'),
        ({"sweep": {"rtt": 5}}, ScenarioError, r"scenario: sweep.rtt: found 5; expected a list of different values"),
        ({"name": "\ud800"}, InputError, r'name: found "\\ud800"; expected text that is UTF-8'),
        (
            {"flows": 2**64},
            InputError,
            r"flows: found 18446744073709551616; expected a whole number of at most 64 bits",
        ),
        ({"name": {1}}, TypeError, r"name: found a set of 1; expected what TOML has"),
        ({"congestion": {"kind": "cubic", "beta": object()}}, TypeError, r"congestion.beta: found an object"),
    ],
)
def test_a_mistake_is_one_line_without_a_line_number(given, error, said):
    with pytest.raises(error, match=f"^{said}") as caught:
        ac.scenario(**{**REQUESTED, **given}).plan()
    assert "\n" not in str(caught.value)


def test_the_name_is_called_whatever_was_imported_before():
    code = "import ackclock as ac{}; print(ac.scenario(rate='1Mbit', rtt='1ms').plan().bottleneck_link.rate_bps)"
    for before in ("", ", ackclock.scenario.points", "; from ackclock.scenario import planning"):
        done = subprocess.run([sys.executable, "-c", code.format(before)], capture_output=True, text=True, check=True)
        assert done.stdout == "1000000.0\n"


# --- whatever `run` takes ------------------------------------------------------------------------------------------

TEXT = ac.scenario(rate="1Mbit", rtt="20ms", duration="2s", repeats=2).source.text
TABLES = {
    "duration": "2s",
    "warmup": "0.5s",
    "repeats": 2,
    "network": {"topology": "dumbbell", "rate": "1Mbit", "rtt": "20ms",
                "queue": {"discipline": "pfifo", "limit": "1bdp"}},
    "flows": [{"count": 1, "congestion": "cubic", "start": {"every": "5ms", "jitter": "500ms"}}],
}  # fmt: skip


@pytest.fixture(scope="module")
def expected():
    return ac.run(ac.loads(TEXT).plan()).flows


@pytest.fixture
def forms(tmp_path):
    path = tmp_path / "scenario.toml"
    path.write_text(TEXT)
    loaded = ac.loads(TEXT)
    return {"path": path, "name": str(path), "text": TEXT, "mapping": TABLES, "loaded": loaded, "plan": loaded.plan()}


@pytest.mark.parametrize("form", ["path", "name", "text", "mapping", "loaded", "plan"])
def test_run_and_sweep_take_every_form(form, forms, expected):
    assert ac.run(forms[form]).flows.equals(expected)
    swept = ac.sweep(forms[form], metrics=["goodput_bps"], jobs=1)
    assert swept.table["seed"].to_list() == [1, 2]
    assert swept.scan("flows").collect()["measured_bytes"].to_list() == expected["measured_bytes"].to_list()


def test_compare_takes_them_too(forms):
    plans = {form: ac.compare(given, ["packet", "fluid"], seeds=[1]).table for form, given in forms.items()}
    assert all(found.equals(plans["plan"]) for found in plans.values())


def test_a_plan_with_other_seeds_is_swept_with_them():
    from dataclasses import replace

    plan = replace(ac.loads(TEXT).plan(), seeds=(7,))
    assert ac.sweep(plan, metrics=["jain"], jobs=1).table["seed"].to_list() == [7]
    with pytest.raises(
        InputError, match="^loaded: found a plan that is not its scenario's alone; expected the scenario"
    ):
        ac.sweep(replace(plan, duration_s=3.0))


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        (5, TypeError, "found 5; expected a scenario: a path, TOML, a mapping, a plan, or what ackclock.load"),
        ("none.toml", ScenarioError, "none.toml: found no such file; expected a scenario file"),
        (Path("none.toml"), ScenarioError, "none.toml: found no such file"),
        ("duration = 5\n", ScenarioError, "scenario:1: duration: found 5; expected a time"),
        ({"duration": 5}, ScenarioError, "scenario: duration: found 5; expected a time"),
        ({1: 5}, TypeError, "scenario: found 1; expected a key, as a text"),
    ],
)
def test_an_invalid_scenario_is_reported_in_one_line(given, error, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for call in (ac.run, ac.sweep):
        with pytest.raises(error) as caught:
            call(given)
        assert said in str(caught.value).splitlines()[0]
