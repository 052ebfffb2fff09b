"""Read regular files of a bounded size. A pipe named by mistake would block for ever, and a device has no end."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ackclock.errors import InputError

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
