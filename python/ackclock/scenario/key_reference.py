"""The keys of a scenario file: for people, and as a JSON Schema for editors (`ackclock show --schema`).

People get of each table what a value may be, the default, and what it means. Editors get a small schema with a pattern
for every quantity: `json_schema` with its descriptions cut to their first clause, quantities and what is said several
times said once under `$defs`. It is kept in the package as `schema.json`, so that the scenarios of a checkout can point
to it; a test says when that is old, and `python -m ackclock show --schema > python/ackclock/scenario/schema.json`
renews it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from itertools import count as count_from
from pathlib import Path
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


#: File of the schema.
SCHEMA_FILE = Path(__file__).parent / "schema.json"

#: Longest description, in characters.
LONGEST = 68

#: From so many characters on, what is there twice is said once.
WORTH_A_NAME = 60

#: Examples in the messages of an editor, by quantity.
EXAMPLES = {
    "rate": "a rate such as 100Mbit",
    "time": "a time such as 20ms",
    "count_rate": "a number per second such as 250/s",
    "bytes": "a size such as 64KB",
    "packets": "packets such as 50p",
    "size": "a size such as 64KB or 50p",
    "packets_or_bdp": "packets, or bandwidth–delay products: 50p, 1bdp",
    "bytes_or_bdp": "bytes, or bandwidth–delay products: 64KB, 1bdp",
    "size_or_bdp": "a size such as 64KB, 50p or 1bdp",
}


def schema_text() -> str:
    """The schema as a file, a line for each of its definitions."""
    found = schema()
    definitions = found.pop("$defs")
    lines = [f"{json.dumps(key)}: {_compact(value)}" for key, value in found.items() if key != "properties"]
    for name, several in (("properties", found["properties"]), ("$defs", definitions)):
        each = ",\n".join(f"{json.dumps(key)}: {_compact(value)}" for key, value in several.items())
        lines.append(f"{json.dumps(name)}: {{\n{each}\n}}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def schema() -> dict[str, Any]:
    """The schema itself."""
    whole = _mapped(json_schema(), _shortened)
    names = patterns.names()
    whole = _mapped(whole, lambda part, _: _quantity(part, names))
    for pattern, name in names.items():
        if name in _references(whole):
            whole["$defs"][name] = {"type": "string", "pattern": pattern, "description": EXAMPLES[name]}
    definitions = whole["$defs"]
    return _used(_shared(_mapped(whole, lambda part, _: _discriminated(part, definitions))))


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _mapped(part: Any, change: Callable[[dict[str, Any], str], dict[str, Any]], name: str = "") -> Any:
    """A schema with every schema in it changed, from the outside in; `name` is that of the key that it is of."""
    return _inside(change(part, name), change, name) if isinstance(part, dict) else part


def _inside(part: dict[str, Any], change: Callable[[dict[str, Any], str], dict[str, Any]], name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word, value in part.items():
        if word in ("properties", "$defs"):
            found[word] = {key: _mapped(of, change, key) for key, of in value.items()}
        elif word in ("anyOf", "allOf", "oneOf"):
            found[word] = [_mapped(one, change, name) for one in value]
        elif word in ("items", "additionalProperties", "if", "then", "else"):
            found[word] = _mapped(value, change, name)
        else:
            found[word] = value
    return found


def _shortened(part: dict[str, Any], name: str) -> dict[str, Any]:
    """Without the titles of keys and tables, which repeat their names, and with a short description."""
    kept = {word: value for word, value in part.items() if word != "title" or not name}
    return {**kept, **({"description": first_clause(kept["description"])} if "description" in kept else {})}


def first_clause(words: str) -> str:
    """Return the text before the first semicolon outside of brackets and quotes, in at most `LONGEST` characters."""
    clause = re.match(r"(?:\([^()]*\)|\{[^{}]*\}|\"[^\"]*\"|[^;])*", " ".join(words.split()))
    text = clause[0].strip() if clause else ""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1].rsplit(' ', 1)[0].rstrip(',:')} …"


def _quantity(part: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """A reference in place of the pattern; older drafts look at nothing beside a bare one."""
    name = names.get(part.get("pattern", ""))
    if name is None:
        return part
    about = {word: value for word, value in part.items() if word in ("description", "default")}
    return {"allOf": [_reference(name)], **about} if about else _reference(name)


def _discriminated(part: dict[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Tables of which a key says which one it is: so a mistake is marked where it is, not at the whole table."""
    each = [definitions[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in part.get("anyOf", ())]
    tables = [one for one in each if "properties" in one]
    key = _discriminator(tables)
    if key is None:
        return part
    every = {name: _common(name, tables) for table in tables for name in table["properties"]}
    words = [table["properties"][key]["const"] for table in tables]
    needed = all(key in table.get("required", ()) for table in tables)
    chosen: dict[str, Any] = {
        "properties": {**every, key: {"enum": words}},
        "additionalProperties": False,
        **({"required": [key]} if needed else {}),
        "allOf": [
            {"if": _chosen(word, table, key), "then": _left(table, every, key)}
            for word, table in zip(words, tables, strict=True)
        ],
    }
    plain = [one for one in each if "properties" not in one]
    about = {word: value for word, value in part.items() if word != "anyOf"}
    if not plain:
        return {"type": "object", **chosen, **about}
    return {
        "if": {"type": "object"},
        "then": chosen,
        "else": plain[0] if len(plain) == 1 else {"anyOf": plain},
        **about,
    }


def _chosen(word: str, table: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the condition under which a table is meant; without the key it is the one that does not require it."""
    required = {"required": [key]} if key in table.get("required", ()) else {}
    return {"properties": {key: {"const": word}}, **required}


def _discriminator(tables: Sequence[Mapping[str, Any]]) -> str | None:
    """The key that has another constant in each of the tables, if these are several."""
    names = tables[0]["properties"] if len(tables) > 1 else ()
    return next((name for name in names if all("const" in one["properties"].get(name, ()) for one in tables)), None)


def _common(name: str, tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the part of a key's schema that all tables share."""
    first, *others = [table["properties"][name] for table in tables if name in table["properties"]]
    return {word: value for word, value in first.items() if all(other.get(word) == value for other in others)}


def _left(table: Mapping[str, Any], common: Mapping[str, dict[str, Any]], key: str) -> dict[str, Any]:
    """Return the part of a table's schema beyond the shared one, and the key's description.

    That the key is there is the condition under which the part applies, so it is not required once more.
    """
    keys = {
        name: name == key or {word: value for word, value in said.items() if word not in common[name]} or True
        for name, said in table["properties"].items()
    }
    required = [name for name in table.get("required", ()) if name != key]
    return {"properties": keys, **({"required": required} if required else {}), "additionalProperties": False}


def _used(whole: dict[str, Any]) -> dict[str, Any]:
    """Without definitions that nothing refers to."""
    used = _references(whole)
    kept = {name: part for name, part in whole["$defs"].items() if name in used}
    return whole if len(kept) == len(whole["$defs"]) else _used({**whole, "$defs": kept})


def _references(whole: dict[str, Any]) -> set[str]:
    return {reference.rpartition("/")[2] for reference in re.findall(r'"\$ref":"([^"]*)"', _compact(whole))}


def _shared(whole: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with repeated parts as definitions."""
    counts: Counter[str] = Counter()

    def count(part: dict[str, Any], _: str) -> dict[str, Any]:
        counts[_compact(part)] += 1
        return part

    _mapped(whole, count)
    names: dict[str, str] = {}
    definitions: dict[str, Any] = {}

    def share(part: dict[str, Any], name: str) -> dict[str, Any]:
        text = _compact(part)
        if counts[text] < 2 or len(text) < WORTH_A_NAME or not name:
            return part
        if text not in names:
            taken = {*whole["$defs"], *definitions}
            numbered = (f"{name}_{number}" for number in count_from(2))
            names[text] = next(word for word in chain([name], numbered) if word not in taken)
            definitions[names[text]] = {}  # it is taken
            definitions[names[text]] = _inside(part, share, name)
        return _reference(names[text])

    changed: dict[str, Any] = _mapped(whole, share)
    return {**changed, "$defs": {**changed["$defs"], **definitions}}


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}
