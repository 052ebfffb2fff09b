"""The process that hosts a stack's shared library: it makes the calls of `ackclock.h` that the other side asks for.

It runs as a script, with the standard library alone, and speaks over a socket that is its standard input. Whatever the
library does (a crash, an endless loop, `exit`) ends this process, and the other side reports it.

Each request has one response; all numbers are little-endian. A frame begins with the length of the rest (u32).

- Request: operation (u8), endpoint (u32), time in ns (u64), then
    - `N`, a new endpoint: `CONFIG`, the congestion control algorithm and the options, each ended by a zero;
    - `D`, a datagram: its ECN codepoint (u8) and its bytes;
    - `T`, a timer: nothing;
    - `F`, free the endpoint: nothing.
- Response: 0 and `STATE`, then as many datagrams as it says, each with its length (u32), ECN codepoint (u8) and bytes;
  or 1 and a sentence (UTF-8) that says how the library breaks the contract. The process first sends a response without
  a request: whether the library could be loaded.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import struct
import sys
import threading
from collections.abc import Iterable
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from typing import Any

VERSION = 1
CLIENT = 0
FINISHED, CLOSED = 2, 4
NEVER = 2**64 - 1

#: Role, ECN, largest payload, seed, initial window, receive window, bytes to write (`NEVER`: endless), time to stop.
CONFIG = struct.Struct("<BBIQQQQQ")
#: Next timeout, bytes that the application has read, status, the statistics, number of datagrams.
STATE = struct.Struct("<QQI7QI")
REQUEST = struct.Struct("<BIQ")
DATAGRAM = struct.Struct("<IB")
LENGTH = struct.Struct("<I")

#: Bytes that are offered to `ackclock_write` and `ackclock_read` in a call.
CHUNK_BYTES = 1 << 16
#: The largest UDP payload; the buffer is larger than the capacity, so that a datagram which is too large does no harm.
BUFFER_BYTES = 1 << 17
#: Datagrams that may leave at one time, and bytes that the stack may take at one time: more is an endless loop.
MAX_DATAGRAMS, MAX_WRITTEN_BYTES = 100_000, 1 << 30

#: The application's bytes: the byte at position i is i modulo 251.
PERIOD = 251
PATTERN = bytes(number % PERIOD for number in range(CHUNK_BYTES + PERIOD))


class ContractError(Exception):
    """The library breaks the contract."""


class Config(ctypes.Structure):
    """`struct ackclock_config`."""

    _fields_ = [
        ("role", c_uint32),
        ("max_payload_bytes", c_uint32),
        ("ecn", c_uint32),
        ("reserved", c_uint32),
        ("now_ns", c_uint64),
        ("initial_window_bytes", c_uint64),
        ("receive_window_bytes", c_uint64),
        ("congestion", c_char_p),
        ("options", c_char_p),
    ]


#: Function → its result and its arguments.
REQUIRED = {
    "version": (c_uint32, []),
    "new": (c_void_p, [POINTER(Config), c_uint64]),
    "free": (None, [c_void_p]),
    "receive": (None, [c_void_p, c_uint64, c_char_p, c_size_t, c_uint8]),
    "poll": (c_size_t, [c_void_p, c_uint64, c_void_p, c_size_t, POINTER(c_uint8)]),
    "next_timeout": (c_uint64, [c_void_p]),
    "write": (c_size_t, [c_void_p, c_uint64, c_char_p, c_size_t, c_int]),
    "read": (c_size_t, [c_void_p, c_uint64, c_void_p, c_size_t]),
    "status": (c_uint32, [c_void_p]),
}
OPTIONAL = {
    "close": (None, [c_void_p, c_uint64]),
    "stats": (None, [c_void_p, POINTER(c_uint64)]),
}


class Library:
    """The functions of a library by their names without `ackclock_`; an optional one that it lacks is None."""

    version: Any
    new: Any
    free: Any
    receive: Any
    poll: Any
    next_timeout: Any
    write: Any
    read: Any
    status: Any
    close: Any
    stats: Any

    def __init__(self, path: str) -> None:
        try:
            self._library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            raise ContractError(f"cannot be loaded: {error}") from error
        for name, (result, arguments) in {**REQUIRED, **OPTIONAL}.items():
            function = getattr(self._library, f"ackclock_{name}", None)
            if function is None and name in REQUIRED:
                raise ContractError(f"found no function ackclock_{name}; expected those of ackclock.h")
            if function is not None:
                function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        if (found := self.version()) != VERSION:
            raise ContractError(f"ackclock_version: found {found}; expected {VERSION}")
        self.buffer = ctypes.create_string_buffer(BUFFER_BYTES)
        self.content = memoryview(self.buffer).cast("B")
        self.ecn = c_uint8(0)
        self.statistics = (c_uint64 * 7)()


class Endpoint:
    """An endpoint of the library, and the application at its end of the connection."""

    def __init__(self, library: Library, now_ns: int, body: bytes) -> None:
        role, ecn, payload, seed, initial, receive, size, stop = CONFIG.unpack_from(body)
        congestion, options, _ = body[CONFIG.size :].split(b"\0", 2)
        config = Config(role, payload, ecn, 0, now_ns, initial, receive, congestion, options)
        self._library, self._payload, self._ecn, self._size, self._stop = library, payload, ecn, size, stop
        self._is_client = role == CLIENT
        self._moved = 0  # application bytes written or read
        self._is_closed = False
        self._handle = library.new(byref(config), seed)
        if not self._handle:
            raise ContractError(f"ackclock_new returned NULL for {_given(congestion, options)}; expected an endpoint")

    def receive(self, now_ns: int, ecn: int, content: bytes) -> None:
        """Deliver a datagram."""
        if not self._is_over:
            self._library.receive(self._handle, now_ns, content, len(content), ecn)

    def free(self) -> None:
        """Destroy the endpoint."""
        self._library.free(self._handle)

    @property
    def _is_over(self) -> bool:
        return self._is_closed and self._library.close is None

    def advance(self, now_ns: int) -> bytes:
        """Do all that is due; return the response with the state and the datagrams."""
        sent: list[bytes] = []
        while not self._is_over:
            self._run_application(now_ns)
            datagram = b"" if self._is_over else self._poll(now_ns)
            if not datagram:
                break
            sent.append(datagram)
            if len(sent) > MAX_DATAGRAMS:
                raise ContractError(f"more than {MAX_DATAGRAMS:,} datagrams at one time ({now_ns} ns)")
        status = self._library.status(self._handle) | (CLOSED if self._is_closed else 0)
        read = 0 if self._is_client else self._moved
        state = STATE.pack(self._next_timeout(now_ns), read, status, *self._statistics(), len(sent))
        return b"".join((b"\0", state, *sent))

    def _statistics(self) -> Iterable[int]:
        statistics = self._library.statistics
        ctypes.memset(statistics, 0xFF, ctypes.sizeof(statistics))
        if self._is_client and self._library.stats is not None:
            self._library.stats(self._handle, statistics)
        return statistics

    def _poll(self, now_ns: int) -> bytes:
        ecn, buffer = self._library.ecn, self._library.buffer
        length: int = self._library.poll(self._handle, now_ns, buffer, self._payload, ecn)
        if length > self._payload:
            raise ContractError(f"ackclock_poll returned {length}; expected at most its capacity, {self._payload}")
        if ecn.value > 3:
            raise ContractError(f"ackclock_poll: found the ECN codepoint {ecn.value}; expected 0 to 3")
        return DATAGRAM.pack(length, ecn.value * self._ecn) + bytes(self._library.content[:length]) if length else b""

    def _next_timeout(self, now_ns: int) -> int:
        if self._is_over:
            return NEVER
        due: int = self._library.next_timeout(self._handle)
        if due <= now_ns:
            raise ContractError(f"ackclock_next_timeout returned {due} at {now_ns} ns; expected a later time")
        return min(due, self._stop) if self._is_client and not self._is_closed else due

    def _run_application(self, now_ns: int) -> None:
        if not self._is_client:
            self._read(now_ns)
        elif not self._is_closed:
            self._write(now_ns)
            if now_ns >= self._stop or self._library.status(self._handle) & FINISHED:
                self._is_closed = True
                if self._library.close is not None:
                    self._library.close(self._handle, now_ns)

    def _write(self, now_ns: int) -> None:
        """Write as much as the stack takes."""
        written = taken = offered = 0
        while taken == offered and self._moved < self._size:
            offered = min(CHUNK_BYTES, self._size - self._moved)
            end, start = self._moved + offered == self._size, self._moved % PERIOD
            taken = self._library.write(self._handle, now_ns, PATTERN[start : start + offered], offered, end)
            if taken > offered:
                raise ContractError(f"ackclock_write returned {taken}; expected at most its length, {offered}")
            self._moved += taken
            written += taken
            if written > MAX_WRITTEN_BYTES:
                raise ContractError(f"ackclock_write took {written} bytes at one time; expected a bounded send buffer")

    def _read(self, now_ns: int) -> None:
        """Read all that has arrived, and compare it with what was written."""
        buffer = self._library.buffer
        while given := self._library.read(self._handle, now_ns, buffer, CHUNK_BYTES):
            if given > CHUNK_BYTES:
                raise ContractError(f"ackclock_read returned {given}; expected at most its capacity, {CHUNK_BYTES}")
            start = self._moved % PERIOD
            if self._library.content[:given] != PATTERN[start : start + given]:
                raise ContractError(
                    f"ackclock_read gave other bytes than were written, from position {self._moved} of the stream on"
                )
            self._moved += given


def _given(congestion: bytes, options: bytes) -> str:
    texts = {"congestion": congestion.decode(), "options": options.decode()}
    return ", ".join(f'{key} = "{text}"' for key, text in texts.items() if text) or "its configuration"


def serve(library: Library, stream: socket.socket) -> None:
    """Serve requests until the other side closes the socket."""
    endpoints: dict[int, Endpoint] = {}
    while request := _receive(stream):
        operation, number, now_ns = REQUEST.unpack_from(request)
        body = request[REQUEST.size :]
        if operation == ord("N"):
            endpoints[number] = Endpoint(library, now_ns, body)
        elif operation == ord("D"):
            endpoints[number].receive(now_ns, body[0], body[1:])
        if operation == ord("F"):
            endpoints.pop(number).free()
            _send(stream, b"\0" + STATE.pack(NEVER, 0, 0, *[NEVER] * 7, 0))
        else:
            _send(stream, endpoints[number].advance(now_ns))


def _receive(stream: socket.socket) -> bytes:
    """Return the next request; none if the other side has closed the socket. It sends one at a time."""
    content = stream.recv(BUFFER_BYTES)
    while content and len(content) < LENGTH.size + LENGTH.unpack_from(content.ljust(LENGTH.size, b"\xff"))[0]:
        more = stream.recv(BUFFER_BYTES)
        content = content + more if more else b""
    return content[LENGTH.size :]


def _send(stream: socket.socket, response: bytes) -> None:
    stream.sendall(LENGTH.pack(len(response)) + response)


def _end_with(stream: socket.socket) -> None:
    """End this process, whatever the library does, when the other side has closed the socket."""
    poll = select.poll()
    poll.register(stream, 0)
    poll.poll()
    os._exit(0)


def main(path: str) -> None:
    """Load the library and serve; the first response, or the last, says what is wrong with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stream = socket.socket(fileno=os.dup(0))
    threading.Thread(target=_end_with, args=(stream,), daemon=True).start()
    try:
        library = Library(path)
        _send(stream, b"\0")
        serve(library, stream)
    except ContractError as error:
        _send(stream, b"\1" + str(error).encode())


if __name__ == "__main__":
    main(sys.argv[1])
