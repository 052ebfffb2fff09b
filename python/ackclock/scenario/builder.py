"""Scenarios of the Python interface: the forms that `run`, `sweep` and `compare` accept, and one without a file.

`ackclock.scenario(…)` gives long flows through one bottleneck, from a rate and a round-trip time; `ackclock find` uses
the same if it is given no file.

Used by the functions of the Python interface that take a scenario: run, sweep, compare, find, the environment of `rl`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from ackclock import algorithms
from ackclock.errors import InputError
from ackclock.input import arguments, units
from ackclock.plan import Plan
from ackclock.scenario import overrides, planning
from ackclock.scenario.planning import Loaded

#: A path, a text, tables, a loaded scenario, or a plan.
Accepted: TypeAlias = Plan | Loaded | Path | str | Mapping[str, Any]

EXPECTED = "a scenario: a path, TOML, a mapping, a plan, or what ackclock.load and ackclock.scenario give"

#: Limit of a qdisc whose spec has no default.
LIMIT = "1bdp"

#: The share of a run that is not measured.
WARMUP = 1 / 4

#: Range of starts that differ between seeds, in seconds; the warm-up if that is shorter. Flows start within a part of
#: it after each other.
JITTER_S = 1.0
APART = 1 / 100


def content(
    rate: object,
    rtt: object,
    *,
    flows: object = 1,
    congestion: object = "cubic",
    discipline: object = "pfifo",
    limit: object = None,
    duration: object = "40s",
) -> dict[str, Any]:
    """The scenario's values, written as in a file. Raises `units.UnitError` for what is no duration."""
    warmup_s = WARMUP * units.time_s(duration)
    jitter_s = min(JITTER_S, warmup_s)
    size = _default_limit(discipline) if limit is None else limit
    queue = {"discipline": discipline, **({} if size is None else {"limit": size})}
    start = {"every": _seconds(APART * jitter_s), "jitter": _seconds(jitter_s)}
    return {
        "duration": duration,
        "warmup": _seconds(warmup_s),
        "network": {"topology": "dumbbell", "rate": rate, "rtt": rtt, "queue": queue},
        "flows": [{"count": flows, "congestion": congestion, "start": start}],
    }


def _default_limit(discipline: object) -> str | None:
    """Return the limit of a qdisc that has no default of its own; None for one that has."""
    known = discipline in algorithms.names("queue")
    return None if known and not algorithms.spec("queue", str(discipline)).parameters["limit"].required else LIMIT


def _seconds(time_s: float) -> str:
    return f"{time_s:.12g}s" if time_s >= 1 else f"{1000 * time_s:.12g}ms"


def scenario(  # noqa: PLR0913 (all but two have defaults)
    *,
    rate: str,
    rtt: str,
    flows: int = 1,
    congestion: str | Mapping[str, Any] = "cubic",
    discipline: str = "pfifo",
    limit: str | None = None,
    duration: str = "40s",
    repeats: int = 1,
    name: str | None = None,
    sweep: Mapping[str, Sequence[Any]] | None = None,
) -> Loaded:
    """A scenario without a file: long flows through one bottleneck, that of `ackclock find --rate … --rtt …`.

    The first quarter of a run is the warm-up; the flows start 10 ms apart, with up to 1 s of jitter, closer in runs
    shorter than 4 s. All other keys have the defaults of a scenario file; `.with_({…})` sets them, and `.source.text`
    is the file.

    Args:
        rate: the bottleneck's rate, such as "1Gbit".
        rtt: the base round-trip time, such as "40ms".
        flows: their number.
        congestion: their congestion control, by name or with parameters: `{"kind": "cubic", "beta": 0.8}`.
        discipline: the bottleneck's queue discipline.
        limit: its size: "1bdp", "100p", "64KB"; by default that of the discipline's spec, else "1bdp".
        duration: length of a run.
        repeats: number of runs, with the seeds 1, 2, 3 …
        name: a title.
        sweep: lists of values by keys, such as `{"network.queue.limit": ["0.1bdp", "1bdp"]}`: every combination is a
            point, for `ackclock.sweep`.

    Raises:
        ScenarioError: values that a scenario cannot have, each in a line.
        InputError: a malformed duration.
        TypeError: a value that a scenario file cannot hold.
    """
    given = {
        "rate": rate,
        "rtt": rtt,
        "flows": flows,
        "congestion": congestion,
        "discipline": discipline,
        "duration": duration,
        **({} if limit is None else {"limit": limit}),
    }
    try:
        values = content(**overrides.plain(given, ""))
    except units.UnitError as error:
        raise InputError(f"duration: found {arguments.readable_value(duration)}; expected {error.expected}") from None
    more = {"name": name, "repeats": None if repeats == 1 else repeats, "sweep": sweep}
    return planning.mapped({**values, **{key: value for key, value in more.items() if value is not None}})


def taken(name: str, value: Any) -> Plan | Loaded:
    """A plan or a scenario. A text with a line break is TOML (no scenario has only one line), any other is a path.

    Raises `TypeError` for what is neither of those, and what `planning.load` raises.
    """
    if isinstance(value, (Plan, Loaded)):
        return value
    if isinstance(value, Mapping):
        return planning.mapped(value)
    if isinstance(value, str) and "\n" in value:
        return planning.loads(value)
    if isinstance(value, (str, os.PathLike)):
        return planning.load(arguments.PATH(name, value))
    return arguments.wrong_type(name, value, EXPECTED)


def scenario_and_seeds(name: str, value: Any) -> tuple[Loaded, tuple[int, ...] | None]:
    """Return the scenario, of a plan too, and the plan's seeds if they differ from the scenario's.

    Raises `InputError` for a plan that is not its scenario's any more.
    """
    given = taken(name, value)
    if isinstance(given, Loaded):
        return given, None
    loaded = planning.loads(given.scenario_text, given.scenario_name or "scenario") if given.scenario_text else None
    if loaded is None or loaded.sweep or replace(own := loaded.plan(), seeds=given.seeds) != given:
        raise InputError(f"{name}: found a plan that is not its scenario's alone; expected the scenario")
    return loaded, None if own.seeds == given.seeds else given.seeds
