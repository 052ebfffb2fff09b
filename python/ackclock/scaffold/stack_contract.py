"""The contract of a transport stack (`ackclock.h`), on a small network: a FIFO and a delay in each direction.

Every clause runs the library in a process of its own. That no clock and no random number of the operating system
matters is judged by the datagrams: two processes at different times, one of which pauses between calls, must send the
same. A clock that is read without effect is not found.
"""

from __future__ import annotations

import heapq
import random
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

from ackclock import stacks
from ackclock.scaffold.contract import Clause
from ackclock.stacks import host

S, MS = 10**9, 10**6

#: The network: 40 ms round-trip time, 10 Mb/s, a buffer of 60 packets.
DELAY_NS, NS_PER_BYTE, BUFFER_BYTES, HEADER_BYTES = 20 * MS, 800, 90_000, 28

#: Calls of one trial: more is a stack that never rests.
MAX_CALLS = 50_000

#: Bytes of a transfer, and the time that it may take, with and without impairments.
TRANSFER_BYTES, TRANSFER_NS, IMPAIRED_NS = 500_000, 20 * S, 300 * S

#: A datagram's number in its direction, and the role of its sender → its delays; () is a loss, two a duplication.
Impairment: TypeAlias = Callable[[int, int], tuple[int, ...]]


def unimpaired(number: int, role: int) -> tuple[int, ...]:
    """Deliver every datagram once."""
    return (DELAY_NS,)


@dataclass(frozen=True, slots=True)
class Trial:
    """A run of connections on the network."""

    size_bytes: int
    until_ns: int
    seed: int = 1
    connections: int = 1
    impairment: Impairment = unimpaired
    #: Bytes that are no datagrams of a connection, after every so many datagrams.
    garbage_every: int = 0
    pause_s: float = 0


@dataclass(slots=True)
class Sent:
    """A datagram in a record: time, connection, role of the sender, ECN codepoint, payload."""

    now_ns: int
    connection: int
    role: int
    ecn: int
    content: bytes


@dataclass(slots=True)
class Network:
    """A trial in progress; an end has the number 2 × connection + role."""

    process: Process
    trial: Trial
    now_ns: int = 0
    sent: list[Sent] = field(default_factory=list)
    ends: dict[int, Response] = field(default_factory=dict)
    calls: int = 0
    _flight: list[tuple[int, int, int, int, bytes]] = field(default_factory=list)
    _idle_ns: dict[tuple[int, int], int] = field(default_factory=dict)
    _numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    _random: random.Random = field(default_factory=lambda: random.Random(7))

    def run(self) -> Network:
        """Run the trial until its end, or until all connections are over. Raises `StackError`."""
        trial = self.trial
        for end in range(2 * trial.connections):
            role = end % 2
            opening = Opening(role, 1000 * trial.seed + end, trial.size_bytes if role == CLIENT else 0)
            self._on_response(end, self.process.new(end, 0, opening))
        while (event := self._next()) and self.now_ns <= trial.until_ns and not self.is_finished:
            self._handle(*event)
            if trial.pause_s and self.calls < 100:
                time.sleep(trial.pause_s)
        for end in self.ends:
            self.process.free(end, self.now_ns)
        return self

    @property
    def is_finished(self) -> bool:
        """True if all that was written has been read and acknowledged, in all connections."""
        return self.trial.size_bytes > 0 and all(
            response.status & host.FINISHED if end % 2 == CLIENT else response.read_bytes == self.trial.size_bytes
            for end, response in self.ends.items()
        )

    def count(self, from_ns: int, role: int) -> int:
        """Return the number of datagrams that the ends of a role sent from a time on."""
        return sum(one.now_ns >= from_ns and one.role == role for one in self.sent)

    def _next(self) -> tuple[int, int, int, bytes] | None:
        """Take the next event off: time, end, ECN codepoint and payload; a timer has no payload."""
        due_ns, end = min((response.timeout_ns, end) for end, response in self.ends.items())
        if self._flight and self._flight[0][0] <= due_ns:
            at_ns, _, end, ecn, content = heapq.heappop(self._flight)
            return at_ns, end, ecn, content
        return None if due_ns == host.NEVER else (due_ns, end, 0, b"")

    def _handle(self, now_ns: int, end: int, ecn: int, content: bytes) -> None:
        self.now_ns = now_ns
        if content:
            self._on_response(end, self.process.receive(end, now_ns, ecn, content))
        else:
            self._on_response(end, self.process.run_timers(end, now_ns))

    def _on_response(self, end: int, response: Response) -> None:
        self.ends[end] = response
        self.calls += 1
        if self.calls > MAX_CALLS:
            raise StackError(f"more than {MAX_CALLS:,} events until {self.now_ns / S:g} s; expected it to rest")
        for ecn, content in response.datagrams:
            self._send(end, ecn, content)

    def _send(self, end: int, ecn: int, content: bytes) -> None:
        connection, role = divmod(end, 2)
        self.sent.append(Sent(self.now_ns, connection, role, ecn, content))
        link = (connection, role)
        number = self._numbers[link] = self._numbers.get(link, -1) + 1
        if self.trial.garbage_every and number % self.trial.garbage_every == 0:
            for target in (end, end ^ 1):
                noise = self._random.randbytes(self._random.choice((1, 20, 200, 1472)))
                self._deliver(self.now_ns + DELAY_NS, target, 0, noise)
        waiting_ns = max(0, self._idle_ns.get(link, 0) - self.now_ns)
        if waiting_ns > BUFFER_BYTES * NS_PER_BYTE:
            return
        self._idle_ns[link] = self.now_ns + waiting_ns + NS_PER_BYTE * (len(content) + HEADER_BYTES)
        for delay_ns in self.trial.impairment(number, role):
            self._deliver(self._idle_ns[link] + delay_ns, end ^ 1, ecn, content)

    def _deliver(self, at_ns: int, end: int, ecn: int, content: bytes) -> None:
        heapq.heappush(self._flight, (at_ns, self.calls * 1000 + len(self._flight), end, ecn, content))


def clauses(library: Path) -> Iterator[Clause]:
    """Yield each part of the contract, checked; only the first if the library opens no connection."""
    checks: dict[str, Callable[[Path], Iterator[str]]] = {
        "it has the functions of ackclock.h, and opens a connection": _opens,
        "a transfer arrives complete and in order": partial(_transfers, TRANSFER_NS, unimpaired, 0),
        "the same seed sends the same datagrams, whatever the host's clock and random numbers": _repeats,
        "a connection sends the same alone and beside another": _is_independent,
        "a transfer survives loss, reordering and duplication": partial(_transfers, IMPAIRED_NS, _impaired, 0),
        "foreign datagrams are ignored": partial(_transfers, IMPAIRED_NS, unimpaired, 5),
        "an idle connection rests": _rests,
        "an end without any reply backs off": _backs_off,
    }
    for text, check in checks.items():
        found = tuple(_violations(partial(check, library)))
        yield Clause(text, found)
        if found and check is _opens:
            return


def _violations(check: Callable[[], Iterator[str]]) -> Iterator[str]:
    try:
        yield from check()
    except StackError as error:
        yield str(error)


def _run(library: Path, trial: Trial) -> Network:
    with Process(library) as process:
        return Network(process, trial).run()


def _opens(library: Path) -> Iterator[str]:
    network = _run(library, Trial(1, 5 * S))
    for role, name in ((CLIENT, "client"), (SERVER, "server")):
        if not network.ends[role].status & 1:
            yield f"the {name} is not established after 5 s of virtual time"


def _transfers(limit_ns: int, impairment: Impairment, garbage_every: int, library: Path) -> Iterator[str]:
    network = _run(library, Trial(TRANSFER_BYTES, limit_ns, impairment=impairment, garbage_every=garbage_every))
    read = network.ends[SERVER].read_bytes
    if read != TRANSFER_BYTES:
        yield f"{read:,} of {TRANSFER_BYTES:,} bytes were read after {network.now_ns / S:g} s of virtual time"
    elif not network.ends[CLIENT].status & host.FINISHED:
        yield f"all bytes were read, but the client is not finished after {network.now_ns / S:g} s of virtual time"


def _impaired(number: int, role: int) -> tuple[int, ...]:
    """One in 20 is lost, one in 25 comes 5 ms late, one in 30 twice; the numbers of both roles differ."""
    drawn = (number * 7919 + role * 31 + 11) % 300
    if drawn % 20 == 0:
        return ()
    late = 5 * MS * (drawn % 25 == 1)
    return (DELAY_NS + late, DELAY_NS + MS) if drawn % 30 == 7 else (DELAY_NS + late,)


def _repeats(library: Path) -> Iterator[str]:
    trial = Trial(TRANSFER_BYTES // 5, IMPAIRED_NS, impairment=_impaired)
    first = _run(library, trial).sent
    yield from _differences(first, _run(library, replace(trial, pause_s=0.002)).sent, "the second run")
    _run(library, replace(trial, seed=2))


def _is_independent(library: Path) -> Iterator[str]:
    trial = Trial(TRANSFER_BYTES // 5, IMPAIRED_NS, impairment=_impaired)
    alone = _run(library, trial).sent
    both = _run(library, replace(trial, connections=2)).sent
    first = [one for one in both if one.connection == 0]
    yield from _differences(alone, first[: len(alone)], "with a second connection")


def _differences(expected: list[Sent], found: list[Sent], where: str) -> Iterator[str]:
    """Yield the first difference between two records."""
    for number, (one, other) in enumerate(zip(expected, found, strict=False)):
        if one != other:
            name = "client" if one.role == CLIENT else "server"
            parts = ("now_ns", "role", "ecn", "content")
            part = next(part for part in parts if getattr(one, part) != getattr(other, part))
            what = {"now_ns": "time", "role": "sender", "ecn": "ECN codepoint", "content": "payload"}[part]
            yield f"datagram {number} (the {name}'s, at {one.now_ns} ns) has another {what} in {where}"
            return
    if len(expected) != len(found):
        yield f"{len(expected)} datagrams, but {len(found)} in {where}"


def _rests(library: Path) -> Iterator[str]:
    sent = len(_run(library, Trial(0, 120 * S)).sent)
    if sent > 100:
        yield f"{sent} datagrams in 120 s of virtual time without data; expected at most 100"


def _backs_off(library: Path) -> Iterator[str]:
    for cut, name in ((SERVER, "server"), (CLIENT, "client")):

        def one_way(number: int, role: int, cut: int = cut) -> tuple[int, ...]:
            return () if role == cut and number >= 20 else (DELAY_NS,)

        network = _run(library, Trial(host.NEVER, 90 * S, impairment=one_way))
        late = network.count(60 * S, CLIENT) + network.count(60 * S, SERVER)
        if late > 200:
            yield f"{late} datagrams in 30 s, a minute after the {name}'s last arrived; expected at most 200"


#: A call that takes longer is taken for an endless loop.
PATIENCE_S = 10.0

#: Loading a library may take so long: on a busy machine the start of a process is slow.
LOADING_S = 60.0

CLIENT, SERVER = 0, 1


class StackError(Exception):
    """The library broke the contract, crashed or hung; the message is a sentence on it."""


@dataclass(frozen=True, slots=True)
class Opening:
    """Configuration of an endpoint."""

    role: int
    seed: int
    #: Bytes that the client writes; 0: it writes nothing and stays open.
    size_bytes: int
    max_payload_bytes: int = 1472
    initial_window_bytes: int = 12_000
    receive_window_bytes: int = 1_250_000
    options: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """State of an endpoint after a call, and the datagrams that it sends: each an ECN codepoint and a payload."""

    timeout_ns: int
    read_bytes: int
    status: int
    datagrams: tuple[tuple[int, bytes], ...]


class Process:
    """A process that hosts a library. Every method raises `StackError`."""

    def __init__(self, library: Path, patience_s: float = PATIENCE_S) -> None:
        self._ours, theirs = socket.socketpair()
        self._ours.settimeout(LOADING_S)
        self._patience_s = LOADING_S
        with theirs:
            self._child = subprocess.Popen(
                stacks.host_command(library), stdin=theirs.fileno(), stdout=subprocess.DEVNULL
            )
        self._last = "loading it"
        try:
            self._response()
        except StackError:
            self.close()
            raise
        self._ours.settimeout(patience_s)
        self._patience_s = patience_s

    def __enter__(self) -> Process:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._ours.close()
        self._child.kill()
        self._child.wait()

    def new(self, endpoint: int, now_ns: int, opening: Opening) -> Response:
        """Make an endpoint."""
        config = host.CONFIG.pack(
            opening.role,
            1,
            opening.max_payload_bytes,
            opening.seed,
            opening.initial_window_bytes,
            opening.receive_window_bytes,
            opening.size_bytes,
            host.NEVER,
        )
        return self._call("N", endpoint, now_ns, config + b"\0" + opening.options.encode() + b"\0")

    def receive(self, endpoint: int, now_ns: int, ecn: int, content: bytes) -> Response:
        """Deliver a datagram."""
        return self._call("D", endpoint, now_ns, bytes([ecn]) + content)

    def run_timers(self, endpoint: int, now_ns: int) -> Response:
        """Run the timers that are due."""
        return self._call("T", endpoint, now_ns, b"")

    def free(self, endpoint: int, now_ns: int) -> None:
        """Destroy an endpoint."""
        self._call("F", endpoint, now_ns, b"")

    def _call(self, operation: str, endpoint: int, now_ns: int, body: bytes) -> Response:
        request = host.REQUEST.pack(ord(operation), endpoint, now_ns) + body
        self._last = f"{NAMES[operation]} at {now_ns} ns"
        try:
            self._ours.sendall(host.LENGTH.pack(len(request)) + request)
        except OSError:
            raise StackError(self._end()) from None
        response = self._response()
        try:
            return _decoded(response)
        except struct.error:
            raise StackError(f"the process sent {len(response)} bytes that are no response to {self._last}") from None

    def _response(self) -> bytes:
        content = self._exactly(*host.LENGTH.unpack(self._exactly(host.LENGTH.size)))
        if content[:1] != b"\0":
            raise StackError(content[1:].decode(errors="replace"))
        return content[1:]

    def _exactly(self, count: int) -> bytes:
        content = b""
        while len(content) < count:
            try:
                more = self._ours.recv(count - len(content))
            except TimeoutError:
                raise StackError(
                    f"no return within {self._patience_s:g} s from {self._last}: an endless loop"
                ) from None
            except OSError:
                more = b""
            if not more:
                raise StackError(self._end())
            content += more
        return content

    def _end(self) -> str:
        """Return how the process ended."""
        try:
            status = self._child.wait(self._patience_s)
        except subprocess.TimeoutExpired:
            return f"the process closed its input in {self._last}"
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return f"the process ended ({how}) in {self._last}"


#: Operation → its name in messages.
NAMES = {"N": "ackclock_new", "D": "the call for a datagram", "T": "the call for a timer", "F": "ackclock_free"}


def _decoded(content: bytes) -> Response:
    timeout_ns, read_bytes, status, *_, count = host.STATE.unpack_from(content)
    place, datagrams = host.STATE.size, []
    for _ in range(count):
        length, ecn = host.DATAGRAM.unpack_from(content, place)
        place += host.DATAGRAM.size
        datagrams.append((ecn, content[place : place + length]))
        place += length
        if place > len(content):
            raise struct.error
    return Response(timeout_ns, read_bytes, status, tuple(datagrams))
