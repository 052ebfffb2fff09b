"""The settings that come into question: for each key a list, or a ladder of values between two ends.

A ladder rises by a tenth a step, or evenly where it begins at zero or spans little; its values have three significant
digits, as a person would write them. `LOW..HIGH/STEPS` has so many values instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ackclock import algorithms
from ackclock.algorithms import Family
from ackclock.errors import InputError
from ackclock.input import cli_values
from ackclock.input.fields import nearest, shown
from ackclock.scenario import points
from ackclock.scenario.points import Axis

#: By how much a ladder rises from value to value.
STEP = 1.1

#: Number of values of a quantity that is not spaced geometrically.
EVEN = 21

#: A ladder spans at least this factor to rise by shares.
MIN_SPAN = 1.5

#: Most values of a ladder, and of all keys together.
MAX_STEPS, MOST_CANDIDATES = 1_000, 100_000

#: Short names of the keys that most questions are about.
KEYS = {
    "limit": "network.queue.limit",
    "discipline": "network.queue.discipline",
    "rate": "network.rate",
    "rtt": "network.rtt",
    "flows": "flows[0].count",
    "congestion": "flows[0].congestion",
}

#: Families whose members may be tried by name, and their keys.
TRIED: Mapping[Family, str] = {"queue": KEYS["discipline"], "congestion": KEYS["congestion"]}

_A_VARY = "a key and its values, such as limit=0.01bdp..2bdp, limit=0.1bdp,1bdp or network.rtt=10ms..100ms/10"
_NUMBER = r"((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
_RANGE = re.compile(
    rf"\s*{_NUMBER}\s*([A-Za-z/]*)\s*\.\.\s*{_NUMBER}\s*([A-Za-z]*)\s*(?:/\s*(\d{{1,6}}))?\s*", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Vary:
    """A key and its values; `ordered` says that they are a ladder, with the smallest first."""

    key: str
    values: tuple[Any, ...]
    ordered: bool

    @property
    def axis(self) -> Axis:
        """Return the axis of a sweep. Raises `InputError` for an unknown key."""
        path = points.path_of(self.key)
        if path is None:
            raise InputError(f"--vary: found {shown(self.key)}; expected {_A_VARY}")
        return Axis(self.key, path, path, self.values, tuple(range(len(self.values))))


def vary(text: str) -> Vary:
    """A key with its values as somebody writes them. Raises `InputError`."""
    key, sign, values = text.partition("=")
    if not sign or not key.strip() or not values.strip():
        raise InputError(f"--vary: found {shown(text)}; expected {_A_VARY}")
    name = KEYS.get(key.strip(), key.strip())
    match = _RANGE.fullmatch(values)
    if match is None:
        return Vary(name, listed(values, "--vary"), ordered=False)
    return Vary(name, _ladder(text, *match.groups()), ordered=True)


def listed(text: str, option: str) -> tuple[Any, ...]:
    """Values with commas between them, each once, and as `--set` reads it. Raises `InputError`."""
    values = cli_values.items(text)
    if not all(values) or len(set(values)) < len(values):
        raise InputError(f"{option}: found {shown(text)}; expected different values with commas between them")
    return tuple(map(cli_values.value, values))


def _ladder(text: str, low: str, low_unit: str, high: str, high_unit: str, steps: str | None) -> tuple[Any, ...]:
    unit, count = high_unit or low_unit, int(steps) if steps else None
    first, last = float(low), float(high)
    if low_unit not in ("", unit) or not first < last or not math.isfinite(last):
        raise InputError(f"--vary: found {shown(text)}; expected LOW..HIGH with one unit, the lower first")
    if count is not None and not 2 <= count <= MAX_STEPS:
        raise InputError(f"--vary: found {count} values; expected 2 to {MAX_STEPS}")
    rungs = _rungs(first, last, count)
    return tuple(dict.fromkeys(_written(value, unit, whole=_are_integers(rungs, unit)) for value in rungs))


def _rungs(first: float, last: float, count: int | None) -> list[float]:
    if first > 0 and last / first >= MIN_SPAN:
        steps = count or min(MAX_STEPS, 1 + math.ceil(math.log(last / first) / math.log(STEP)))
        return [first * (last / first) ** (step / (steps - 1)) for step in range(steps)]
    steps = count or EVEN
    return [first + (last - first) * step / (steps - 1) for step in range(steps)]


def _are_integers(rungs: Sequence[float], unit: str) -> bool:
    """Packets and bytes; and numbers without a unit if both ends are, as numbers of flows."""
    return unit in ("p", "B") or (not unit and all(end == round(end) for end in (rungs[0], rungs[-1])))


def _written(value: float, unit: str, *, whole: bool) -> Any:
    """Return a value as a scenario has it: a number with its unit in quotes, or a plain number."""
    number = round(value) if whole else float(f"{value:.3g}")
    return (f"{number}{unit}" if whole else f"{number:g}{unit}") if unit else number


def tried(text: str) -> Vary:
    """Queue disciplines, or congestion controls, by their names. Raises `InputError` for what is neither."""
    names = listed(text, "--candidates")
    known: dict[str, Family] = {name: family for family in TRIED for name in algorithms.names(family)}
    if unknown := next((name for name in names if name not in known), None):
        raise InputError(f"--candidates: found {shown(unknown)}; expected {nearest(str(unknown), list(known))}")
    families = {known[name] for name in names}
    if len(families) > 1:
        raise InputError(f"--candidates: found {shown(text)}; expected disciplines, or congestion controls, not both")
    return Vary(TRIED[families.pop()], names, ordered=False)
