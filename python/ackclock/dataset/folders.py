"""Atomic replacement of folders and files.

A new folder is filled in a private place beside its target, forced to the disk, and then takes the target's name.
Where a folder of that name exists the two change places in one step (`renameat2` with `RENAME_EXCHANGE`, Linux 3.15);
where the system cannot do that the old one is moved previous first and moved back if anything fails.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ackclock.dataset import result_kind
from ackclock.dataset.result_kind import Kind
from ackclock.errors import InputError, first_line
from ackclock.system import signals
from ackclock.system.files import LockedTempDir, is_temporary, lock

AT_FDCWD = -100
RENAME_EXCHANGE = 2


#: Keys in a folder's name, and hexadecimal digits that distinguish their values.
MAX_NAMED, DIGITS = 3, 6


def key_suffix(keys: Sequence[str], content: Any) -> str:
    """Return the end of a folder's name that is different for each content, such as `limit-5211e7`."""
    digest = hashlib.sha256(json.dumps(content, default=str).encode()).hexdigest()
    return "-".join([*keys[:MAX_NAMED], digest[:DIGITS]])


class WriteError(InputError):
    """A path that cannot be written, with the reason."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path}: cannot be written: {reason}")


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Attribute errors of the block to `path`. Raises `WriteError`."""
    try:
        yield
    except OSError as error:
        raise WriteError(path, error.strerror or first_line(error)) from error
    except Exception as error:
        from polars.exceptions import PolarsError

        if not isinstance(error, PolarsError):
            raise
        raise WriteError(path, _reason(error)) from error


@contextmanager
def replace_folder(target: Path, carry: Callable[[str], bool] = lambda _: False) -> Iterator[Path]:
    """Yield an empty folder to fill, which replaces `target` at the end of the block.

    Entries of an earlier `target` whose names `carry` accepts are in the new folder before it takes the place, so that
    they are there at any time. If the block fails, nothing has changed. Of several writers at once the last one wins,
    whole. A `target` that is a symbolic link stays one: what it points to is replaced, as a file that is written
    through a link would be, so that results can be on another disk.

    Raises `InputError` if `target` cannot be written; what the block raises is passed on.
    """
    with staging_folder(target) as new:
        try:
            yield new
        except WriteError as error:
            if error.path.is_relative_to(new):
                raise WriteError(target / error.path.relative_to(new), error.reason) from error
            raise
        with write_errors(target):
            place = resolve_link(target)
            _sync_tree(new)
            with signals.defer_signals():
                _restore_previous(place)
                _install(new, place, carry)


def temporary_folder() -> LockedTempDir:
    """Return a private temporary folder. Raises `InputError` if none can be made."""
    with write_errors(Path(tempfile.gettempdir())):
        return LockedTempDir()


def check(target: Path, expected: Kind) -> None:
    """Reject a folder that is of another kind, or cannot be made, before work is spent on it. Raises `InputError`."""
    result_kind.check(target, expected)
    staging_folder(target).close()


def staging_folder(target: Path) -> LockedTempDir:
    """Return a private folder from which something can be renamed to `target`. Raises `InputError`."""
    with write_errors(target):
        parent = resolve_link(target).parent
        parent.mkdir(parents=True, exist_ok=True)
        return LockedTempDir(parent)


def atomic_write(path: Path, write: Callable[[Path], object], private: Path | None = None) -> None:
    """Write a file atomically; `write` is given a path with the same suffix.

    It is made in `private` if that is given, which must be on the same file system. A symbolic link at `path` stays
    one. Raises `InputError` if it cannot be written.
    """
    with write_errors(path):
        if private is None:
            with staging_folder(path) as own:
                atomic_write(path, write, own)
            return
        place = resolve_link(path)
        if place.exists() and not place.is_file():
            raise FileExistsError(errno.EEXIST, "it is there and is not a regular file")
        new = private / f"new{path.suffix}"
        write(new)
        sync(new)
        new.replace(place)
        sync(place.parent)


def resolve_link(path: Path) -> Path:
    """Return the target of a symbolic link at the end of a path, else the path itself. Raises `OSError`."""
    try:
        return path.resolve() if path.is_symlink() else path.absolute()
    except RuntimeError:  # what Python before 3.13 gives of links in a circle
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None


def sync(path: Path) -> None:
    """Force a file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems cannot sync a folder
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _reason(error: Exception) -> str:
    """Return the system's reason within Polars' message: `parquet: …: No space left on device (os error 28)`.

    Polars loses it where the footer of a file cannot be written: "Invalid thrift: transport error".
    """
    reason = re.search(r"([^:\n]+) \(os error \d+\)", str(error))
    if reason is None and "transport error" in str(error):
        return "No space left on device, or another error of the disk"
    return reason[1].strip() if reason else first_line(error)


def _install(new: Path, target: Path, carry: Callable[[str], bool]) -> None:
    """Exchange the folders; carried entries are linked before, and moved after if they have changed meanwhile."""
    ours = {path.name for path in new.iterdir()}
    with _locked(target):
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
def _locked(folder: Path) -> Iterator[None]:
    """Hold a lock on the folder, so that no one removes it as stale while it has a temporary name."""
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
    """Apply `put` to a file, or to all those of a folder."""
    if not source.is_dir() or source.is_symlink():
        put(source, target)
        return
    target.mkdir(exist_ok=True)
    for entry in source.iterdir():
        _carry(entry, target / entry.name, put)
    shutil.copystat(source, target)


def _link(source: Path, target: Path) -> None:
    """Create a hard link; a copy where the file system has none."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        target.unlink()
        _link(source, target)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def _swap(one: Path, other: Path) -> None:
    """Exchange the names of two folders; afterwards `one` holds what was in `other`."""
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
    previous = _previous_name(other)
    other.replace(previous)
    try:
        one.replace(other)
    except OSError:
        previous.replace(other)
        raise
    previous.replace(one)


def _previous_name(target: Path) -> Path:
    return target.with_name(f"{target.name}.previous")


def _restore_previous(target: Path) -> None:
    """Restore the old folder, which a kill in the middle of `_swap_in_steps` leaves under another name."""
    if not target.exists() and _previous_name(target).is_dir():
        _previous_name(target).replace(target)


def _sync_tree(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        sync(path)
