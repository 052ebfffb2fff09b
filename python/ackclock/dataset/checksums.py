"""SHA-256 of files, and the detection of damage.

`hashlib` lets other threads run while it computes, so files are read by a few of them. A file is read once: what is
expected of it holds as long as the file system gives that it has not changed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import FileIO
from pathlib import Path
from typing import TypeAlias, TypeVar

#: Files read at a time.
THREADS = 4

#: The clock of a file system ticks: a file that was written so shortly before it was read may change unseen, so
#: nothing is remembered of it.
TICK_NS = 100_000_000

#: File attributes that change with the content: device, inode, size, and when content and inode were changed.
State: TypeAlias = tuple[int, int, int, int, int]

_digests: dict[State, str] = {}

_Result = TypeVar("_Result")


def of_files(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of files by their names in a folder, sorted. Raises `OSError`."""
    expected = sorted(names)
    return dict(zip(expected, _each(lambda name: of_file(folder / name), expected), strict=True))


def of_file(path: Path) -> str:
    """Return the SHA-256 of a regular file, as 64 hexadecimal digits. Raises `OSError`."""
    with opened(path) as file:
        before, began_ns = _state(os.fstat(file.fileno())), time.time_ns()
        if before in _digests:
            return _digests[before]
        result = hashlib.file_digest(file, "sha256").hexdigest()
        if before == _state(os.fstat(file.fileno())) and max(before[3:]) < began_ns - TICK_NS:
            _digests[before] = result
        return result


def opened(path: Path) -> FileIO:
    """Open a regular file. Raises `OSError` for others too: opening a FIFO would block until it has a writer."""
    file = FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a regular file")
    return file


def damage(folder: Path, listed: Mapping[str, str]) -> dict[str, str]:
    """Return the files that differ from what was written: name in the folder → problem."""
    names = list(listed)
    result = zip(names, _each(lambda name: _damage(folder / name, listed[name]), names), strict=True)
    return {name: reason for name, reason in result if reason}


def _damage(path: Path, expected: str) -> str | None:
    try:
        return None if of_file(path) == expected else "damaged: it is not what was written (SHA-256)"
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        return f"damaged: it cannot be read ({error.strerror or error})"


def _each(function: Callable[[str], _Result], names: Sequence[str]) -> Iterable[_Result]:
    if len(names) < 2:
        return [function(name) for name in names]
    with ThreadPoolExecutor(min(THREADS, len(names))) as pool:
        return list(pool.map(function, names))


def state(path: Path) -> State | None:
    """Return values that change with a file; None if there is no file."""
    try:
        return _state(path.stat())
    except OSError:
        return None


def _state(of: os.stat_result) -> State:
    return of.st_dev, of.st_ino, of.st_size, of.st_mtime_ns, of.st_ctime_ns
