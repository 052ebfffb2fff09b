"""The file of a bundle: a tar archive without compression, whose first member `bundle.json` lists the others.

The list has the size and the SHA-256 of every part, and its own SHA-256 as the manifests of results have. The parts
follow in the order of their names, with nothing of who wrote them, when and where: the same parts make the same bytes.
A bundle may come from anybody, so a reader takes regular files only, under names within the folder
(`tarfile.data_filter`), no part that is not listed, and no part that differs from the list.

It has a result's folder unchanged, and the parts that people read first:

    bundle.json                           what the results are, and the size and SHA-256 of each file below
    about/dumbbell-packet/scenario.toml   the scenario as it was written
    about/dumbbell-packet/plan.json       the same as complete numbers
    about/dumbbell-packet/metrics.json    what `ackclock run --json` printed
    results/dumbbell-packet/…             the folder: manifest, tables, report, and what the user keeps in it
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import stat
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

from ackclock import _core
from ackclock.dataset import Dataset, checksums, folders, manifests
from ackclock.dataset.manifests import PLACES
from ackclock.dataset.result_kind import LOCK, MANIFEST, Kind, kind
from ackclock.errors import InputError
from ackclock.system import files
from ackclock.system.files import is_temporary, readable

#: The part that lists the others.
LIST = "bundle.json"

#: Version of the form; a reader refuses another.
FORM = 1

#: Longest list, in bytes.
LONGEST_LIST = 64 << 20

#: Longest name of a part, and of what is between two slashes, in bytes: what file systems take.
LONGEST_NAME, LONGEST_STEP = 4000, 255

#: Bytes that are read at a time.
AT_A_TIME = 1 << 20

#: Magic of a tar archive's headers, and its offset (POSIX.1-1988).
MAGIC, MAGIC_AT = b"ustar", 257

#: Content of a part: a file, or bytes.
Given: TypeAlias = "Path | bytes"

#: Expectation of a file that is no bundle.
EXPECTED = "a file that `ackclock bundle` has written"

#: Errors of `tarfile` for a damaged archive: its own, numbers that are none, and sizes beyond any file.
_UNREADABLE = (tarfile.TarError, EOFError, ValueError, OverflowError, MemoryError, RecursionError)

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Part:
    """A part's size and SHA-256."""

    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle that is whole: what its list says, and its parts by name."""

    path: Path
    about: Mapping[str, Any]
    parts: Mapping[str, Part]


def write(path: Path, about: Mapping[str, Any], parts: Mapping[str, Given]) -> None:
    """Writes a bundle, whole or not at all. Raises `InputError` for what cannot be a part, or cannot be written."""
    for name in parts:
        if wrong := _wrong_name(name):
            raise InputError(f"{readable(name)}: found {wrong}; expected a name that a bundle can have")
    ordered = {name: parts[name] for name in sorted(parts)}
    listed = {name: _part(given) for name, given in ordered.items()}
    sizes = {name: part.size_bytes for name, part in listed.items()}
    whole = {"ackclock": _core.version, "bundle": {"form": FORM, **about, "bytes": sizes}}
    first = manifests.content(whole, {name: part.sha256 for name, part in listed.items()})
    folders.atomic_write(path, lambda new: _fill(new, {LIST: first, **ordered}, {LIST: len(first), **sizes}))


def read(path: Path, into: Path | None = None, wanted: Callable[[str], bool] = lambda _: True) -> Bundle:
    """Compares the parts of a bundle with its list, and puts those that are `wanted` into the new folder `into`.

    Raises `InputError` if it is none, of another form, or damaged, with the part that is.
    """
    with _opened(path) as archive:
        bundle = _listed(path, archive)
        missing = dict(bundle.parts)
        for member in _members(path, archive):
            part = missing.pop(member.name, None)
            if part is None or not _is_plain(member) or member.size != part.size_bytes:
                raise _damaged(path, f"{member.name[:80]!r} is not what the list says")
            _take(path, archive, member, part, into if into is not None and wanted(member.name) else None)
    if missing:
        raise _damaged(path, f"{next(iter(missing))} is missing, or its header is damaged")
    return bundle


def _part(given: Given) -> Part:
    if isinstance(given, bytes):
        return Part(len(given), hashlib.sha256(given).hexdigest())
    try:
        return Part(given.lstat().st_size, checksums.of_file(given))
    except OSError as error:
        raise InputError(f"{readable(given)}: found an error ({files.reason(error)}); expected a file") from None


def _fill(new: Path, parts: Mapping[str, Given], sizes: Mapping[str, int]) -> None:
    with tarfile.open(new, "w", format=tarfile.GNU_FORMAT) as archive:
        for name, given in parts.items():
            info = tarfile.TarInfo(name)
            info.size = sizes[name]
            if isinstance(given, Path) and (now := given.lstat().st_size) != info.size:
                raise InputError(f"{readable(name)}: found {now} bytes, and {info.size} before; expected no change")
            with io.BytesIO(given) if isinstance(given, bytes) else checksums.opened(given) as source:
                archive.addfile(info, source)


@contextmanager
def _opened(path: Path) -> Iterator[tarfile.TarFile]:
    files.check(path)
    try:
        with checksums.opened(path) as file:
            header = file.read(tarfile.BLOCKSIZE)
            if not _is_tar(header):
                raise InputError(f"{readable(path)}: found {_kind(header)}; expected {EXPECTED}")
            file.seek(0)
            with _archive(path, file) as archive:
                yield archive
    except OSError as error:
        raise InputError(f"{readable(path)}: found an error ({files.reason(error)}); expected {EXPECTED}") from None


def _archive(path: Path, file: IO[bytes]) -> tarfile.TarFile:
    try:
        return tarfile.open(fileobj=file, mode="r:")
    except _UNREADABLE:
        raise _damaged(path, f"the header of {LIST}") from None


def _is_tar(header: bytes) -> bool:
    try:
        tarfile.TarInfo.frombuf(header, "utf-8", "strict")
    except _UNREADABLE:
        return header[MAGIC_AT : MAGIC_AT + len(MAGIC)] == MAGIC
    return True


def _members(path: Path, archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members after those already read."""
    try:
        while (member := archive.next()) is not None:
            yield member
    except _UNREADABLE:
        raise _damaged(path, "it cannot be read as a tar archive") from None


def _is_plain(member: tarfile.TarInfo) -> bool:
    return member.type == tarfile.REGTYPE and not member.issparse()


def _listed(path: Path, archive: tarfile.TarFile) -> Bundle:
    """Parse the list, once its hash is verified."""
    member = next(_members(path, archive), None)
    if member is None or member.name != LIST or not _is_plain(member):
        raise InputError(f"{readable(path)}: found a tar archive that does not begin with {LIST}; expected {EXPECTED}")
    if member.size > LONGEST_LIST:
        raise _damaged(path, f"{LIST} is too long")
    buffer = io.BytesIO()
    _copy(path, archive, member, buffer)
    if not manifests.is_intact(buffer.getvalue()):
        raise _damaged(path, f"{LIST} is not what was written")
    try:
        values = json.loads(buffer.getvalue())
    except (ValueError, RecursionError):
        raise _damaged(path, f"{LIST} is no JSON") from None
    about = values.get("bundle") if isinstance(values, dict) else None
    if not isinstance(about, dict):
        raise InputError(f"{readable(path)}: found no bundle in {LIST}; expected {EXPECTED}")
    if about.get("form") != FORM or values.get("format") != manifests.FORMAT:
        found = f"form {str(about.get('form'))[:20]!r} with results of format {str(values.get('format'))[:20]!r}"
        ours = f"this ackclock reads form {FORM} with results of format {manifests.FORMAT}"
        raise InputError(f"{readable(path)}: found a bundle of {found}; {ours}")
    return Bundle(path, about, _parts(path, values.get("files"), about.get("bytes")))


def _parts(path: Path, sums: Any, sizes: Any) -> dict[str, Part]:
    """The list as values. It may come from anybody, and have a sum that is right."""
    if not isinstance(sums, dict) or not isinstance(sizes, dict) or sums.keys() != sizes.keys():
        raise InputError(f"{readable(path)}: {LIST}: found no list of files with their sizes; expected {EXPECTED}")
    for name, size_bytes in sizes.items():
        if wrong := _wrong_name(name):
            raise InputError(f"{readable(path)}: {LIST}: found {wrong}: {name[:80]!r}; expected names within a folder")
        if type(size_bytes) is not int or not isinstance(sums[name], str) or not _SHA256.fullmatch(sums[name]):
            raise InputError(f"{readable(path)}: {LIST}: {name}: found no size and SHA-256; expected both")
    return {name: Part(size, sums[name]) for name, size in sizes.items()}


def _wrong_name(name: str) -> str:
    """Return why a part's name could be unsafe to unpack; empty if it is safe."""
    steps = name.split("/")
    if any(step in ("", ".", "..") for step in steps) or name == LIST:
        return "a name that leads elsewhere"
    if not name.isprintable() or "\\" in name:  # halves of UTF-16 pairs, which JSON can spell, are not printable
        return "a name with characters that not every system has"
    if len(name.encode()) > LONGEST_NAME or any(len(step.encode()) > LONGEST_STEP for step in steps):
        return "a name that is too long"
    return ""


def _take(path: Path, archive: tarfile.TarFile, member: tarfile.TarInfo, part: Part, into: Path | None) -> None:
    """Compare a part with its SHA-256, and write it into a folder."""
    if into is None:
        digest = _copy(path, archive, member, None)
    else:
        target = into / member.name
        with folders.write_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as sink:
                digest = _copy(path, archive, member, sink)
    if digest != part.sha256:
        raise _damaged(path, f"{member.name} is not what was written")


def _copy(path: Path, archive: tarfile.TarFile, member: tarfile.TarInfo, sink: IO[bytes] | None) -> str:
    """The SHA-256 of a member, which is written to `sink` too."""
    digest = hashlib.sha256()
    source = archive.extractfile(member)
    assert source is not None
    try:
        while piece := source.read(AT_A_TIME):
            digest.update(piece)
            if sink is not None:
                sink.write(piece)
    except _UNREADABLE:
        raise _damaged(path, f"it is cut off in {member.name}") from None
    return digest.hexdigest()


def _kind(header: bytes) -> str:
    """Return what a file that is no tar archive seems to be."""
    if not header:
        return "an empty file"
    kinds = {b"PK\3\4": "a zip archive", b"\x1f\x8b": "a gzip file", b"\x28\xb5\x2f\xfd": "a zstd file"}
    return next((kind for magic, kind in kinds.items() if header.startswith(magic)), "no tar archive")


def _damaged(path: Path, what: str) -> InputError:
    return InputError(f"{readable(path)}: damaged: {what}")


#: The folders in a bundle.
RESULTS, ABOUT = "results", "about"

#: Files about a result.
SCENARIO, PLAN, METRICS = "scenario.toml", "plan.json", "metrics.json"

#: Keys of a manifest that the bundle's list repeats for readers.
MANIFEST_KEYS = ("ackclock", "engine", "command", "versions", "platform", "created")


def pack(folders: Sequence[Path], path: Path, *, data: bool = True) -> int:
    """Writes a bundle of results, and returns its size in bytes; without `data` their tables and captures are left out.

    Raises `InputError` for what is no result, is damaged or not finished, and if the file cannot be written.
    """
    parts: dict[str, Given] = {}
    listed = []
    for name, folder in _by_name(folders).items():
        _check(folder)
        _check_outside(path, folder)
        about, what = manifests.read(folder).about, kind(folder)
        listed.append({"name": name, "kind": what.name.lower(), **_manifest_extract(about), "data": data})
        parts |= {f"{RESULTS}/{name}/{place}": file for place, file in _files(folder, folder, data=data)}
        parts |= {f"{ABOUT}/{name}/{place}": text.encode() for place, text in _about(folder, what, about)}
    write(path, {"results": listed}, parts)
    return path.stat().st_size


def _by_name(folders: Sequence[Path]) -> dict[str, Path]:
    names = [folder.resolve().name for folder in folders]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"{readable(twice)}: found two results of this name; expected different names")
    return dict(zip(names, folders, strict=True))


def _manifest_extract(about: Mapping[str, Any]) -> dict[str, Any]:
    return {key: about[key] for key in MANIFEST_KEYS if key in about}


def _check(folder: Path) -> None:
    checked = manifests.verify(folder)
    if checked.problems:
        raise InputError(f"{readable(folder)}: {checked.problems[0]}")
    if checked.state == manifests.UNFINISHED:
        raise InputError(f"{readable(folder)}: found {checked.kind.value} that is not finished; expected all its runs")


def _check_outside(path: Path, folder: Path) -> None:
    if path.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"{readable(path)}: found a place in a result; expected one outside (--out)")


def _files(folder: Path, whole: Path, *, data: bool) -> Iterator[tuple[str, Path]]:
    """Every file by its place in the result, notes of the user's included."""
    is_result = (folder / MANIFEST).is_file()
    for entry in sorted(folder.iterdir()):
        if is_temporary(entry) or entry.name == LOCK or (is_result and not data and entry.name in PLACES):
            continue
        mode = os.lstat(entry).st_mode
        if stat.S_ISDIR(mode):
            yield from _files(entry, whole, data=data)
        elif stat.S_ISREG(mode):
            yield entry.relative_to(whole).as_posix(), entry
        else:
            raise InputError(f"{readable(entry)}: found a link or a special file; expected files and folders only")


def _about(folder: Path, what: Kind, about: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if what is Kind.SWEEP:
        yield SCENARIO, str(about["sweep"]["scenario"])
    elif what is Kind.RUN:
        yield from _about_run(about, Dataset.read(folder).metrics())
    elif what is Kind.COMPARISON:
        yield from _about_comparison(folder, about["comparison"]["engines"])


def _about_comparison(folder: Path, engines: Sequence[str]) -> Iterator[tuple[str, str]]:
    data = {engine: Dataset.read(folder / engine) for engine in engines}
    first = next(iter(data.values()))
    yield from _about_run(first.manifest, {engine: found.metrics() for engine, found in data.items()})


def _about_run(about: Mapping[str, Any], metrics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if about.get("scenario"):
        yield SCENARIO, str(about["scenario"])
    yield PLAN, _json(about.get("plan"))
    yield METRICS, _json(metrics)


def _json(values: Any) -> str:
    return json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
