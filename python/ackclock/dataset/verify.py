"""Verification of results in folders against their manifests, file by file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ackclock.dataset import manifests
from ackclock.dataset.manifests import PLACES, POINTS
from ackclock.dataset.result_kind import DATASETS, MANIFEST, MARKS, Kind, kind
from ackclock.errors import InputError
from ackclock.system.temporary import is_temporary

#: States of a result: as it was written; as far as it got; not as it was written.
SOUND, UNFINISHED, DAMAGED = "sound", "unfinished", "damaged"

_RESULTS = (*DATASETS, Kind.SWEEP, Kind.COMPARISON, Kind.REPRODUCTION, Kind.SEARCH)


@dataclass(frozen=True, slots=True)
class Checked:
    """A result and its state; `problems` list the damage. Files and bytes are those that are sound."""

    folder: Path
    kind: Kind
    state: str
    files: int
    size_bytes: int
    problems: tuple[str, ...]


def find(folder: Path) -> Iterator[Path]:
    """Yield the results in a folder, itself included, in the order of their names; and remains of results."""
    for path, below, _ in os.walk(folder):
        below[:] = sorted(name for name in below if name not in PLACES and not is_temporary(Path(name)))
        if _was_result(Path(path)):
            yield Path(path)


def check(folder: Path) -> Checked:
    """Compare a result with its manifest."""
    what = kind(folder)
    try:
        manifest = manifests.read(folder)
    except InputError as error:
        return Checked(folder, what, DAMAGED, 0, 0, (_within(folder, str(error)),))
    problems = manifest.problems()
    sound = [folder / name for name in manifest.files if name not in problems]
    unfinished = what is Kind.SWEEP and POINTS not in manifest.files
    state = DAMAGED if problems else UNFINISHED if unfinished else SOUND
    size_bytes = sum(path.stat().st_size for path in sound)
    return Checked(folder, what, state, len(sound), size_bytes, tuple(f"{name}: {problems[name]}" for name in problems))


def _was_result(folder: Path) -> bool:
    tables = (place for place in PLACES if place.endswith(".parquet"))
    return kind(folder) in _RESULTS or any((folder / name).exists() for name in (*tables, *MARKS))


def _within(folder: Path, message: str) -> str:
    """Remove the folder from a message."""
    return message.removeprefix(f"{folder / MANIFEST}: ").removeprefix(f"{folder}: ")
