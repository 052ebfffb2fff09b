"""The keys of a scenario file for people: of each table, what a value may be, the default, and what it means."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ackclock.input import patterns
from ackclock.scenario.scenario import json_schema
from ackclock.scenario.topology import TOPOLOGIES
from ackclock.scenario.traffic import KINDS

#: Tables whose keys are known by a name, and the sentence about each. The whole file is one of them.
SCENARIO = "scenario"
TABLES = {
    "flows": ("Flows", "Flows one by one: the tables [[flows]]"),
    "quic": ("QuicFlows", 'QUIC connections: tables [[flows]] with transport = "quic"'),
    "record": ("Record", "What is written down: the table [record]"),
    "theory": ("Theory", "Options of the engine theory: the table [theory]"),
    "fluid": ("Fluid", "Options of the engine fluid: the table [fluid]"),
    "meanfield": ("MeanField", "Options of the engine meanfield: the table [meanfield]"),
    "linux": ("Linux", "Options of the engine linux: the table [linux]"),
}

#: Values that are defined once, in words.
_DEFINED = {
    "Congestion": "a congestion control",
    "Queue": "a queue",
    "Tcp": "a TCP stack",
    "Dscp": 'a DS codepoint: "cs0" to "cs7", "af11" to "af43", "ef", "va" or "le"',
}

#: Indexes of lists in a key.
_INDEX = re.compile(r"\[\d*\]")

#: Words for bounds that are none.
_PLAIN = {"boolean": "true or false", "string": "text", "object": "a table"}


@dataclass(frozen=True, slots=True)
class Key:
    """A key as a user writes it; `default` is as the file would have it, "required", or empty."""

    name: str
    value: str
    default: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Described:
    """A table of the scenario file."""

    title: str
    keys: tuple[Key, ...]


def names() -> list[str]:
    """Whatever `described` knows."""
    return [SCENARIO, *TOPOLOGIES, *KINDS, *TABLES]


@cache
def _schema() -> Mapping[str, Any]:
    return json_schema()


def places_of(name: str) -> list[str]:
    """Return the keys of this name in the tables of a scenario, such as `record.delays`."""
    return [place for table in ("", *TABLES) if of_key(place := f"{table}.{name}".lstrip("."))]


def further() -> dict[str, list[str]]:
    """Return further documented names by their place in a scenario."""
    return {"for [network]": [*TOPOLOGIES], "for [[traffic]]": [*KINDS], "for other tables": [*TABLES]}


def described(name: str) -> list[Described]:
    """The tables of a name: none if it is unknown, several if several are called so."""
    schema = _schema()
    return [_table(title, definition) for title, definition in _called(name, schema)]


def of_key(path: str) -> Described | None:
    """Return a key by its place in a scenario, such as `network.queue.limit`; None if there is none.

    Tables that have it in different ways have a row each, named by what they are: a topology, a discipline.
    """
    schema, names = _schema(), _INDEX.sub("", path).split(".")
    tables: list[tuple[str, Mapping[str, Any]]] = [("", schema)]
    for name in names[:-1]:
        tables = [inner for of, table in tables for inner in _tables_at(table, name, of, schema)]
    rows: dict[tuple[str, str, str], list[str]] = {}
    for of, table in tables:
        if names[-1] in table["properties"]:
            key = _key(names[-1], table)
            rows.setdefault((key.value, key.default, key.meaning), []).append(of)
    if not rows:
        return None
    keys = [Key(", ".join(dict.fromkeys(filter(None, of))) or names[-1], *row) for row, of in rows.items()]
    return Described(path, tuple(keys))


def _tables_at(
    table: Mapping[str, Any], name: str, of: str, schema: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the tables that a key of a table may hold, or lists of them, each with what it is if it says so."""
    waiting = [table["properties"][name]] if name in table["properties"] else []
    while waiting:
        one = waiting.pop(0)
        waiting += [*one.get("anyOf", ()), *([one["items"]] if isinstance(one.get("items"), dict) else ())]
        if "$ref" in one:
            waiting.append(schema["$defs"][one["$ref"].rpartition("/")[2]])
        if "properties" in one:
            said = (each["const"] for each in one["properties"].values() if "const" in each)
            yield next((str(const) for const in said), of), one


def _called(name: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the title and definition of each table with a name."""
    if name == SCENARIO:
        yield "A scenario file: its keys and tables", schema
    for tables, what, place in (
        (TOPOLOGIES, "topology", "the table [network]"),
        (KINDS, "traffic", "tables [[traffic]]"),
    ):
        if name in tables:
            table = tables[name]
            summary = (table.__doc__ or "").strip().split("\n")[0].rstrip(".")
            yield f"{summary} ({what}: {name}): {place}", schema["$defs"][table.__name__]
    if name in TABLES:
        yield TABLES[name][1], schema["$defs"][TABLES[name][0]]


def _table(title: str, definition: Mapping[str, Any]) -> Described:
    """Its keys, those that are required first."""
    keys = [_key(name, definition) for name in definition["properties"]]
    return Described(title, tuple(sorted(keys, key=lambda key: key.default != "required")))


def _key(name: str, definition: Mapping[str, Any]) -> Key:
    schema, needed = definition["properties"][name], definition.get("required", [])
    return Key(name, value_of(schema), _default(name in needed, schema), schema.get("description", ""))


def _default(required: bool, schema: Mapping[str, Any]) -> str:
    if required:
        return "required"
    default = schema.get("default")
    return "" if default is None or default in ([], {}) else json.dumps(default, ensure_ascii=False)


def value_of(schema: Mapping[str, Any]) -> str:
    """Return a value's type in words: "rate", "whole number from 1", "a queue"."""
    if quantity := patterns.names().get(schema.get("pattern", "")):
        return quantity.replace("_", " ")
    if "$ref" in schema:
        return _DEFINED.get(schema["$ref"].rpartition("/")[2], "a table")
    if words := [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())]:
        return " or ".join(map(json.dumps, words))
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(value_of, schema["anyOf"])))
    return _by_type(schema, schema.get("type", ""))


def _by_type(schema: Mapping[str, Any], kind: str) -> str:
    if kind == "array":
        return f"a list of: {value_of(schema.get('items', {}))}"
    if kind not in ("integer", "number"):
        return _PLAIN.get(kind, "a value")
    ends = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}
    given = ((word, schema[end]) for end, word in ends.items() if end in schema)
    bounds = [f"{word} {int(end) if end == int(end) else end:,}" for word, end in given]
    return " ".join(["whole number" if kind == "integer" else "number", *bounds])
