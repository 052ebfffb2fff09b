"""Knobs and what they make of a scenario's text."""

from __future__ import annotations

import copy
import json
import subprocess
import tomllib

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from ackclock import algorithms
from ackclock.errors import AckclockError, InputError, ScenarioError
from ackclock.explore.changes import NETWORKS, changed, command
from ackclock.explore.knobs import MAX_GROUPS, knobs, path_at, value_at
from ackclock.input.cli_values import value as cli_value
from ackclock.scenario.overrides import settings
from ackclock.scenario.planning import loads

TEXT = """# a comment above
duration = "20s"    # how long
warmup = "5s"

[network]           # the network
topology = "dumbbell"
rate = "20Mbit"     # of the bottleneck
rtt = "40ms"
queue = { discipline = "pfifo", limit = "1bdp" }  # one BDP

[[flows]]
count = 2           # two of them
congestion = "cubic"

[[flows]]
congestion = { kind = "cubic", slow_start = "standard" }
"""


def set_to(key: str, value: object) -> dict[str, object]:
    return {"key": key, "value": value}


def by_key(text: str) -> dict[str, dict[str, object]]:
    return {knob["key"]: knob for knob in knobs(tomllib.loads(text))}


def test_a_change_leaves_all_other_characters_as_they_are():
    made = changed(TEXT, [set_to("network.rate", "30Mbit")])
    assert made == TEXT.replace('"20Mbit"', '"30Mbit"')
    assert changed(TEXT, [set_to("network.queue.limit", "2bdp")]) == TEXT.replace('"1bdp"', '"2bdp"')
    assert changed(TEXT, []) == TEXT


def test_knobs_have_values_in_si_units():
    found = by_key(TEXT)
    assert found["network.rate"]["value"] == 20e6
    assert found["network.rtt"]["value"] == 0.04
    assert (found["network.queue.limit"]["value"], found["network.queue.limit"]["unit"]) == (1.0, "bdp")
    assert found["network.loss.probability"]["value"] == 0
    assert found["flows[0].count"]["value"] == 2
    assert found["flows[1].congestion"]["value"] == "cubic"
    assert found["repeats"]["value"] == 1


@pytest.mark.parametrize("rtt", ["nan", "inf", "40", '["20ms", "40ms"]', '{ from = "20ms", to = "40ms" }', "true"])
def test_a_value_that_is_no_quantity_is_left_to_the_file(rtt):
    assert by_key(TEXT.replace('"40ms"', rtt))["network.rtt"]["value"] is None


@pytest.mark.parametrize("name", algorithms.names("queue"))
def test_every_discipline_can_be_chosen_and_left(name):
    chosen = changed(TEXT, [set_to("network.queue.discipline", name)])
    assert loads(chosen).plan().links[0].queue.discipline == name
    back = changed(chosen, [set_to("network.queue.discipline", "pfifo")])
    assert loads(back).plan().links[0].queue == loads(TEXT).plan().links[0].queue


def test_a_discipline_with_a_default_limit_takes_that():
    made = changed(TEXT, [set_to("network.queue.discipline", "fq_codel")])
    assert tomllib.loads(made)["network"]["queue"] == {"discipline": "fq_codel"}
    assert "# one BDP" in made


def test_knobs_of_a_discipline_given_by_name():
    text = TEXT.replace('{ discipline = "pfifo", limit = "1bdp" }', '"fq_codel"')
    assert loads(text).plan().links[0].queue.discipline == "fq_codel"
    assert by_key(text)["network.queue.discipline"]["value"] == "fq_codel"
    limited = changed(text, [set_to("network.queue.limit", "100p")])
    assert tomllib.loads(limited)["network"]["queue"] == {"discipline": "fq_codel", "limit": "100p"}
    other = changed(text, [set_to("network.queue.discipline", "pfifo")])
    assert loads(other).plan().links[0].queue == loads(TEXT).plan().links[0].queue
    assert loads(changed(text, [set_to("network.topology", "y")])).plan().links[-1].queue.discipline == "fq_codel"


@pytest.mark.parametrize("first", NETWORKS)
@pytest.mark.parametrize("then", NETWORKS)
def test_topologies_follow_each_other_and_keep_the_rate_and_the_rtt(first, then):
    once = changed(TEXT, [set_to("network.topology", first)])
    made = changed(once, [set_to("network.topology", then)])
    plan = loads(made).plan()
    slowest = min(link.rate_bps for link in plan.links if link.bottleneck)
    assert slowest == (2e6 if then == "asymmetric" else 20e6)
    # The first flow goes all the way.
    assert plan.flows[0].base_rtt_s == pytest.approx(0.04, rel=1e-3)
    assert set(by_key(made)) >= {"network.topology", "flows[0].count"}


def test_groups_are_added_up_to_four_and_removed():
    text = TEXT
    for count in (3, 4):
        text = changed(text, [{"add": "flows"}])
        assert len(loads(text).plan().groups) == count == len(tomllib.loads(text)["flows"])
    with pytest.raises(InputError, match=f"at most {MAX_GROUPS}"):
        changed(text, [{"add": "flows"}])
    assert len(tomllib.loads(changed(text, [{"remove": "flows[1]"}]))["flows"]) == 3


def test_groups_in_one_line_are_added_and_removed_too():
    text = TEXT.split("[[flows]]", maxsplit=1)[0]
    text = 'flows = [{ count = 2, congestion = "cubic" }]\n' + text
    made = changed(text, [{"add": "flows"}])
    assert [group["congestion"] for group in tomllib.loads(made)["flows"]] == ["cubic", "reno"]
    assert tomllib.loads(changed(made, [{"remove": "flows[1]"}])) == tomllib.loads(text)


def test_no_loss_is_no_table():
    lossy = changed(TEXT, [set_to("network.loss.probability", 0.01)])
    assert loads(lossy).plan().links[0].loss is not None
    assert tomllib.loads(changed(lossy, [set_to("network.loss.probability", 0)])) == tomllib.loads(TEXT)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"key": 3, "value": 4},
        {"key": "network.rate", "value": None},
        {"key": "network.rate", "value": ["1Mbit"]},
        set_to("a..b", 1),
        set_to("sweep.x", 1),
        set_to("flows[7].count", 1),
        set_to("flows[0]", 1),
        set_to("duration.x", 1),
        set_to("network.queue.discipline", "codal"),
        set_to("network.topology", "ring"),
        {"remove": "flows[9]"},
        {"remove": 3},
    ],
    ids=str,
)
def test_a_change_that_has_no_place_is_an_error_of_one_line(change):
    with pytest.raises(InputError, match=r"found .*; expected ") as caught:
        changed(TEXT, [change])
    assert "\n" not in str(caught.value)


def test_a_text_that_is_not_toml_is_an_error_at_its_line():
    with pytest.raises(ScenarioError) as caught:
        changed('duration = "5s"\nnetwork = [\n', [set_to("duration", "6s")])
    assert caught.value.problems[0].line == 2


@given(st.text(max_size=60), st.sampled_from(["network.rate", "flows[0].congestion", "name", "tcp.ecn"]))
def test_any_text_of_a_knob_stays_a_text(value, key):
    made = changed(TEXT, [set_to(key, value)])
    assert value_at(tomllib.loads(made), path_at(key)) == value


#: Values that some key may wrongly have, and places in the scenario.
WRONG = st.sampled_from(
    [0, -1, 1.5, float("nan"), float("inf"), True, "", "x", "20Mbit", [], [1], [{}], {}, {"kind": [1]}]
)
PLACES = st.sampled_from(
    [
        ("network",),
        ("network", "topology"),
        ("network", "rate"),
        ("network", "queue"),
        ("network", "queue", "discipline"),
        ("network", "loss"),
        ("tcp",),
        ("flows",),
        ("flows", 0),
        ("flows", 0, "congestion"),
        ("flows", 0, "count"),
        ("repeats",),
    ]
)
CHANGES = st.one_of(
    st.sampled_from([{"add": "flows"}, {"remove": "flows[0]"}, {"remove": "network"}, {"remove": "flows"}]),
    st.builds(
        set_to, st.sampled_from(["network.queue.discipline", "network.topology"]), st.sampled_from(["pfifo", "y"])
    ),
    st.builds(set_to, st.sampled_from(["flows[0].congestion", "tcp.ecn", "network.rate", "x.y.z"]), WRONG),
)


@given(st.dictionaries(PLACES, WRONG, max_size=2), st.lists(CHANGES, max_size=2))
def test_whatever_a_file_has_its_knobs_are_json_and_mistakes_are_errors(wrong, changes):
    content = tomllib.loads(TEXT)
    for place, value in wrong.items():
        parent = value_at(content, place[:-1])
        if isinstance(parent, list if isinstance(place[-1], int) else dict) and parent:
            parent[place[-1]] = copy.deepcopy(value)
    text = tomli_w.dumps(content)
    try:
        text = changed(text, changes)
        json.dumps(knobs(tomllib.loads(text)), allow_nan=False)
        assert command("mine.toml", TEXT, text).startswith("ackclock run ")
        loads(text).plan()
    except AckclockError as error:
        assert "; expected " in str(error)


@pytest.mark.parametrize(
    "changes",
    [
        [set_to("network.rate", "50Mbit"), set_to("flows[1].congestion", "bbr")],
        [set_to("network.queue.discipline", "fq_codel"), set_to("repeats", 3)],
        [set_to("network.loss.probability", 0.01), set_to("tcp.ecn", "classic")],
        [{"add": "flows"}],
        [set_to("name", "two words and 'quotes'")],
    ],
    ids=str,
)
def test_the_command_sets_what_differs(changes):
    made = changed(TEXT, changes)
    line = command("my file.toml", TEXT, made)
    words = _arguments(line)
    assert words[:3] == ["ackclock", "run", "my file.toml"]
    assert words[3::2] == ["--set"] * (len(words[3:]) // 2)
    plan, expected = loads(TEXT).with_(settings(words[4::2])).plan(), loads(made).plan()
    assert plan.to_dict()["flows"] == expected.to_dict()["flows"]
    assert plan.to_dict()["links"] == expected.to_dict()["links"]
    assert plan.to_dict()["groups"] == expected.to_dict()["groups"]
    assert (plan.name, plan.seeds) == (expected.name if "name" in str(changes) else plan.name, expected.seeds)


@pytest.mark.parametrize("end", ["TOML", "TOML\ntouch owned", "it's TOML_\nTOML"])
def test_without_a_file_the_command_has_the_text_which_cannot_end_it(end, tmp_path):
    text = TEXT + f"\n# x\n{end}\n# y"
    line = command(None, "", text)
    script = line.replace("ackclock run -", "cat")
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == text.rstrip() + "\n"
    assert not list(tmp_path.iterdir())


def test_a_removed_key_cannot_be_set():
    assert command("a.toml", TEXT, TEXT.replace('warmup = "5s"\n', "")).startswith("ackclock run - <<'TOML'\n")


def _arguments(line: str) -> list[str]:
    done = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, text=True, check=True)
    return done.stdout.split("\0")[:-1]


def test_a_number_is_no_text_on_the_command_line():
    assert cli_value("3") == 3
    line = command("a.toml", TEXT, changed(TEXT, [set_to("name", "3")]))
    assert _arguments(line)[4] == 'name="3"'
