"""What the tables of a dataset take, in memory and on disk.

A row's bytes on disk are what Parquet and zstd leave of it in results of the packet engine: see
`benchmarks/estimates.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ackclock.plan import Plan

#: Bytes of a row on disk, by table.
ROW_BYTES = {
    "flows": 40.0,
    "flow_samples": 9.0,
    "queue_samples": 8.0,
    "events": 9.0,
    "links": 150.0,
    "packets": 8.0,
}

#: Bytes of a row in memory.
ROW_MEMORY_BYTES = {
    "flows": 260.0,
    "flow_samples": 56.0,
    "queue_samples": 72.0,
    "events": 32.0,
    "links": 4000.0,
    "packets": 56.0,
}

#: Bytes of a table with few rows: Parquet's own, for each of its columns.
TABLE_BYTES = {"flows": 9600, "flow_samples": 2500, "queue_samples": 3500, "events": 2500, "links": 9000}

#: Bytes of the manifest: of itself, of a flow or a pair of paths, of a link.
MANIFEST_BYTES, FLOW_BYTES, LINK_BYTES = 3500, 530, 330


@dataclass(frozen=True, slots=True)
class Rows:
    """How many rows each table has."""

    flows: float = 0.0
    flow_samples: float = 0.0
    queue_samples: float = 0.0
    events: float = 0.0
    links: float = 0.0
    packets: float = 0.0

    def memory_bytes(self) -> float:
        """All of them in memory."""
        return sum(row_bytes * getattr(self, table) for table, row_bytes in ROW_MEMORY_BYTES.items())


def written_bytes(plan: Plan, rows: Rows) -> float:
    """A result's folder, without report and captures."""
    tables = sum(ROW_BYTES[name] * getattr(rows, name) + TABLE_BYTES.get(name, 0) for name in ROW_BYTES)
    pairs = sum(len(getattr(traffic.population, "paths", ())) for traffic in plan.traffic)
    flows = len(plan.flows) + len(plan.datagrams) + pairs
    return tables + MANIFEST_BYTES + flows * FLOW_BYTES + len(plan.links) * LINK_BYTES
