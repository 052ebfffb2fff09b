"""Dataclasses from JSON values, checked: plans, and what is known of one, as they stand in manifests."""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Mapping
from dataclasses import MISSING
from functools import cache
from types import NoneType, UnionType
from typing import Any, cast, get_args, get_origin, get_type_hints

from ackclock.errors import InputError


def record(kind: Any, values: Mapping[str, Any]) -> Any:
    """A dataclass of JSON values, and those within it: a field without a value has its default. Other keys are left.

    Raises `InputError` for a field that is absent and has no default, and for what is no table where one belongs.
    """
    if not isinstance(values, Mapping):
        raise InputError(f"plan: found {reprlib.repr(values)} for a {kind.__name__}; expected a table")
    required, given = _required(kind), {}
    if missing := required - values.keys():
        raise InputError(f"plan: found a {kind.__name__} without {', '.join(sorted(missing))}; expected all of it")
    for name, kinds in _held(kind).items():
        value = values.get(name)
        if value is not None or name in required:
            given[name] = None if value is None else _value(name, kinds, value)
    return kind(**given)


#: JSON types of a field by its annotation, and their name.
_SCALARS: Mapping[Any, tuple[tuple[type, ...], str]] = {
    float: ((int, float), "a number"),
    int: ((int,), "a whole number"),
    str: ((str,), "a text"),
    bool: ((bool,), "true or false"),
    tuple: ((list, tuple), "a list"),
    Mapping: ((Mapping,), "a table"),
}


def _value(name: str, kinds: tuple[Any, ...], value: Any) -> Any:
    """A JSON value as one of the kinds: a dataclass, a tuple of them, or itself."""
    kind = kinds[0] if len(kinds) == 1 else next((one for one in kinds if _fits(one, value)), kinds[0])
    held, expected = _SCALARS.get(get_origin(kind) or kind, ((), ""))
    if held and (not isinstance(value, held) or (kind in (int, float) and not _is_number(value))):
        raise InputError(f"plan: {name}: found {reprlib.repr(value)}; expected {expected}")
    if get_origin(kind) is tuple:
        return tuple(_value(name, get_args(kind)[:1], item) for item in value)
    return record(kind, value) if dataclasses.is_dataclass(kind) else value


def _is_number(value: Any) -> bool:
    """Return True for a number that fits into 64 bits."""
    return not isinstance(value, bool) and (isinstance(value, float) or -(2**63) <= value < 2**64)


def _fits(kind: Any, value: Any) -> bool:
    """Return True if a table has all required fields of a dataclass, or a value has the type."""
    if dataclasses.is_dataclass(kind):
        return isinstance(value, Mapping) and _required(cast(type, kind)) <= value.keys()
    return isinstance(value, _SCALARS.get(get_origin(kind) or kind, ((object,), ""))[0])


@cache
def _held(kind: Any) -> Mapping[str, tuple[Any, ...]]:
    """Return the types of a dataclass's fields where they are not None."""
    hints = get_type_hints(kind).items()
    every = {name: get_args(hint) if isinstance(hint, UnionType) else (hint,) for name, hint in hints}
    return {name: tuple(one for one in kinds if one is not NoneType) for name, kinds in every.items()}


@cache
def _required(kind: Any) -> frozenset[str]:
    items = dataclasses.fields(kind)
    return frozenset(i.name for i in items if i.default is MISSING and i.default_factory is MISSING)
