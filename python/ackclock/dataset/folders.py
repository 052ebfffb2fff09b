"""Folders and files that appear whole or not at all.

A new folder is filled in a private place beside its target, forced to the disk, and then takes the target's name.
Where a folder of that name exists the two change places in one step (`renameat2` with `RENAME_EXCHANGE`, Linux 3.15);
where the system cannot do that the old one is moved aside first and moved back if anything fails.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ackclock.dataset import result_kind
from ackclock.dataset.result_kind import Kind
from ackclock.errors import InputError
from ackclock.system import signals
from ackclock.system.temporary import LockedTempDir, is_temporary, lock

AT_FDCWD = -100
RENAME_EXCHANGE = 2


class UnwrittenError(InputError):
    """Something cannot be written, for this reason."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path}: cannot be written: {reason}")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Says of whatever cannot be written in the block that it was `path`. Raises `UnwrittenError`."""
    try:
        yield
    except OSError as error:
        raise UnwrittenError(path, error.strerror or _first_line(error)) from error
    except Exception as error:
        from polars.exceptions import PolarsError

        if not isinstance(error, PolarsError):
            raise
        raise UnwrittenError(path, _reason(error)) from error


@contextmanager
def replacing(target: Path, carry: Callable[[str], bool] = lambda _: False) -> Iterator[Path]:
    """Gives an empty folder to fill; at the end of the block it takes the place of `target`.

    Entries of an earlier `target` whose names `carry` accepts are in the new folder before it takes the place, so that
    they are there at any time. If the block fails, nothing has changed. Of several writers at once the last one wins,
    whole. A `target` that is a symbolic link stays one: what it points to is replaced, as a file that is written
    through a link would be, so that results can be on another disk.

    Raises `InputError` if `target` cannot be written; what the block raises is passed on.
    """
    with beside(target) as new:
        try:
            yield new
        except UnwrittenError as error:
            if error.path.is_relative_to(new):
                raise UnwrittenError(target / error.path.relative_to(new), error.reason) from error
            raise
        with writing(target):
            place = resolved(target)
            _to_disk(new)
            with signals.defer_signals():
                _found_again(place)
                _put(new, place, carry)


def private() -> LockedTempDir:
    """A private place among the system's temporary files. Raises `InputError` if none can be made."""
    with writing(Path(tempfile.gettempdir())):
        return LockedTempDir()


def check(target: Path, wanted: Kind) -> None:
    """Refuses a folder that is something else, or cannot be made, before work is spent on it. Raises `InputError`."""
    result_kind.check(target, wanted)
    beside(target).close()


def beside(target: Path) -> LockedTempDir:
    """A private place from which something can be renamed to `target`. Raises `InputError` if none can be made."""
    with writing(target):
        parent = resolved(target).parent
        parent.mkdir(parents=True, exist_ok=True)
        return LockedTempDir(parent)


def put(path: Path, write: Callable[[Path], object], private: Path | None = None) -> None:
    """A file that appears whole or not at all; `write` is given a path with the same ending.

    It is made in `private` if that is given, which must be on the same file system. A symbolic link at `path` stays
    one. Raises `InputError` if it cannot be written.
    """
    with writing(path):
        if private is None:
            with beside(path) as own:
                put(path, write, own)
            return
        place = resolved(path)
        if place.exists() and not place.is_file():
            raise FileExistsError(errno.EEXIST, "it is there and is not a regular file")
        new = private / f"new{path.suffix}"
        write(new)
        sync(new)
        new.replace(place)
        sync(place.parent)


def resolved(path: Path) -> Path:
    """Where a path leads: what a symbolic link at its end points to, else itself. Raises `OSError`."""
    try:
        return path.resolve() if path.is_symlink() else path.absolute()
    except RuntimeError:  # what Python before 3.13 says of links in a circle
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None


def sync(path: Path) -> None:
    """Forces a file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems cannot sync a folder
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _reason(error: Exception) -> str:
    """What the system said, where Polars says it: `parquet: …: No space left on device (os error 28)`."""
    said = re.search(r"([^:\n]+) \(os error \d+\)", str(error))
    return said[1].strip() if said else _first_line(error)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _put(new: Path, target: Path, carry: Callable[[str], bool]) -> None:
    """What is carried is linked before the two change places, and moved after if it has changed in between."""
    ours = {path.name for path in new.iterdir()}
    with _kept(target):
        for name in _exchanged(new, target, lambda name: carry(name) and name not in ours):
            _carry(new / name, target / name, os.replace)
    sync(target.parent)


def _exchanged(new: Path, target: Path, carry: Callable[[str], bool]) -> list[str]:
    """Gives `new` the name of `target`. If there was another folder, that has the name of `new` afterwards, and what
    was carried over from it is returned.
    """  # noqa: D205
    while True:
        try:
            if not target.is_dir():
                new.replace(target)
                return []
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            continue  # another writer was quicker
        with suppress(FileNotFoundError):  # another writer has moved it away
            names = [path.name for path in target.iterdir() if carry(path.name) and not is_temporary(path)]
            for name in names:
                _carry(target / name, new / name, _link)
            _swap(new, target)
            return names


@contextmanager
def _kept(folder: Path) -> Iterator[None]:
    """Nobody takes the folder for a stale one when it has a private place's name."""
    try:
        descriptor = lock(folder)
    except OSError:
        yield  # another writer holds it
        return
    try:
        yield
    finally:
        os.close(descriptor)


def _carry(source: Path, target: Path, put: Callable[[Path, Path], object]) -> None:
    """A file, or all those of a folder."""
    if not source.is_dir() or source.is_symlink():
        put(source, target)
        return
    target.mkdir(exist_ok=True)
    for entry in source.iterdir():
        _carry(entry, target / entry.name, put)
    shutil.copystat(source, target)


def _link(source: Path, target: Path) -> None:
    """The same file under a second name; a copy where the file system has no such thing."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        target.unlink()
        _link(source, target)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


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
    aside = _aside(other)
    other.replace(aside)
    try:
        one.replace(other)
    except OSError:
        aside.replace(other)
        raise
    aside.replace(one)


def _aside(target: Path) -> Path:
    return target.with_name(f"{target.name}.previous")


def _found_again(target: Path) -> None:
    """A kill in the middle of `_swap_in_steps` leaves the old folder under its other name."""
    if not target.exists() and _aside(target).is_dir():
        _aside(target).replace(target)


def _to_disk(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        sync(path)
