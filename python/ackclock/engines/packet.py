"""The packet engine: every segment, ACK, SYN and FIN, simulated by `crates/ackclock-packet`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from ackclock import _core
from ackclock.dataset import Dataset, Spool
from ackclock.engines.engine import RunOptions, manifest
from ackclock.errors import Unsupported, UnsupportedError
from ackclock.plan import GroupPlan, Plan
from ackclock.tables import TABLES, Column

#: What the simulator has: the lists in its `congestion.rs` and `queue.rs`.
CONGESTION_CONTROLS = frozenset(_core.CONGESTION_CONTROLS)
QUEUE_DISCIPLINES = frozenset(_core.QUEUE_DISCIPLINES)

#: A run goes in at least so many steps; after each, progress is told and an interrupt is heard. The simulator divides
#: a step in which much happens.
STEPS = 100

#: Rows are taken out after so many steps, and whenever a step was divided: taking few rows costs as much as many.
STEPS_PER_TAKING = 10


class PacketEngine:
    """A discrete-event simulator of complete TCP connections."""

    name = "packet"

    def check(self, plan: Plan) -> list[Unsupported]:
        """Names of algorithms that the simulator has not."""
        used = {group.congestion.kind for group in plan.groups if group.congestion}
        queues = {link.queue.discipline for link in plan.links}
        missing = [*sorted(used - CONGESTION_CONTROLS), *sorted(queues - QUEUE_DISCIPLINES)]
        return [Unsupported(name, self.name) for name in missing]

    def run(self, plan: Plan, seed: int, options: RunOptions | None = None) -> Dataset:
        """One run. Raises `UnsupportedError`; whatever `options.progress` raises ends the run."""
        around = options or RunOptions()
        if reasons := self.check(plan):
            raise UnsupportedError(reasons)
        spool = Spool(names=_names(), spool_bytes=around.spool_bytes)
        with ExitStack() as stack:
            capture = _capture(plan, seed, around.captures, stack)
            simulation = _core.Simulation(json.dumps(plan.engine_input()), seed)
            for share, taking in _advance(simulation, plan):
                if taking:
                    _take(simulation, spool, capture)
                around.progress(share)
            _finish(simulation, spool, plan)
        return spool.dataset(manifest(plan, self.name, seed, around.command))


def _advance(simulation: _core.Simulation, plan: Plan) -> Iterator[tuple[float, bool]]:
    """Runs the simulation in steps; yields the share that is done, and whether rows shall be taken out."""
    for step in range(1, STEPS + 1):
        all_done = False
        while not all_done:
            reached_s, all_done = simulation.advance_some(plan.duration_s * step / STEPS)
            yield reached_s / plan.duration_s, not all_done or step % STEPS_PER_TAKING == 0


def _take(simulation: _core.Simulation, spool: Spool, capture: IO[bytes] | None) -> None:
    for table, columns in simulation.drain().items():
        spool.append(table, columns)
    if capture is not None:
        capture.write(simulation.capture())


def _finish(simulation: _core.Simulation, spool: Spool, plan: Plan) -> None:
    """The last rows, and the totals; the simulator's books may hold more than the dataset has columns for."""
    for table, columns in simulation.finish().items():
        known: dict[str, Column] = {name: columns[name] for name in TABLES[table] if name in columns}
        spool.append(table, known | _described(plan) if table == "flows" else known)


def _described(plan: Plan) -> dict[str, Column]:
    """What a flow is called and was asked to do."""
    return {
        "source": [f"sender-{number}" for number in range(len(plan.flows))],
        "destination": [f"receiver-{number}" for number in range(len(plan.flows))],
        "congestion": [_protocol(plan.groups[flow.group]) for flow in plan.flows],
        "base_rtt_s": [flow.base_rtt_s for flow in plan.flows],
        "size_bytes": [flow.size_bytes for flow in plan.flows],
    }


def _protocol(group: GroupPlan) -> str:
    return group.congestion.kind if group.congestion else "udp"


def _capture(plan: Plan, seed: int, folder: Path | None, stack: ExitStack) -> IO[bytes] | None:
    if folder is None or not plan.record.pcap:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    return stack.enter_context((folder / f"seed-{seed}.pcap").open("wb"))


def _names() -> dict[str, list[str]]:
    return {
        "events.kind": _core.EVENT_KINDS,
        "packets.kind": _core.PACKET_KINDS,
        "packets.what": _core.PACKET_ACTIONS,
    }
