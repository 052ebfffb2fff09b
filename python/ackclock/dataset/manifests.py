"""Manifest of a result: its kind, its origin, and the SHA-256 of each of its files.

Results of all kinds have one. Its first key, `sha256`, is its own: of the bytes of `manifest.json` without those 64
digits. A result in a result, as those of a comparison, has a manifest that is one of the outer one's files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from ackclock.dataset import checksums, tables
from ackclock.dataset.result_kind import DATASETS, KEYS, LONGEST_MANIFEST, MANIFEST, MARKS, Kind, kind
from ackclock.dataset.tables import TABLES
from ackclock.errors import InputError, first_line
from ackclock.system import files
from ackclock.system.files import is_temporary

#: Numbers of runs are 32 bits long in every table.
MAX_RUN = 2**32 - 1

#: A version's number, as it is written in a message.
_PLAIN = re.compile(r"[\w.+-]{1,40}", re.ASCII)

#: States of a result: as it was written; as far as it got; not as it was written.
SOUND, UNFINISHED, DAMAGED = "sound", "unfinished", "damaged"

_RESULTS = (*DATASETS, Kind.SWEEP, Kind.COMPARISON, Kind.REPRODUCTION, Kind.SEARCH, Kind.EVALUATION)

#: Errors that Polars raises for damaged files; some damage makes it panic.
UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


def excerpt(value: object) -> str:
    """Return a value of a manifest for a message, short and on one line."""
    return value if isinstance(value, str) and _PLAIN.fullmatch(value) else json.dumps(value)[:60]


def check_runs(manifest: Mapping[str, Any], folder: Path) -> None:
    """Raise `InputError` unless the manifest lists runs, each a table with a unique number."""
    runs = manifest.get("runs")
    if not isinstance(runs, list):
        raise InputError(f"{folder}: damaged: manifest.json lists no runs")
    if not all(map(_is_run, runs)) or len({run["run"] for run in runs}) < len(runs):
        raise InputError(f"{folder}: damaged: manifest.json lists runs that have no number, or one number twice")


def _is_run(run: object) -> bool:
    if not isinstance(run, dict) or not isinstance(run.get("metrics") or {}, dict):
        return False
    number, seed = run.get("run"), run.get("seed")
    numbered = type(number) is int and 0 <= number <= MAX_RUN
    return numbered and (seed is None or (type(seed) is int and -(2**63) <= seed < 2**63))


def check_part(path: Path, table: str) -> dict[str, pl.DataType]:
    """Raise `InputError` unless the file has the columns of the table, of their types.

    Gives the columns of words that have got more words since it was written, and their types now.
    """
    try:
        result = pl.scan_parquet(path.absolute(), glob=False).collect_schema()
    except UNREADABLE as error:
        raise InputError(f"{path}: damaged part: {first_line(error)}") from error
    expected = tables.schema(table)
    if list(result) != list(expected):
        raise InputError(f"{path}: damaged part: its columns are not those of {table}")
    changed = {name: dtype for name, dtype in expected.items() if result[name] != dtype}
    for name, dtype in changed.items():
        if not _is_shorter(result[name], dtype):
            raise InputError(f"{path}: damaged part: its column {name} is {result[name]}; expected {dtype}")
    return changed


def _is_shorter(result: pl.DataType, dtype: pl.DataType) -> bool:
    """Return True if the categories are the first ones of the current type: new ones are added at the end."""
    if not isinstance(result, pl.Enum) or not isinstance(dtype, pl.Enum):
        return False
    return list(result.categories) == list(dtype.categories)[: len(result.categories)]


#: Version of the folders' layout and of the tables' columns; a reader refuses another.
FORMAT = 8

#: A sweep's table of metrics, beside the dataset's; and the file of its result, when it is finished.
RUNS, POINTS = "runs", "points.parquet"

#: Key of a sweep's manifest: why its results may mislead, in sentences.
WARNINGS = "warnings"

#: The folder of a result's packet captures.
CAPTURES = "captures"

#: The report in a result's folder. It can be made anew at any time, and is no part of what is checked.
REPORT = "report.html"

#: Folders of a result that hold nothing but what was written.
PLACES = (*(f"{table}.parquet" for table in (*TABLES, RUNS)), CAPTURES)

_OWN = re.compile(rb'(\{\n  "sha256": ")([0-9a-f]{64})(",\n)')
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """Content of a folder's manifest: `about` the result, and of its `files` the SHA-256."""

    folder: Path
    about: dict[str, Any]
    files: Mapping[str, str]

    def under(self, place: str) -> list[str]:
        """Return the files in a subfolder, by their names in the folder, in the order of their numbers."""
        result = [name for name in self.files if name.startswith(f"{place}/")]
        return sorted(result, key=lambda name: (len(name), name))

    def check(self, names: Iterable[str], places: Iterable[str] = ()) -> None:
        """Raise `InputError` if one of these files is damaged, or a file in `places` is not listed."""
        result = self.additional(places) | checksums.damage(self.folder, {name: self.files[name] for name in names})
        if result:
            name, what = next(iter(result.items()))
            more = f" (and {len(result) - 1} more)" if len(result) > 1 else ""
            raise InputError(f"{self.folder / name}: {what}{more}")

    def problems(self) -> dict[str, str]:
        """Return all deviations from the manifest: file → problem."""
        return checksums.damage(self.folder, self.files) | self.additional(PLACES)

    def additional(self, places: Iterable[str]) -> dict[str, str]:
        """Return files in these subfolders that the manifest does not list."""
        present = [
            path for place in places if (self.folder / place).is_dir() for path in (self.folder / place).iterdir()
        ]
        names = sorted(f"{path.parent.name}/{path.name}" for path in present if not is_temporary(path))
        return {name: f"additional: {MANIFEST} does not list it" for name in names if name not in self.files}


def content(about: Mapping[str, Any], files: Mapping[str, str]) -> bytes:
    """Return a manifest's bytes."""
    document = {"sha256": "", "format": FORMAT, **about, "files": dict(files)}
    text = json.dumps(document, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")  # lone surrogates
    return text.replace(b'""', f'"{hashlib.sha256(text).hexdigest()}"'.encode(), 1)


def write(folder: Path, about: Mapping[str, Any], names: Iterable[str]) -> None:
    """Write the manifest of a folder that is not yet in its place, with these files. Raises `OSError`."""
    (folder / MANIFEST).write_bytes(content(about, checksums.of_files(folder, names)))


def read(folder: Path, *expected: Kind) -> Manifest:
    """Read the manifest of a result of one of these kinds (by default any).

    Raises `InputError` if it is none, of another kind or format, or damaged.
    """
    given = _bytes(folder)
    signed = _OWN.match(given) is not None
    if signed and not is_intact(given):
        raise InputError(f"{folder / MANIFEST}: damaged: it is not what was written (SHA-256)")
    manifest = _checked(folder, _parsed(folder, given), signed)
    result = kind(folder)
    if expected and result not in expected:
        raise InputError(f"{folder}: found {result.value}; expected {expected[0].value}")
    files = manifest.pop("files", None)
    if not isinstance(files, dict) or not all(_is_file(*item) for item in files.items()):
        raise InputError(f"{folder / MANIFEST}: damaged: it lists no files")
    return Manifest(folder, {key: value for key, value in manifest.items() if key not in ("sha256", "format")}, files)


def is_intact(given: bytes) -> bool:
    """Return True if a manifest's bytes match their own SHA-256."""
    digest = _OWN.match(given)
    return (
        digest is not None
        and hashlib.sha256(given[: digest.start(2)] + given[digest.end(2) :]).hexdigest().encode() == digest[2]
    )


def list_files(folder: Path) -> list[str]:
    """List the files of a new folder for its manifest: all but reports, and of nested results their manifests."""
    result: list[str] = []
    for path in sorted(folder.iterdir()):
        if not path.is_dir():
            result += [path.name] if path.name != REPORT else []
        elif (path / MANIFEST).is_file():
            result.append(f"{path.name}/{MANIFEST}")
        else:
            result += [f"{path.name}/{name}" for name in list_files(path)]
    return result


def is_note(folder: Path) -> Callable[[str], bool]:
    """Return a predicate for the user's own files in a result's folder: neither written with it nor a report."""
    try:
        listed = {PurePosixPath(name).parts[0] for name in json.loads((folder / MANIFEST).read_bytes())["files"]}
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        listed = set()
    digest = listed | {MANIFEST, REPORT, *PLACES}
    return lambda name: name not in digest


def _bytes(folder: Path) -> bytes:
    path = folder / MANIFEST
    if not folder.is_dir():
        raise InputError(f"{folder}: no such result folder")
    try:
        return files.read_bytes(path, LONGEST_MANIFEST)
    except files.MissingError:
        raise InputError(
            f"{folder}: not an ackclock result: it has no {MANIFEST}; expected a folder that --out has made"
        ) from None


def _parsed(folder: Path, given: bytes) -> Any:
    try:
        return json.loads(given)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{folder / MANIFEST}: damaged: {first_line(error)}") from error


def _checked(folder: Path, manifest: Any, signed: bool) -> dict[str, Any]:
    if not isinstance(manifest, dict) or "ackclock" not in manifest:
        raise InputError(f"{folder}: not an ackclock result: {MANIFEST} does not name an ackclock version")
    if manifest.get("format") != FORMAT:
        advice = "run the scenario again" if not KEYS.keys() & manifest.keys() else "run it again"
        version, result = (excerpt(manifest.get(key)) for key in ("ackclock", "format"))
        wrote = f"written by ackclock {version} in format {result}"
        raise InputError(f"{folder}: {wrote}; this ackclock reads format {FORMAT}: {advice}")
    if not signed:
        raise InputError(f"{folder / MANIFEST}: damaged: it has no SHA-256 of its own")
    return manifest


def _is_file(name: object, sha256: object) -> bool:
    """Return True if it is the name of a file in the folder, and a SHA-256."""
    parts = PurePosixPath(name).parts if isinstance(name, str) else ()
    inside = bool(parts) and ".." not in parts and parts[0] != "/"
    return inside and isinstance(sha256, str) and _SHA256.fullmatch(sha256) is not None


@dataclass(frozen=True, slots=True)
class Checked:
    """A result and its state; `problems` list the damage. Files and bytes are those that are sound."""

    folder: Path
    kind: Kind
    state: str
    files: int
    size_bytes: int
    problems: tuple[str, ...]


def find_results(folder: Path) -> Iterator[Path]:
    """Yield the results in a folder, itself included, in the order of their names; and remains of results."""
    for path, below, _ in os.walk(folder):
        below[:] = sorted(name for name in below if name not in PLACES and not is_temporary(Path(name)))
        if _was_result(Path(path)):
            yield Path(path)


def verify(folder: Path) -> Checked:
    """Compare a result with its manifest."""
    what = kind(folder)
    try:
        manifest = read(folder)
    except InputError as error:
        return Checked(folder, what, DAMAGED, 0, 0, (_relative(folder, str(error)),))
    problems = manifest.problems()
    sound = [folder / name for name in manifest.files if name not in problems]
    last = {Kind.SWEEP: POINTS in manifest.files, Kind.EVALUATION: bool(manifest.files)}  # written at the end
    unfinished = not last.get(what, True)
    state = DAMAGED if problems else UNFINISHED if unfinished else SOUND
    size_bytes = sum(path.stat().st_size for path in sound)
    return Checked(folder, what, state, len(sound), size_bytes, tuple(f"{name}: {problems[name]}" for name in problems))


def _was_result(folder: Path) -> bool:
    tables = (place for place in PLACES if place.endswith(".parquet"))
    return kind(folder) in _RESULTS or any((folder / name).exists() for name in (*tables, *MARKS))


def _relative(folder: Path, message: str) -> str:
    """Remove the folder from a message."""
    return message.removeprefix(f"{folder / MANIFEST}: ").removeprefix(f"{folder}: ")
