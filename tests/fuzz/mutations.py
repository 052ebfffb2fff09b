"""Mutations of inputs: a scenario token by token and line by line, with a vocabulary of the field.

Blind changes of bytes die in the TOML parser. These keep most of a file as it was, so that what is changed is met by
the code behind the parser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import recipes

from ackclock import algorithms
from ackclock.engines import ENGINES
from ackclock.scenario.scenario import json_schema

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "scenarios"

TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[A-Za-z_][\w-]*|[+-]?\d[\d_.]*(?:[eE][+-]?\d+)?|[^\S\n]+|#[^\n]*|.', re.DOTALL)
KEY = re.compile(r"[A-Za-z_][\w-]*")
#: A key and its value on one line, in an inline table too.
PAIR = re.compile(r"""\b([A-Za-z_][\w-]*)\s*=\s*("[^"\n]*"|\{[^{}\n]*\}|\[[^\[\]\n]*\]|[\w.+-]+)""")
QUANTITY = re.compile(r'"[+-]?[\d.]+(?:e[+-]?\d+)?([A-Za-z/µ]*)"')

UNITS = ("bit", "kbit", "Mbit", "Gbit", "Tbit", "B", "KB", "KiB", "MB", "GB", "p", "bdp", "ns", "us", "ms", "s", "min")
UNITS += ("h", "/s", "/ms", "µs", "", "bps", "Kb")
NUMBERS = ("0", "1", "-1", "2", "3", "0.5", "1.5", "10", "64", "255", "256", "1000", "65535", "65536", "1000000")
NUMBERS += ("1e-9", "1e-300", "5e-324", "1e15", "1e18", "1e300", "9007199254740993", "2147483648", "4294967296")
NUMBERS += ("9223372036854775807", "-9223372036854775808", "0.1", "0.9999999999999999", "-0.0", "nan", "inf", "-inf")
OTHERS = (
    "true",
    "false",
    "[]",
    "{}",
    '""',
    '"unlimited"',
    '"*"',
    "1979-05-27",
    "07:32:00",
    "[[]]",
    "[{}]",
    '"\\u0000"',
)
OTHERS += ('"all"', '"random"', '"é"', '"\\U0001F600"', "0x10", '"h-*"', '"s0>s1"', "[1, 2]", '["1ms", "2ms"]')


@cache
def examples() -> tuple[str, ...]:
    """The scenarios to begin with, and to take lines from."""
    files = [*sorted(EXAMPLES.glob("*.toml")), *sorted((HERE / "corpus" / "scenario").iterdir())]
    return tuple(file.read_text(encoding="utf-8", errors="replace") for file in files)


@cache
def vocabulary() -> tuple[str, ...]:
    """Every key and word that a scenario may hold."""
    found = set(_named(json_schema())) | set(ENGINES)
    for spec in algorithms.every():
        found |= {spec.name, *spec.parameters, *spec.variants}
    for text in examples():
        found |= set(KEY.findall(text))
    return tuple(sorted(found))


@cache
def values() -> tuple[str, ...]:
    """Values as the examples write them: quantities, numbers, words in quotes, lists and tables on one line."""
    found = set(OTHERS) | set(NUMBERS)
    for text in examples():
        found |= set(re.findall(r"^[^#\n=]+=\s*([^#\n]+?)\s*$", text, re.MULTILINE))
        found |= set(re.findall(r'"[^"\n]*"', text))
    return tuple(sorted(found))


@cache
def values_of() -> dict[str, tuple[str, ...]]:
    """The values that the examples, or the keys' defaults, have for each key."""
    found: dict[str, set[str]] = {}
    for text in examples():
        for key, value in PAIR.findall(text):
            found.setdefault(key, set()).add(value)
    for properties in _tables(json_schema()):
        for key, about in properties.items():
            written = [about[name] for name in ("default", "const") if isinstance(about.get(name), (str, int, float))]
            found.setdefault(key, set()).update(json.dumps(value) for value in [*written, *about.get("enum", [])])
    return {key: tuple(sorted(known)) for key, known in found.items() if known}


@cache
def sibling_keys() -> dict[str, tuple[str, ...]]:
    """The keys that may stand in one table with a key."""
    found: dict[str, set[str]] = {}
    for keys in [*_tables(json_schema()), *(spec.parameters for spec in algorithms.every())]:
        for key in keys:
            found.setdefault(key, set()).update(keys)
    return {key: tuple(sorted(known)) for key, known in found.items()}


def scenario(data: bytes, random: Random, longest: int = 16_384) -> bytes:
    """The text with a few changes, mostly one."""
    text = data.decode("utf-8", "replace")
    for _ in range(1 + min(int(random.expovariate(1.2)), 8)):
        text = random.choice(CHANGES)(text, random)
    return text.encode("utf-8", "replace")[:longest]


def crossed(one: bytes, other: bytes, random: Random, longest: int = 16_384) -> bytes:
    """A table or a line of one scenario in another."""
    text = other.decode("utf-8", "replace")
    pieces = re.split(r"\n(?=\[)", text) if random.random() < 0.7 else text.split("\n")
    return _inserted(one.decode("utf-8", "replace"), random.choice(pieces), random).encode()[:longest]


def _tables(schema: Any) -> Iterator[dict[str, Any]]:
    """The keys of each table, with what the schema says of them."""
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield schema["properties"]
        for item in schema.values():
            yield from _tables(item)
    elif isinstance(schema, list):
        for item in schema:
            yield from _tables(item)


def _named(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from (str(key) for key in schema.get("properties", {}))
        yield from (str(word) for word in schema.get("enum", []) if isinstance(word, str))
        for item in schema.values():
            yield from _named(item)
    elif isinstance(schema, list):
        for item in schema:
            yield from _named(item)


def _token(text: str, random: Random) -> str:
    """Another token in the place of one that is no space."""
    tokens = TOKEN.findall(text)
    places = [place for place, token in enumerate(tokens) if not token.isspace() and not token.startswith("#")]
    if not places:
        return random.choice(examples())
    place = random.choice(places)
    tokens[place] = _other(tokens[place], random)
    return "".join(tokens)


def _other(token: str, random: Random) -> str:
    if QUANTITY.fullmatch(token) and random.random() < 0.8:
        return _quantity(token, random)
    if token.startswith('"') and random.random() < 0.4:
        return f'"{random.choice(vocabulary())}"'
    if KEY.fullmatch(token):
        return random.choice(vocabulary())
    if token in "=[]{},.\n":
        return random.choice(["", token * 2, "=", "[", "]", "{", "}", ",", "\n", "."])
    return random.choice(values())


def _quantity(token: str, random: Random) -> str:
    match = QUANTITY.fullmatch(token)
    unit = match[1] if match and random.random() < 0.7 else random.choice(UNITS)
    return f'"{random.choice(NUMBERS)}{unit}"'


def _value(text: str, random: Random) -> str:
    """Another value behind a key."""
    lines = text.split("\n")
    places = [place for place, line in enumerate(lines) if "=" in line]
    if places:
        place = random.choice(places)
        lines[place] = f"{lines[place].partition('=')[0]}= {random.choice(values())}"
    return "\n".join(lines)


def _valid_value(text: str, random: Random) -> str:
    """For a key, a value that is known for it."""
    pairs = [match for match in PAIR.finditer(text) if match[1] in values_of()]
    if not pairs:
        return _value(text, random)
    pair = random.choice(pairs)
    return f"{text[: pair.start(2)]}{_valid(pair[1], random)}{text[pair.end(2) :]}"


def _valid_key(text: str, random: Random) -> str:
    """Behind a key, one that may stand beside it, with a value that is known for it."""
    pairs = [match for match in PAIR.finditer(text) if match[1] in sibling_keys()]
    if not pairs:
        return _value(text, random)
    pair = random.choice(pairs)
    key = random.choice(sibling_keys()[pair[1]])
    inline = text[: pair.start()].rpartition("\n")[2].count("{")
    return f"{text[: pair.start()]}{key} = {_valid(key, random)}{',' if inline else chr(10)} {text[pair.start() :]}"


def _valid(key: str, random: Random) -> str:
    found = random.choice(values_of().get(key) or values())
    return _quantity(found, random) if QUANTITY.fullmatch(found) and random.random() < 0.3 else found


def _in_table(text: str, random: Random) -> str:
    """A key more, in an inline table or as a line."""
    entry = f"{random.choice(vocabulary())} = {random.choice(values())}"
    if "{" in text and random.random() < 0.5:
        place = random.choice([match.end() for match in re.finditer("{", text)])
        return f"{text[:place]} {entry}, {text[place:]}"
    return _inserted(text, entry, random)


def _taken(text: str, random: Random) -> str:
    """A line, or a whole table, of another scenario."""
    other = random.choice(examples())
    pieces = re.split(r"\n(?=\[)", other) if random.random() < 0.5 else other.split("\n")
    return _inserted(text, random.choice(pieces), random)


def _without(text: str, random: Random) -> str:
    lines = text.split("\n")
    start = random.randrange(len(lines))
    return "\n".join(lines[:start] + lines[start + 1 + min(int(random.expovariate(1.0)), 5) :])


def _twice(text: str, random: Random) -> str:
    """A table again, or a line somewhere else."""
    pieces = re.split(r"\n(?=\[)", text) if random.random() < 0.5 else text.split("\n")
    return _inserted(text, random.choice(pieces), random)


def _swept(text: str, random: Random) -> str:
    """A key of a sweep."""
    path = random.choice(["network", "flows[0]", "traffic[0]", "tcp", "network.queue", "record", "flows[0].congestion"])
    key = random.choice([path, f"{path}.{random.choice(vocabulary())}", random.choice(vocabulary())])
    listed = ", ".join(random.choice(values()) for _ in range(random.randrange(1, 4)))
    return f'{text}\n{"" if "[sweep]" in text else "[sweep]"}\n"{key}" = [{listed}]\n'


def _byte(text: str, random: Random) -> str:
    """One character, whatever it is."""
    place = random.randrange(len(text) + 1)
    return text[:place] + chr(random.choice([random.randrange(128), random.randrange(0x2FFF)])) + text[place + 1 :]


def _inserted(text: str, piece: str, random: Random) -> str:
    lines = text.split("\n")
    lines.insert(random.randrange(len(lines) + 1), piece)
    return "\n".join(lines)


CHANGES: tuple[Callable[[str, Random], str], ...] = (
    *(_token,) * 4,
    *(_valid_value,) * 5,
    *(_valid_key,) * 4,
    *(_value,) * 2,
    _in_table,
    *(_taken,) * 2,
    _without,
    _twice,
    _swept,
    _byte,
)


def _results() -> list[bytes]:
    return [b"[0]", b"[1]", b"[2]", *(file.read_bytes() for file in sorted((HERE / "corpus" / "result").iterdir()))]


#: Target → the mutation of its input, and the seeds to begin with.
CHANGED: dict[str, Callable[[bytes, Random], bytes]] = {"scenario": scenario, "result": recipes.changed}
SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "scenario": lambda: [text.encode() for text in examples()],
    "result": _results,
}
