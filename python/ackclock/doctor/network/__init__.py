"""Measure TCP between this host and another, and explain what limits it.

An agent on each host (`ackclock.hosts`) sends from memory to memory, or between disks (`files`): `endpoints` has
the addresses and settings of the hosts, `test_matrix` the cells to measure, `transfers` has the agents carry them out,
`findings` explains the results in sentences.

The transfers take turns: each direction and number of flows once per repeat, in an order that is drawn anew for each
repeat, always in the same way, so that whatever else the path carries hits all of them alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ackclock.dataset import Dataset
from ackclock.doctor.network import files, findings
from ackclock.doctor.network.endpoints import Endpoint
from ackclock.doctor.network.test_matrix import MEMORY, Cell, CellResult, TestPlan
from ackclock.doctor.settings import Finding

__all__ = ["Asked", "Cell", "Network"]


@dataclass(frozen=True, slots=True)
class Network:
    """Measurements: the test plan, both hosts, one row for each transfer in the order of time, and the tables."""

    plan: TestPlan
    endpoints: tuple[Endpoint, Endpoint]
    rows: tuple[Mapping[str, Any], ...]
    data: Dataset

    def cells(self) -> list[CellResult]:
        """Return means over the repeats, in the order of the plan."""
        return [
            CellResult.of(
                cell, [row for row in self.rows if Cell(row["direction"], row["flows"], row["medium"]) == cell]
            )
            for cell in self.plan.cells()
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            **self.plan.as_dict(),
            "hosts": {endpoint.name: endpoint.as_dict() for endpoint in self.endpoints},
            "cells": [cell.as_dict() for cell in self.cells()],
            "runs": list(self.rows),
        }

    def runs(self) -> Sequence[Mapping[str, Any]]:
        """Return the runs of a manifest."""
        return [{"run": number, **row} for number, row in enumerate(self.rows)]

    def findings(self) -> Iterator[Finding]:
        """Yield what explains the measurements."""
        cells = self.cells()
        yield from findings.findings([cell for cell in cells if cell.cell.medium == MEMORY], self.endpoints)
        yield from files.findings(cells, self.endpoints, self.plan.files)
