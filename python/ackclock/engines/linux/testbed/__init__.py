"""A plan on a testbed: real hosts, each with an agent, and a router between them.

Each agent gets the same run spec and knows which host it is (`layout`), so all draw the same transfers; they begin at
one time, for which their clocks are related (`ackclock.hosts.clocks`). What is changed on a host, its guard undoes.
Each writes what it sees, and the tables become one dataset (`merge_tables`).
"""

from __future__ import annotations

import random
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ackclock import _core
from ackclock.dataset import Dataset, folders
from ackclock.engines.engine import Progress, RunOptions, no_progress
from ackclock.engines.linux import process
from ackclock.engines.linux.testbed import layout, measuring, settings
from ackclock.engines.linux.testbed.layout import ROUTER, Host, Tables, Testbed
from ackclock.engines.linux.testbed.preflight import Preflight, changes, probe_hosts
from ackclock.errors import InputError
from ackclock.hosts.agent import Agent, HostError, agents
from ackclock.hosts.clocks import ClockDrift
from ackclock.plan import Plan

#: A run begins so long after all are ready: longer than to tell them all.
LEAD_S = 0.7

#: Seconds between two polls of the agents during a run, and between two readings of their clocks.
POLL_INTERVAL_S, CLOCK_S = 0.05, 1.0

#: An agent that has not been heard of for so long is given up, and so is one that is not done so long after its end.
MAX_STALL_S = 8.0
LATE_S = 20.0

#: First ports of servers: each run takes other ones, since the kernel keeps closed connections for a minute.
PORTS = range(10_000, 19_000, 16)

#: One run at a time: hosts have one network.
_lock = threading.Lock()


@contextmanager
def _reached(plan: Plan) -> Iterator[tuple[Testbed, dict[str, Agent], Preflight]]:
    testbed = Testbed.of(plan)
    with _lock, agents(testbed.destinations, testbed.ssh_config) as there:
        yield testbed, there, probe_hosts(plan, testbed, there)


def probe(plan: Plan) -> Preflight:
    """Examine a plan's hosts. Raises `HostError`, `InputError`."""
    with _reached(plan) as (_, there, seen):
        for agent in there.values():
            agent.end()
        return seen


def run(plan: Plan, seed: int, around: RunOptions) -> Dataset:
    """One run. Raises `HostError`, and `InputError` for what a host lacks; every host is left as it was."""
    with _ready(plan) as (testbed, there, seen):
        captures = around.capture_files(plan, seed)
        clocks, found = _between(plan, seed, testbed, there, len(captures), around.progress)
        _undo(there)
        _keep(captures, there)
        hosts = {host.name: host for host in testbed.hosts}
        return _dataset(plan, seed, around, hosts, found, clocks, seen)


def measured(plan: Plan) -> Plan:
    """The plan with what it leaves to be measured, found out on its hosts. Raises `HostError`, `InputError`."""
    with _ready(plan) as (testbed, there, seen):
        probe = measuring.probe(plan, _controls(seen))
        transfers = [_measured(probe, seed, testbed, there) for seed in range(measuring.REPEATS)]
        _undo(there)
    return measuring.filled(plan, measuring.estimate_path(plan, transfers))


def _measured(probe: Plan, seed: int, testbed: Testbed, there: Mapping[str, Agent]) -> Tables:
    clocks, found = _between(probe, seed, testbed, there, 0, no_progress)
    hosts = {host.name: host for host in testbed.hosts}
    return merge_tables(hosts, found, {name: clock.stretch for name, clock in clocks.items()})


def _controls(seen: Preflight) -> frozenset[str]:
    """The congestion controls that every host has for us."""
    every = [facts.controls if facts.root else facts.allowed for facts in seen.facts.values()]
    return frozenset.intersection(*every)


@contextmanager
def _ready(plan: Plan) -> Iterator[tuple[Testbed, dict[str, Agent], Preflight]]:
    """Hosts that lack nothing, set up for a plan."""
    with _reached(plan) as (testbed, there, seen):
        _check(seen)
        for host in testbed.hosts:
            there[host.name].change(changes(plan, testbed, host, seen.facts[host.name]))
        yield testbed, there, seen


def _between(
    plan: Plan, seed: int, testbed: Testbed, there: Mapping[str, Agent], captures: int, progress: Progress
) -> tuple[dict[str, ClockDrift], dict[str, Any]]:
    """Has a plan carried out between the hosts."""
    first_port = random.choice(PORTS)
    told = {host.name: settings.run_spec(plan, seed, testbed, host, first_port, captures) for host in testbed.hosts}
    return carried_out(there, told, plan.duration_s, progress)


def _check(seen: Preflight) -> None:
    if seen.missing:
        raise InputError("\n".join(seen.missing))


def _undo(there: Mapping[str, Agent]) -> None:
    """Has every host left as it was. Raises `HostError`."""
    left = [f'host "{name}": not undone: {line}' for name, agent in there.items() for line in agent.end()]
    if left:
        raise HostError("\n".join(left))


def carried_out(
    there: Mapping[str, Agent], told: Mapping[str, Mapping[str, Any]], duration_s: float, progress: Progress
) -> tuple[dict[str, ClockDrift], dict[str, Any]]:
    """Has the agents carry out their run specs, all from one time on: how their clocks went, and their tables.

    Raises `HostError`.
    """
    for name, agent in there.items():
        agent.prepare(told[name])
    before = {name: agent.clock() for name, agent in there.items()}
    start_ns = time.monotonic_ns() + round(LEAD_S * 1e9)
    for name, agent in there.items():
        agent.request("start", at_ns=before[name].to_remote(start_ns))
    _follow(there, start_ns * 1e-9 + duration_s, progress)
    clocks = {name: ClockDrift(before[name], agent.clock()) for name, agent in there.items()}
    return clocks, {name: _core.linux_result(agent.files["result.bin"]) for name, agent in there.items()}


def _keep(captures: Sequence[Path], there: Mapping[str, Agent]) -> None:
    """Writes the captures, each of the host that has it."""
    for number, path in enumerate(captures):
        with folders.write_errors(path):
            path.write_bytes(next(of for agent in there.values() if (of := agent.files.get(f"{number}.pcap"))))


def _follow(there: Mapping[str, Agent], end_s: float, progress: Progress) -> None:
    """Waits for all to be done. Raises `HostError` for one that failed, is gone or is silent."""
    asked_s = 0.0
    latest_s = end_s + LATE_S
    while not all(agent.is_done for agent in there.values()):
        progress(min(agent.share for agent in there.values()))
        now_s = time.monotonic()
        if now_s - asked_s > CLOCK_S:
            asked_s = now_s
            for agent in there.values():
                agent.ping()
        for agent in there.values():
            agent.raise_failures()
            _check_alive(agent, is_late=now_s > latest_s)
        time.sleep(POLL_INTERVAL_S)


def _check_alive(agent: Agent, *, is_late: bool) -> None:
    silent_s = time.monotonic() - agent.received_s
    if silent_s > MAX_STALL_S or is_late:
        raise HostError(f'host "{agent.name}": nothing heard for {silent_s:.0f} s')


def _dataset(
    plan: Plan,
    seed: int,
    around: RunOptions,
    hosts: Mapping[str, Host],
    found: Mapping[str, Any],
    clocks: Mapping[str, ClockDrift],
    seen: Preflight,
) -> Dataset:
    tables = merge_tables(hosts, found, {name: clock.stretch for name, clock in clocks.items()})
    of_hosts = {name: process.timing_quality(plan, tables | {"kernel": of["kernel"]}) for name, of in found.items()}
    lost_p = sum(int(of["kernel"]["capture_lost_p"][0]) for of in found.values())
    for doubt in (*seen.doubts, *process.uncaptured(lost_p), *_doubts(plan, of_hosts)):
        warnings.warn(doubt, stacklevel=2)
    about = {
        "release": ", ".join(dict.fromkeys(seen.facts[name].release for name in hosts)),
        "mode": layout.HOSTS,
        "sysctls": dict(plan.options["linux"]["sysctls"]),
        "hosts": {name: facts.as_dict() for name, facts in seen.facts.items()},
    }
    of_run = {
        "clocks": {name: clock.as_dict() for name, clock in clocks.items()},
        "held": _held(of_hosts),
    }
    return process.dataset(plan, seed, tables, around, about, of_run)


def _held(of_hosts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the timing of all hosts as that of one machine: the worst of all, and each host's own."""
    every = [*of_hosts.values()]
    return {
        "shares": every[0]["shares"],
        "late_mean_s": max(of["late_mean_s"] for of in every),
        "late_max_s": max(of["late_max_s"] for of in every),
        "skipped_samples": sum(of["skipped_samples"] for of in every),
        "hosts": {name: {key: of[key] for key in of if key != "shares"} for name, of in of_hosts.items()},
    }


def _doubts(plan: Plan, of_hosts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    said = set()
    for name, of in of_hosts.items():
        for doubt in process.doubts(plan, of):
            line = doubt if "the link" in doubt else f'host "{name}": {doubt}'
            if line not in said:
                said.add(line)
                yield line


#: Columns of a flow that its receiver counts, or its client measures. The others are the sender's.
OF_RECEIVER = ("delivered_bytes", "measured_bytes", "received_packets", "delay_mean_s")
OF_CLIENT = ("start_s", "established_s", "end_s", "fct_s")

#: Columns that are times of a host's clock, or durations by it.
TIMES = ("time_s", *OF_CLIENT, "delay_mean_s")


def merge_tables(hosts: Mapping[str, Host], found: Mapping[str, Tables], stretches: Mapping[str, float]) -> Tables:
    """One result of the hosts' own; durations of each clock are multiplied by its stretch."""
    every = {name: _stretched(tables, stretches[name]) for name, tables in found.items()}
    router = next((every[name] for name, host in hosts.items() if host.role == ROUTER), None) or _unseen(every)
    made: Tables = {name: router[name] for name in ("links", "queue_samples") if name in router}
    made["flow_samples"] = _joined([tables.get("flow_samples", {}) for tables in every.values()], ("time_s", "flow"))
    made["events"] = _joined([tables.get("events", {}) for tables in every.values()], ("time_s", "flow"))
    ends = [tables for tables in every.values() if tables.get("ends")]
    made["flows"] = _flows(ends)
    made["limits"] = _joined([_of_senders(tables) for tables in ends], ("flow",))
    return {name: columns for name, columns in made.items() if columns}


def _unseen(every: Mapping[str, Tables]) -> Tables:
    """Return the tables of links that nothing can be measured on: links without counters."""
    return {"links": next(iter(every.values()))["links"]}


def _stretched(tables: Tables, stretch: float) -> Tables:
    if stretch == 1.0:
        return tables
    return {
        name: {key: np.asarray(values) * stretch if key in TIMES else values for key, values in columns.items()}
        for name, columns in tables.items()
    }


def _joined(parts: list[dict[str, Any]], by: tuple[str, ...]) -> dict[str, Any]:
    """Rows of several hosts in one order."""
    filled = [part for part in parts if part and len(next(iter(part.values())))]
    if not filled:
        return {}
    whole = {key: np.concatenate([np.asarray(part[key]) for part in filled]) for key in filled[0]}
    order = np.lexsort([whole[key] for key in reversed(by)])
    return {key: values[order] for key, values in whole.items()}


def _of_senders(tables: Tables) -> dict[str, Any]:
    """Return what limited the senders of a host, which only they measure."""
    ends, limits = tables["ends"], tables.get("limits")
    if not limits:
        return {}
    senders = np.asarray(ends["flow"])[np.asarray(ends["sender"], dtype=bool)]
    rows = np.isin(np.asarray(limits["flow"]), senders)
    return {key: np.asarray(values)[rows] for key, values in limits.items()}


def _flows(parts: list[Tables]) -> dict[str, Any]:
    """A row for each flow that any host knows: each column from the host that can say it, else from any."""
    rows: dict[int, dict[str, Any]] = {}
    for tables in parts:
        flows, ends = tables["flows"], tables["ends"]
        keys = list(flows)
        for number, flow in enumerate(np.asarray(ends["flow"]).tolist()):
            sends, receives, opens = (bool(ends[key][number]) for key in ("sender", "receiver", "client"))
            row = rows.setdefault(int(flow), {})
            for key in keys:
                is_its = receives if key in OF_RECEIVER else opens if key in OF_CLIENT else sends
                if is_its or key not in row:
                    row[key] = flows[key][number]
    if not rows:
        return {}
    every = [rows[flow] for flow in sorted(rows)]
    return {key: np.array([row[key] for row in every], dtype=_kind(parts, key)) for key in every[0]}


def _kind(parts: list[Tables], key: str) -> Any:
    return np.asarray(parts[0]["flows"][key]).dtype
