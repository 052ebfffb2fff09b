"""Kind of a folder: a result (of a run, captures, a host), a sweep, a comparison, a search, …, or none.

A command replaces results of its own kind only: `check` refuses what it would destroy otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from ackclock.errors import InputError
from ackclock.system import files
from ackclock.system.files import is_temporary

#: The file that identifies a result.
MANIFEST = "manifest.json"

#: Longest manifest, in bytes.
LONGEST_MANIFEST = 1 << 30

#: The file that holds a sweep's lock; the folder it stands alone in is as good as empty.
LOCK = ".lock"


class Kind(Enum):
    """Kind of a folder, as users read it."""

    NOTHING = "nothing"
    EMPTY = "an empty folder"
    RUN = "the result of a run"
    CAPTURE = "the result of captures"
    HOST = "what was found of a host"
    IMPORTED = "imported measurements"
    SWEEP = "a sweep"
    COMPARISON = "a comparison"
    REPRODUCTION = "a reproduction"
    SEARCH = "a search result"
    EVALUATION = "an evaluation"
    DAMAGED = "a manifest.json that cannot be read"
    OTHER = "something that is not an ackclock result"


#: The key of a manifest that identifies the kind of a result; a run's has none of them.
KEYS = {
    "capture": Kind.CAPTURE,
    "host": Kind.HOST,
    "imported": Kind.IMPORTED,
    "sweep": Kind.SWEEP,
    "comparison": Kind.COMPARISON,
    "reproduction": Kind.REPRODUCTION,
    "find": Kind.SEARCH,
    "evaluation": Kind.EVALUATION,
}

#: Kinds that are a dataset.
DATASETS = (Kind.RUN, Kind.CAPTURE, Kind.HOST, Kind.IMPORTED)

#: The file that marks a folder of format 2, which had no manifest.
MARKS = {"comparison.json": Kind.COMPARISON, "reproduced.csv": Kind.REPRODUCTION}


def kind(folder: Path) -> Kind:
    """Return the kind of a folder, of whatever format and in whatever state, intact or not."""
    result = _inspect(folder)
    return (
        _inspect(folder) if result is Kind.OTHER else result
    )  # a result may have come between two parts of the first look


def _inspect(folder: Path) -> Kind:
    try:
        if not folder.is_dir():
            return Kind.OTHER if folder.exists() else Kind.NOTHING
        if (folder / MANIFEST).is_file():
            return _of_manifest(folder / MANIFEST)
        if marked := next((result for name, result in MARKS.items() if (folder / name).is_file()), None):
            return marked
        return Kind.OTHER if any(map(_counts, folder.iterdir())) else Kind.EMPTY
    except OSError:
        return Kind.OTHER


def check(folder: Path, expected: Kind) -> None:
    """Reject a folder that a result of that kind may not replace or continue in. Raises `InputError`.

    What a symbolic link points to counts, since it is what would be replaced.
    """
    files.check_name(folder)
    result = kind(folder)
    if result not in (Kind.NOTHING, Kind.EMPTY, expected):
        raise InputError(f"{folder}: found {result.value}, which is left alone; expected another folder (--out)")


def _of_manifest(path: Path) -> Kind:
    try:
        manifest = json.loads(files.read_bytes(path, LONGEST_MANIFEST))
    except (InputError, ValueError, RecursionError):
        return Kind.DAMAGED
    if not isinstance(manifest, Mapping) or "ackclock" not in manifest:
        return Kind.OTHER
    return of(manifest)


def of(manifest: Mapping[str, Any]) -> Kind:
    """Return the kind of a result with this manifest."""
    return next((result for key, result in KEYS.items() if key in manifest), Kind.RUN)


def _counts(path: Path) -> bool:
    """Return True unless a killed process may have left it."""
    return path.name != LOCK and not is_temporary(path)
