"""The engines ns2 and ns3: another simulator's work on each packet, and what it writes as text."""

from __future__ import annotations

from dataclasses import dataclass

from ackclock.experiments.cost.amount import Cost
from ackclock.experiments.cost.loads import loads
from ackclock.experiments.cost.packet import counted
from ackclock.experiments.cost.tables import kept_bytes, written_bytes
from ackclock.plan import Plan


@dataclass(frozen=True, slots=True)
class Simulator:
    """CPU time in microseconds: a packet through its agents, a link, a line of samples written and read; the start."""

    packet_us: float
    hop_us: float
    sample_us: float
    start_us: float


NS2 = Simulator(packet_us=1.2, hop_us=1.2, sample_us=50.0, start_us=0.2e6)

#: Memory of the process, as far as it does not grow with the run.
BYTES = 64 << 20


def of_run(plan: Plan) -> Cost:
    """One run of ns-2."""
    return of_simulator(plan, NS2)


def of_simulator(plan: Plan, by: Simulator) -> Cost:
    """One run."""
    rows, counts = counted(plan, loads(plan))
    cpu_us = by.packet_us * counts.packet + by.hop_us * counts.hop + by.sample_us * counts.sample + by.start_us
    return Cost(
        events=counts.packet + counts.hop + counts.sample,
        cpu_s=1e-6 * cpu_us,
        bytes=written_bytes(plan, rows),
        kept_bytes=kept_bytes(rows),
        memory_bytes=BYTES,
    )
