"""The engine ns3: its program is compiled first."""

from __future__ import annotations

from ackclock.experiments.cost.amount import Cost
from ackclock.experiments.cost.ns2 import Simulator, of_simulator
from ackclock.plan import Plan

NS3 = Simulator(packet_us=30.0, hop_us=20.0, sample_us=30.0, start_us=6e6)


def of_run(plan: Plan) -> Cost:
    """One run of ns-3."""
    return of_simulator(plan, NS3)
