"""Domains of the arguments of formulas, declared by a decorator.

    @checked(p=PROBABILITY, rtt_s=POSITIVE)
    def rate(p: Number, rtt_s: float) -> Number: ...

Numbers come to the formula as floats, lists and arrays of them as arrays of floats. What a formula has no value for is
an `InputError`: `rate: p: found -0.1; expected a probability between 0 and 1`.

Used by the other modules of `theory`.
"""

from __future__ import annotations

import functools
import inspect
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from ackclock.errors import InputError

Array: TypeAlias = npt.NDArray[np.float64]

#: A scalar in gives a scalar, an array one of its shape.
Number = TypeVar("Number", float, Array)


Function = TypeVar("Function", bound=Callable[..., Any])


class Domain(Protocol):
    """The values that an argument may have."""

    def take(self, place: str, value: Any) -> Any:
        """Return the value in the form that the formula takes. Raises `InputError`, which names the place."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers that satisfy a predicate; with `single`, one number and no array."""

    expected: str
    predicate: Callable[[Array], Any]
    single: bool = False

    def take(self, place: str, value: Any) -> float | Array:
        """Return a float, or an array of floats."""
        numbers = _floats(value)
        if numbers is None:
            raise _error(place, value, self.expected)
        if self.single and numbers.ndim:
            raise _error(place, value, f"{self.expected}, not several")
        wrong = np.asarray(value)[~np.asarray(self.predicate(numbers))]
        if wrong.size:
            raise _error(place, wrong.tolist()[0], self.expected)
        return numbers if numbers.ndim else float(numbers)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some names."""

    names: tuple[str, ...]
    hint: str = ""

    def take(self, place: str, value: Any) -> str:
        """Return the name."""
        if isinstance(value, str) and value in self.names:
            return value
        raise _error(place, value, f"one of {', '.join(self.names)}{self.hint}")


def lower_bound(minimum: float) -> Numbers:
    """Return the domain of finite numbers from `minimum` on."""
    return Numbers(f"{minimum:g} or more", lambda value: (value >= minimum) & (value < np.inf))


def single(numbers: Numbers) -> Numbers:
    """Return the domain of one number, and no array."""
    return replace(numbers, single=True)


#: 0 and 1 excluded.
PROBABILITY = Numbers("a probability between 0 and 1", lambda p: (p > 0) & (p < 1))
#: For powers of it, which have a value at 1.
PROBABILITY_TO_1 = Numbers("a probability above 0, 1 at most", lambda p: (p > 0) & (p <= 1))
#: Probability of an event that need not happen.
PROBABILITY_FROM_0 = Numbers("a probability from 0, below 1", lambda p: (p >= 0) & (p < 1))
SHARE = Numbers("a share between 0 and 1", lambda share: (share > 0) & (share < 1))
SHARE_TO_1 = Numbers("a share above 0, 1 at most", lambda share: (share > 0) & (share <= 1))
POSITIVE = Numbers("a positive number", lambda value: (value > 0) & (value < np.inf))
#: A limit, which there need not be.
LIMIT = Numbers("a positive number, or infinity", lambda value: value > 0)
FINITE = Numbers("a number", np.isfinite)
POSITIVE_INTEGER = Numbers("a whole number from 1", lambda n: (n >= 1) & (n < np.inf) & (n == np.floor(n)))


def checked(**domains: Domain) -> Callable[[Function], Function]:
    """Decorate a function: each of these arguments is of its domain, or None where that is the default."""

    def decorate(function: Function) -> Function:
        parameters = inspect.signature(function).parameters
        optional = {name for name, parameter in parameters.items() if parameter.default is None}
        assert domains.keys() <= parameters.keys(), f"{function.__name__} has no such argument"

        def take(name: str, value: Any) -> Any:
            if name not in domains or (value is None and name in optional):
                return value
            return domains[name].take(f"{function.__name__}: {name}", value)

        @functools.wraps(function)
        def checking(*args: Any, **named: Any) -> Any:
            placed = [take(name, value) for name, value in zip(parameters, args, strict=False)]
            result = function(*placed, *args[len(placed) :], **{name: take(name, named[name]) for name in named})
            return float(result) if isinstance(result, np.floating) else result

        return cast(Function, checking)

    return decorate


def check(owner: object, domains: Mapping[str, Domain]) -> None:
    """Check the attributes of an object, which stay as they are."""
    for name, domain in domains.items():
        domain.take(f"{type(owner).__name__}: {name}", getattr(owner, name))


def _floats(value: Any) -> Array | None:
    """Return numbers as an array; None if they are no numbers."""
    try:
        return np.asarray(value, dtype=float) if np.asarray(value).dtype.kind in "iufO" else None
    except (TypeError, ValueError, OverflowError):
        return None


def _error(place: str, result: Any, expected: str) -> InputError:
    return InputError(f"{place}: found {reprlib.repr(result)}; expected {expected}")
