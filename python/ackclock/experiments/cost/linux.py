"""The engine linux: the kernel's own work on each packet, in a guest or live."""

from __future__ import annotations

from dataclasses import replace

from ackclock.experiments.cost.amount import Cost
from ackclock.experiments.cost.loads import loads
from ackclock.experiments.cost.packet import captured_bytes, counted
from ackclock.experiments.cost.tables import kept_bytes, written_bytes
from ackclock.plan import Plan

#: CPU time in the kernel, in microseconds: a packet's way through both stacks, a link, a reading of a socket.
PACKET_US, HOP_US, SAMPLE_US = 15.0, 12.0, 15.0

#: To boot a guest and make its network, in microseconds; for each link and connection more.
BOOT_US, LINK_US, CONNECTION_US = 1.0e6, 60_000.0, 500.0

#: The kernels whose clock is the world's: a run takes the time that it simulates.
REAL_TIME = ("live", "hosts")

#: Memory of a guest.
GUEST_BYTES = 256 << 20


def of_run(plan: Plan) -> Cost:
    """One run."""
    rows, counts = counted(plan, loads(plan))
    rows = replace(rows, transmissions=0.0)
    cpu_us = (
        PACKET_US * counts.packet
        + HOP_US * counts.hop
        + SAMPLE_US * counts.sample
        + CONNECTION_US * counts.transfer
        + LINK_US * counts.link
        + BOOT_US
    )
    return Cost(
        events=counts.packet + counts.hop + counts.sample,
        cpu_s=max(1e-6 * cpu_us, plan.duration_s if plan.options["linux"]["kernel"] in REAL_TIME else 0.0),
        bytes=written_bytes(plan, rows) + captured_bytes(plan, counts),
        kept_bytes=kept_bytes(rows),
        memory_bytes=GUEST_BYTES,
    )
