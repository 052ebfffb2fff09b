"""JSON Schema for editors: quantities as regular expressions for what `units` reads, and no more.

They say nothing of bounds. The syntax is what ECMAScript and Rust have in common, as JSON Schema wants it.

Used by the fields of tables and by the schema for editors (`scenario.key_reference`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
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


#: A prefix of a unit, in either case.
_PREFIX = "[kKmMgGtT]"

#: Names and units of quantities by the function that reads them: in either case where no other meaning is left.
KINDS: Mapping[Callable[[object], object], tuple[str, str]] = {
    units.rate_bps: ("rate", f"{_PREFIX}?[bB][iI][tT]"),
    units.time_s: ("time", "([nNuUµμΜ]|m)[sS]|mS|[sS]|[mM][iI][nN]|[hH]"),
    units.count_rate_hz: ("count_rate", "/[mM]?[sS]"),
    units.bytes_of: ("bytes", f"{_PREFIX}?B|{_PREFIX}(iB|I[bB])"),
}

#: Units of sizes that are not bytes, and a rule that may stand without a number; blanks within it are allowed.
_PACKETS, _BDP = "[pP]", "[bB][dD][pP]"
_OVER_SQRT_N = rf"{_BDP}\s*/\s*[sS]\s*[qQ]\s*[rR]\s*[tT]\s*\(\s*[nN]\s*\)"

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
    return _anchored(KINDS[parse][1])


@cache
def size(kinds: tuple[str, ...]) -> str:
    """The pattern of a size, in the units of its bounds: B, p, bdp."""
    known = {"B": KINDS[units.bytes_of][1], "p": _PACKETS, "bdp": f"{_BDP}|{_OVER_SQRT_N}"}
    rules = [_OVER_SQRT_N, *map(_any_case, BUFFER_RULES)] if "bdp" in kinds else []
    return _anchored("|".join(known[kind] for kind in kinds), *rules)


def names() -> dict[str, str]:
    """Return the name of each pattern."""
    return {quantity(parse): name for parse, (name, _) in KINDS.items()} | {
        size(kinds): name for kinds, name in SIZES.items()
    }


def _anchored(unit: str, *others: str) -> str:
    number = r"\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
    every = "|".join((rf"{number}\s*({unit})", *others))
    return rf"^\s*({every})\s*$"


def _any_case(word: str) -> str:
    return "".join(f"[{letter.lower()}{letter.upper()}]" if letter.isalpha() else letter for letter in word)
