"""Transfers between disks: how much of each may be used, and whether a disk or the network was the limit.

The agent reads a file again and again, and has the system forget what it has read; what it receives it writes into a
file without a name, again and again, and waits every 8 MiB until the disk has it (fdatasync). How long it waited for
the disk is what tells a slow disk from a slow network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ackclock.doctor.disk import OF_FREE
from ackclock.doctor.network.endpoints import THIS, Endpoint
from ackclock.doctor.network.test_matrix import FILE, LOCAL, MEMORY, REMOTE, TO, Cell, CellResult, TestPlan
from ackclock.doctor.settings import Finding
from ackclock.errors import InputError
from ackclock.figures import numbers
from ackclock.hosts.agent import Agent
from ackclock.input.fields import shown
from ackclock.system.files import readable

#: Bytes of a disk that are read or written repeatedly, at most and at least.
MAX_BYTES, MIN_BYTES = 256 << 20, 16 << 20

#: Bytes that are filled before they are read, which takes time.
FILLED_BYTES = 64 << 20

#: A disk for which a host waits this share of the time holds it back; from this share of the memory's goodput on, a
#: transfer between disks is as fast as one between memories.
MOST, SAME = 0.5, 0.9


@dataclass(frozen=True, slots=True)
class Store:
    """Data of a host: the source that is read and the sink that is written, with their byte limits."""

    source: Mapping[str, Any]
    sink: Mapping[str, Any]


def parse_files(given: Iterable[str]) -> dict[str, str]:
    """Parse `--file` by side: `PATH` is this host's, `:PATH` the other's. Raises `InputError`."""
    places: dict[str, str] = {}
    for text in given:
        endpoint, place = (REMOTE, text[1:]) if text.startswith(":") else (LOCAL, text)
        if not place or not place.isprintable():
            raise InputError(
                f"--file: found {shown(text)}; expected a folder or file here, or :PATH for the other host"
            )
        if endpoint in places:
            side = "here" if endpoint == LOCAL else "there"
            raise InputError(f"--file: found two places {side}; expected one on each side (:PATH is the other host's)")
        places[endpoint] = place
    return places


def stores(plan: TestPlan, remote_agents: Mapping[str, Agent]) -> dict[str, Store]:
    """Return what may be used of each disk: a tenth of its free space at most. Raises `InputError`, `HostError`."""
    names = _names(plan)
    return {name: _store(name, plan.files[endpoint], remote_agents[name]) for endpoint, name in names.items()}


def _names(plan: TestPlan) -> dict[str, str]:
    """Return the hosts with a disk, by side."""
    return {endpoint: name for endpoint, name in ((LOCAL, THIS), (REMOTE, plan.host)) if endpoint in plan.files}


def _store(name: str, place: str, agent: Agent) -> Store:
    result = agent.disk_space(place)
    where = f"--file: {place}" if name == THIS else f'host "{name}": --file: {place}'
    if result["why"]:
        why = re.sub(r" \(os error \d+\)$", "", readable(str(result["why"])))
        raise InputError(f"{where}: found {why}; expected a folder to write in, or a file in one")
    fitting = int(OF_FREE * result["free_bytes"])
    if fitting < MIN_BYTES:
        raise InputError(
            f"{where}: found {numbers.value(result['free_bytes'], 'bytes')} of room; expected "
            f"{numbers.value(MIN_BYTES / OF_FREE, 'bytes')} or more"
        )
    length = result["file_bytes"]
    if length == 0:
        raise InputError(f"{where}: found an empty file; expected one with data")
    read = min(fitting // 2, FILLED_BYTES) if length is None else length
    return Store({"place": place, "bytes": read}, {"place": place, "bytes": min(fitting // 2, MAX_BYTES)})


def here(name: str, port: int, cell: Cell, stores: Mapping[str, Store], *, sends: bool) -> dict[str, Any]:
    """Return the part of a run spec that concerns its own host."""
    store = stores.get(name) if cell.medium == FILE else None
    source, sink = (store.source if sends else None, None if sends else store.sink) if store else (None, None)
    return {"host": name, "first_port": port, "source": source, "sink": sink}


def waits(plan: TestPlan, cell: Cell, result: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return the share of a disk transfer's time for which each host waited for its disk."""
    if cell.medium == MEMORY:
        return {}
    kernels = {name: result[name]["kernel"] for name in _names(plan).values()}
    spent = {name: float(of["file_read_s"][0] + of["file_write_s"][0]) for name, of in kernels.items()}
    return {"waits": {name: min(1.0, seconds / plan.duration_s) for name, seconds in spent.items()}}


def findings(
    cells: Iterable[CellResult], endpoints: tuple[Endpoint, Endpoint], files: Mapping[str, str]
) -> Iterator[Finding]:
    """Yield for each direction and number of flows whether the disk or the network is the limit."""
    by_cell = {tuple(asdict(result.cell).values()): result for result in cells}
    for (direction, flows, medium), result in by_cell.items():
        if medium == FILE:
            yield _finding(result, by_cell[direction, flows, MEMORY], endpoints, files)


def _finding(
    result: CellResult, memory: CellResult, endpoints: tuple[Endpoint, Endpoint], files: Mapping[str, str]
) -> Finding:
    sender, receiver = endpoints if result.cell.direction == TO else (endpoints[1], endpoints[0])
    with_bps, without_bps = result.mean("goodput_bps"), memory.mean("goodput_bps")
    slowest = max(result.waits, key=lambda name: result.waits[name])
    share = result.waits[slowest]
    flows = "one flow" if result.cell.flows == 1 else f"{result.cell.flows} flows"
    between = f"{numbers.value(with_bps, 'bit/s')} with a file, {numbers.value(without_bps, 'bit/s')} without"
    evidence = {
        "file_bps": with_bps, "memory_bps": without_bps, "flows": result.cell.flows,
        **{f"disk of {name}": of for name, of in result.waits.items()},
    }  # fmt: skip
    sentence = f"From {sender.name} to {receiver.name} {flows} got {between}: "
    wait_sentence = f"{slowest} waited for its disk for {numbers.value(share, 'share')} of the time"
    if share >= MOST and with_bps < SAME * without_bps:
        place = files[LOCAL if slowest == THIS else REMOTE]
        advice = f"What that disk can do: ackclock doctor host disk {place}, on {slowest}."
        return Finding(
            "network", f"{sentence}the disk holds the transfer back; {wait_sentence}.", evidence, advice, bad=True
        )
    if with_bps >= SAME * without_bps:
        return Finding("network", f"{sentence}not the disk but the path is the limit; {wait_sentence}.", evidence)
    return Finding("network", f"{sentence}disk and network take turns in one program; {wait_sentence}.", evidence)
