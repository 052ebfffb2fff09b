"""The packet engine and the hybrid engine, both simulated by `crates/ackclock-sim`.

The packet engine simulates every segment, ACK, SYN and FIN. The hybrid engine leaps past round trips in which no packet
matters: between losses a drop-tail bottleneck with window-based senders changes smoothly. There the simulator lets the
windows, the queue and the counters go on by steps of a fraction of a round trip, and lets packets decide all else: who
loses, the recovery, starts and ends of flows (`crates/ackclock-sim/src/simulation/leap.rs`).
"""

from __future__ import annotations

from collections.abc import Iterator
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
    kinds = algorithms.names("congestion")
    kind = next((kind for kind in kinds if lacking.what == features.congestion(kind)), None)
    why = code.reason(algorithms.spec("congestion", kind)) if kind else ""
    return replace(lacking, what=f"{lacking.what}: {why}") if why else lacking


#: Congestion control algorithms whose windows grow by what is acknowledged and with time, however many ACKs that takes.
#: HighSpeed, Hybla, H-TCP and BIC grow by ACKs, and those of delay count round trips by segment numbers: they differ.
CONTROLS = ("aimd", "cubic", "lincubic", "reno", "scalable")

#: Parameters of them with which they count ACKs, or have windows that were not compared.
DIFFERENT = {"delayed_ack_correction": False, "whole_segments": False}

#: Qdiscs that drop at a limit alone.
QUEUES = ("bfifo", "pfifo")

#: Features that packets simulate while they last, or that a leap keeps.
_SUPPORTED = frozenset({
    features.FINITE, features.STOPS, features.STARTS, features.REQUESTS, features.APPLICATION, features.SLOW_READERS,
    features.GENERATED, features.PROCESSING, features.INSIDE, features.PATHS, features.NO_DELAY, features.ACK_COUNTING,
    features.SEND_BUFFERS, features.MISBEHAVIOUR, features.CODEPOINTS, features.PRIORITIES,
    *map(features.congestion, CONTROLS), *map(features.queue, QUEUES),
})  # fmt: skip


class HybridEngine(simulator.SimulatorEngine):
    """The packet engine, with leaps past round trips in which no packet matters."""

    name = "hybrid"
    leaps = True

    @property
    def supported_features(self) -> frozenset[str]:
        """The features of plain TCP through one drop-tail link."""
        return _SUPPORTED

    def unsupported(self, plan: Plan) -> list[Unsupported]:
        """List the features of the plan that leaps cannot keep, several bottlenecks and paced senders among them."""
        return [*unsupported_features(plan, self), *(Unsupported(what, self.name) for what in _peculiarities(plan))]


def _peculiarities(plan: Plan) -> Iterator[str]:
    """Yield what no feature names: links in parallel, pacing, and controllers that differ by a parameter."""
    if len(plan.links) > 1:
        yield "several links"
    if any(group.tcp.pacing for group in plan.groups if group.tcp):
        yield "pacing (tcp.pacing)"
    for group in plan.groups:
        kind, parameters = (group.congestion.kind, group.congestion.parameters) if group.congestion else ("", {})
        for name, value in DIFFERENT.items():
            if parameters.get(name) is value:
                yield f"{kind} with {name} = {str(value).lower()}"
