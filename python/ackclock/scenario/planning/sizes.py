"""Sizes in bandwidth–delay products become packets and bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ackclock import catalog
from ackclock.catalog.given import Given
from ackclock.errors import ScenarioError
from ackclock.input.fields import Loc
from ackclock.input.source import Source
from ackclock.input.units import Size
from ackclock.plan import QueuePlan
from ackclock.scenario.planning import parameters

#: Widens a product that should be a whole number before it is rounded down.
ROUNDING = 1 + 1e-12


@dataclass(frozen=True)
class Sizes:
    """What turns sizes in bdp into packets and bytes."""

    rtt_s: float
    packet_bytes: int
    source: Source

    def queue(self, given: Given, rate_bps: float, loc: Loc) -> QueuePlan:
        """A discipline with complete parameters on a link of that rate."""
        card = catalog.card("queue", str(given.name))
        values = card.complete(given.values, given.variant)
        sized = {
            card.key(name): self._number(card.parameters[name].kind, value, rate_bps, (*loc, name))
            for name, value in values.items()
        }
        return parameters.queue(card.name, sized, rate_bps, loc, self.source)

    def _number(self, kind: str, value: Any, rate_bps: float, loc: Loc) -> Any:
        if not isinstance(value, Size):
            return int(value) if kind == "bytes" and value is not None else value
        if value.unit != "bdp":
            return self._whole(value, loc)
        amount_bytes = value.value * rate_bps * self.rtt_s / 8 * ROUNDING
        if kind == "packets":
            return max(1, math.floor(amount_bytes / self.packet_bytes))
        return max(self.packet_bytes, math.floor(amount_bytes))

    def _whole(self, size: Size, loc: Loc) -> int:
        if size.unit == "B" and size.value < self.packet_bytes:
            expected = f"at least one full data packet ({self.packet_bytes} B on the wire)"
            raise ScenarioError([self.source.problem(loc, str(size), expected)])
        return int(size.value)
