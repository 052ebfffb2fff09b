"""The keys of a scenario file for people: of each table, what a value may be, the default, and what it means."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ackclock.input import patterns
from ackclock.scenario.keys import Tables
from ackclock.scenario.scenario import json_schema
from ackclock.scenario.topology import TOPOLOGIES
from ackclock.scenario.traffic import KINDS

#: Tables whose keys are known by a name, and the sentence about each. The whole file is one of them.
SCENARIO = "scenario"
TABLES = {
    "flows": ("Flows", "Flows one by one: the tables [[flows]]"),
    "record": ("Record", "What is written down: the table [record]"),
    "theory": ("Theory", "Options of the engine theory: the table [theory]"),
    "fluid": ("Fluid", "Options of the engine fluid: the table [fluid]"),
    "meanfield": ("MeanField", "Options of the engine meanfield: the table [meanfield]"),
    "linux": ("Linux", "Options of the engine linux: the table [linux]"),
}

#: Tables that specs describe, in words.
_SPECS = {"Congestion": "a congestion control", "Queue": "a queue", "Tcp": "a TCP stack"}

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


def further() -> dict[str, list[str]]:
    """Return further documented names by their place in a scenario."""
    return {"for [network]": [*TOPOLOGIES], "for [[traffic]]": [*KINDS], "for other tables": [*TABLES]}


def described(name: str) -> list[Described]:
    """The tables of a name: none if it is unknown, several if several are called so."""
    schema = json_schema()
    return [_table(title, definition, schema) for title, definition in _called(name, schema)]


def _called(name: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the title and definition of each table with a name."""
    if name == SCENARIO:
        yield "A scenario file: its keys and tables", schema
    yield from _chosen(name, TOPOLOGIES, "topology", "the table [network]", schema)
    yield from _chosen(name, KINDS, "traffic", "tables [[traffic]]", schema)
    if name in TABLES:
        yield TABLES[name][1], schema["$defs"][TABLES[name][0]]


def _chosen(
    name: str, tables: Tables, what: str, place: str, schema: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if name in tables:
        yield f"{_summary_line(tables[name])} ({what}: {name}): {place}", schema["$defs"][tables[name].__name__]


def _summary_line(table: type) -> str:
    """The first sentence of what a table says of itself."""
    return (table.__doc__ or "").strip().split("\n")[0].rstrip(".")


def _table(title: str, definition: Mapping[str, Any], schema: Mapping[str, Any]) -> Described:
    """Its keys, those that are required first."""
    needed = definition.get("required", [])
    keys = [_key(name, said, name in needed) for name, said in definition["properties"].items()]
    return Described(title, tuple(sorted(keys, key=_has_default)))


def _key(name: str, said: Mapping[str, Any], required: bool) -> Key:
    return Key(name, value_of(said), _default(required, said), said.get("description", ""))


def _has_default(key: Key) -> bool:
    return key.default != "required"


def _default(required: bool, said: Mapping[str, Any]) -> str:
    if required:
        return "required"
    default = said.get("default")
    return "" if default is None or default in ([], {}) else json.dumps(default, ensure_ascii=False)


def value_of(said: Mapping[str, Any]) -> str:
    """Return a value's type in words: "rate", "whole number from 1", "a queue"."""
    ways = (_quantity, _referred, _listed, _several, _array, _number)
    return next(filter(None, (way(said) for way in ways)), None) or _PLAIN.get(said.get("type", ""), "a value")


def _quantity(said: Mapping[str, Any]) -> str:
    return patterns.names().get(said.get("pattern", ""), "").replace("_", " ")


def _referred(said: Mapping[str, Any]) -> str:
    return _SPECS.get(_definition(said), "a table") if "$ref" in said else ""


def _listed(said: Mapping[str, Any]) -> str:
    return " or ".join(map(json.dumps, _enumerated(said)))


def _several(said: Mapping[str, Any]) -> str:
    return " or ".join(dict.fromkeys(map(value_of, said.get("anyOf", ()))))


def _array(said: Mapping[str, Any]) -> str:
    return f"a list of: {value_of(said.get('items', {}))}" if said.get("type") == "array" else ""


def _number(said: Mapping[str, Any]) -> str:
    kind = {"integer": "whole number", "number": "number"}.get(said.get("type", ""), "")
    return (
        " ".join([kind, *(f"{word} {_amount(said[end])}" for end, word in _ENDS.items() if end in said)])
        if kind
        else ""
    )


#: Ends of a range, in words.
_ENDS = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}


def _amount(end: float) -> str:
    return f"{int(end) if end == int(end) else end:,}"


def _definition(said: Mapping[str, Any]) -> str:
    """The name that a reference has."""
    return str(said.get("$ref", "")).rpartition("/")[2]


def _enumerated(said: Mapping[str, Any]) -> list[Any]:
    return [*said.get("enum", ()), *([said["const"]] if "const" in said else ())]
