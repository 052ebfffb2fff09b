"""Quantities with their units: `100Mbit`, `20ms`, `64KB`, `50p`, `1bdp`, `0.63bdp/sqrt(n)`, `250/s`.

A quantity is a number and a unit, as `tc` writes them; a bare number is refused, for nobody remembers what it counts.
Prefixes are decimal (1 KB = 1000 B, 1 KiB = 1024 B). Letters may be of either case where only one meaning is left;
what reads as one thing in `tc` and as another elsewhere is refused with the reason.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Literal

SizeUnit = Literal["B", "p", "bdp", "bdp/sqrt(n)"]

#: Unit of the rule for many flows, in which a factor of 1 may be left out.
OVER_SQRT_N: SizeUnit = "bdp/sqrt(n)"

_DECIMAL = {"": Decimal(1), "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12)}
_BINARY = {"Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40)}

BIT_RATES = {f"{prefix}bit": factor for prefix, factor in _DECIMAL.items()}
BYTES = {f"{prefix.upper()}B": factor for prefix, factor in _DECIMAL.items()} | {
    f"{prefix}B": factor for prefix, factor in _BINARY.items()
}
TIMES = {name: Decimal(seconds) for name, seconds in (("ns", "1e-9"), ("us", "1e-6"), ("ms", "1e-3"), ("s", 1))} | {
    "min": Decimal(60),
    "h": Decimal(3600),
}
MICRO_SIGNS = {"µs": TIMES["us"], "μs": TIMES["us"]}
COUNT_RATES = {"/s": Decimal(1), "/ms": Decimal(1000)}

#: Longest text that is looked at.
LONGEST = 100

_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*?)\s*", re.ASCII | re.DOTALL)
_BYTES_IN_TC = re.compile(r"[kmgt]?i?bps", re.IGNORECASE)
_BITS_OR_BYTES = re.compile(r"[kKmMgGtT]?i?b")


class UnitError(ValueError):
    """A quantity that cannot be read; `expected` says what would be right."""

    def __init__(self, expected: str) -> None:
        super().__init__(f"expected {expected}")
        self.expected = expected


@dataclass(frozen=True, slots=True)
class Size:
    """An amount of data whose unit matters: bytes, packets, or bandwidth–delay products, perhaps over √n flows.

    `rule` is the name by which it was written, if it was by one.
    """

    value: float
    unit: SizeUnit
    rule: str = ""

    @property
    def in_bdp(self) -> bool:
        """Return True if the size depends on the link and its flows."""
        return self.unit in ("bdp", OVER_SQRT_N)

    def __str__(self) -> str:
        return f"{self.value:.12g}{self.unit}"


def rate_bps(text: object) -> float:
    """A rate in bit/s: `100Mbit`."""
    return _read(text, "rate")


def time_s(text: object) -> float:
    """A time in seconds: `20ms`."""
    return _read(text, "time")


def count_rate_hz(text: object) -> float:
    """A number of things per second: `250/s`."""
    return _read(text, "count rate")


def bytes_of(text: object) -> float:
    """A size in bytes: `64KB`, `1448B`, `4MiB`."""
    return _read(text, "size")


def size(text: object) -> Size:
    """A size in bytes, packets (`50p`) or bandwidth–delay products (`1bdp`, `1bdp/sqrt(n)`, or a rule's name)."""
    what = "a size such as 64KB, 50p or 1bdp"
    word = text.strip().lower() if isinstance(text, str) else ""
    if word[:1].isalpha():
        return _by_rule(word, what)
    number, unit = _split(text, what)
    for own in _SIZES:
        if "".join(unit.lower().split()) == own:
            return Size(_amount(number, Decimal(1), what), own)
    return Size(_amount_of(text, BYTES, what), "B")


#: Units of sizes that are not bytes.
_SIZES: tuple[SizeUnit, ...] = ("p", "bdp", OVER_SQRT_N)


def _by_rule(word: str, what: str) -> Size:
    """The size that a rule's name stands for. What knows the rules is imported where one is named."""
    from ackclock.theory.buffers import BUFFER_RULES

    if word == OVER_SQRT_N:
        return Size(1.0, OVER_SQRT_N)
    if word not in BUFFER_RULES:
        raise UnitError(f"{what}: a number and its unit; or a rule: {', '.join((OVER_SQRT_N, *BUFFER_RULES))}")
    share, over_sqrt_n = BUFFER_RULES[word]
    return Size(share, OVER_SQRT_N if over_sqrt_n else "bdp", word)


#: Units of a quantity and its name.
_KINDS: Mapping[str, tuple[Mapping[str, Decimal], str]] = {
    "rate": (BIT_RATES, "a rate such as 100Mbit"),
    "time": (TIMES | MICRO_SIGNS, "a time such as 20ms"),
    "count rate": (COUNT_RATES, "datagrams or transfers per second (not bits) such as 250/s"),
    "size": (BYTES, "a size such as 64KB"),
}


def _read(text: object, kind: str) -> float:
    """The number times its unit. Raises `UnitError`."""
    return _read_text(text, kind) if isinstance(text, str) else _amount_of(text, *_KINDS[kind])


@lru_cache(maxsize=1 << 14)
def _read_text(text: str, kind: str) -> float:
    """The same texts come again: bounds, defaults, the values of a sweep."""
    return _amount_of(text, *_KINDS[kind])


def _amount_of(text: object, units: Mapping[str, Decimal], what: str) -> float:
    number, unit = _split(text, what)
    folded = {name.lower(): factor for name, factor in units.items()}
    if unit in units:
        factor = units[unit]
    elif (reason := _ambiguous(unit, units)) is not None:
        raise UnitError(f"{what} ({reason})")
    elif unit.lower() in folded:
        factor = folded[unit.lower()]
    else:
        raise UnitError(f"{what} (units: {' '.join(units)})")
    return _amount(number, factor, what)


def _split(text: object, what: str) -> tuple[str, str]:
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        raise UnitError(f"{what}, in quotes")
    match = _NUMBER.fullmatch(str(text)) if len(str(text)) <= LONGEST else None
    if match is None:
        raise UnitError(f"{what}: a number and its unit")
    if not match[2]:
        raise UnitError(f"{what} (a number needs its unit)")
    return match[1], match[2]


def _amount(number: str, factor: Decimal, what: str) -> float:
    """The product as the nearest float: exact decimals, so that 20ms is 0.02 and not a neighbour of it."""
    try:
        amount = float(Decimal(number) * factor)
    except (ArithmeticError, ValueError):
        amount = math.inf
    if not math.isfinite(amount):
        raise UnitError(f"{what} (this is too large for a number)")
    if number.startswith("-"):
        raise UnitError(f"{what}, not negative")
    return amount


def _ambiguous(unit: str, units: Mapping[str, Decimal]) -> str | None:
    """Why a unit that somebody may well write is refused, or None."""
    if "bit" in units and _BYTES_IN_TC.fullmatch(unit):
        return f"{unit} means bytes per second in tc and bits per second elsewhere: write {_prefix(unit)}bit"
    if "bit" in units and _BITS_OR_BYTES.fullmatch(unit):
        return f"{unit} may mean bits or bytes: write {_prefix(unit)}bit"
    if "B" in units and _BITS_OR_BYTES.fullmatch(unit):
        return f"{unit} may mean bits or bytes: write {_prefix(unit).upper()}B"
    if "ms" in units and unit in ("M", "m", "Ms", "MS"):
        return f"{unit} may mean several times: write ms, s or min"
    return None


def _prefix(unit: str) -> str:
    letter = unit[0].lower()
    return {"k": "k", "m": "M", "g": "G", "t": "T"}.get(letter, "")
