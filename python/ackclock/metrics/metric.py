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
    """One metric; its definition and source are its function's docstring.

    `unit` is `s`, `bit/s`, `packets`, `segments`, `share` (0–1, for people in per cent), `1` (an index) or empty (a
    count); `per_flow` says that the value is a list with an item for each flow.
    """

    name: str
    unit: str
    label: str
    function: Callable[[RunView], Value]
    per_flow: bool = False

    @property
    def most(self) -> float:
        """The greatest value that the metric can have; the least is 0 for all."""
        return 1.0 if self.unit in ("share", "1") and not self.name.startswith("cov_") else float("inf")

    @property
    def definition(self) -> str:
        """The definition, as one paragraph a block."""
        blocks = (inspect.getdoc(self.function) or "").split("\n\n")
        return "\n\n".join(" ".join(block.split()) for block in blocks)
