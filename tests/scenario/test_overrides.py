"""A scenario with other values at some keys: what becomes of it, and where mistakes are told."""

from __future__ import annotations

import re

import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock.errors import InputError, ScenarioError
from ackclock.scenario.overrides import settings

TEXT = f"""
# A comment.
duration = "5s"
repeats = 2

{dumbbell("10Mbit", "40ms")}

[[flows]]
count = 2
congestion = "cubic"

[[flows]]
congestion = "reno"
"""


def test_replaced_and_added_values():
    values = {"network.rate": "1Gbit", "flows[0].count": 5, "flows[1].start": {"jitter": "1s"}, "warmup": "1s"}
    made = ac.loads(TEXT).with_(values)
    plan = made.plan()
    assert [link.rate_bps for link in plan.links if link.bottleneck] == [1e9]
    assert (len(plan.flows), plan.warmup_s, plan.duration_s) == (6, 1.0, 5.0)
    assert ac.loads(made.source.text).plan() == plan  # the text is the whole of it


def test_nothing_else_is_another_one():
    assert ac.loads(TEXT).with_({"repeats": 2}).plan() == ac.loads(TEXT).plan()
    assert ac.loads(TEXT).with_({}).source.text == TEXT


def test_quoted_names_and_odd_texts_are_preserved():
    name = 'a "quoted" \\ name = { ü }'
    made = ac.loads(TEXT + '\n[sweep]\n"network.queue.limit" = ["1bdp", "5p"]\n').with_({"name": name})
    assert [point.plan.name for point in made.points()] == [name, name]
    assert [point.values["network.queue.limit"] for point in made.points()] == ["1bdp", "5p"]


@pytest.mark.parametrize(
    ("text", "value"),
    [("1Gbit", "1Gbit"), ("50", 50), ("0.5", 0.5), ("true", True), ('"7"', "7"),
     ('{ kind = "reno" }', {"kind": "reno"}), ("[1, 2]", [1, 2]),
     ("2020-01-01", "2020-01-01"), ("1\nother = 2", "1\nother = 2"), ("", "")],
)  # fmt: skip
def test_values_are_read_as_toml_where_they_are(text, value):
    assert settings([f"key={text}"]) == {"key": value}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"network.rate": "1Gbitt"}, r"--set: network.rate: found \"1Gbitt\"; expected a rate"),
        ({"network.rat": 1}, r"--set: network.rat: found an unknown key; expected \"rate\""),
        (
            {"flows[2].count": 1},
            r"--set: flows\[2\].count: found a list of 2; expected a list with an item \[2\] at flows",
        ),
        ({"flows.count": 1}, r"--set: flows.count: found a list of 2; expected flows\[0\].count"),
        ({"queue.limit": "5p"}, r'--set: found "queue.limit"; expected network.queue.limit'),
        ({"duration.of": 1}, r"--set: duration.of: found \"5s\"; expected a table at duration"),
        ({"sweep.x": [1]}, r'--set: found "sweep.x"; expected a key such as'),
        ({"a b": 1}, r'--set: found "a b"; expected a key such as'),
    ],
    ids=lambda given: str(next(iter(given))) if isinstance(given, dict) else "",
)
def test_a_mistake_is_reported_for_the_option(values, said):
    with pytest.raises(InputError, match=f"^{said}"):
        ac.loads(TEXT).with_(values, "--set").plan()


def test_a_mistake_of_the_file_keeps_its_line():
    with pytest.raises(ScenarioError) as found:
        ac.loads(TEXT.replace('"40ms"', '"40mss"'), "mine.toml")
    (problem,) = found.value.problems
    wrong = TEXT.replace("count = 2", 'count = 2\nstart = { at = "9s" }')
    with pytest.raises(ScenarioError, match=r"^mine.toml:\d+: ") as other:
        ac.loads(wrong, "mine.toml").with_({"repeats": 3}).plan()
    assert problem.line == 9
    line = other.value.problems[0].line
    assert wrong.splitlines()[line - 1].startswith(("start", "[[flows]]"))


def test_what_is_swept_is_not_set():
    swept = ac.loads(TEXT + '\n[sweep]\n"network.queue" = [{ discipline = "pfifo", limit = "5p" }]\n')
    for key in ("network.queue", "network.queue.limit", "network"):
        with pytest.raises(InputError, match=re.escape(f'--set: found "{key}", which is swept')):
            swept.with_({key: "5p"}, "--set")


def test_short_names_are_those_of_the_search():
    flows = [{"congestion": "reno"}]
    given = settings(["rate=1Gbit", "queue=fq_codel", "flows=3", "congestion=reno"])
    assert given == {
        "network.rate": "1Gbit",
        "network.queue": "fq_codel",
        "flows[0].count": 3,
        "flows[0].congestion": "reno",
    }
    assert settings(['flows=[{ congestion = "reno" }]']) == {"flows": flows}
    assert ac.loads(TEXT).with_(given).plan().bottleneck_link.queue.discipline == "fq_codel"


@pytest.mark.parametrize("given", [["rate"], ["=1"], ["a=1", "a=2"], ["rate=1Mbit", "network.rate=1Mbit"]])
def test_an_invalid_override_is_reported(given):
    with pytest.raises(InputError, match="^--set: found "):
        settings(given)
