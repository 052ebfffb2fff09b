"""How the program ends when it is told to: by Ctrl-C (SIGINT), by a scheduler (SIGTERM), or with its terminal (SIGHUP).

The command line calls `listen` before it imports anything heavy. From then on a signal ends the program where it is,
with one line and the status 128 + its number. Nothing is raised: an exception could be lost in a finalizer, or become
a traceback in a package that is half imported. So what must not stay behind is registered before it is there (`undo`),
and what must not be cut in two is `whole`.

Where nobody listens, in a script or a notebook, signals do what they did before: Ctrl-C raises `KeyboardInterrupt`.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

#: What is said at the end.
MESSAGE = "interrupted: nothing half-written is left"

#: Clears the line of a progress bar, and shows the cursor that it hid.
CLEARED = "\r\x1b[2K\x1b[?25h"

_said = [MESSAGE]
_to_undo: dict[object, Callable[[], object]] = {}
#: Held while something comes into being that is to be undone; and for ever by a program that ends.
_making = threading.RLock()


def listen(*, silently: bool = False) -> None:
    """From now on signals end the program. Those that are ignored, as by `nohup`, stay so."""
    if silently:
        _said.append("")
    for each in SIGNALS:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, _leave)


def ignore() -> None:
    """From now on signals do nothing: the program is at its end."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)


@contextmanager
def saying(message: str) -> Iterator[None]:
    """What is said instead of `MESSAGE` if a signal ends the program in this block."""
    _said.append(message)
    try:
        yield
    finally:
        _said.pop()


@contextmanager
def whole() -> Iterator[Callable[[], bool]]:
    """A block that no signal cuts in two: one that comes meanwhile does its work at the end.

    Gives a function that says whether a signal waits. In other threads than the main one nothing is ever interrupted.
    """
    heard: list[int] = []
    mine = threading.current_thread() is threading.main_thread()
    before = {each: signal.getsignal(each) for each in SIGNALS} if mine else {}
    before = {each: handler for each, handler in before.items() if handler not in (None, signal.SIG_IGN)}
    for each in before:
        signal.signal(each, lambda number, _: heard.append(number))
    try:
        yield lambda: bool(heard)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        if heard:
            signal.raise_signal(heard[0])


@contextmanager
def unheard_by_children() -> Iterator[None]:
    """Processes that are started in this block do not hear what a terminal sends to all: their parent does."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGHUP))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def making() -> Iterator[Callable[[object, Callable[[], object]], None]]:
    """A block in which something comes into being that must not stay behind.

    Gives a function that registers how it is undone, by a key for `forget`. A thread that comes here while the program
    ends goes no further.
    """
    with whole(), _making:
        yield _to_undo.__setitem__


def forget(key: object) -> None:
    """What was registered is undone already."""
    _to_undo.pop(key, None)


@contextmanager
def undoing(action: Callable[[], object]) -> Iterator[None]:
    """Does `action` at the end of the block, however it ends; a signal that ends the program included."""
    key = object()
    with making() as register:
        register(key, action)
    try:
        yield
    finally:
        with whole():
            action()
            forget(key)


def leave(number: int) -> NoReturn:
    """Undoes what is registered, the latest first, and ends the program as a signal does."""
    ignore()
    _making.acquire()
    while _to_undo:
        _, action = _to_undo.popitem()
        with suppress(Exception):
            action()
    if message := _said[-1]:
        with suppress(OSError):
            os.write(2, f"{CLEARED if os.isatty(2) else ''}{_printable(message)}\n".encode())
    os._exit(128 + number)


def leave_quietly(number: int) -> NoReturn:
    """As `leave`, without a word."""
    _said.append("")
    leave(number)


def unread() -> bool:
    """Whether nobody reads standard output, or standard error, any more: their pipe's other end is closed."""
    ends = select.poll()
    for stream in (1, 2):
        ends.register(stream, 0)
    return any(event & select.POLLERR for _, event in ends.poll(0))


def _leave(number: int, _: Any) -> None:
    leave(number)


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)
