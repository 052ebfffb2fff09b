"""Private places: folders in which something is made, and that nothing leaves behind.

A private place is gone when its owner is done with it, however that ends: a signal that ends the program removes it
(`signals`); and the owner holds a lock (`flock`) on it, so that whoever next makes one beside it removes those whose
lock nobody holds. The kernel gives up the lock of a process that was killed, and no number of a process can be taken
for another's.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import tempfile
import weakref
from contextlib import suppress
from functools import partial
from pathlib import Path

from ackclock.system import signals

#: What private places are called: hidden beside results, plain among temporary files.
PRIVATE = re.compile(r"\.?ackclock-[0-9a-f]{16}")


class Private:
    """A folder of one's own, removed at the end of the `with` block, by `close`, with the object or by a signal.

    It is made in the folder `beside`, hidden, so that what is made in it can be renamed to its place; without one among
    the system's temporary files. Those that killed processes have left there are removed. Raises `OSError`.
    """

    def __init__(self, beside: Path | None = None) -> None:
        place = beside or Path(tempfile.gettempdir())
        remove_stale(place)
        with signals.making() as register:
            self.path, descriptor = _made(place, *((".", 0o777) if beside else ("", 0o700)))
            self._end = weakref.finalize(self, _remove, self.path, descriptor, os.getpid())
            # Not `_end`: that does nothing a second time, and another thread may be in the midst of the first.
            register(self.path, partial(_sweep, self.path, os.getpid()))

    def close(self) -> None:
        """Removes the folder, unless it has another name by now; once is enough."""
        self._end()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()


def is_private(path: Path) -> bool:
    """Whether a path is called as private places are."""
    return PRIVATE.fullmatch(path.name) is not None


def remove_stale(place: Path) -> None:
    """Removes the private places in a folder that no living process holds."""
    with suppress(OSError):
        for path in [Path(entry) for entry in os.scandir(place) if PRIVATE.fullmatch(entry.name)]:
            with suppress(OSError):
                _remove(path, held(path), os.getpid())


def held(folder: Path, *, must: bool = True) -> int:
    """A descriptor that holds a folder's lock. Raises `BlockingIOError` if another process does.

    Some network file systems have no locks for folders: whoever `must` have it gets an `OSError`. So nothing is taken
    for stale there.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if must or isinstance(error, BlockingIOError):
            os.close(descriptor)
            raise
    return descriptor


def _made(place: Path, prefix: str, mode: int) -> tuple[Path, int]:
    """A new private place and the descriptor that holds it."""
    while True:
        path = place / f"{prefix}ackclock-{secrets.token_hex(8)}"
        path.mkdir(mode)
        try:
            descriptor = held(path, must=False)
        except (FileNotFoundError, BlockingIOError):
            continue  # another process took it for a stale one before it was held
        if path.exists():
            return path, descriptor
        os.close(descriptor)


def _remove(folder: Path, descriptor: int, owner: int) -> None:
    """A place with its lock, which then needs no signal to remove it."""
    try:
        _sweep(folder, owner)
    finally:
        os.close(descriptor)
    signals.forget(folder)


def _sweep(folder: Path, owner: int) -> None:
    """By the process that made it, not by one that was forked from that. Also while another thread writes into it."""
    for _ in range(10 if os.getpid() == owner else 0):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
