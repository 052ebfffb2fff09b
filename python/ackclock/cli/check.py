"""`ackclock check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ackclock.errors import InputError

if TYPE_CHECKING:
    from ackclock.dataset.archives import Checked


def check(
    places: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Results, or folders with results in them.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each result.")] = False,
) -> None:
    """Check that results are as they were written: every table, capture and manifest, by its SHA-256.

    A line for each result in the folders, of whatever command. A sweep that
    is not finished is checked as far as it is.

    The exit status is 2 if any result is damaged.

    Examples:
        ackclock check results

        ackclock check archive/2024 archive/2025 --json
    """
    from ackclock.dataset import archives

    found = [folder for place in places for folder in _results(place)]
    damaged = 0
    for folder in dict.fromkeys(found):
        checked = archives.check(folder)
        damaged += checked.state == archives.DAMAGED
        typer.echo(_json(checked) if as_json else _line(checked))
    if damaged:
        raise InputError(f"found damage in {damaged} of {len(set(found))}; expected results as they were written")


def _results(place: Path) -> list[Path]:
    from ackclock.dataset import archives

    found = list(archives.find(place))
    if not found:
        what = "no ackclock result in it" if place.is_dir() else "no such folder"
        raise InputError(f"{place}: found {what}; expected a result, or a folder with results")
    return found


def _line(checked: Checked) -> str:
    from ackclock.views import numbers

    if checked.problems:
        return f"{checked.folder}: {checked.state}: {'; '.join(checked.problems)}"
    size = numbers.value(checked.size_bytes, "bytes")
    files = "1 file" if checked.files == 1 else f"{checked.files} files"
    return f"{checked.folder}: {checked.state}: {checked.kind.value}, {files}, {size}"


def _json(checked: Checked) -> str:
    return json.dumps(
        {
            "folder": str(checked.folder),
            "kind": checked.kind.name.lower(),
            "state": checked.state,
            "files": checked.files,
            "bytes": checked.size_bytes,
            "problems": list(checked.problems),
        }
    )
