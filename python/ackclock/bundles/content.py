"""Contents of a bundle: a result's folder unchanged, and the parts that people read first.

bundle.json                           what the results are, and the size and SHA-256 of each file below
about/dumbbell-packet/scenario.toml   the scenario as it was written
about/dumbbell-packet/plan.json       the same as complete numbers
about/dumbbell-packet/metrics.json    what `ackclock run --json` printed
results/dumbbell-packet/…             the folder: manifest, tables, report, and what the user keeps in it
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ackclock.bundles import archive
from ackclock.bundles.archive import Given
from ackclock.dataset import Dataset, manifests
from ackclock.dataset.manifests import PLACES
from ackclock.dataset.result_kind import LOCK, MANIFEST, Kind, kind
from ackclock.errors import InputError
from ackclock.system.files import readable
from ackclock.system.temporary import is_temporary

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
    archive.write(path, {"results": listed}, parts)
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
