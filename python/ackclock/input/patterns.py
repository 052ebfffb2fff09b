"""JSON Schema for editors: quantities as regular expressions for what `units` reads, and no more.

They say nothing of bounds. The syntax is what ECMAScript and Rust have in common, as JSON Schema wants it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import product
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from ackclock.input import units
from ackclock.theory.buffers import BUFFER_RULES


class TomlSchema(GenerateJsonSchema):
    """JSON Schema of tables in TOML, which has no null: what is optional is left out instead."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> dict[str, Any]:  # noqa: D102
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, Any]:  # noqa: D102
        made = super().default_schema(schema)
        return {key: value for key, value in made.items() if (key, value) != ("default", None)}


_NUMBER = r"\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"

#: Names and units of quantities by the function that reads them.
KINDS: Mapping[Callable[[object], object], tuple[str, Iterable[str]]] = {
    units.rate_bps: ("rate", units.BIT_RATES),
    units.time_s: ("time", units.TIMES | units.MICRO_SIGNS),
    units.count_rate_hz: ("count_rate", units.COUNT_RATES),
    units.bytes_of: ("bytes", units.BYTES),
}

#: Names of sizes by the units of their bounds.
SIZES = {
    ("p",): "packets",
    ("B", "p"): "size",
    ("p", "bdp"): "packets_or_bdp",
    ("B", "bdp"): "bytes_or_bdp",
    ("B", "p", "bdp"): "size_or_bdp",
}


@cache
def quantity(parse: Callable[[object], object]) -> str:
    """The pattern of a quantity that has one kind of unit."""
    _, known = KINDS[parse]
    return _anchored([_with(_units(known, parse))])


@cache
def size(kinds: tuple[str, ...]) -> str:
    """The pattern of a size, in the units of its bounds: B, p, bdp."""
    known = [*(units.BYTES if "B" in kinds else ()), *(unit for unit in ("p", "bdp") if unit in kinds)]
    if "bdp" not in kinds:
        return _anchored([_with(_units(known, units.size))])
    rules = [_any_case(rule) for rule in BUFFER_RULES]
    return _anchored([_with(f"{_units(known, units.size)}|{_OVER_SQRT_N}"), _OVER_SQRT_N, *rules])


def names() -> dict[str, str]:
    """Return the name of each pattern."""
    return {quantity(parse): name for parse, (name, _) in KINDS.items()} | {
        size(kinds): name for kinds, name in SIZES.items()
    }


def _anchored(every: Iterable[str]) -> str:
    return rf"^\s*({'|'.join(every)})\s*$"


def _with(unit: str) -> str:
    return rf"{_NUMBER}\s*({unit})"


def _units(names: Iterable[str], parse: Callable[[object], object]) -> str:
    return "|".join(_cases(name, parse) for name in names)


def _cases(name: str, parse: Callable[[object], object]) -> str:
    """A unit in either case, as far as it is read so."""
    letters = [sorted({letter.lower(), letter.upper()}) for letter in name]
    read = [word for word in map("".join, product(*letters)) if _is_read(parse, word)]
    if len(read) == len(list(product(*letters))):
        return _any_case(name)
    return "|".join(map(_plain, read))


def _is_read(parse: Callable[[object], object], unit: str) -> bool:
    try:
        parse(f"1{unit}")
    except units.UnitError:
        return False
    return True


def _any_case(word: str) -> str:
    letters = (sorted({letter.lower(), letter.upper()}) for letter in word)
    return "".join(f"[{''.join(both)}]" if len(both) > 1 else _plain(both[0]) for both in letters)


def _plain(text: str) -> str:
    """A text itself; in ECMAScript nothing may be escaped that need not be."""
    return re.sub(r"[.()]", lambda match: f"\\{match[0]}", text)


#: `bdp / sqrt(n)`, blanks within it allowed.
_OVER_SQRT_N = r"\s*".join(map(_any_case, units.OVER_SQRT_N))
