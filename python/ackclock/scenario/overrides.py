"""A scenario with other values at some keys: `--set network.rate=1Gbit`, and `Loaded.with_` in Python.

The new scenario's text is complete, so what is kept of it beside a result is what was run. A mistake in a value is told
of the option, any other at its line in the file.

Used by the options `--set` of commands, by searches and by `shell`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from ackclock.errors import InputError
from ackclock.input import arguments, cli_values
from ackclock.input.fields import Loc, dotted, shown
from ackclock.input.source import CONTENTS, Overlay, Source, attach, contents_table, overlay
from ackclock.scenario import points
from ackclock.scenario.scenario import Scenario

#: Characters that UTF-8 cannot encode.
_SURROGATE = re.compile("[\ud800-\udfff]")

#: Most keys that a message names.
MAX_PLACES = 3

_A_KEY = 'a key such as "network.rate" or "flows[0].count"'


def rewritten(source: Source, values: Mapping[str, Any], option: str = "with_") -> Overlay:
    """The scenario with the values at their keys. Raises `InputError` for keys that have no place, or are swept."""
    content = source.toml()
    swept = points.sweep(content, source)
    placed = []
    for key, value in values.items():
        path = points.path_of(key)
        if path is None or path[0] == "sweep":
            raise InputError(f"{option}: found {shown(key)}; expected {_A_KEY}")
        check_place(key, content, option)
        over = [axis.key for axis in swept.axes if axis.path[: len(path)] == path[: len(axis.path)]] if swept else []
        if over:
            raise InputError(f"{option}: found {shown(key)}, which is swept; expected another key, or --where")
        placed.append((path, plain(value, key), option))
    return _complete(overlay(source, content, placed))


def check_place(key: str, content: Mapping[str, Any], option: str) -> None:
    """Raise `InputError` for a key that is none of a scenario, if one of its tables has it; the line names that."""
    path = points.path_of(key) or ()
    if path and path[0] not in content and path[0] not in Scenario.model_fields:
        places = [dotted(place) for place in _places(content, ()) if place[-len(path) :] == path]
        if places:
            raise InputError(f"{option}: found {shown(key)}; expected {' or '.join(places[:MAX_PLACES])}")


def _places(value: Any, place: Loc) -> Iterator[Loc]:
    """Yield the places of all that a table or a list of tables contains."""
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for step, each in inner:
        yield (*place, step)
        yield from _places(each, (*place, step))


def swept(source: Source, key: str, values: Sequence[Any], option: str) -> Overlay:
    """The scenario with a sweep of one key over values. Raises `InputError` for a scenario that has a sweep."""
    content = source.toml()
    if "sweep" in content:
        raise InputError(f"{source.name}: found a table [sweep]; expected one scenario, whose values {option} gives")
    return _complete(overlay(source, content, [(("sweep",), plain({key: values}, option), option)]))


def without_file(content: Mapping[str, Any], name: str) -> Overlay:
    """Values that are in no file; mistakes are told of `name` and a key. Raises `TypeError`."""
    return _complete(overlay(Source(name, ""), {}, [((), plain(content, ""), name)]))


def _complete(made: Overlay) -> Overlay:
    """The scenario with its values as text, and the contents of the traces that they name."""
    import tomli_w

    rest, texts = dict(made.content), made.content.get(CONTENTS)
    if isinstance(texts, dict) and all(isinstance(text, str) for text in texts.values()):
        text = tomli_w.dumps({key: value for key, value in rest.items() if key != CONTENTS}) + contents_table(texts)
    else:
        text = tomli_w.dumps(rest)
    return replace(made, text=text, content=attach(made.content))


def plain(value: Any, key: str) -> Any:
    """A value as TOML can have it: tables, lists, texts, numbers, truth values. Raises `TypeError` for any other."""
    if isinstance(value, Mapping):
        return {_name(name, key): plain(item, f"{key}.{name}" if key else name) for name, item in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [plain(item, f"{key}[{place}]") for place, item in enumerate(value)]
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "dtype") and not getattr(value, "shape", None):
        value = value.item()  # of NumPy, or another library's
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        arguments.wrong_value(key, value, "a whole number of at most 64 bits")
    if isinstance(value, str):
        return _text(value, key)
    if isinstance(value, (bool, int, float)):
        return value
    return arguments.wrong_type(
        key or "scenario", value, "what TOML has: a text, a number, true or false, a list, a table"
    )


def _text(value: str, key: str) -> str:
    return arguments.wrong_value(key, value, "text that is UTF-8") if _SURROGATE.search(value) else value


def _name(name: object, key: str) -> str:
    if isinstance(name, str):
        return _text(name, key)
    return arguments.wrong_type(key or "scenario", name, "a key, as a text")


def settings(given: Sequence[str] | None, option: str = "--set") -> dict[str, Any]:
    """`KEY=VALUE` each; a value is a text unless TOML reads it otherwise. Raises `InputError`."""
    found: dict[str, Any] = {}
    for text in given or ():
        name, sign, written = (part.strip() for part in text.partition("="))
        if not sign or not name:
            raise InputError(f"{option}: found {shown(text)}; expected KEY=VALUE, such as network.rate=1Gbit")
        value = cli_values.value(written)
        key = name if isinstance(value, list) else cli_values.KEYS.get(name, name)  # a list of flows is no number
        if key in found:
            raise InputError(f"{option}: found {shown(name)} twice; expected each key once")
        found[key] = value
    return found
