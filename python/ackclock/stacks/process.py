"""The client of `host.py`: calls a user's stack in a process, for the contract. The wire format is `host`'s.

The packet engine has another client, in Rust.
"""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from ackclock import stacks
from ackclock.stacks import host

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
