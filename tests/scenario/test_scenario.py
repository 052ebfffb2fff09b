"""Scenarios: what is accepted, and for each mistake the line, the key, what was found and what is expected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_networks import dumbbell

from ackclock import algorithms
from ackclock.errors import ScenarioError
from ackclock.scenario import planning, scenario

GOOD = f"""\
name = "a test"
duration = "10s"
warmup = "1s"

{dumbbell("10Mbit", "20ms", "50p")}

[[flows]]
count = 2
congestion = "cubic"
"""


def mistakes(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        planning.loads(text, "x.toml")
    return str(caught.value).split("\n")


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def test_the_good_one_is_good():
    found = planning.loads(GOOD).scenario
    assert (found.duration, found.warmup, found.network.rate) == (10.0, 1.0, 10e6)
    assert found.flows[0].count == 2
    assert found.record.interval == 0.01


MISTAKES = {
    "unknown key": ("rtt = ", "rttt = ", 'x.toml:8: network.rttt: found an unknown key; expected "rtt"'),
    "a name for all": (
        'congestion = "cubic"',
        'name = "*"',
        'x.toml:13: flows[0].name: found "*"; expected another name: in metrics [*] means all flows',
    ),
    "wrong unit": ('"20ms"', '"20Mbit"', 'x.toml:8: network.rtt: found "20Mbit"; expected a time such as 20ms'),
    "mbps": (
        '"10Mbit"',
        '"10mbps"',
        'x.toml:7: network.rate: found "10mbps"; expected a rate such as 100Mbit '
        "(mbps means bytes per second in tc and bits per second elsewhere: write Mbit)",
    ),
    "negative": (
        '"10Mbit"',
        '"-10Mbit"',
        'x.toml:7: network.rate: found "-10Mbit"; expected a rate such as 100Mbit, not',
    ),
    "absurd rate": ('"10Mbit"', '"1e20bit"', 'x.toml:7: network.rate: found "1e20bit"; expected 1kbit to 10Tbit'),
    "a rate of nothing": ('"10Mbit"', '"0bit"', 'x.toml:7: network.rate: found "0bit"; expected 1kbit to 10Tbit'),
    "a year": ('"10s"', '"8760h"', 'x.toml:2: duration: found "8760h"; expected 1ms to 720h'),
    "no time": ('"10s"', '"0s"', 'x.toml:2: duration: found "0s"; expected 1ms to 720h'),
    "bare number": (
        '"10s"',
        "10",
        "x.toml:2: duration: found 10; expected a time such as 20ms (a number needs its unit)",
    ),
    "wrong type": ('"10s"', "true", "x.toml:2: duration: found true; expected a time such as 20ms"),
    "a table for a time": ('"10s"', "{ a = 1 }", "x.toml:2: duration: found a table; expected a time such as 20ms"),
    "a date for a time": ('"10s"', "1979-05-27", "x.toml:2: duration: found 1979-05-27; expected a time such as"),
    "limit of 0": (
        '"50p"',
        '"0p"',
        'x.toml:9: network.queue.limit: found "0p"; expected 1p to 1000000000p or 0.001bdp to',
    ),
    "limit in bytes": ('"50p"', '"64KB"', 'x.toml:9: network.queue.limit: found "64KB"; expected 1p to'),
    "part of a packet": ('"50p"', '"1.5p"', 'x.toml:9: network.queue.limit: found "1.5p"; expected whole packets'),
    "no limit": (', limit = "50p"', "", "x.toml:9: network.queue.limit: found nothing; expected packets that may wait"),
    "no discipline": (
        'discipline = "pfifo", ',
        "",
        'x.toml:9: network.queue.discipline: found nothing; expected one of "ared", "bf',
    ),
    "unknown discipline": (
        '"pfifo"',
        '"pfifi"',
        'x.toml:9: network.queue.discipline: found "pfifi"; expected "pfifo"',
    ),
    "unknown parameter": (
        "limit",
        "limt",
        'x.toml:9: network.queue.limt: found an unknown key of pfifo; expected "limit"',
    ),
    "unknown algorithm": (
        '"cubic"',
        '"cubik"',
        'x.toml:13: flows[0].congestion: found "cubik"; expected "cubic"',
    ),
    "unknown algorithm in a table": (
        '"cubic"',
        '{ kind = "renno" }',
        'x.toml:13: flows[0].congestion.kind: found "renno"; expected "reno"',
    ),
    "parameter out of range": (
        '"cubic"',
        '{ kind = "cubic", beta = 2 }',
        "x.toml:13: flows[0].congestion.beta: found 2; expected at most 0.99",
    ),
    "unknown parameter of a spec": (
        '"cubic"',
        '{ kind = "cubic", betta = 0.5 }',
        'x.toml:13: flows[0].congestion.betta: found an unknown key of cubic; expected "beta"',
    ),
    "unknown key that is like no other": (
        'congestion = "cubic"',
        'congestion = "cubic"\ntcp = { batches = true }',
        'x.toml:14: flows[0].tcp.batches: found an unknown key of linux; expected one of 32, such as "tso_batching", ',
    ),
    "parameter of another spec": (
        '"cubic"',
        '{ kind = "reno", beta = 0.5 }',
        'x.toml:13: flows[0].congestion.beta: found an unknown key of reno; expected one of "kind", "slow_start"',
    ),
    "not a number": (
        '"cubic"',
        '{ kind = "cubic", beta = nan }',
        "x.toml:13: flows[0].congestion.beta: found nan; expected",
    ),
    "unknown variant": (
        '"cubic"',
        '{ kind = "cubic", variant = "2009" }',
        'x.toml:13: flows[0].congestion.variant: found "2009"; expected "2008" (known: "2008", "rfc9438")',
    ),
    "priority out of range": (
        'congestion = "cubic"',
        'congestion = "cubic"\npriority = 16',
        "x.toml:14: flows[0].priority: found 16; expected",
    ),
    "count 0": ("count = 2", "count = 0", "x.toml:12: flows[0].count: found 0; expected at least 1"),
    "too many": (
        "count = 2",
        "count = 99999999",
        "x.toml:12: flows[0].count: found 99999999; expected at most 1000000",
    ),
    "beyond 64 bits": ("count = 2", f"count = 1{'0' * 30}", 'x.toml:12: found "count = 1000'),
    "a text for a count": ("count = 2", 'count = "2"', 'x.toml:12: flows[0].count: found "2"; expected a whole number'),
    "part of a flow": ("count = 2", "count = 1.5", "x.toml:12: flows[0].count: found 1.5; expected a whole number"),
    "a boolean for a count": ("count = 2", "count = true", "x.toml:12: flows[0].count: found true; expected a whole"),
    "warm-up to the end": ('"1s"', '"10s"', "x.toml:3: warmup: found 10 s; expected less than the duration (10 s)"),
    "no warm-up sign": ('"1s"', '"-1s"', 'x.toml:3: warmup: found "-1s"; expected a time such as 20ms, not negative'),
    "unknown topology": (
        '"dumbbell"',
        '"dumbell"\nports = 8',
        'x.toml:6: network.topology: found "dumbell"; expected "dumbbell"',
    ),
    "upwards without a link": (
        "count = 2",
        'direction = "up"',
        'x.toml:12: flows[0].direction: found "up"; expected a link for it: network.reverse = {',
    ),
    "sideways": (
        "count = 2",
        'direction = "left"',
        'x.toml:12: flows[0].direction: found "left"; expected "down" or "up"',
    ),
    "stop before the start": (
        "count = 2",
        'start = "2s"\nstop = "2s"',
        "x.toml:13: flows[0].stop: found 2 s; expected after the last start (2 s)",
    ),
    "change of nothing": (
        'rtt = "20ms"',
        'rtt = "20ms"\nchanges = [{ at = "1s", link = "bottleneck" }]',
        'x.toml:9: network.changes[0]: found no change; expected rate = "…", delay = "…", up = false or up = true',
    ),
    "change after the end": (
        'rtt = "20ms"',
        'rtt = "20ms"\nchanges = [{ at = "10s", link = "bottleneck", up = false }]',
        "x.toml:9: network.changes[0].at: found 10 s; expected before the end of the duration (10 s)",
    ),
    "no topology": ('topology = "dumbbell"', "", "x.toml:5: network.topology: found nothing; expected a topology"),
    "sweep": (
        "[[flows]]",
        '[sweep]\n"network.rate" = []\n\n[[flows]]',
        "x.toml:12: sweep.network.rate: found an empty list; expected a list of different values",
    ),
    "late start": (
        "count = 2",
        'start = "10s"',
        "x.toml:12: flows[0].start: found a start as late as 10 s; expected all",
    ),
    "late last start": (
        "count = 2",
        'count = 3\nstart = { every = "5s" }',
        "x.toml:13: flows[0].start: found a start as late as 10 s; expected all starts before the end",
    ),
    "start without unit": (
        "count = 2",
        "start = 1",
        "x.toml:12: flows[0].start: found 1; expected a time such as 20ms",
    ),
    "start key": (
        "count = 2",
        "start = { evry = 1 }",
        'x.toml:12: flows[0].start.evry: found an unknown key; expected "every"',
    ),
    "more RTTs than flows": (
        '"20ms"',
        '["1ms", "2ms", "3ms"]',
        "x.toml:8: network.rtt: found 3 values; expected at most one for",
    ),
    "one wrong of a list": (
        '"20ms"',
        '["1ms",\n"2"]',
        'x.toml:9: network.rtt[1]: found "2"; expected a time such as 20ms',
    ),
    "one wrong end": (
        '"20ms"',
        '{ from = "1ms", to = 2 }',
        "x.toml:8: network.rtt.to: found 2; expected a time such as",
    ),
    "half a range": (
        '"20ms"',
        '{ from = "1ms" }',
        "x.toml:8: network.rtt: found a table; expected one value, a list of them, or",
    ),
    "empty list": ('"20ms"', "[]", "x.toml:8: network.rtt: found a list of 0; expected at least one value"),
    "both losses": (
        'rtt = "20ms"',
        'rtt = "20ms"\nloss = { every = 10, probability = 0.1 }',
        "x.toml:9: network.loss: found every and probability together; expected { every = 1000 }, ",
    ),
    "lost SYNs beside each so many-th": (
        'rtt = "20ms"',
        'rtt = "20ms"\nloss = { every = 10, syn = 0.1 }',
        "x.toml:9: network.loss: found syn beside every; expected syn beside a probability",
    ),
    "loss of all": (
        'rtt = "20ms"',
        'rtt = "20ms"\nloss = { probability = 1.0 }',
        "x.toml:9: network.loss.probability: found 1.0; expected less than 1",
    ),
    "queue of no link": (
        'rtt = "20ms"',
        'rtt = "20ms"\naccess_queue = { discipline = "pfifo", limit = "5p" }',
        "x.toml:9: network.access_queue: found a table; expected an access_rate",
    ),
    "a TCP key beside the flow": (
        "count = 2",
        'mss = "1448B"',
        "x.toml:12: flows[0].mss: found a key that does not belong here; expected it in a table: tcp = { mss = … }",
    ),
    "unknown stack": (
        "[[flows]]",
        '[tcp]\nstack = "linus"\n[[flows]]',
        'x.toml:12: tcp.stack: found "linus"; expected "linux" (known: "freebsd", "linux"',
    ),
    "one is not true": (
        "[[flows]]",
        "[tcp]\nsack = 1\n[[flows]]",
        "x.toml:12: tcp.sack: found 1; expected true or false",
    ),
    "one is not true in a choice": (
        "[[flows]]",
        "[tcp]\ndelayed_ack = 1\n[[flows]]",
        'x.toml:12: tcp.delayed_ack: found 1; expected one of false, true, "quick"',
    ),
    "seeds and repeats": ('"1s"', '"1s"\nrepeats = 2\nseeds = [1]', "x.toml:4: repeats: found both repeats and seeds"),
    "the same seed twice": (
        '"1s"',
        '"1s"\nseeds = [1, 1]',
        "x.toml:4: seeds: found a list of 2; expected 1 to 10000 different",
    ),
    "negative seed": ('"1s"', '"1s"\nseeds = [1, -1]', "x.toml:4: seeds[1]: found -1; expected at least 0"),
    "repeats of 0": ('"1s"', '"1s"\nrepeats = 0', "x.toml:4: repeats: found 0; expected at least 1"),
    "slow samples": (
        "[[flows]]",
        '[record]\ninterval = "11s"\n[[flows]]',
        "x.toml:12: record.interval: found 11 s; expected",
    ),
    "more samples than a disk holds": (
        "[[flows]]",
        '[record]\ninterval = "1us"\n[[flows]]\ncount = 200\ncongestion = "reno"\n[[flows]]',
        "x.toml:12: record.interval: found 2.0e+09 samples of the flows in a run; expected at most 1e+09",
    ),
    "one bracket too few": (
        "[[flows]]",
        "[flows]",
        "x.toml:11: flows: found a table; expected a list of tables: write [[flows]]",
    ),
    "a long value": (
        '"10Mbit"',
        f'"{"x" * 5000}"',
        f'x.toml:7: network.rate: found "{"x" * 58}…; expected a rate such as',
    ),
    "a control character": (
        '"10Mbit"',
        '"\\u001b[2J\\u202e"',
        'x.toml:7: network.rate: found "\\u001b[2J\\u202e"; expected',
    ),
    "a name of two lines": (
        '"a test"',
        '"a\\nb\\u001b[2J"',
        'x.toml:1: name: found "a\\nb\\u001b[2J"; expected one line without control characters',
    ),
    "empty name": ('"a test"', '""', 'x.toml:1: name: found ""; expected at least 1 character'),
}


@pytest.mark.parametrize(("old", "new", "expected"), MISTAKES.values(), ids=MISTAKES.keys())
def test_one_mistake_is_one_line(old, new, expected):
    found = mistakes(changed(old, new))
    assert len(found) == 1
    assert found[0].startswith(expected)
    assert len(found[0]) < 350


def test_no_flows():
    without = GOOD.split("[[flows]]", maxsplit=1)[0]
    for text in (without, "flows = []\n" + without):
        assert mistakes(text) == [
            "x.toml:1: flows: found nothing; expected at least one table [[flows]] or [[traffic]]"
        ]


def test_all_mistakes_are_reported_in_the_order_of_the_lines():
    text = changed('"10Mbit"', '"10mbps"').replace('"cubic"', '"kubic"').replace('"10s"', "10")
    assert [line.split(" ")[0] for line in mistakes(text)] == ["x.toml:2:", "x.toml:7:", "x.toml:13:"]


def test_a_misspelt_topology_does_not_hide_the_mistakes_of_its_keys():
    text = changed('"dumbbell"', '"dumbell"').replace('"10Mbit"', '"10mbps"')
    assert [line.split(" ")[1] for line in mistakes(text)] == ["network.topology:", "network.rate:"]


def test_own_algorithms_and_kinds_of_traffic_have_hints():
    control, kind = mistakes(changed('"cubic"', '"mine"\nkind = "web"'))
    assert control.endswith("(or your own, with --module FILE)")
    assert "expected a kind of traffic in [[traffic]]" in kind


def test_the_line_is_that_of_the_right_one_of_several_tables():
    text = GOOD + '\n[[flows]]\ncongestion = "reno"\ncount = 0\n\n[[flows]]\ncongestion = { kind = "reno", x = 1 }\n'
    found = mistakes(text)
    assert found[0].startswith("x.toml:17: flows[1].count: found 0")
    assert found[1].startswith("x.toml:20: flows[2].congestion.x: found an unknown key")


def test_an_empty_file_misses_every_required_key():
    assert [line.split(":")[2] for line in mistakes("")] == [" duration", " network"]


def test_a_syntax_error_names_the_line():
    found = mistakes(changed('"10Mbit"', '"10Mbit'))
    assert len(found) == 1
    assert found[0].startswith('x.toml:7: found "rate = \\"10Mbit"; expected TOML (invalid basic string')
    assert mistakes("a = ")[0].startswith('x.toml:1: found "a ="; expected TOML (string values must be quoted')
    assert mistakes("a = 1\nb\n")[0].startswith('x.toml:2: found "b"; expected TOML (')
    assert mistakes("a = 1\na = 2\n")[0].startswith("x.toml:2: ")
    assert len(mistakes("a = " + "[" * 10**5)) == 1


def read_mistake(path: Path) -> str:
    with pytest.raises(ScenarioError) as caught:
        planning.load(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    assert read_mistake(tmp_path) == f"{tmp_path}: found a directory; expected a scenario file, or - for standard input"
    assert "found no such file; expected a scenario file, or - for standard input" in read_mistake(
        tmp_path / "none.toml"
    )
    assert "found an error (Not a directory)" in read_mistake(Path("/dev/null/x.toml"))
    assert "found a device" in read_mistake(Path("/dev/zero"))
    with (tmp_path / "long.toml").open("wb") as file:
        file.truncate((16 << 20) + 1)
    assert "found more than 16 MiB" in read_mistake(tmp_path / "long.toml")
    assert "expected a scenario file, or - for standard input" in read_mistake(Path("a\0b"))


def test_a_file_that_is_not_utf_8_names_the_line(tmp_path):
    path = tmp_path / "x.toml"
    path.write_bytes(b'name = "a"\nduration = "\xff"\n')
    assert read_mistake(path) == f"{path}:2: found the byte 0xff; expected UTF-8 text"


def test_windows_line_ends_and_a_byte_order_mark_do_no_harm(tmp_path):
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xef\xbb\xbf" + changed("count = 2", "count = 0").replace("\n", "\r\n").encode())
    assert read_mistake(path).startswith(f"{path}:12: flows[0].count")


@given(st.text(max_size=200))
def test_any_text_is_a_scenario_or_a_scenario_error(text):
    try:
        planning.loads(text)
    except ScenarioError as error:
        assert error.problems


VALUES = st.recursive(
    st.one_of(st.none().map(lambda _: ""), st.text(max_size=5), st.integers(), st.floats(), st.booleans()),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["at", "kind", "from", "limit"]), inner)
    ),
    max_leaves=5,
)
KEYS = [
    "duration",
    "warmup",
    "network",
    "flows",
    "tcp",
    "record",
    "repeats",
    "seeds",
    "name",
    "topology",
    "rtt",
    "queue",
]


@given(st.dictionaries(st.sampled_from(KEYS), VALUES), st.dictionaries(st.sampled_from(KEYS), VALUES))
def test_any_value_anywhere_is_accepted_or_a_fault(top, network):
    """The models raise only faults, so every mistake has its two halves."""
    from pydantic import ValidationError

    try:
        scenario.Scenario.model_validate({"duration": "1s", "network": {"topology": "dumbbell", **network}, **top})
    except ValidationError as error:
        for detail in error.errors():
            assert detail["type"] == "fault"
            assert detail["ctx"]["found"]
            assert detail["ctx"]["expected"]


def test_the_schema_defines_each_spec_a_single_time():
    text = json.dumps(scenario.json_schema())
    for spec in algorithms.every():
        # Of real-time media there are the names alone, which keeps the schema small.
        count = 0 if spec.family == "realtime" else 1
        assert text.count(f'"title": "{spec.family}_{spec.name}"') == count


def test_every_key_of_the_schema_has_a_description_or_a_type():
    definitions = scenario.json_schema()["$defs"]
    for table in definitions.values():
        for name, key in table.get("properties", {}).items():
            assert "description" in key or "$ref" in key, name
