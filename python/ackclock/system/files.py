"""Reading what people name: regular files of a bounded size. A pipe would wait for ever, a device has no end."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ackclock.errors import InputError

#: What other files are called.
KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class UnreadableError(InputError):
    """A file that is not there, is no regular file, may not be read or is too long; `found` says which."""

    def __init__(self, path: Path, found: str, expected: str = "a regular file that can be read") -> None:
        super().__init__(f"{readable(path)}: found {found}; expected {expected}")
        self.found = found


class MissingError(UnreadableError):
    """A file that is not there."""


def content(path: Path, most_bytes: int) -> bytes:
    """What is in a regular file. Raises `UnreadableError`."""
    check(path)
    try:
        # Should a pipe have taken its place, this does not wait for who writes to it.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            _check_kind(path, os.fstat(file.fileno()))
            found = file.read(most_bytes + 1) or b""  # None: it would wait
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if len(found) > most_bytes:
        raise UnreadableError(path, f"more than {most_bytes >> 20} MiB")
    return found


def check(path: Path) -> None:
    """Raises `UnreadableError` if a path is not that of a regular file."""
    try:
        _check_kind(path, os.stat(path))  # noqa: PTH116 (one that is not found is an error)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def check_name(path: Path) -> Path:
    """The path, absolute; raises `InputError` if it has a name that tables cannot be read from or written to."""
    absolute = path.absolute()
    try:
        str(absolute).encode()
        os.lstat(absolute)
    except UnicodeEncodeError:  # of the system's encoding too, which the environment may say is ASCII
        raise InputError(
            f"{readable(path)}: found a name that is not UTF-8, or not in this locale; expected another folder"
        ) from None
    except (FileNotFoundError, NotADirectoryError):
        return absolute
    except (OSError, ValueError) as error:
        raise InputError(f"{readable(path)}: found an error ({reason(error)}); expected another folder") from None
    return absolute


def readable(path: Path | str) -> str:
    """A path as text on one line that can be printed and written anywhere, whatever bytes its name has."""
    text = str(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def printable(text: str, most: int = 200) -> str:
    """A text of another's on one line, without characters that do something to a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))[:most]


def reason(error: Exception) -> str:
    """What the system says of an error, without the path."""
    return str(getattr(error, "strerror", None) or error)


def _check_kind(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UnreadableError(path, KINDS.get(stat.S_IFMT(found.st_mode), "a special file"))


def _unreadable(path: Path, error: Exception) -> UnreadableError:
    if isinstance(error, FileNotFoundError):
        return MissingError(path, "no such file")
    return UnreadableError(path, f"an error ({reason(error)})")
