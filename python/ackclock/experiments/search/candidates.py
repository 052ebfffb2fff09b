"""Candidate settings: algorithms by name; or for a key a list, or a ladder of values between two ends.

A ladder rises by a tenth a step, or evenly where it begins at zero or spans little; its values have three significant
digits, as a person would write them. `LOW..HIGH/STEPS` has so many values instead.

A qdisc that replaces the scenario's does not inherit its parameters. It has the defaults of its own spec, which are
Linux's, its limit included; only a qdisc whose spec has no default limit takes the scenario's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ackclock import algorithms
from ackclock.algorithms import Family
from ackclock.errors import InputError, Problem
from ackclock.figures import numbers
from ackclock.input import cli_values
from ackclock.input.fields import closest, shown
from ackclock.plan import Plan
from ackclock.scenario import overrides, points
from ackclock.scenario.points import Axis, inline

#: By how much a ladder rises from value to value.
STEP = 1.1

#: Number of values of a quantity that is not spaced geometrically.
EVEN = 21

#: A ladder spans at least this factor to rise by shares.
MIN_SPAN = 1.5

#: Most values of a ladder, and of all keys together.
MAX_STEPS, MOST_CANDIDATES = 1_000, 100_000

#: The key of the bottleneck's qdisc with its parameters.
QUEUE = cli_values.KEYS["queue"]

#: Families whose members may be tried by name, and their keys.
TRIED: Mapping[Family, str] = {
    "queue": QUEUE,
    "congestion": cli_values.KEYS["congestion"],
    "stack": "tcp.stack",
    "realtime": "traffic[0].congestion",
}

_A_VARY = "a key and its values, such as limit=0.01bdp..2bdp, limit=0.1bdp,1bdp or network.rtt=10ms..100ms/10"
_NUMBER = r"((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
_RANGE = re.compile(
    rf"\s*{_NUMBER}\s*([A-Za-z/]*)\s*\.\.\s*{_NUMBER}\s*([A-Za-z]*)\s*(?:/\s*(\d{{1,6}}))?\s*", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Vary:
    """A key and its values, and the option that gave them; `ordered`: they are a ladder, with the smallest first."""

    key: str
    values: tuple[Any, ...]
    ordered: bool
    option: str = "--vary"

    @property
    def axis(self) -> Axis:
        """Return the axis of a sweep. Raises `InputError` for an unknown key."""
        path = points.path_of(self.key)
        if path is None:
            raise InputError(f"{self.option}: found {shown(self.key)}; expected {_A_VARY}")
        return Axis(self.key, path, path, self.values, tuple(range(len(self.values))))


def vary(text: str, option: str = "--vary") -> Vary:
    """A key with its values as somebody writes them. Raises `InputError`."""
    key, sign, values = text.partition("=")
    if not sign or not key.strip() or not values.strip():
        raise InputError(f"{option}: found {shown(text)}; expected {_A_VARY}")
    name = cli_values.KEYS.get(key.strip(), key.strip())
    match = _RANGE.fullmatch(values)
    if match is None:
        return Vary(name, listed(values, option), False, option)
    return Vary(name, _ladder(text, option, *match.groups()), True, option)


def listed(text: str, option: str) -> tuple[Any, ...]:
    """Values with commas between them, each once, and as `--set` reads it. Raises `InputError`."""
    values = cli_values.items(text)
    if not all(values) or len(set(values)) < len(values):
        raise InputError(f"{option}: found {shown(text)}; expected different values with commas between them")
    return tuple(map(cli_values.value, values))


def _ladder(
    text: str, option: str, low: str, low_unit: str, high: str, high_unit: str, steps: str | None
) -> tuple[Any, ...]:
    unit, count = high_unit or low_unit, int(steps) if steps else None
    first, last = float(low), float(high)
    if low_unit not in ("", unit) or not first < last or not math.isfinite(last):
        raise InputError(f"{option}: found {shown(text)}; expected LOW..HIGH with one unit, the lower first")
    if count is not None and not 2 <= count <= MAX_STEPS:
        raise InputError(f"{option}: found {count} values; expected 2 to {MAX_STEPS}")
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


def axes(varied: Sequence[str], names: str | None, content: Mapping[str, Any]) -> list[Vary]:
    """Return what is searched: the keys of `--vary`, and the algorithms of `--candidates`. Raises `InputError`."""
    found = [queues_by_name(vary(text), content) for text in varied]
    for each in found:
        check_place(each, content)
    if names:
        is_varied = cli_values.KEYS["limit"] in [axis.key for axis in found]
        found.append(tried(names, content, limits=not is_varied))
    return found


def queues_by_name(varied: Vary, content: Mapping[str, Any]) -> Vary:
    """Return tables for qdiscs that are written by their names alone, such as `network.up.queue=bfifo,fq_codel`."""
    known = algorithms.names("queue")
    if not varied.key.endswith("queue") or not any(value in known for value in varied.values):
        return varied
    own: Any = content
    for key in points.path_of(varied.key) or ():
        is_there = key in own if isinstance(own, dict) else _is_place(own, key)
        own = own[key] if is_there else None
    values = tuple(_queue(value, own, limits=True) if value in known else value for value in varied.values)
    return replace(varied, values=values)


def _is_place(items: Any, key: str | int) -> bool:
    return isinstance(items, list) and isinstance(key, int) and key < len(items)


def tried(text: str, content: Mapping[str, Any], option: str = "--candidates", *, limits: bool = True) -> Vary:
    """Qdiscs, congestion control algorithms or TCP stacks by their names, for a scenario with this content.

    A table with parameters may take the place of a name: `{ kind = "cubic", beta = 0.85 }`.
    Without `limits`, another key varies the limit of the queue. Raises `InputError` for what is none of them.
    """
    values = listed(text, option)
    names = [str(_name(value, text, option)) for value in values]
    known: dict[str, Family] = {name: family for family in TRIED for name in algorithms.names(family)}
    if unknown := next((name for name in names if name not in known), None):
        near = closest(unknown, list(known))
        kinds = "a qdisc, congestion control algorithm or TCP stack, as `ackclock show` lists them"
        nearest = f"{shown(near)}, or another name that `ackclock show` lists" if near else kinds
        raise InputError(f"{option}: found {shown(unknown)}; expected {nearest}")
    families = {known[name] for name in names}
    if len(families) > 1:
        kinds = "qdiscs, congestion control algorithms or TCP stacks, not a mixture"
        raise InputError(f"{option}: found {shown(text)}; expected {kinds}")
    family = families.pop()
    key = _media_key(content, option) if family == "realtime" else TRIED[family]
    check_place(Vary(key, values, False, option), content)
    if family == "queue":
        network = content.get("network")
        own = network.get("queue") if isinstance(network, dict) else None
        values = tuple(value if isinstance(value, dict) else _queue(value, own, limits) for value in values)
    return Vary(key, values, False, option)


def _media_key(content: Mapping[str, Any], option: str) -> str:
    """Return the key of the algorithm of the first media."""
    traffic = content.get("traffic")
    tables = enumerate(traffic) if isinstance(traffic, list) else ()
    found = next((n for n, each in tables if isinstance(each, dict) and each.get("kind") == "media"), None)
    if found is None:
        raise InputError(f'{option}: found no [[traffic]] with kind = "media"; expected one for these algorithms')
    return f"traffic[{found}].congestion"


def check_place(varied: Vary, content: Mapping[str, Any]) -> None:
    """Raise `InputError` for a queue or an algorithm that a scenario has under another key; the line names that."""
    overrides.check_place(varied.key, content, varied.option)
    key, network, traffic = varied.key, content.get("network"), content.get("traffic")
    places: list[str] = []
    if f"{key}.".startswith(f"{QUEUE}.") and isinstance(network, dict) and "queue" not in network:
        places = [place + key.removeprefix(QUEUE) for place in _queues(network, "network")]
    elif key == cli_values.KEYS["congestion"] and not content.get("flows") and isinstance(traffic, list):
        places = [f"traffic[{number}].congestion" for number in range(len(traffic))]
    if places:
        first, option = places[0], "--vary" if varied.option == "--candidates" else varied.option
        example = f"{option} '{first}={_written_values(varied)}'"
        known = " or ".join(places[: overrides.MAX_PLACES])
        raise InputError(f"{varied.option}: found no {key} in this scenario; expected {known}, such as {example}")


def _written_values(varied: Vary) -> str:
    """Return the values as the command line has them; qdiscs by their names."""
    if varied.ordered:
        return f"{varied.values[0]}..{varied.values[-1]}"
    return ",".join(inline(value) if isinstance(value, dict) else str(value) for value in varied.values[:2])


def _queues(table: Any, key: str) -> Iterator[str]:
    """Yield the keys of the queues within a table."""
    for name, value in table.items() if isinstance(table, dict) else ():
        if name == "queue":
            yield f"{key}.{name}"
        for place, one in enumerate(value) if isinstance(value, list) else [(None, value)]:
            yield from _queues(one, f"{key}.{name}" if place is None else f"{key}.{name}[{place}]")


def _name(value: Any, text: str, option: str) -> Any:
    """Return the name of an algorithm that is written as such, or as a table. Raises `InputError`."""
    if not isinstance(value, dict):
        return value
    if "kind" not in value and "discipline" not in value:
        raise InputError(f"{option}: found a table without kind or discipline in {shown(text)}; expected one of them")
    return value.get("kind", value.get("discipline"))


def _queue(name: str, found: Any, limits: bool) -> dict[str, Any]:
    """Return the table of a qdisc: the scenario's own if it is that one, else its name and a limit that it requires."""
    own: dict[str, Any] = dict(found) if isinstance(found, dict) else {"discipline": found}
    if own.get("discipline") != name:
        limit = algorithms.spec("queue", name).parameters.get("limit")
        own = {"discipline": name, **{key: own[key] for key in own if key == "limit" and limit and limit.required}}
        if limits and found and limit and limit.required and "limit" not in own:
            table = inline({"discipline": name, "limit": "1bdp"})
            raise InputError(f"{name}: found no limit in the scenario that it can take; expected a table, as {table}")
    return own if limits else {key: value for key, value in own.items() if key != "limit"}


def relocated(problem: Problem, varied: Sequence[Vary]) -> Problem:
    """Return a mistake in a varied value as one of its option; any other as it is."""
    key = problem.key.removeprefix("sweep.")
    found = next((vary for vary in varied if key.startswith(f"{vary.key}[")), None)
    if found is None:
        return problem
    inner = key.removeprefix(f"{found.key}[").partition("]")[2]  # within a table
    return replace(problem, file=found.option, line=None, key=found.key + inner)


def limit_sentence(plans: Sequence[tuple[Any, Plan]]) -> str:
    """Return where the limits of qdiscs come from: values of the key `QUEUE`, each with a plan that has it."""
    sizes: dict[str, list[str]] = {"from the scenario": [], "by default, as in Linux": []}
    for value, plan in plans:
        if isinstance(value, dict) and (size := limit_size(plan)):
            origin = "from the scenario" if "limit" in value else "by default, as in Linux"
            sizes[origin].append(f"{value['discipline']} {size}")
    parts = [f"{origin}: {', '.join(some)}" for origin, some in sizes.items() if some]
    return f"Queue limits {'; '.join(parts)}." if parts else ""


def limit_size(plan: Plan) -> str:
    """Return the limit of the first bottleneck's queue, such as `577 packets`; empty if it has none."""
    parameters = plan.bottleneck_link.queue.parameters
    sizes = [(parameters.get(f"limit_{unit}"), unit) for unit in ("packets", "bytes")]
    return next((numbers.value(float(size), unit) for size, unit in sizes if isinstance(size, int | float)), "")
