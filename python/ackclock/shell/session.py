"""A network in real time, and the programs that use it."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from ackclock import _core, repr_format
from ackclock.dataset import Dataset, Spool, folders
from ackclock.engines import simulator
from ackclock.engines.engine import RunOptions, manifest
from ackclock.errors import InputError
from ackclock.input import arguments
from ackclock.input.arguments import checked, optional
from ackclock.input.source import Source
from ackclock.plan import Plan
from ackclock.scenario import overrides, planning
from ackclock.scenario.planning import Loaded
from ackclock.shell import plans
from ackclock.shell.addresses import free_subnet
from ackclock.shell.namespaces import LISTENING_S, End, check
from ackclock.shell.relay import Relay
from ackclock.shell.sockets import Sockets
from ackclock.system import signals

#: Rows are taken out of the simulation so often, in seconds.
TAKING_S = 0.25

#: The kernel is asked for the statistics of sockets at most so often; its last answers are awaited so long, in seconds.
MIN_REPORTS_S, REPORTING_S = 0.01, 5.0

#: A run is called an emulation of its scenario if 99 % of the packets are late by no more, in seconds.
BOUND_S = 1e-3

#: Smallest and largest MTU: that of IPv4 (RFC 791) and the longest packet, in bytes.
MTUS = 576, 65535

#: A program and its arguments, or a command for `sh -c`.
Command: TypeAlias = Sequence[str] | str

#: A scenario that may have no flows: its file, its text, its tables, or loaded.
ShellScenario: TypeAlias = Loaded | Path | str | Mapping[str, Any]


@checked(
    at=arguments.several(arguments.WORD, "a list of hosts"),
    peer=optional(arguments.TEXT),
    seed=optional(arguments.integer(0, 2**63 - 1)),
    mtu=arguments.integer(*MTUS),
    captures=optional(arguments.PATH),
    internet=arguments.FLAG,
)
def shell(
    scenario: ShellScenario,
    *,
    at: Sequence[str] = (),
    peer: str | None = None,
    seed: int | None = None,
    mtu: int = 1500,
    captures: Path | None = None,
    internet: bool = False,
) -> Network:
    """Return a scenario's network for programs, in real time: a context manager, which runs until its end.

    Needs Linux, and no root. The programs' connections are queued, delayed and lost as the data of the scenario's
    flows, which are simulated with them; a scenario without flows will do.

    Args:
        scenario: a path, TOML, tables as a mapping, or what `ackclock.load` and `ackclock.scenario` give.
        at: the hosts with programs, 2 to 32, of a scenario that names hosts; by default there are two ends, "peer" at
            the senders' and "program" at the receivers'.
        peer: the command of a server at the first end, for `sh -c`; the block begins when it listens, or after 5 s.
        seed: instead of the scenario's first.
        mtu: the largest packet, in bytes, from 576 to 65535.
        captures: a folder, which is made, for a packet capture at each end, and at the hosts and links that the
            scenario's `record.pcap` names.
        internet: let programs reach real servers: connections to other addresses leave from the first end.

    Raises:
        ScenarioError: the scenario is invalid, or has no path for a program.
        InputError: in the block's first line, where namespaces or devices are not to be had; `captures` exists.
    """
    plan = plans.planned(plans.with_programs(_source(scenario), at), None if seed is None else [seed], at)
    return Network(plan, at or plans.ENDS, peer=peer, mtu=mtu, captures=captures, internet=internet)


def _source(scenario: ShellScenario) -> Source:
    if isinstance(scenario, Loaded):
        return scenario.source
    if isinstance(scenario, Mapping):
        return overrides.without_file(scenario, "scenario")
    if isinstance(scenario, str) and "\n" in scenario:
        return Source("scenario", scenario)
    return planning.source(arguments.PATH("scenario", scenario))


class Network:
    """A scenario's network in real time, with programs at its ends: hosts, or "peer" (the senders') and "program".

    A context manager: the network runs inside the block, once. At its end everything that was started in it is killed.
    Every end has the names of all. `ACKCLOCK_PEER` is the IPv4 address of the first.
    """

    def __init__(
        self,
        plan: Plan,
        ends: Sequence[str] = plans.ENDS,
        *,
        peer: str | None = None,
        mtu: int = 1500,
        captures: Path | None = None,
        internet: bool = False,
        command_line: str = "",
    ) -> None:
        self._internet = internet
        if captures is None:
            plan = replace(plan, record=replace(plan.record, pcap=False))
        self._plan, self._names, self._peer, self._mtu = plan, tuple(ends), peer, mtu
        self._captures, self._command_line = captures, command_line
        self._ends: dict[str, End] = {}
        self._spool = Spool(names=simulator.table_names())
        self._open = ExitStack()
        self._is_over = threading.Event()
        self._data: Dataset | None = None
        self._counted: dict[str, Any] | None = None
        self._relay: Relay | None = None
        self._started: list[subprocess.Popen[Any]] = []
        self._readers: list[threading.Thread] = []

    def __enter__(self) -> Network:
        if self._ends:
            raise InputError("shell: found a network that was used before; expected a new one")
        check()
        with self._open:
            self._begin()
            self._open = self._open.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self) -> None:
        """Make the ends, start the simulation, and wait for the peer."""
        self._simulation = simulator.set_up(self._plan, self._plan.seeds[0])
        place = self._open.enter_context(folders.temporary_folder())
        place.chmod(0o755)
        self._open.callback(self._reap)
        subnet = free_subnet()
        for name in self._names:
            interval_s = max(self._plan.record.interval_s, MIN_REPORTS_S)
            end = End(name, self._names, place, self._mtu, interval_s, internet=self._internet, subnet=subnet)
            self._open.enter_context(signals.cleanup(end.kill))
            self._ends[name] = end
        if self._captures:
            with folders.write_errors(self._captures):
                self._captures.mkdir()
        paths = RunOptions(captures=self._captures).capture_files(self._plan, self._plan.seeds[0])
        self._files = [self._open.enter_context(simulator.Capture(path)) for path in paths]
        self._bridge = _core.Bridge(
            self._simulation,
            [(name, end.device, end.addresses, self._capture_file(name)) for name, end in self._ends.items()],
            list(plans.routes(self._plan, len(self._ends))),
            relay=self._relay_addresses(),
        )
        self._open.callback(self._finish_reports)
        self._open.callback(self._stop)
        with suppress(OSError):  # before others' work, where that is permitted
            os.sched_setscheduler(self._bridge.thread_id(), os.SCHED_RR, os.sched_param(1))
        self._started_s = time.monotonic()
        self._sockets = Sockets(self._started_s, self._bridge.relayed)
        if self._internet:
            sockets = self._ends[self._names[0]].relay_sockets
            self._relay = Relay(sockets[::2], sockets[1::2], self._bridge.relayed, self._icmp[0], subnet)
            self._open.callback(self._relay.stop)
        self._readers = [threading.Thread(target=self._read, args=(name,), daemon=True) for name in self._names]
        for reader in self._readers:
            reader.start()
        taker = threading.Thread(target=self._take_rows, name="rows", daemon=True)
        taker.start()
        self._open.callback(taker.join)
        self._open.callback(self._is_over.set)
        if self._peer is not None:
            self.serve([(self._names[0], self._peer)])

    def _relay_addresses(self) -> tuple[list[tuple[str, int, int]], int] | None:
        """Return the relay's addresses with its ports for TCP and UDP, and the bridge's socket for ICMP."""
        if not self._internet:
            return None
        self._icmp = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for each in self._icmp:
            each.setblocking(False)
            self._open.callback(each.close)
        names = [each.getsockname() for each in self._ends[self._names[0]].relay_sockets]
        listeners = [(tcp[0], tcp[1], udp[1]) for tcp, udp in zip(names[::2], names[1::2], strict=True)]
        return listeners, self._icmp[1].fileno()

    def _capture_file(self, name: str) -> str | None:
        return str(self._captures / f"{name}.pcap") if self._captures else None

    # ---- programs ----

    def run(
        self,
        command: Command,
        *,
        at: str | None = None,
        check: bool = False,
        **options: Any,
    ) -> subprocess.CompletedProcess[Any]:
        """Run a program at an end and wait for it; return what `subprocess.run` returns.

        Args:
            command: the program and its arguments, or a text for `sh -c`.
            at: the end, by default the last: "program".
            check: raise `subprocess.CalledProcessError` for a status other than 0.
            options: those of `subprocess.run`: `capture_output`, `text`, `input`, `timeout`, `env`, `cwd` …; `env` has
                `ACKCLOCK_PEER`, the peer's address, in addition.

        Raises:
            FileNotFoundError: there is no such program.
            InputError: no such end, or not inside the block.
        """
        words, options = self._inside(command, at, options)
        try:
            done = subprocess.run(words, check=False, **options)
        except subprocess.TimeoutExpired as error:
            error.cmd = command
            raise
        done.args = command
        if check:
            done.check_returncode()
        return done

    def serve(self, commands: Sequence[tuple[str, Command]]) -> None:
        """Start programs at ends, without input and with output to standard error; wait until they listen, or 5 s."""
        servers = [(at, self.popen(command, at=at, stdin=subprocess.DEVNULL, stdout=2)) for at, command in commands]
        end_s = time.monotonic() + LISTENING_S
        for at, server in servers:
            self._ends[at].wait_listening(server, end_s)

    def popen(self, command: Command, *, at: str | None = None, **options: Any) -> subprocess.Popen[Any]:
        """Start a program at an end, and return its `subprocess.Popen`. Arguments and errors are those of `run`."""
        words, options = self._inside(command, at, options)
        started = subprocess.Popen(words, **options)
        self._started.append(started)
        return started

    def _inside(self, command: Command, at: str | None, options: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
        """Return the words that run a command at an end, and the options of its process."""
        name = self._names[-1] if at is None else at
        if name not in self._ends or self._is_over.is_set():
            is_running = self._ends and not self._is_over.is_set()
            found = arguments.readable_value(at) if is_running else "no network that runs"
            raise InputError(f"at: found {found}; expected {' or '.join(self._names)}, inside the block")
        words = ["sh", "-c", command] if isinstance(command, str) else [os.fspath(word) for word in command]
        given = dict(options)
        directory, environment = given.pop("cwd", None) or Path.cwd(), given.pop("env", None)
        environment = dict(os.environ if environment is None else environment)
        if shutil.which(words[0], path=environment.get("PATH")) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), words[0])
        end = self._ends[name]
        return end.enter(words, directory), {**given, "env": {**environment, **end.variables}}

    # ---- the end, and the result ----

    def close(self) -> None:
        """End the network and all that was started in it; nothing happens if that was done before.

        Raises:
            OSError: a device or a capture has failed, or the simulation.
        """
        if not self._is_over.is_set():
            self._is_over.set()
            self._elapsed_s = time.monotonic() - self._started_s
            self._open.close()

    def dataset(self) -> Dataset:
        """Return the result of the block, which ends if it goes on: a dataset like that of any run.

        Raises:
            InputError: the network has not begun, or has failed.
        """
        if self._data is None:
            self._data = self._result()
        return self._data

    def _result(self) -> Dataset:
        if self._ends:
            self.close()
        if self._counted is None:
            raise InputError("shell: found a network without a result; expected it after its block")
        connections = self._counted["connections"]
        for each in connections:
            each["tcp"] = self._sockets.statistics(each)
        self._append(self._simulation.finish(), connections)
        plan = replace(self._plan, duration_s=self._elapsed_s)
        about = {**manifest(plan, "packet", plan.seeds[0], self._command_line), "shell": self._counted}
        return self._spool.dataset(about)

    @property
    def time_kept(self) -> tuple[str, tuple[str, ...]]:
        """A sentence on how late packets were, and warnings of that and of lost packets; after the end."""
        self.dataset()
        assert self._counted is not None
        return _judged(self._counted)

    def _reap(self) -> None:
        """Wait for the programs that were killed with their ends."""
        for program in self._started:
            program.wait()

    def _stop(self) -> None:
        self._sockets.begin(self._bridge.take_begun())
        self._counted = self._bridge.stop()
        simulator.write_captures(self._simulation, self._files)
        if self._relay is not None:
            self._counted["relay_lost_datagrams"] = self._relay.lost_datagrams
            self._counted["relay_forbidden_echoes"] = self._relay.forbidden_echoes

    def _read(self, name: str) -> None:
        """Read the reports of an end."""
        for time_s, messages in self._ends[name].reports():
            self._sockets.add(name, time_s, messages)

    def _finish_reports(self) -> None:
        """Wait for the last reports of all ends."""
        for end in self._ends.values():
            end.finish_reports()
        for reader in self._readers:
            reader.join(REPORTING_S)

    def _take_rows(self) -> None:
        """Take rows out of the simulation until the end; a bridge that fails ends all programs."""
        while not self._is_over.wait(TAKING_S):
            if not self._bridge.is_running():
                for end in self._ends.values():
                    end.kill_programs()
                return
            self._sockets.begin(self._bridge.take_begun())
            self._append(self._simulation.drain())
            simulator.write_captures(self._simulation, self._files)

    def _append(
        self, tables: Mapping[str, Mapping[str, Any]], connections: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        """Append rows; of flows for programs, those that had packets."""
        for table, columns in tables.items():
            rows = simulator.dataset_columns(table, columns, self._plan)
            if table == "flow_samples":
                rows = self._sockets.fill(rows)
            is_flows = table == "flows" and connections is not None
            self._spool.append(table, plans.used_flows(rows, self._plan, connections or ()) if is_flows else rows)


@contextmanager
def signals_for_program() -> Iterator[None]:
    """Leave the terminal's signals to the program."""
    before = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGINT, signal.SIGQUIT)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _judged(counted: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return a sentence on how late packets were, and warnings."""
    late, warnings = counted["lateness"], [*_lost(counted)]
    if not late["packets"]:
        return "No packet has crossed the network.", tuple(warnings)
    shown = {name: f"{late[name] * 1e3:.3g} ms" for name in ("p50_s", "p99_s", "worst_s")}
    said = f"Packets left late by {shown['p50_s']} (median), {shown['p99_s']} (99 %), {shown['worst_s']} (worst)."
    if late["p99_s"] > BOUND_S:
        warnings.append(
            f"this was no emulation of the scenario: 1 % of the packets were late by more than {shown['p99_s']}; "
            f"expected at most {BOUND_S * 1e3:g} ms (is the machine busy?)"
        )
    return said, tuple(warnings)


def _lost(counted: Mapping[str, Any]) -> Iterator[str]:
    """Yield a warning for each place outside the scenario that has lost packets."""
    if lost := counted.get("relay_lost_datagrams"):
        yield (
            f"the relay of --internet lost {repr_format.counted(lost, 'datagram')} in full socket buffers, not in the "
            "scenario's network (sysctl net.core.rmem_max allows larger ones)"
        )
    if forbidden := counted.get("relay_forbidden_echoes"):
        yield (
            f"this machine forbids its users ping: {repr_format.counted(forbidden, 'echo request')} had no response "
            "(sysctl net.ipv4.ping_group_range allows groups)"
        )
    if lost := counted["unwritten_packets"]:
        yield f"the device of an end took no more: {repr_format.counted(lost, 'packet')} lost behind the last link"
