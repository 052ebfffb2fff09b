"""Signals that end the program: Ctrl-C (SIGINT), a scheduler's SIGTERM, the terminal's SIGHUP.

The command line calls `install_handlers` before it imports anything heavy. From then on a signal ends the program where
it is, with one line and the status 128 + its number. No exception is raised: it could be lost in a finalizer, or become
a traceback in a package that is half imported. Cleanup is therefore registered before the resource exists (`cleanup`),
and operations that must not be interrupted run in `defer_signals`.

Without the handlers, as in a script or a notebook, signals keep their effect: Ctrl-C raises `KeyboardInterrupt`.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

MESSAGE = "interrupted: nothing half-written is left"

#: Option of prctl(2): the signal that a process gets when its parent ends.
PR_SET_PDEATHSIG = 1

#: Clears the line of a progress bar, and shows the cursor that it hid.
CLEAR_LINE = "\r\x1b[2K\x1b[?25h"

#: A stack: the last one is printed at the end.
_messages = [MESSAGE]
_cleanups: dict[object, Callable[[], object]] = {}
#: Held while a resource and its cleanup are registered; and for ever by a program that ends.
_registering = threading.RLock()


def install_handlers(*, silent: bool = False) -> None:
    """Let signals end the program from now on. Those that are ignored, as by `nohup`, stay so."""
    if silent:
        _messages.append("")
    for each in SIGNALS:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, _handle)


def watch_aborts(message: str) -> None:
    """Continue in a child process if this one's memory is limited; its abort ends this one with a message and status 1.

    Rust and C++ abort where they get no memory, which nothing within the process can catch. The child is terminated
    with its parent, which passes signals on to it and returns its status.
    """
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return
    import ctypes

    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # a signal waits until the parent passes it on
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    for each in SIGNALS:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, lambda number, _: os.kill(child, number))
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == -signal.SIGABRT:
        os.write(2, f"{message}\n".encode())
        os._exit(1)
    os._exit(status if status >= 0 else 128 - status)


def ignore_signals() -> None:
    """Ignore signals from now on: the program is at its end."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)


@contextmanager
def exit_message(message: str) -> Iterator[None]:
    """Print this instead of `MESSAGE` if a signal ends the program in this block."""
    _messages.append(message)
    try:
        yield
    finally:
        _messages.pop()


@contextmanager
def defer_signals() -> Iterator[Callable[[], bool]]:
    """Defer signals to the end of the block.

    Yields a function that returns True if a signal is pending. Only the main thread is ever interrupted.
    """
    pending: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    before = {each: signal.getsignal(each) for each in SIGNALS} if is_main else {}
    before = {each: handler for each, handler in before.items() if handler not in (None, signal.SIG_IGN)}
    for each in before:
        signal.signal(each, lambda number, _: pending.append(number))
    try:
        yield lambda: bool(pending)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        if pending:
            signal.raise_signal(pending[0])


@contextmanager
def block_terminal_signals() -> Iterator[None]:
    """Start processes in this block that ignore the terminal's signals; the parent receives and handles them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGHUP))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def register_cleanup() -> Iterator[Callable[[object, Callable[[], object]], None]]:
    """Create a resource in this block and register its cleanup, without a signal between them.

    Yields a function that registers a cleanup by a key (see `unregister_cleanup`). A thread that comes here while the
    program ends goes no further.
    """
    with defer_signals(), _registering:
        yield _cleanups.__setitem__


def unregister_cleanup(key: object) -> None:
    """Remove a cleanup that is done."""
    _cleanups.pop(key, None)


@contextmanager
def cleanup(action: Callable[[], object]) -> Iterator[None]:
    """Call `action` at the end of the block, however it ends, also if a signal ends the program."""
    key = object()
    with register_cleanup() as register:
        register(key, action)
    try:
        yield
    finally:
        with defer_signals():
            action()
            unregister_cleanup(key)


def exit_by_signal(number: int) -> NoReturn:
    """Run the cleanups, the latest first, print the message and exit with the signal's status."""
    ignore_signals()
    _registering.acquire()
    while _cleanups:
        _, action = _cleanups.popitem()
        with suppress(Exception):
            action()
    if message := _messages[-1]:
        printable = "".join(letter if letter.isprintable() else "?" for letter in message)
        with suppress(OSError):
            os.write(2, f"{CLEAR_LINE if os.isatty(2) else ''}{printable}\n".encode())
    os._exit(128 + number)


def exit_silently(number: int) -> NoReturn:
    """Exit as `exit_by_signal`, without a message."""
    _messages.append("")
    exit_by_signal(number)


def is_output_closed() -> bool:
    """Return True if the reader of standard output, or of standard error, has closed the pipe."""
    pipes = select.poll()
    for stream in (1, 2):
        pipes.register(stream, 0)
    return any(event & select.POLLERR for _, event in pipes.poll(0))


def _handle(number: int, _: Any) -> None:
    exit_by_signal(number)
