"""The keys of a scenario file for people: of each table, what a value may be, the default, and what it means."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ackclock.input import patterns
from ackclock.scenario.scenario import json_schema
from ackclock.scenario.topology import TOPOLOGIES
from ackclock.scenario.traffic import KINDS

#: Tables whose keys are known by a name, and the sentence about each. The whole file is one of them.
SCENARIO = "scenario"
TABLES = {
    "flows": ("Flows", "flows one by one: the tables [[flows]]"),
    "record": ("Record", "what is written down: the table [record]"),
    "theory": ("Theory", "options of the engine theory: the table [theory]"),
    "fluid": ("Fluid", "options of the engine fluid: the table [fluid]"),
    "meanfield": ("MeanField", "options of the engine meanfield: the table [meanfield]"),
    "linux": ("Linux", "options of the engine linux: the table [linux]"),
}

#: Tables that cards describe, and how a value is told.
_CARDS = {"Congestion": "a congestion control", "Queue": "a queue", "Tcp": "a TCP stack"}

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
    """What else is known, by where in a scenario that is."""
    return {"for [network]": [*TOPOLOGIES], "for [[traffic]]": [*KINDS], "for other tables": [*TABLES]}


def described(name: str) -> list[Described]:
    """The tables of a name: none if it is unknown, several if several are called so."""
    schema = json_schema()
    found = []
    if name == SCENARIO:
        found.append(_table("A scenario file: its keys and tables", schema, schema))
    if name in TOPOLOGIES:
        definition = schema["$defs"][TOPOLOGIES[name].__name__]
        found.append(_table(f"{_said(TOPOLOGIES[name])} (topology: {name}): the table [network]", definition, schema))
    if name in KINDS:
        definition = schema["$defs"][KINDS[name].__name__]
        found.append(_table(f"{_said(KINDS[name])} (traffic: {name}): tables [[traffic]]", definition, schema))
    if name in TABLES:
        definition, title = TABLES[name]
        found.append(_table(title[0].upper() + title[1:], schema["$defs"][definition], schema))
    return found


def _said(table: type) -> str:
    """The first sentence of what a table says of itself."""
    return (table.__doc__ or "").strip().split("\n")[0].rstrip(".")


def _table(title: str, definition: Mapping[str, Any], schema: Mapping[str, Any]) -> Described:
    required = definition.get("required", [])
    keys = [
        Key(name, value_of(said, schema), _default(name in required, said), said.get("description", ""))
        for name, said in definition["properties"].items()
    ]
    return Described(title, tuple(sorted(keys, key=lambda key: key.default != "required")))


def _default(required: bool, said: Mapping[str, Any]) -> str:
    if required:
        return "required"
    default = said.get("default")
    return "" if default is None or default in ([], {}) else json.dumps(default, ensure_ascii=False)


def value_of(said: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """What a value may be, in words: "rate", "1 to 10000", "a queue"."""
    if name := patterns.names().get(said.get("pattern", "")):
        return name.replace("_", " ")
    if "$ref" in said:
        word = said["$ref"].rpartition("/")[2]
        return _CARDS.get(word, "a table")
    if "enum" in said or "const" in said:
        return " or ".join(json.dumps(word) for word in said.get("enum", [said.get("const")]))
    if "anyOf" in said:
        return " or ".join(dict.fromkeys(value_of(one, schema) for one in said["anyOf"]))
    kind = said.get("type", "")
    if kind == "array":
        return f"a list of: {value_of(said.get('items', {}), schema)}"
    return (
        _number(said, "whole number" if kind == "integer" else kind)
        if kind in ("integer", "number")
        else _PLAIN.get(kind, "a value")
    )


def _number(said: Mapping[str, Any], kind: str) -> str:
    ends = [said.get(name) for name in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")]
    low, above, high, below = (int(end) if end is not None and end == int(end) else end for end in ends)
    least = f"from {low:,}" if low is not None else f"above {above:,}" if above is not None else ""
    most = f"to {high:,}" if high is not None else f"below {below:,}" if below is not None else ""
    return " ".join(filter(None, [kind, least, most]))
