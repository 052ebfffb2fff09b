"""The packet engine: every segment, ACK, SYN and FIN, simulated by `crates/ackclock-sim`."""

from __future__ import annotations

from dataclasses import replace

from ackclock import algorithms
from ackclock.algorithms import code
from ackclock.engines import features, simulator
from ackclock.engines.engine import unsupported_features
from ackclock.errors import Unsupported
from ackclock.plan import Plan

#: Features and algorithms of this build.
_COMPILED = simulator.compiled_features(features.ALL)


class PacketEngine(simulator.SimulatorEngine):
    """A discrete-event simulator of complete TCP connections."""

    name = "packet"

    @property
    def supported_features(self) -> frozenset[str]:
        """All features, what is compiled in, and algorithms in Python."""
        names = algorithms.in_python()
        return _COMPILED | {features.congestion(name) for name in names} if names else _COMPILED

    def unsupported(self, plan: Plan) -> list[Unsupported]:
        """Algorithms that the simulator has not; of one with a spec, why its code is not there."""
        return [_explained(each, plan) for each in unsupported_features(plan, self)]


def _explained(lacking: Unsupported, plan: Plan) -> Unsupported:
    """With the reason, if it is a control whose code is not built."""
    kinds = {group.congestion.kind for group in plan.groups if group.congestion}
    kind = next((kind for kind in kinds if lacking.what == features.congestion(kind)), None)
    why = code.reason(algorithms.spec("congestion", kind)) if kind else ""
    return replace(lacking, what=f"{lacking.what}: {why}") if why else lacking
