"""Forms of a scenario that `run`, `sweep` and `compare` accept: a path, a text, tables, a loaded scenario, a plan."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from ackclock.errors import InputError
from ackclock.input import arguments
from ackclock.plan import Plan
from ackclock.scenario import planning
from ackclock.scenario.planning import Loaded

Accepted: TypeAlias = Plan | Loaded | Path | str | Mapping[str, Any]

EXPECTED = "a scenario: a path, TOML, a mapping, a plan, or what ackclock.load and ackclock.scenario give"


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


def scenario(name: str, value: Any) -> tuple[Loaded, tuple[int, ...] | None]:
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
