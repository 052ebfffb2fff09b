"""`ackclock shell`: programs whose packets cross a scenario's network in real time.

The network is that of the packet engine, run by the clock (`crates/ackclock-shell`), and the scenario's own flows and
traffic are simulated in it as ever. The programs run in namespaces (`namespaces`): one at the receivers' end, whose
downloads are data as those of the scenario's flows; and a server, the peer, at the senders' end. Each of their
connections is a flow of the group `programs`.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ackclock import _core
from ackclock.dataset import Dataset, Spool, folders
from ackclock.engines import simulator
from ackclock.engines.engine import manifest
from ackclock.input.source import Source
from ackclock.plan import Plan
from ackclock.scenario import overrides, planning
from ackclock.scenario.planning import Loaded
from ackclock.shell.namespaces import End, check
from ackclock.system import signals

#: Name of the group of the programs' connections, and how many have a flow of their own.
GROUP, FLOWS = "programs", 256

#: A run ends with its program; this is longer than any, in seconds (and a Time of the engine).
ENDLESS_S = 1e6

#: Name in the dataset of the algorithm of a program's TCP.
UNKNOWN = "unknown"

#: Rows are taken out of the simulation so often, in seconds.
TAKING_S = 0.25

#: A run is called an emulation of its scenario if 99 % of the packets are late by no more, in seconds.
BOUND_S = 1e-3

#: Addresses of the two ends.
ADDRESSES = {"peer": ("10.77.0.1", "fd00:77::1"), "program": ("10.77.0.2", "fd00:77::2")}


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a program's run: its status, the dataset, and sentences on how well the time was kept."""

    status: int
    data: Dataset
    time_kept: str
    warnings: tuple[str, ...]


def with_programs(source: Source) -> Loaded:
    """The scenario with flows for programs, which may be all that it has. Raises `ScenarioError`."""
    traffic = source.toml().get("traffic", [])
    programs = {"kind": "udp", "name": GROUP, "count": FLOWS, "rate": "1/s", "packet": "1B"}
    return planning.loaded(overrides.rewritten(source, {"traffic": [*traffic, programs]}, "a path for the program"))


def planned(loaded: Loaded, seeds: Sequence[int] | None = None) -> Plan:
    """The plan of what `with_programs` gave, for the first of its seeds or of `seeds`. Raises `ScenarioError`."""
    plan = loaded.plan()
    group = len(plan.groups) - 1
    datagrams = tuple(
        replace(each, start_s=ENDLESS_S, source={"kind": "external"}) if each.group == group else each
        for each in plan.datagrams
    )
    record = replace(plan.record, pcap=False)
    return replace(
        plan,
        duration_s=ENDLESS_S,
        warmup_s=0.0,
        seeds=tuple(seeds or plan.seeds)[:1],
        datagrams=datagrams,
        record=record,
    )


def run(
    plan: Plan,
    command: Sequence[str],
    peer: str | None,
    mtu: int,
    *,
    captures: Path | None = None,
    command_line: str = "",
) -> Outcome:
    """Run a program, and the peer's command by `sh -c`, over the network of `planned`.

    `captures` is a folder for a capture at each end. The program has the terminal, and gets its signals. Raises
    `InputError` where namespaces or devices are not to be had.
    """
    check()
    seed = plan.seeds[0]
    simulation = simulator.set_up(plan, seed)
    spool = Spool(names=simulator.table_names())
    with ExitStack() as stack:
        place = stack.enter_context(folders.temporary_folder())
        place.chmod(0o755)
        ends = {}
        for name, words in (("peer", ["sh", "-c", peer or "exec sleep infinity"]), ("program", command)):
            end = End(words, _settings(name, place, mtu, peer is not None))
            stack.enter_context(signals.cleanup(end.kill))
            ends[name] = end
        if captures:
            captures.mkdir()
        bridge = _core.Bridge(
            simulation,
            [(end.device, str(captures / f"{name}.pcap") if captures else None) for name, end in ends.items()],
            _flows(plan),
        )
        stack.enter_context(_stopped(bridge))
        with suppress(OSError):  # before others' work, where that is permitted
            os.sched_setscheduler(bridge.thread_id(), os.SCHED_RR, os.sched_param(1))
        started = time.monotonic()
        ends["peer"].start()
        if peer is not None:
            ends["peer"].wait_listening()
        with _signals_for_program():
            ends["program"].start()
            status = None
            while status is None and bridge.is_running():
                status = ends["program"].wait(TAKING_S)
                _take(simulation.drain(), spool, plan)
        elapsed_s = time.monotonic() - started
        counted = bridge.stop()
    _take(simulation.finish(), spool, plan, counted["connections"])
    plan = replace(plan, duration_s=elapsed_s)
    about = {**manifest(plan, "packet", seed, command_line), "shell": counted}
    return Outcome(1 if status is None else status, spool.dataset(about), *_judged(counted))


def _settings(name: str, place: Path, mtu: int, has_peer: bool) -> Mapping[str, Any]:
    """Return what an end is told."""
    hosts, resolver = place / "hosts", place / "resolv.conf"
    lines = [f"{address} {each}" for each, addresses in ADDRESSES.items() for address in addresses]
    hosts.write_text("\n".join(["127.0.0.1 localhost", "::1 localhost", *lines, ""]))
    resolver.write_text("nameserver 127.0.0.1\n")  # where nobody answers, which is known at once
    ipv4, ipv6 = ADDRESSES[name]
    return {
        "mtu": mtu,
        "ipv4": ipv4,
        "ipv6": ipv6,
        "files": {"/etc/hosts": str(hosts), "/etc/resolv.conf": str(resolver)},
        "variables": {"ACKCLOCK_PEER": ADDRESSES["peer"][0], "no_proxy": "*", "NO_PROXY": "*"},
        "server": name == "peer" and has_peer,
    }


def _flows(plan: Plan) -> tuple[int, int]:
    """Return the numbers of the flows for programs: the first, and that after the last."""
    end = len(plan.flows) + len(plan.datagrams)
    return end - FLOWS, end


def _take(
    tables: Mapping[str, Mapping[str, Any]], spool: Spool, plan: Plan, connections: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Append rows to the spool; of flows for programs, those that had packets."""
    for table, columns in tables.items():
        rows = simulator.dataset_columns(table, columns, plan)
        spool.append(table, _programs(rows, plan, connections) if table == "flows" and connections else rows)


def _programs(rows: Mapping[str, Any], plan: Plan, connections: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the rows of flows without those for programs that had no packets; which algorithm a TCP has is unknown."""
    first, end = _flows(plan)
    numbers = np.asarray(rows["flow"])
    kept = (numbers < first) | (numbers >= end) | np.isfinite(np.asarray(rows["start_s"]))
    tcp = {each["flow"] for each in connections if each["protocol"] == socket.IPPROTO_TCP}
    names = [UNKNOWN if flow in tcp else name for flow, name in zip(numbers, rows["congestion"], strict=True)]
    return {
        name: [value for value, keep in zip(column, kept, strict=True) if keep]
        for name, column in {**rows, "congestion": names}.items()
    }


@contextmanager
def _stopped(bridge: _core.Bridge) -> Iterator[None]:
    """Stop a bridge at the end, if that was not done."""
    try:
        yield
    finally:
        if bridge.is_running():
            bridge.stop()


@contextmanager
def _signals_for_program() -> Iterator[None]:
    """Leave the terminal's signals to the program."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGINT, signal.SIGQUIT)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _judged(counted: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return a sentence on how late packets were, and warnings."""
    late = counted["lateness"]
    if not late["packets"]:
        return "No packet has crossed the network.", ()
    shown = {name: f"{late[name] * 1e3:.3g} ms" for name in ("p50_s", "p99_s", "worst_s")}
    said = f"Packets left late by {shown['p50_s']} (median), {shown['p99_s']} (99 %), {shown['worst_s']} (worst)."
    warnings = []
    if late["p99_s"] > BOUND_S:
        warnings.append(
            f"this was no emulation of the scenario: 1 % of the packets were late by more than {shown['p99_s']}; "
            f"expected at most {BOUND_S * 1e3:g} ms (is the machine busy?)"
        )
    return said, tuple(warnings)
