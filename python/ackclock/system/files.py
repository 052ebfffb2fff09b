"""Read regular files of a bounded size, and make temporary folders that neither signals nor kills leave behind.

A pipe named by mistake would block for ever, and a device has no end.

The owner of a folder removes it when it is done; a signal that ends the program removes it too (`signals`). The owner
also holds a lock (`flock`) on the folder, and whoever next makes one in the same place removes those without a lock:
the kernel releases the locks of a process that was killed. A process number could be that of another process by then.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
import weakref
from contextlib import suppress
from functools import partial
from pathlib import Path

from ackclock.errors import InputError
from ackclock.system import signals

#: Maximum length of foreign text in a message, in characters.
MAX_LENGTH = 200

#: Kinds of other files, for messages.
KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class UnreadableError(InputError):
    """A file that does not exist, is not a regular file, cannot be read or is too long; `found` is the reason."""

    def __init__(self, path: Path, found: str, expected: str = "a regular file that can be read") -> None:
        super().__init__(f"{readable(path)}: found {found}; expected {expected}")
        self.found = found


class MissingError(UnreadableError):
    """A file that does not exist."""


def read_bytes(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file of at most `max_bytes`. Raises `UnreadableError`."""
    check(path)
    try:
        # If a pipe has taken its place, this does not wait for a writer.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            _check_kind(path, os.fstat(file.fileno()))
            found = file.read(max_bytes + 1) or b""  # None: it would block
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if len(found) > max_bytes:
        raise UnreadableError(path, f"more than {max_bytes >> 20} MiB")
    return found


def check(path: Path) -> None:
    """Raise `UnreadableError` if a path is not that of a regular file."""
    try:
        _check_kind(path, os.stat(path))  # noqa: PTH116 (a missing file is an error)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def check_name(path: Path) -> Path:
    """Return the absolute path. Raises `InputError` for a name that tables cannot be read from or written to."""
    absolute = path.absolute()
    try:
        str(absolute).encode()
        os.lstat(absolute)
    except UnicodeEncodeError:  # also of the system's encoding, which may be ASCII
        raise InputError(
            f"{readable(path)}: found a name that is not UTF-8, or not in this locale; expected another folder"
        ) from None
    except (FileNotFoundError, NotADirectoryError):
        return absolute
    except (OSError, ValueError) as error:
        raise InputError(f"{readable(path)}: found an error ({reason(error)}); expected another folder") from None
    return absolute


def readable(path: Path | str) -> str:
    """Return a path as one line of text that can be printed and stored, whatever bytes its name has."""
    return visible(str(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def printable(text: str) -> str:
    """Return foreign text as one line of at most `MAX_LENGTH` characters, without control characters."""
    return visible(" ".join(text.split()))[:MAX_LENGTH]


def visible(text: str) -> str:
    """Return text with `?` in place of each control character."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def reason(error: Exception) -> str:
    """Return the system's message for an error, without the path."""
    return str(getattr(error, "strerror", None) or error)


def _check_kind(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UnreadableError(path, KINDS.get(stat.S_IFMT(found.st_mode), "a special file"))


def _unreadable(path: Path, error: Exception) -> UnreadableError:
    if isinstance(error, FileNotFoundError):
        return MissingError(path, "no such file")
    return UnreadableError(path, f"an error ({reason(error)})")


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
