"""Types of the arguments of the Python interface, declared above each function.

    @checked(engine=WORD, seeds=optional(SEEDS), jobs=optional(whole(1, 10_000)))
    def run(plan, engine="packet", seeds=None, *, jobs=None): ...

Each gives the value as the function wants it. One of a wrong type is a `TypeError`, one of a right type that cannot be
an `InputError`, both with what was found and what is expected:

    jobs: found 0; expected a whole number from 1 to 10000

Used by the public functions of `ackclock` and its packages.
"""

from __future__ import annotations

import functools
import inspect
import json
import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeAlias, TypeVar

from ackclock.errors import InputError

Given = ParamSpec("Given")
Returned = TypeVar("Returned")

#: Takes an argument's name and value, and gives the value as it is wanted.
Take: TypeAlias = Callable[[str, Any], Any]

#: Longest excerpt of a value in a message, in characters.
EXCERPT = 60

#: Most items of an argument: an iterable may have no end.
MAX_ITEMS = 1_000_000


def checked(**takes: Take) -> Callable[[Callable[Given, Returned]], Callable[Given, Returned]]:
    """Decorates a function whose arguments of these names are checked; `*arguments` each."""

    def around(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
        signature = inspect.signature(function)
        if unknown := takes.keys() - signature.parameters.keys():
            raise TypeError(f"{function.__name__} has no argument {', '.join(unknown)}")

        @functools.wraps(function)
        def inside(*given: Given.args, **named: Given.kwargs) -> Returned:
            bound = signature.bind(*given, **named)
            for name in takes.keys() & bound.arguments.keys():
                bound.arguments[name] = takes[name](name, bound.arguments[name])
            return function(*bound.args, **bound.kwargs)

        return inside

    return around


def wrong_type(name: str, value: object, expected: str) -> NoReturn:
    """Raises `TypeError`."""
    raise TypeError(f"{name}: found {readable_value(value)}; expected {expected}")


def wrong_value(name: str, value: object, expected: str) -> NoReturn:
    """Raises `InputError`."""
    raise InputError(f"{name}: found {readable_value(value)}; expected {expected}")


def readable_value(value: object) -> str:
    """A value as it would be written, or what it is, on one short line."""
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        try:
            text = json.dumps(value) if isinstance(value, str) else repr(value)
        except ValueError:  # so many digits that Python does not print them
            text = "a very large number"
        return text if len(text) <= EXCERPT else f"{text[: EXCERPT - 1]}…"
    kind = value.__name__ if isinstance(value, type) else type(value).__name__
    shown = f"the class {kind}" if isinstance(value, type) else f"{'an' if kind[0] in 'AEIOUaeiou' else 'a'} {kind}"
    return f"{shown} of {len(value)}" if isinstance(value, (list, tuple, dict, set)) else shown


def a(kinds: type | tuple[type, ...], expected: str) -> Take:
    """An object of some classes."""
    return lambda name, value: value if isinstance(value, kinds) else wrong_type(name, value, expected)


def having(attributes: Iterable[str], expected: str) -> Take:
    """An object of any class that has these attributes."""
    wanted = tuple(attributes)

    def take(name: str, value: Any) -> Any:
        known = all(hasattr(type(value), each) or each in getattr(value, "__dict__", ()) for each in wanted)
        return value if known else wrong_type(name, value, expected)

    return take


def one_of(*names: str) -> Take:
    """One of some names."""

    def take(name: str, value: Any) -> str:
        if not isinstance(value, str):
            wrong_type(name, value, f"a name, such as {readable_value(names[0])}")
        if value not in names:
            from ackclock.input.fields import nearest

            wrong_value(name, value, nearest(value, names))
        return value

    return take


def optional(take: Take) -> Take:
    """None too."""
    return lambda name, value: None if value is None else take(name, value)


def integer(low: int, high: int) -> Take:
    """A whole number, of whatever library; not a truth value."""
    expected = f"a whole number from {low} to {high}"

    def take(name: str, value: Any) -> int:
        if isinstance(value, bool) or not hasattr(type(value), "__index__"):
            wrong_type(name, value, expected)
        try:
            number = operator.index(value)
        except TypeError:  # an array
            wrong_type(name, value, expected)
        return number if low <= number <= high else wrong_value(name, number, expected)

    return take


def number(low: float = -math.inf, high: float = math.inf, expected: str = "a number") -> Take:
    """A number, not NaN, of whatever library; not a truth value."""

    def take(name: str, value: Any) -> float:
        if isinstance(value, (bool, str, bytes)) or not hasattr(type(value), "__float__"):
            wrong_type(name, value, expected)
        try:
            taken = float(value)
        except (TypeError, ValueError, OverflowError):
            wrong_type(name, value, expected)
        return taken if low <= taken <= high and math.isfinite(taken) else wrong_value(name, taken, expected)

    return take


def several(take: Take, expected: str) -> Take:
    """Any iterable, as a tuple, but a text; each of its items is taken."""

    def take_all(name: str, value: Any) -> tuple[Any, ...]:
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            wrong_type(name, value, expected)
        items = tuple(islice(value, MAX_ITEMS + 1))
        if len(items) > MAX_ITEMS:
            raise InputError(f"{name}: found more than {MAX_ITEMS:,}; expected {expected}")
        return tuple(take(f"{name}[{place}]", item) for place, item in enumerate(items))

    return take_all


def one_or_several(take: Take, expected: str) -> Take:
    """Any iterable, as `several` takes it; or a single text or path, as a tuple of one."""
    take_all = several(take, expected)

    def take_some(name: str, value: Any) -> tuple[Any, ...]:
        return (take(name, value),) if isinstance(value, (str, Path)) else take_all(name, value)

    return take_some


def _seeds(name: str, value: Any) -> tuple[int, ...]:
    expected = "one or more different whole numbers from 0"
    seeds: tuple[int, ...] = several(integer(0, 2**63 - 1), expected)(name, value)
    if not seeds:
        raise InputError(f"{name}: found none; expected {expected}")
    if len(set(seeds)) != len(seeds):
        raise InputError(f"{name}: found one twice; expected {expected}")
    return seeds


def _path(name: str, value: Any) -> Path:
    if isinstance(value, bytes) or not isinstance(value, (str, os.PathLike)):
        wrong_type(name, value, "a path, as a text or a Path")
    return Path(value)


def _texts_by_key(name: str, value: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, Mapping):
        wrong_type(name, value, 'keys and lists of values, such as {"network.queue.limit": ["1bdp"]}')
    each = several(TEXT, "a list of texts, such as the file has")
    return {WORD(name, key): each(f"{name}[{readable_value(key)}]", texts) for key, texts in value.items()}


def _between(name: str, value: Any) -> tuple[float, float]:
    expected = "two ascending times in seconds, such as (20, 40)"
    times: tuple[float, ...] = several(number(expected=expected), expected)(name, value)
    if len(times) != 2:
        raise InputError(f"{name}: found {len(times)} of them; expected {expected}")
    if not 0 <= times[0] < times[1]:
        raise InputError(f"{name}: found {times[0]:g} s to {times[1]:g} s; expected {expected}")
    return times[0], times[1]


def _call(name: str, value: Any) -> Any:
    return value if callable(value) else wrong_type(name, value, "a function")


#: Arguments of many functions.
WORD = a(str, "a name as a text")
TEXT = a(str, "a text")
FLAG = a(bool, "True or False")
CALL: Take = _call
PATH: Take = _path
SEEDS: Take = _seeds
BETWEEN: Take = _between
TEXTS_BY_KEY: Take = _texts_by_key
JOBS = integer(1, 10_000)
#: `ackclock.metrics.protocols.Recorded`, whatever class it is of.
RECORDED = having(("manifest", "plan", "runs", "scan"), 'a dataset, as ackclock.run and Dataset.read("…") give')
#: `ackclock.figures.sweep_axes.Swept`, whatever class it is of.
SWEPT = having(("name", "engine", "axes", "metrics", "points"), "what ackclock.sweep gives")
