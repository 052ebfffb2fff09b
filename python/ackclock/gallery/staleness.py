"""Results of entries that stand: nothing that they come of has changed since they were made.

So the same command goes on where it was interrupted, and a row that is there is by the engines as they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from ackclock.dataset import manifests
from ackclock.dataset.result_kind import Kind
from ackclock.errors import InputError
from ackclock.gallery.entry import REPRODUCTIONS, Entry
from ackclock.gallery.result import Result

#: The key of a result's manifest that says of what it was made.
KEY = "made_of"

#: Names of written files in an entry's folder.
MADE = ("reproduced.csv", "switched.csv", "__pycache__")

#: Files that are read when pages are made, and that only ablations depend on.
TEXT, MECHANISMS = "README.md", "mechanisms.toml"


def made_of(entry: Entry, scale: str, lacks: Mapping[str, str | None], mechanisms: Iterable[str] = ()) -> str:
    """A SHA-256 of what a result comes of: the program with its engines, the entry's files, and what is run of them.

    Of the programs beside it, ns-2, ns-3 and the guest's kernel, it has only whether they are there.
    """
    of = hashlib.sha256(_program())
    names = list(mechanisms)
    for path in _files(entry.folder, () if names else (MECHANISMS,)):
        of.update(path.name.encode() + b"\0" + path.read_bytes())
    there = [engine for engine, lack in lacks.items() if not lack]
    for chosen in ((scale,), there, entry.only, entry.read, names):
        of.update("\0".join(chosen).encode() + b"\1")
    return of.hexdigest()


def result(entry: Entry, folder: Path, table: str, made: str) -> Result | None:
    """Return the stored result of a folder, if its inputs and its files are unchanged; else None."""
    try:
        manifest = manifests.read(folder, Kind.REPRODUCTION)
    except (InputError, OSError):  # whoever writes there says what is wrong with the place
        return None
    if manifest.about["reproduction"].get(KEY) != made or manifest.problems():
        return None
    return Result.read(folder / table, entry.id)


@cache
def _program() -> bytes:
    """A digest of the package's files and of its library; the entries have their own."""
    package, of = REPRODUCTIONS.parent, hashlib.sha256()
    for path in sorted(_within(package)):
        of.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    return of.digest()


def _within(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_file():
            yield path
        elif path.name not in MADE and path != REPRODUCTIONS:
            yield from _within(path)


def _files(folder: Path, others: Iterable[str]) -> list[Path]:
    left_out = (*MADE, TEXT, *others)
    return sorted(path for path in folder.iterdir() if path.is_file() and path.name not in left_out)
