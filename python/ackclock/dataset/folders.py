"""Folders that appear whole or not at all.

A new folder is filled under a temporary name beside its target, forced to the disk, and then takes the target's name.
Where a folder of that name exists the two change places in one step (`renameat2` with `RENAME_EXCHANGE`, Linux 3.15);
where the system cannot do that the old one is moved aside first and moved back if anything fails.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from ackclock.system import signals

AT_FDCWD = -100
RENAME_EXCHANGE = 2


@contextmanager
def replacing(target: Path, carry: Callable[[str], bool] = lambda _: False) -> Iterator[Path]:
    """Gives an empty folder to fill; at the end of the block it takes the place of `target`.

    Entries of an earlier `target` whose names `carry` accepts move into the new folder. If the block fails, nothing
    has changed. Raises `OSError`.
    """
    target = target.absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    with signals.undoing(partial(shutil.rmtree, new, ignore_errors=True)):
        new.mkdir()
        yield new
        _to_disk(new)
        with signals.whole():
            _put(new, target, carry)


def put(path: Path, write: Callable[[Path], object]) -> None:
    """A file that appears whole or not at all; `write` is given another name beside it.

    A symbolic link stays, and its target is written. Raises `OSError`, for what is there and is no regular file too.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise FileExistsError(errno.EEXIST, "it is there and is not a regular file", str(path))
    new = path.with_name(f".{path.name[:200]}.tmp")
    with signals.whole():
        try:
            write(new)
            sync(new)
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
        sync(path.parent)


def _put(new: Path, target: Path, carry: Callable[[str], bool]) -> None:
    if target.exists():
        _swap(new, target)
        for entry in [entry for entry in new.iterdir() if carry(entry.name)]:
            entry.replace(target / entry.name)
    else:
        new.replace(target)
    sync(target.parent)


def _swap(one: Path, other: Path) -> None:
    """Lets two folders change names; afterwards `one` holds what was in `other`."""
    try:
        _exchange(one, other)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
            raise
        _swap_in_steps(one, other)


def _exchange(one: Path, other: Path) -> None:
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        raise OSError(errno.ENOSYS, "no renameat2")
    if rename(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _swap_in_steps(one: Path, other: Path) -> None:
    aside = other.with_name(f"{other.name}.previous")
    other.replace(aside)
    try:
        one.replace(other)
    except OSError:
        aside.replace(other)
        raise
    aside.replace(one)


def _to_disk(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        sync(path)


def sync(path: Path) -> None:
    """Forces a file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems cannot sync a folder
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
