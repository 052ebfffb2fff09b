"""JSON schema of scenario files for editors."""

from __future__ import annotations

import json
import re
import tomllib
from itertools import product
from pathlib import Path

import jsonschema
import pytest

from ackclock.input import patterns, units
from ackclock.scenario import key_reference

ROOT = Path(__file__).parents[2]

SCHEMA = jsonschema.Draft202012Validator(json.loads(key_reference.SCHEMA_FILE.read_text("utf-8")))

COMPLETE_FILES = [
    *sorted((ROOT / "scenarios").glob("*.toml")),
    *sorted((ROOT / "reproductions").glob("*/scenario.toml")),
]

SMALL = """
duration = "2s"
network = { topology = "dumbbell", rate = "5Mbit", rtt = "20ms", queue = { discipline = "pfifo", limit = "1bdp" } }
flows = [{ count = 2, congestion = "cubic" }]
traffic = [{ kind = "udp", rate = "250/s", packet = "1000B" }]
"""


def mistakes(text: str) -> list[str]:
    """The keys that an editor marks."""
    return sorted({".".join(map(str, error.absolute_path)) for error in SCHEMA.iter_errors(tomllib.loads(text))})


def test_the_file_is_what_the_program_would_write():
    old = "old: python -m ackclock show --schema > python/ackclock/scenario/schema.json"
    assert key_reference.SCHEMA_FILE.read_text("utf-8") == key_reference.schema_text(), old


def test_it_is_a_schema_and_small():
    SCHEMA.check_schema(SCHEMA.schema)
    assert key_reference.SCHEMA_FILE.stat().st_size < 112_000


@pytest.mark.parametrize("path", COMPLETE_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_scenario_is_right(path):
    assert mistakes(path.read_text("utf-8")) == []


@pytest.mark.parametrize("path", COMPLETE_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_scenario_points_to_it(path):
    first = path.read_text("utf-8").split("\n", 1)[0]
    assert first.startswith("#:schema ") or path.is_relative_to(ROOT / "reproductions")
    if first.startswith("#:schema "):
        assert (path.parent / first.removeprefix("#:schema ")).resolve() == key_reference.SCHEMA_FILE


@pytest.mark.parametrize(
    ("right", "wrong", "marked"),
    [
        ("5Mbit", "20mbps", "network.rate"),
        ("20ms", "20", "network.rtt"),
        ("1bdp", "64kb", "network.queue.limit"),
        ("1bdp", "64KB", "network.queue.limit"),
        ("pfifo", "pfifi", "network.queue.discipline"),
        ("cubic", "cubik", "flows.0.congestion"),
        ("250/s", "250", "traffic.0.rate"),
        ('duration = "2s"', 'duration = "2m"', "duration"),
        ("dumbbell", "dumbell", "network.topology"),
        ("rtt =", "rrt =", "network"),
    ],
)
def test_a_mistake_is_marked_where_it_is(right, wrong, marked):
    assert mistakes(SMALL) == []
    assert right in SMALL
    assert marked in mistakes(SMALL.replace(right, wrong))


UNITS = {*units.BIT_RATES, *units.BYTES, *units.TIMES, *units.COUNT_RATES, "p", "bdp", "mbps", "Mb", "m", ""}
CASES = sorted({"".join(word) for unit in UNITS for word in product(*({a.lower(), a.upper()} for a in unit))})


@pytest.mark.parametrize("parse", patterns.KINDS, ids=lambda parse: parse.__name__)
def test_a_pattern_takes_what_is_read_and_nothing_else(parse):
    pattern = re.compile(patterns.quantity(parse))
    for number, unit in product(("1", "+2.5", ".5e3", " 3. ", "1,5", "-1", "e3", "1e", ""), CASES):
        text = f"{number}{unit}"
        try:
            parse(text)
        except units.UnitError:
            assert not pattern.search(text), text
        else:
            assert pattern.search(text), text


@pytest.mark.parametrize(
    "text", ["64KB", "50p", "1 bdp", "bdp/sqrt(n)", "0.5bdp / SQRT(n)", "hassayoun-ros", "Wischik-McKeown"]
)
def test_sizes(text):
    assert re.search(patterns.size(("B", "p", "bdp")), text)
    assert bool(re.search(patterns.size(("B", "p")), text)) == (text in ("64KB", "50p"))
    units.size(text)


def test_a_description_is_short():
    assert key_reference.first_clause('a list; or "a; b"') == "a list"
    assert key_reference.first_clause('a (b; c), "d; e"; f') == 'a (b; c), "d; e"'
    assert key_reference.first_clause("word " * 40) == "word " * 13 + "…"
