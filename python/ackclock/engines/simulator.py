"""Runs of the simulator `crates/ackclock-sim`, for the engines that differ in what it may leave out.

Used by the engines `packet` and `hybrid`, by `ackclock.rl`, and by `ackclock shell`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from ackclock import _core, algorithms, stacks
from ackclock.dataset import Dataset, Spool, folders
from ackclock.dataset.tables import TABLES, Column
from ackclock.engines import features
from ackclock.engines.engine import Engine, RunOptions, manifest
from ackclock.errors import InputError, UnsupportedError
from ackclock.plan import DatagramPlan, FlowPlan, Plan

#: A run goes in at least so many steps; after each, progress is told and an interrupt is heard. The simulator divides
#: a step in which much happens.
STEPS = 100

#: Rows are taken out so often, and whenever a step was divided if there is one for each packet. Taking few rows costs
#: as much as many, so a run that makes few takes them less often: after about so many rows, if each packet and each
#: sample were one. Where that is does not depend on the number of threads: a large result has the same files.
MAX_TAKINGS = 100
ROWS_PER_TAKING = 50_000


class SimulatorEngine(Engine):
    """An engine that runs the simulator: one run goes from a plan to a dataset."""

    #: True if the simulator may leap past round trips in which no packet matters.
    leaps = False

    def is_stochastic(self, plan: Plan) -> bool:
        """Starts, hashes, algorithms and sizes draw from the seed."""
        return True

    def threads(self, plan: Plan, allowed: int) -> tuple[int, str]:
        """Set a run up to see into how many parts its network can be divided."""
        if self.leaps:
            return super().threads(plan, allowed)
        if _prototypes(plan):
            return 1, "an algorithm is written in Python"
        return set_up(plan, plan.seeds[0]).enable_threads(allowed)

    def run(self, plan: Plan, seed: int, options: RunOptions | None = None) -> Dataset:
        """One run. Raises `UnsupportedError`; whatever `options.progress` raises ends the run."""
        around = options or RunOptions()
        if reasons := self.unsupported(plan):
            raise UnsupportedError(reasons)
        spool = Spool(names=table_names(), spool_bytes=around.spool_bytes)
        with ExitStack() as stack:
            names = _prototypes(plan)
            if names:
                from ackclock.algorithms import prototype

                stack.enter_context(prototype.reported(names))
            captures = [stack.enter_context(Capture(path)) for path in around.capture_files(plan, seed)]
            simulation = set_up(plan, seed)
            if self.leaps:
                simulation.enable_leaps()
            if around.threads > 1 and not names:
                simulation.enable_threads(around.threads)
            for share, taking in _advance(simulation, plan):
                if taking:
                    _take(simulation, spool, plan, captures)
                around.progress(share)
            _finish(simulation, spool, plan, captures)
        return spool.dataset(manifest(plan, self.name, seed, around.command))


def compiled_features(known: frozenset[str]) -> frozenset[str]:
    """Return `known` with the congestion control algorithms and qdiscs that are compiled in."""
    controls = {features.congestion(name) for name in _core.CONGESTION_CONTROLS}
    return known | controls | {features.queue(name) for name in _core.QUEUE_DISCIPLINES}


def _prototypes(plan: Plan) -> list[str]:
    """The names of a plan's algorithms that are written in Python."""
    kinds = {group.congestion.kind for group in plan.groups if group.congestion}
    return sorted(kinds.intersection(algorithms.in_python()))


def set_up(plan: Plan, seed: int) -> _core.Simulation:
    """A run that has not begun. Raises `InputError` for a plan that cannot be run."""
    names = {source.user_stack for source in plan.datagrams if source.user_stack}
    try:
        with _stack_errors():
            return _core.Simulation(plan.engine_json, seed, {name: stacks.command(name) for name in sorted(names)})
    except ValueError as error:  # a plan that was not made of a scenario: there the parameters were tried
        raise InputError(str(error)) from None


@contextmanager
def _stack_errors() -> Iterator[None]:
    """Turn the failure of a user's stack, which the simulation reports in a sentence, into an `InputError`."""
    try:
        yield
    except ConnectionError as error:
        raise InputError(str(error)) from None


class Capture:
    """The file of a packet capture. What cannot be written is an `InputError`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with folders.write_errors(path):
            self._file = path.open("wb", buffering=0)

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, content: bytes) -> None:
        """Write all of it, of which a write to a full pipe may take a part."""
        left = memoryview(content)
        with folders.write_errors(self._path):
            while left:
                left = left[self._file.write(left) :]


def _advance(simulation: _core.Simulation, plan: Plan) -> Iterator[tuple[float, bool]]:
    """Runs the simulation in steps; yields the share that is done, and whether rows shall be taken out."""
    steps_per_taking = STEPS // takings(plan)
    many_rows = plan.record.packets or bool(plan.record.pcap)
    for step in range(1, STEPS + 1):
        all_done = False
        while not all_done:
            with _stack_errors():
                reached_s, all_done = simulation.advance_some(plan.duration_s * step / STEPS)
            yield reached_s / plan.duration_s, step % steps_per_taking == 0 if all_done else many_rows


def takings(plan: Plan) -> int:
    """Return how often rows are taken out of a run."""
    packets = sum(link.rate_bps for link in plan.links) * plan.duration_s / (8 * plan.packet_bytes)
    samples = (len(plan.flows) + len(plan.links)) * plan.duration_s / plan.record.interval_s
    return max(1, min(MAX_TAKINGS, int((packets + samples) / ROWS_PER_TAKING)))


def _take(simulation: _core.Simulation, spool: Spool, plan: Plan, captures: Sequence[Capture]) -> None:
    append_rows(spool, simulation.drain(), plan)
    write_captures(simulation, captures)


def write_captures(simulation: _core.Simulation, captures: Sequence[Capture]) -> None:
    """Write the packets that were captured since the last call."""
    if captures:
        for capture, content in zip(captures, simulation.captures(), strict=True):
            capture.write(content)


def _finish(simulation: _core.Simulation, spool: Spool, plan: Plan, captures: Sequence[Capture]) -> None:
    """The last rows and packets, and the totals."""
    write_captures(simulation, captures)
    append_rows(spool, simulation.finish(), plan)


def append_rows(spool: Spool, tables: Mapping[str, Mapping[str, Column]], plan: Plan) -> None:
    """Append rows that a simulation has given to those of its dataset."""
    for table, columns in tables.items():
        spool.append(table, dataset_columns(table, columns, plan))


def dataset_columns(table: str, columns: Mapping[str, Column], plan: Plan) -> Mapping[str, Column]:
    """The columns that the dataset has; the simulator's books may hold more."""
    known: dict[str, Column] = {name: columns[name] for name in TABLES[table] if name in columns}
    return known | _described(columns, plan) if table == "flows" else known


def _described(columns: Mapping[str, Column], plan: Plan) -> dict[str, Column]:
    """Add the names of flows. The plan's flows and UDP sources come first, then generated transfers."""
    given: list[FlowPlan | DatagramPlan] = [*plan.flows, *plan.datagrams] if 0 in columns["flow"][:1] else []
    base_rtt_s = np.array(columns["base_rtt_s"])
    planned = np.array([item.base_rtt_s for item in given], dtype=np.float64)
    routed = np.array([item.ends is not None for item in given], dtype=np.bool_)
    keep = routed & np.isfinite(base_rtt_s[: len(given)])
    base_rtt_s[: len(given)][~keep] = planned[~keep]
    protocols = np.array(_protocols(plan), dtype=object)
    return {
        "source": _ends(columns["source_node"], "sender", plan, len(given)),
        "destination": _ends(columns["destination_node"], "receiver", plan, len(given)),
        "congestion": protocols[np.asarray(columns["group"])].tolist(),
        "base_rtt_s": base_rtt_s,
    }


def _ends(nodes: Column, end: str, plan: Plan, given: int) -> list[str | None]:
    """Names of nodes; the ends of a path that the plan gives are numbered, a generated transfer's have no name."""
    names = np.array([*(node.name for node in plan.nodes), None], dtype=object)
    found: list[str | None] = names[np.minimum(nodes, len(plan.nodes))].tolist()
    for number in range(given):
        found[number] = found[number] or f"{end}-{number}"
    return found


def _protocols(plan: Plan) -> list[str]:
    """Return the congestion control algorithm of each group, that of its stack where it is QUIC; "udp" without one."""
    found = [group.congestion.kind if group.congestion else "udp" for group in plan.groups]
    for source in plan.datagrams:
        found[source.group] = source.congestion
    return found


def table_names() -> dict[str, list[str]]:
    """The names of coded values, by table and column."""
    return {
        "events.kind": _core.EVENT_KINDS,
        "packets.kind": _core.PACKET_KINDS,
        "packets.what": _core.PACKET_ACTIONS,
        "transmissions.end": _core.ENDS,
        "transmissions.kind": _core.PACKET_KINDS,
        "transmissions.cause": _core.CAUSES,
        "transmissions.fate": _core.FATES,
        "transmissions.limit": _core.LIMITS,
    }
