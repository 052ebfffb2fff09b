"""The engine ns2: ns-2's own work on each packet, and what it writes as text."""

from __future__ import annotations

from ackclock.campaigns.cost.amount import Cost
from ackclock.campaigns.cost.loads import loads
from ackclock.campaigns.cost.packet import counted
from ackclock.campaigns.cost.tables import kept_bytes, written_bytes
from ackclock.plan import Plan

#: CPU time in microseconds: a packet through its agents, a link, a line of samples written and read; the start.
PACKET_US, HOP_US, SAMPLE_US, START_US = 1.2, 1.2, 50.0, 0.2e6

#: Memory of the process, as far as it does not grow with the run.
BYTES = 64 << 20


def of_run(plan: Plan) -> Cost:
    """One run."""
    rows, counts = counted(plan, loads(plan))
    cpu_us = PACKET_US * counts.packet + HOP_US * counts.hop + SAMPLE_US * counts.sample + START_US
    return Cost(
        events=counts.packet + counts.hop + counts.sample,
        cpu_s=1e-6 * cpu_us,
        bytes=written_bytes(plan, rows),
        kept_bytes=kept_bytes(rows),
        memory_bytes=BYTES,
    )
