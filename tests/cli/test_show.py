"""`ackclock show` answers for whatever a user would name."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from ackclock.cli import terms
from ackclock.cli.program import COMMANDS, application
from ackclock.metrics import METRICS
from ackclock.metrics.metric import LESS, MORE
from ackclock.scenario import key_reference
from ackclock.scenario.topology import TOPOLOGIES

CHECKOUT = Path(__file__).parents[2]


def show(*names: str):
    return CliRunner().invoke(application, ["show", *names], env={"COLUMNS": "120"})


def test_a_metric_has_unit_direction_formula_and_source():
    text = " ".join(show("utilisation").stdout.split())
    for words in ("a share, 0 to 1; more is better", "× 8 / (rate × its length)", "Source: RFC 5166"):
        assert words in text
    assert show("queue_delay_p95").stdout == show("queue_delay_p95_s").stdout
    assert "in s; less is better" in show("queue_delay_p95_s").stdout
    assert "is better" not in show("cwnd_mean").stdout


def test_all_metrics_have_their_directions():
    rows = {line.split()[0]: line for line in show("metrics").stdout.splitlines() if line.strip()}
    assert " more " in rows["jain"]
    assert " less " in rows["loss_rate"]
    assert set(METRICS) <= set(rows)


@pytest.mark.parametrize("beginning", [*MORE, *LESS])
def test_each_direction_is_that_of_a_metric(beginning):
    assert any(name.startswith(beginning) for name in METRICS)
    assert not {name for name in METRICS if name.startswith(MORE) and name.startswith(LESS)}


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_topology_shows_its_keys(name):
    done = show(name)
    assert done.exit_code == 0, done.output
    shown = {line.split()[0] for line in done.stdout.splitlines() if line.strip()}
    assert set(TOPOLOGIES[name].keys()) <= shown


def test_keys_have_their_values_and_defaults():
    keys = {key.name: key for key in key_reference.described("dumbbell")[0].keys}
    assert (keys["rate"].default, keys["rate"].value) == ("required", "rate or a table")
    assert (keys["frame_overhead"].default, keys["frame_overhead"].value) == ('"14B"', "bytes")
    keys = {key.name: key for key in key_reference.described("flows")[0].keys}
    assert (keys["count"].default, keys["count"].value) == ("1", "whole number from 1 to 1,000,000")
    assert keys["congestion"].value == "a congestion control"
    assert keys["direction"].value == '"down" or "up"'


def test_a_key_is_shown_by_its_last_name():
    assert "flows.dscp" in show("dscp").stdout
    assert "record.delays" in show("delays").stdout
    for word, meant in (("EF", "dscp"), ("tin", "cake"), ("video", "media"), ("noq", "quic"), ("router", "cake")):
        assert f'"{meant}"' in show(word).stderr, word


def test_scenario_lists_keys_and_further_names():
    text = show("scenario").stdout
    for word in ("duration", "warmup", "network", "traffic", "required", "100Mbit, 20ms", "parking-lot", "poisson"):
        assert word in text


@pytest.mark.parametrize("term", terms.TERMS, ids=lambda term: term.spellings[0])
def test_a_term_leads_to_names_and_commands_that_exist(term):
    for name in term.names:
        assert show(name).exit_code == 0, name
    for command in term.commands:
        assert command.split()[0] in COMMANDS, command
        files = [word for word in command.split() if word.endswith(".toml")]
        assert all((CHECKOUT / file).is_file() for file in files), command


def test_a_word_belongs_to_one_term():
    words = [terms.key(word) for term in terms.TERMS for word in term.spellings]
    assert len(words) == len(set(words))


@pytest.mark.parametrize(
    ("phrase", "line"),
    {
        "zero window": "  ackclock show tcp.receive_window",
        "Zero-Window": "  ackclock doctor CAPTURE",
        "duplicate ACKs": "  ackclock show retransmission_rate",
        "slow start": "  ackclock show tcp.initial_window",
        "policer": "  ackclock show tbf",
        "Loss rate": "Loss rate at the bottleneck (metric: loss_rate)",
        "CUBIC": "CUBIC (congestion: cubic)",
    }.items(),
)
def test_a_phrase_of_the_field_is_explained(phrase, line):
    assert line in show(phrase).stdout.splitlines()


@pytest.mark.parametrize("word", ["DNS", "TLS", "xyzzy"])
def test_a_word_that_nothing_is_like_gets_no_name(word):
    done = show(word)
    assert done.exit_code == 2
    assert "none is like it" in done.stderr


@pytest.mark.parametrize("name", key_reference.names())
def test_every_name_has_a_description(name):
    assert key_reference.described(name)


def test_a_key_has_a_row_for_each_table_that_has_it_in_another_way():
    limit = key_reference.of_key("network.queue.limit")
    assert limit is not None
    defaults = {name: key.default for key in limit.keys for name in key.name.split(", ")}
    assert (defaults["pfifo"], defaults["codel"]) == ("required", '"1000p"')
    rtt = key_reference.of_key("network.rtt")
    assert rtt is not None
    assert [key.name for key in rtt.keys] == ["dumbbell", "testbed"]
    flow, flows = key_reference.of_key("flows[0].congestion"), key_reference.of_key("flows.congestion")
    assert flow is not None
    assert flows is not None
    assert flow.keys == flows.keys
    assert key_reference.of_key("network.nothing") is None
    assert "packets that may wait" in show("network.queue.limit").stdout
    assert show("network.queue.limits").exit_code == 2


def test_an_ambiguous_name_shows_every_meaning():
    text = show("linux").stdout
    for words in ("(stack: linux)", "(engine: linux)", "the table [linux]"):
        assert words in text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dumbel", '"dumbbell"'),
        ("utilization", '"utilisation"'),
        ("cubik", '"cubic"'),
        (
            "\udcff",
            "a name that `ackclock show`, `show metrics`, `show scenario` or `reproduce` lists; none is like it",
        ),
    ],
)
def test_an_unknown_name_gets_suggestions_in_one_line(name, expected):
    done = show(name)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.endswith(f"; expected {expected}\n")
