"""Temporary folders that neither signals nor kills leave behind.

The owner removes its folder when it is done; a signal that ends the program removes it too (`signals`). The owner also
holds a lock (`flock`) on the folder, and whoever next makes one in the same place removes those without a lock: the
kernel releases the locks of a process that was killed. A process number could be that of another process by then.
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

#: Names of temporary folders: hidden among results, plain among temporary files.
NAME = re.compile(r"\.?ackclock-[0-9a-f]{16}")


class LockedTempDir:
    """A temporary folder, removed at the end of the `with` block, by `close`, with the object or by a signal.

    It is made in `parent`, hidden, so that its content can be renamed into place; by default among the system's
    temporary files. Stale ones in the same place are removed. Raises `OSError`.
    """

    def __init__(self, parent: Path | None = None) -> None:
        place = parent or Path(tempfile.gettempdir())
        remove_stale(place)
        with signals.register_cleanup() as register:
            self.path, descriptor = _created(place, *((".", 0o777) if parent else ("", 0o700)))
            self._end = weakref.finalize(self, _remove_locked, self.path, descriptor, os.getpid())
            # Not `_end`: that does nothing a second time, and another thread may be in the midst of the first.
            register(self.path, partial(_remove, self.path, os.getpid()))

    def close(self) -> None:
        """Remove the folder, unless it was renamed. May be called repeatedly."""
        self._end()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()


def is_temporary(path: Path) -> bool:
    """Return True if a path has the name of a temporary folder."""
    return NAME.fullmatch(path.name) is not None


def remove_stale(place: Path) -> None:
    """Remove the temporary folders in a place that no living process has locked."""
    with suppress(OSError):
        for path in [Path(entry) for entry in os.scandir(place) if NAME.fullmatch(entry.name)]:
            with suppress(OSError):
                _remove_locked(path, lock(path), os.getpid())


def lock(folder: Path, *, required: bool = True) -> int:
    """Lock a folder; return the descriptor that holds the lock. Raises `BlockingIOError` if another process has it.

    Some network file systems cannot lock folders: with `required` this is an `OSError`, so that no folder there is
    taken for stale.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if required or isinstance(error, BlockingIOError):
            os.close(descriptor)
            raise
    return descriptor


def _created(place: Path, prefix: str, mode: int) -> tuple[Path, int]:
    """Make a folder; return it and the descriptor that holds its lock."""
    while True:
        path = place / f"{prefix}ackclock-{secrets.token_hex(8)}"
        path.mkdir(mode)
        try:
            descriptor = lock(path, required=False)
        except (FileNotFoundError, BlockingIOError):
            continue  # another process took it for stale before it was locked
        if path.exists():
            return path, descriptor
        os.close(descriptor)


def _remove_locked(folder: Path, descriptor: int, owner: int) -> None:
    try:
        _remove(folder, owner)
    finally:
        os.close(descriptor)
    signals.unregister_cleanup(folder)


def _remove(folder: Path, owner: int) -> None:
    """Remove a folder of this process, not of the one it was forked from, even while another thread writes into it."""
    for _ in range(10 if os.getpid() == owner else 0):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
