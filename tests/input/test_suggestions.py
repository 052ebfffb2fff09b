"""Suggestions for unknown names: by spelling, by their words, by meaning; never all of many."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner
from small_networks import dumbbell

from ackclock import algorithms
from ackclock.cli.program import COMMANDS, application
from ackclock.engines import ENGINES
from ackclock.figures import plots
from ackclock.input.fields import MAX_LISTED, SYNONYMS, nearest, suggestions
from ackclock.metrics import METRICS
from ackclock.scenario import key_reference

SCENARIO = f"""\
duration = "1s"
{dumbbell("1Mbit", "20ms")}
[[flows]]
congestion = "cubic"
[sweep]
"network.queue.limit" = ["5p", "10p"]
"""


@pytest.mark.parametrize(
    ("word", "meant"),
    {
        "delay": "queue_delay_p95_s",
        "Bufferbloat": "queue_delay_p95_s",
        "mean-latency": "queue_delay_p95_s",
        "fairness": "jain",
        "drops": "loss_rate",
        "throughput": "goodput_bps",
        "completion time": "fct_mean_s",
        "utilization": "utilisation",
        "los_rate": "loss_rate",
        "jian": "jain",
        "epoch": "congestion_epochs",
    }.items(),
)
def test_a_metric_by_another_word(word, meant):
    assert suggestions(word, METRICS)[0] == meant


def test_a_misspelt_name_has_one_suggestion():
    assert nearest("utilsation", METRICS) == '"utilisation"'


def test_permuted_names_are_recognised():
    assert nearest("group_share_min", METRICS) == '"min_group_share"'
    assert nearest("p95_delay_queue", METRICS) == '"queue_delay_p95_s"'


def test_few_names_are_listed_and_many_are_not():
    few = [f"name {number}" for number in range(MAX_LISTED)]
    assert nearest("", few).count('"') == 2 * MAX_LISTED
    assert nearest("", [*few, "another"]) == 'one of 13, such as "name 9", "name 8", "name 7"'


def test_each_synonym_leads_to_a_name():
    """A name that was renamed would make its synonyms useless."""
    specs = [name for family in algorithms.FAMILIES for name in algorithms.names(family)]
    keys = re.findall(r'"(\w+)": ?[{\[]', key_reference.schema_text())
    values = [
        value
        for listed in re.findall(r'"(?:const|enum)": ?(\[[^]]*\]|"[^"]*")', key_reference.schema_text())
        for value in re.findall(r'"([\w-]+)"', listed)
    ]
    names = {
        *METRICS,
        *specs,
        *keys,
        *values,
        *ENGINES,
        *COMMANDS,
        *plots.KINDS,
        "buffer",
    }  # that in the gallery's texts
    assert {name for meant in SYNONYMS.values() for name in meant} - names == set()


@pytest.mark.parametrize(
    ("command", "expected"),
    {
        ("show", "fq"): 'found "fq"; expected "fq_codel"',
        ("show", "delay"): '"queue_delay_p95_s"',
        ("swep",): 'found no command "swep"; expected "sweep"',
        ("analyse",): 'found no command "analyse"; expected "capture" or "doctor"',
        ("kernel", "bild"): 'found no command "bild"; expected "build"',
        ("reproduce", "appenzeller"): "K.util (",
        ("reproduce", "B5.99"): 'such as "B5.1"',
        ("sweep", "small.toml", "--engine", "simulation"): 'expected "packet"',
        ("sweep", "small.toml", "--set", "network.bandwidth=1Mbit"): 'expected "rate"',
        ("sweep", "small.toml", "--set", "network.queue.discipline=fq"): 'expected "fq_codel"',
        ("sweep", "small.toml", "--metrics", "latency"): 'expected "queue_delay_p95_s"',
        ("sweep", "small.toml", "--require", "fairness >= 0.9"): 'expected "jain"',
    }.items(),
)
def test_commands_suggest_what_was_meant(command, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SCENARIO)
    done = CliRunner().invoke(application, command)
    assert done.exit_code == 2
    assert expected in done.stderr
    assert done.stderr.count('"') <= 2 * (MAX_LISTED + 1)
