"""The table [sweep]: which points it makes, and what is said of its mistakes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_networks import dumbbell

from ackclock.errors import InputError, ScenarioError
from ackclock.input.source import Source
from ackclock.scenario import planning, points

BASE = f"""\
name = "a test"
duration = "5s"
warmup = "1s"

{dumbbell("2Mbit", "50ms")}

[[flows]]
count = 2
congestion = "cubic"

[[flows]]
congestion = "reno"

[sweep]
"""


def swept(table: str) -> list[planning.Point]:
    return list(planning.loads(BASE + table, "x.toml").points())


def mistakes(table: str, base: str = BASE) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        list(planning.loads(base + table, "x.toml").points())
    return str(caught.value).split("\n")


def test_every_combination_is_a_point_and_the_last_key_changes_fastest():
    found = swept('"network.queue.limit" = ["5p", "50p", "60p"]\n"flows[1].congestion" = ["bbr", "vegas"]\n')
    assert [point.number for point in found] == [*range(6)]
    assert [[*point.values.values()] for point in found][:3] == [["5p", "bbr"], ["5p", "vegas"], ["50p", "bbr"]]
    limits = [point.plan.links[0].queue.parameters["limit_packets"] for point in found]
    controls = [[group.congestion.kind for group in point.plan.groups if group.congestion] for point in found]
    assert limits == [5, 5, 50, 50, 60, 60]
    assert controls == [["cubic", "bbr"], ["cubic", "vegas"]] * 3


def test_a_point_is_the_scenario_that_one_would_write():
    found = swept('"network.rtt" = ["10ms", "20ms"]\n')
    written = BASE.replace('"50ms"', '"20ms"').replace("[sweep]\n", "")
    assert found[1].plan == planning.loads(written, "x.toml").plan()


def test_values_may_be_anything_and_replace_existing_ones():
    queues = '"network.queue" = [{ discipline = "codel" }, { discipline = "bfifo", limit = "64KB" }]\n'
    assert [point.plan.links[0].queue.discipline for point in swept(queues)] == ["codel", "bfifo"]
    flows = '"flows" = [[{ congestion = "bbr" }], [{ congestion = "reno" }, { congestion = "bic" }]]\n'
    assert [len(point.plan.groups) for point in swept(flows)] == [1, 2]
    assert [point.plan.seeds for point in swept("repeats = [1, 2]\n")] == [(1,), (1, 2)]


def test_keys_may_be_new_or_unquoted_and_nested_keys_follow():
    assert [point.plan.record.interval_s for point in swept('record.interval = ["1ms", "2ms"]\n')] == [0.001, 0.002]
    inside = '"network.queue.limit" = ["3p"]\n"network.queue" = [{ discipline = "pfifo", limit = "9p" }]\n'
    assert [point.plan.links[0].queue.parameters["limit_packets"] for point in swept(inside)] == [3]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_points_are_the_product(lengths):
    axes = tuple(
        points.Axis(f"a{number}", (f"a{number}",), ("sweep",), tuple(range(length)), tuple(range(length)))
        for number, length in enumerate(lengths)
    )
    sweep = points.Sweep(axes, {}, Source("x", ""))
    assert sweep.count == math.prod(lengths)
    assert len({tuple(sweep.values(number).values()) for number in range(sweep.count)}) == sweep.count


MISTAKES = {
    "a wrong value": (
        '"network.queue.limit" = ["1bdp",\n "5x"]\n',
        '20: sweep.network.queue.limit[1]: found "5x"; expected',
    ),
    "a wrong name": (
        '"flows[1].congestion" = ["cubik", "reno"]\n',
        '19: sweep.flows[1].congestion[0]: found "cubik"; expected "cubic"',
    ),
    "inside a table": (
        '"network.queue" = [{ discipline = "pfifo", limit = "5x" }]\n',
        '19: sweep.network.queue[0].limit: found "5x"; expected',
    ),
    "an unknown key": (
        '"network.rat" = ["1Mbit"]\n',
        '19: sweep.network.rat[0]: found an unknown key; expected "rate"',
    ),
    "no such item": (
        '"flows[2].congestion" = ["reno"]\n',
        "19: sweep.flows[2].congestion: found a list of 2; expected a list with an item [2] at flows",
    ),
    "no table": ('"duration.x" = [1]\n', '19: sweep.duration.x: found "5s"; expected a table at duration'),
    "no key": ('"a b" = [1]\n', '19: sweep.a b: found "a b"; expected a key such as "network.queue.limit"'),
    "a sweep of sweeps": ('"sweep.x" = [1]\n', '19: sweep.sweep.x: found "sweep.x"; expected a key'),
    "no list": ('"network.rate" = "1Mbit"\n', '19: sweep.network.rate: found "1Mbit"; expected a list of different'),
    "an empty list": ('"network.rate" = []\n', "19: sweep.network.rate: found an empty list; expected a list of diff"),
    "a value twice": (
        '"network.rate" = ["1Mbit", "1Mbit"]\n',
        "19: sweep.network.rate: found one value twice; expected",
    ),
    "a key twice": (
        '"network.rate" = ["1Mbit"]\n[sweep.network]\nrate = ["2Mbit"]\n',
        "21: sweep.network.rate: found a key that is swept already; expected each key once",
    ),
    "nothing": ("", "18: sweep: found nothing; expected a table of keys with lists of values"),
    "what does not fit together": (
        '"duration" = ["1s", "5s"]\n',
        "3: warmup: found 1 s; expected less than the duration (1 s) (where duration = 1s)",
    ),
    "too many": (
        "".join(f'"network.k{key}" = [{", ".join(map(str, range(1000)))}]\n' for key in range(3)),
        "18: sweep: found 1,000,000,000 points; expected at most 1,000,000",
    ),
}


@pytest.mark.parametrize(("table", "expected"), MISTAKES.values(), ids=MISTAKES.keys())
def test_one_mistake_is_one_line_at_the_sweeps_value(table, expected):
    found = mistakes(table)
    assert len(found) == 1
    assert found[0].startswith(f"x.toml:{expected}")


def test_mistakes_of_all_points_are_reported_without_duplicates():
    found = mistakes('"network.rate" = ["1Mbit", "1mbps"]\n"flows[0].congestion" = ["reno", "renno", "bbr"]\n')
    assert [line.split(":")[1] for line in found] == ["19", "20"]


def test_a_mistake_of_the_file_itself_is_reported_without_a_point():
    found = mistakes('"network.rate" = ["1Mbit", "2Mbit"]\n', BASE.replace('"50ms"', '"50mm"'))
    assert len(found) == 1
    assert found[0].startswith('x.toml:8: network.rtt: found "50mm"; expected a time such as 20ms (units: ')
    assert "where" not in found[0]


def test_a_sweep_is_no_single_scenario():
    with pytest.raises(ScenarioError, match=r"x.toml:18: sweep: found a sweep of 2 points; .* run `ackclock sweep x"):
        planning.loads(BASE + '"network.rate" = ["1Mbit", "2Mbit"]\n', "x.toml").plan()
    (point,) = planning.loads(BASE.replace("[sweep]\n", ""), "x.toml").points()
    assert (point.number, point.values) == (0, {})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0.3bdp", "0.3bdp"),
        (3, "3"),
        (True, "true"),
        ({"discipline": "pfifo", "limit": "5p"}, '{ discipline = "pfifo", limit = "5p" }'),
        (["a", 1], '["a", 1]'),
    ],
)
def test_values_are_shown_as_the_file_has_them(value, expected):
    assert points.label(value) == expected


LIMITS = '"network.queue.limit" = ["5p", "5x", "9p"]\n"flows[0].congestion" = ["reno", "bbr"]\n'


@pytest.mark.parametrize("text", ['{limit="1bdp",discipline="pie"}', '{ discipline = "pie", limit = "1bdp" }', "pie"])
def test_a_table_is_named_as_toml_has_it_however_it_is_spaced_or_by_its_short_name(text):
    table = '"network.queue" = [{ discipline = "pie", limit = "1bdp" }, { discipline = "codel", limit = "1bdp" }]\n'
    (found,) = planning.loads(BASE + table, "x.toml").only({"network.queue": [text]}).points()
    assert found.values["network.queue"]["discipline"] == "pie"


def test_some_points_only():
    loaded = planning.loads(BASE + LIMITS, "x.toml")
    found = list(loaded.only({"network.queue.limit": ["9p"]}).points())
    assert [point.values["flows[0].congestion"] for point in found] == ["reno", "bbr"]
    assert [point.plan.links[0].queue.parameters["limit_packets"] for point in found] == [9, 9]
    assert loaded.only({}) == loaded


def test_a_mistake_among_some_points_is_reported_at_its_place():
    with pytest.raises(ScenarioError, match=r"limit\[1\]: found \"5x\""):
        list(planning.loads(BASE + LIMITS, "x.toml").only({"network.queue.limit": ["5x", "9p"]}).points())


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"network.queue.limt": ["9p"]}, 'where: found "network.queue.limt"; expected "network.queue.limit"'),
        ({"network.queue.limit": ["10p"]}, 'where: network.queue.limit: found "10p"; expected one of "5p", "5x", "9p"'),
    ],
)
def test_what_is_not_swept_cannot_be_chosen(chosen, expected):
    with pytest.raises(InputError) as caught:
        planning.loads(BASE + LIMITS, "x.toml").only(chosen)
    assert str(caught.value).startswith(expected)
    with pytest.raises(InputError, match=r"x.toml: found no table \[sweep\]; expected one with "):
        planning.loads(BASE.replace("[sweep]\n", ""), "x.toml").only(chosen)


@pytest.mark.parametrize(
    ("keys", "short"),
    [
        (["network.rate", "network.queue.limit"], ["rate", "limit"]),
        (["network.up.queue", "network.down.queue", "network.up.rate"], ["up.queue", "down.queue", "rate"]),
        (["flows[0].congestion", "flows[1].congestion"], ["flows[0].congestion", "flows[1].congestion"]),
        (["seeds", "record.seeds"], ["seeds", "record.seeds"]),
    ],
)
def test_short_names_of_keys_are_their_unique_ends(keys, short):
    places = [points.path_of(key) for key in keys]
    assert all(places)
    axes = [points.Axis(key, place, place, (1,), (0,)) for key, place in zip(keys, places, strict=True)]
    assert points.short_keys(axes) == short
