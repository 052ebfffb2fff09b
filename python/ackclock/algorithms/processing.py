"""Default processing times of hosts per packet."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ackclock.algorithms import spec


@cache
def default_processing() -> Mapping[str, Any]:
    """The default of the stacks that are a system's, as a plan has it: what was measured of Linux."""
    parameter = spec("stack", "linux").parameters["processing"]
    found: Mapping[str, Any] = parameter.read(parameter.default).planned()
    return found
