"""Size of a dataset's tables, in memory and on disk.

A row's bytes on disk are what Parquet and zstd leave of it in results of the packet engine: see
`benchmarks/estimates.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ackclock.plan import Plan

#: Bytes of a row on disk, by table.
ROW_BYTES = {
    "flows": 40.0,
    "events": 9.0,
    "links": 150.0,
    "packets": 8.0,
    "transmissions": 22.0,
}

#: Bytes of a sample: of one like the last one, and what each tenfold of the packets since then adds.
SAMPLE_BYTES, BUSY_BYTES = 0.8, 4.2

#: Bytes of a row in memory.
ROW_MEMORY_BYTES = {
    "flows": 260.0,
    "flow_samples": 56.0,
    "queue_samples": 72.0,
    "events": 32.0,
    "links": 4000.0,
    "packets": 56.0,
    "transmissions": 80.0,
}

#: Bytes of a table with few rows: Parquet's own, for each of its columns.
TABLE_BYTES = {"flows": 9600, "flow_samples": 2500, "queue_samples": 3500, "events": 2500, "links": 9000}

#: Bytes of the manifest: of itself, of a flow or a pair of paths, of a link.
MANIFEST_BYTES, FLOW_BYTES, LINK_BYTES = 3500, 530, 330


#: Bytes of a run's metrics, in a sweep's parts.
METRICS_BYTES = 600


@dataclass(frozen=True, slots=True)
class Rows:
    """Numbers of rows of each table, and the packets of the sampled flows and links.

    Where little happens between two samples, they are alike, and take little room.
    """

    flows: float = 0.0
    flow_samples: float = 0.0
    queue_samples: float = 0.0
    events: float = 0.0
    links: float = 0.0
    packets: float = 0.0
    transmissions: float = 0.0
    packets_sampled: float = 0.0
    packets_queued: float = 0.0

    def memory_bytes(self) -> float:
        """All of them in memory."""
        return math.fsum(row_bytes * getattr(self, table) for table, row_bytes in ROW_MEMORY_BYTES.items())


def kept_bytes(rows: Rows) -> float:
    """Return the size of the part of a run that a sweep keeps: the tables `flows` and `links`, and a row of metrics."""
    return ROW_BYTES["flows"] * rows.flows + ROW_BYTES["links"] * rows.links + METRICS_BYTES


def written_bytes(plan: Plan, rows: Rows) -> float:
    """A result's folder, without report and captures."""
    tables = math.fsum(row_bytes * getattr(rows, name) for name, row_bytes in ROW_BYTES.items())
    tables += _samples_bytes(rows.flow_samples, rows.packets_sampled)
    tables += _samples_bytes(rows.queue_samples, rows.packets_queued)
    pairs = sum(len(getattr(traffic.population, "paths", ())) for traffic in plan.traffic)
    flows = len(plan.flows) + len(plan.datagrams) + pairs
    tables += sum(size for name, size in TABLE_BYTES.items() if getattr(rows, name))
    return tables + MANIFEST_BYTES + flows * FLOW_BYTES + len(plan.links) * LINK_BYTES


def _samples_bytes(samples: float, packets: float) -> float:
    return samples * (SAMPLE_BYTES + BUSY_BYTES * math.log10(1 + 4 * packets / samples)) if samples else 0.0
