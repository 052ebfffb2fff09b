"""What a metric is: a name, a unit, a label, and a function of one run."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ackclock.metrics.view import RunView

#: A metric's value in one run; None where the engine does not model it or it does not exist.
Value: TypeAlias = "float | list[float] | None"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric; its definition and source are its function's docstring. `per_flow`: a list, not a number."""

    name: str
    unit: str
    label: str
    function: Callable[[RunView], Value]
    per_flow: bool = False

    @property
    def definition(self) -> str:
        """The definition, as one paragraph a block."""
        blocks = (inspect.getdoc(self.function) or "").split("\n\n")
        return "\n\n".join(" ".join(block.split()) for block in blocks)
