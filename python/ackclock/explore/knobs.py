"""Knobs of a scenario: the keys that the page turns, with their present values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ackclock import algorithms
from ackclock.errors import InputError
from ackclock.input import units
from ackclock.input.fields import Loc, shown
from ackclock.scenario.points import path_of

#: Groups of flows that have knobs; others stay in the file.
MAX_GROUPS = 4

#: Kind of knob → function that reads its text as a number in SI units.
READERS: Mapping[str, Callable[[object], float]] = {
    "rate": units.rate_bps,
    "time": units.time_s,
    "size": lambda text: units.size(text).value,
    "chance": lambda value: float(str(value)),
    "count": lambda value: float(str(value)),
}

#: The knobs of each topology's links: key below `network`, label, kind.
LINK_KNOBS: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "dumbbell": (
        ("rate", "Rate", "rate"),
        ("rtt", "Base RTT", "time"),
        ("queue", "Queue", "queue"),
        ("loss.probability", "Random loss", "chance"),
    ),
    "asymmetric": (
        ("down.rate", "Rate down", "rate"),
        ("up.rate", "Rate up", "rate"),
        ("down.delay", "Delay down", "time"),
        ("up.delay", "Delay up", "time"),
        ("down.queue", "Queue down", "queue"),
        ("up.queue", "Queue up", "queue"),
        ("down.loss.probability", "Random loss down", "chance"),
    ),
    "parking-lot": (
        ("rate", "Rate of each hop", "rate"),
        ("delay", "Delay of each hop", "time"),
        ("hops", "Hops", "count"),
        ("queue", "Queue", "queue"),
    ),
    "y": (
        ("trunk.rate", "Rate of the trunk", "rate"),
        ("trunk.delay", "Delay of the trunk", "time"),
        ("trunk.queue", "Queue of the trunk", "queue"),
        ("trunk.loss.probability", "Random loss", "chance"),
    ),
}


@dataclass(frozen=True, slots=True)
class Knob:
    """A key that the page can turn.

    `value` is a number in SI units, a text of a choice or a truth value; None where the file has something that the
    knob cannot show, such as a list or a trace. `unit` is the unit of a size.
    """

    key: str
    label: str
    kind: str
    value: float | str | bool | None
    text: str = ""
    unit: str = ""
    choices: tuple[str, ...] = ()


def knobs(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the knobs of a scenario's values, as JSON, in the order of the page."""
    return [asdict(knob) for knob in (*_network(content), *_groups(content), *_run(content))]


def _network(content: Mapping[str, Any]) -> Iterator[Knob]:
    topology = value_at(content, ("network", "topology"))
    yield _choice("network.topology", "Topology", topology, LINK_KNOBS)
    for key, label, kind in LINK_KNOBS.get(topology, ()) if isinstance(topology, str) else ():
        if kind == "queue":
            yield from _queue(content, f"network.{key}", label)
        else:
            yield _number(content, f"network.{key}", label, kind, 0 if kind == "chance" else None)
    yield _ecn(content)


def _queue(content: Mapping[str, Any], key: str, label: str) -> Iterator[Knob]:
    """Yield the knobs of a queue: qdisc or AQM, limit, and marking if it can mark."""
    given = value_at(content, path_at(key))
    name = given.get("discipline") if isinstance(given, Mapping) else given
    yield _choice(f"{key}.discipline", label, name, algorithms.names("queue"))
    if not isinstance(name, str) or name not in algorithms.names("queue"):
        return
    parameters = algorithms.spec("queue", name).parameters
    yield _number(content, f"{key}.limit", f"{label}: limit", "size", parameters["limit"].default)
    if "ecn" in parameters:
        marks = value_at(content, path_at(f"{key}.ecn"))
        is_marking = bool(parameters["ecn"].default if marks is None else marks)
        yield Knob(f"{key}.ecn", f"{label}: mark (ECN)", "flag", is_marking)


def _ecn(content: Mapping[str, Any]) -> Knob:
    ecn = algorithms.spec("stack", "linux").parameters["ecn"]
    chosen = value_at(content, ("tcp", "ecn"))
    return _choice("tcp.ecn", "ECN of the hosts", ecn.default if chosen is None else chosen, map(str, ecn.choices))


def _choice(key: str, label: str, value: object, choices: Iterable[str]) -> Knob:
    return Knob(key, label, "choice", value if isinstance(value, str) else None, choices=(*choices,))


def _groups(content: Mapping[str, Any]) -> Iterator[Knob]:
    groups = content.get("flows")
    for number, group in enumerate(groups[:MAX_GROUPS] if isinstance(groups, list) else []):
        given = group.get("congestion", "cubic") if isinstance(group, dict) else None
        name = given.get("kind") if isinstance(given, dict) else given
        key = f"flows[{number}]"
        yield _choice(f"{key}.congestion", "CCA", name, algorithms.names("congestion"))
        yield _number(content, f"{key}.count", "Flows", "count", 1)


def _run(content: Mapping[str, Any]) -> Iterator[Knob]:
    yield _number(content, "duration", "Duration", "time", None)
    if "seeds" not in content:
        yield _number(content, "repeats", "Seeds", "count", 1)


def _number(content: Mapping[str, Any], key: str, label: str, kind: str, default: object) -> Knob:
    """Return the knob of a quantity; without a value where it is not a plain one."""
    given = value_at(content, path_at(key))
    written = default if given is None else given
    if isinstance(written, bool) or not isinstance(written, (str, int, float)):
        return Knob(key, label, kind, None)
    try:
        unit = units.size(written).unit if kind == "size" else ""
        value = READERS[kind](written)
    except (ValueError, TypeError):
        return Knob(key, label, kind, None, str(written))
    return Knob(key, label, kind, value if math.isfinite(value) else None, str(written), unit)


def path_at(key: str) -> Loc:
    """Return the place of a dotted key. Raises `InputError` for what is none."""
    path = path_of(key)
    if path is None or path[0] == "sweep":
        raise InputError(f"knob: found {shown(key)}; expected a key such as network.rate or flows[0].count")
    return path


def value_at(value: Any, path: Loc) -> Any:
    """Return the value at a place; None where there is none."""
    for step in path:
        if isinstance(step, str) and isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, Sequence) and not isinstance(value, str):
            value = value[step] if step < len(value) else None
        else:
            return None
    return value
