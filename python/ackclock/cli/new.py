"""`ackclock new`: files of one's own in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ackclock.scaffold.new import Written

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode="rich", help="Add an algorithm of your own to a source checkout."
)


@app.callback()
def _group() -> None:
    """A group even of one command."""


@app.command()
def control(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What scenarios will call it, such as my_reno.")],
    *,
    checkout: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The source checkout (default: the one that this folder is in)."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be written; write nothing.")] = False,
) -> None:
    """Write a congestion control to start from: Rust file, card, line in the list, scenario, C for real kernels.

    The template works as it is: a Reno with another decrease. `make setup`
    builds it, `ackclock check control NAME` tests it.

    Examples:
        ackclock new control my_reno

        ackclock new control my_reno --dry-run
    """
    from ackclock.scaffold import new
    from ackclock.scaffold.checkout import checkout as found

    place = found(checkout)
    files = new.control(place, name)
    if not dry_run:
        new.write(place, files)
    for each in files:
        _tell(each, dry_run)
    if not dry_run:
        typer.echo(f"next: make setup && ackclock check control {name}", err=True)


def _tell(file: Written, dry_run: bool) -> None:
    typer.echo(f"{'would write' if dry_run else 'wrote'} {file.path}{' (a line)' if file.added else ''}")
    if dry_run:
        typer.echo(f"\n{file.added or file.text}")
