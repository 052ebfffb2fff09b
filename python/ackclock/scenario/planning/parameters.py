"""Check that an algorithm accepts its parameters, and report what it rejects at the scenario's key."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ackclock import _core
from ackclock.errors import ScenarioError
from ackclock.input.fields import Loc
from ackclock.input.source import Source
from ackclock.plan import CongestionPlan, QueuePlan


def queue(
    name: str, parameters: Mapping[str, Any], rate_bps: float, loc: Loc, source: Source, rules: Mapping[str, str]
) -> QueuePlan:
    """A discipline behind a link of that rate. Raises `ScenarioError` for parameters that do not go together."""
    _try(lambda given: _core.check_queue(name, given, rate_bps), name, parameters, loc, source)
    return QueuePlan(name, dict(parameters), rules)


def congestion(name: str, parameters: Mapping[str, Any], loc: Loc, source: Source) -> CongestionPlan:
    """A congestion control. Raises `ScenarioError` for parameters that do not go together."""
    _try(lambda given: _core.check_congestion(name, given), name, parameters, loc, source)
    return CongestionPlan(name, dict(parameters))


def _try(made: Callable[[str], None], name: str, parameters: Mapping[str, Any], loc: Loc, source: Source) -> None:
    try:
        made(json.dumps(parameters))
    except ValueError as error:
        found, expected = f'parameters that "{name}" cannot work with', f"others ({error})"
        raise ScenarioError([source.problem(loc, found, expected)]) from None
