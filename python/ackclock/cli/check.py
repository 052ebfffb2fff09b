"""`ackclock check`: of results, whether they are as they were written; of a control, whether it keeps its contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ackclock.errors import InputError

if TYPE_CHECKING:
    from ackclock.dataset.verify import Checked
    from ackclock.scaffold.contract import Kept

app = typer.Typer(rich_markup_mode="rich")


def check(
    places: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Results, or folders with results in them.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each result.")] = False,
) -> None:
    """Check that results are intact: every table, capture and manifest, by its SHA-256.

    Prints a line for each result in the folders, whatever command wrote it. An unfinished
    sweep is checked as far as it goes.

    The exit status is 2 if any result is damaged.

    `ackclock check control NAME` checks a congestion control instead: its card, its code, its windows.

    Examples:
        ackclock check results

        ackclock check archive/2024 archive/2025 --json
    """
    from ackclock.dataset import verify

    found = [folder for place in places for folder in _results(place)]
    damaged = 0
    for folder in dict.fromkeys(found):
        checked = verify.check(folder)
        damaged += checked.state == verify.DAMAGED
        typer.echo(_json(checked) if as_json else _line(checked))
    if damaged:
        raise InputError(f"found damage in {damaged} of {len(set(found))}; expected results as they were written")


def _results(place: Path) -> list[Path]:
    from ackclock.dataset import verify

    found = list(verify.find(place))
    if not found:
        what = "no ackclock result in it" if place.is_dir() else "no such folder"
        raise InputError(f"{place}: found {what}; expected a result, or a folder with results")
    return found


def _line(checked: Checked) -> str:
    from ackclock.figures import numbers

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


@app.command()
def control(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A congestion control of the packet engine.")],
) -> None:
    """Check in seconds that a congestion control, as built, satisfies the contract of all controls.

    Its card is complete; the code takes what the card says and nothing else;
    windows stay sane in any history of a connection; runs are deterministic.

    The exit status is 2 if any of this fails.

    Examples:
        ackclock check control cubic
    """
    from ackclock.algorithms import code
    from ackclock.scaffold import contract

    parts = contract.kept(name)
    if changed := code.stale(name):
        typer.echo(f"warning: {changed} is newer than what is built; `make setup` builds it", err=True)
    broken = sum(_kept(part) for part in parts)
    typer.echo(f"its own tests: cargo test -p ackclock-congestion {name}", err=True)
    if broken:
        raise InputError(f"{name}: found {broken} of the contract broken; expected all of it kept")


def _kept(part: Kept) -> bool:
    """Says a line on a part of the contract, and whether it is broken."""
    typer.echo(f"{'broken' if part.broken else 'ok'}: {part.says}")
    for what in part.broken:
        typer.echo(f"    {what}")
    return bool(part.broken)
