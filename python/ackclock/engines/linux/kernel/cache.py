"""Cache of guest kernels: one folder for each, complete or absent.

`$XDG_CACHE_HOME/ackclock/kernels/VERSION-HASH/` (`~/.cache` by default). The hash is of all that we put into a guest,
so a guest of another ackclock is not taken by mistake. In a folder: `linux`, the guest itself; `about.json`;
`build.log`; `modules/*.ko`.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackclock.engines.linux.kernel import config
from ackclock.errors import InputError


@dataclass(frozen=True, slots=True)
class Kept:
    """A guest in the cache, and what its `about.json` says."""

    folder: Path
    about: dict[str, Any]

    @property
    def kernel(self) -> Path:
        """The guest's executable."""
        return self.folder / "linux"

    @property
    def version(self) -> str:
        """The kernel's version: `6.1.192`."""
        return str(self.about["version"])

    @property
    def current(self) -> bool:
        """Return True if it was built from the sources that this ackclock puts into a guest."""
        return bool(self.about["inputs"] == config.inputs_hash())

    @property
    def is_additional(self) -> bool:
        """Return True if it was requested by its version, next to the one that a run takes."""
        return bool(self.about.get("beside"))

    def is_of(self, version: str) -> bool:
        """Return True if it is of this version: `6.1.192`, or `6.1` for any of that series."""
        return f"{self.version}.".startswith(f"{version}.")

    @property
    def modules(self) -> list[Path]:
        """Kernel modules that were built for it."""
        return sorted((self.folder / "modules").glob("*.ko"))

    def size_bytes(self) -> int:
        """Return its size on disk."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())


def home() -> Path:
    """The folder of all guests. It may not exist."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if given.startswith("/") else Path.home() / ".cache"  # a relative one is to be ignored (XDG)
    return base / "ackclock" / "kernels"


def every() -> list[Kept]:
    """All guests, the newest kernel first."""
    found = [kept for folder in home().glob("[0-9]*") if (kept := _read(folder))]
    return sorted(found, key=lambda kept: (_ordered(kept.version), kept.about["made"]), reverse=True)


def taken(kernels: Iterable[Kept]) -> Kept | None:
    """The one of `every()` that a run takes: the newest that this ackclock made, of another series than asked for."""
    current = [kept for kept in kernels if kept.current]
    return next((kept for kept in current if not kept.is_additional), current[0] if current else None)


def of_version(version: str) -> Kept | None:
    """The newest guest of a version or series that this ackclock made."""
    return next((kept for kept in every() if kept.current and kept.is_of(version)), None)


def chosen() -> Kept:
    """The guest that a run takes. Raises `InputError` if there is none."""
    if kept := taken(every()):
        return kept
    raise InputError("The engine linux has no guest kernel yet: `ackclock kernel build` makes one, in a few minutes.")


def folder_of(version: str) -> Path:
    """Return the folder of a guest of this version."""
    return home() / f"{version}-{config.inputs_hash()}"


@contextmanager
def only_one(say: Callable[[str], None]) -> Iterator[None]:
    """Holds a lock on the cache: a second build waits for the first."""
    home().mkdir(parents=True, exist_ok=True)
    with (home() / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another build to end")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _read(folder: Path) -> Kept | None:
    try:
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        kept = Kept(folder, about)
        complete = kept.kernel.is_file() and all(isinstance(about[key], str) for key in ("version", "inputs", "made"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return kept if complete else None


def _ordered(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]
