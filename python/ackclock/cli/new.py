"""`ackclock new`: templates of algorithms for a checkout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ackclock.cli.command import FOLDER, Argument, Group

if TYPE_CHECKING:
    from ackclock.scaffold.new import Family

_name: Callable[[Callable[..., Any]], Callable[..., Any]] = click.argument(
    "name", cls=Argument, metavar="NAME", help="Its name in scenarios, such as my_reno."
)
_checkout: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--checkout", metavar="DIR", type=FOLDER, help="The source checkout (default: the one around this folder)."
)
_dry_run: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--dry-run", is_flag=True, help="Print what would be written; write nothing."
)


@click.group(cls=Group, no_args_is_help=True)
def new() -> None:
    """Add your own algorithm to a source checkout."""


@new.command("control")
@_name
@_checkout
@_dry_run
def control(*, name: str, checkout: Path | None, dry_run: bool) -> None:
    """Write a congestion control algorithm to start from: Rust file, spec, line in the list, scenario, C for kernels.

    The template works as it is: Reno with another decrease. `make setup` builds it, `ackclock check control NAME` tests
    it.

    Examples:
        ackclock new control my_reno
        ackclock new control my_reno --dry-run
    """
    from ackclock.scaffold.new import CONTROL

    _write(CONTROL, name, checkout, dry_run=dry_run)


@new.command("queue")
@_name
@_checkout
@_dry_run
def queue(*, name: str, checkout: Path | None, dry_run: bool) -> None:
    """Write a queue discipline to start from: Rust file, spec, line in the list, scenario.

    The template works as it is: a FIFO that drops arriving packets from a threshold on. `make setup` builds it,
    `ackclock check queue NAME` tests it.

    Examples:
        ackclock new queue my_aqm
        ackclock new queue my_aqm --dry-run
    """
    from ackclock.scaffold.new import QUEUE

    _write(QUEUE, name, checkout, dry_run=dry_run)


def _write(family: Family, name: str, given: Path | None, *, dry_run: bool) -> None:
    from ackclock.scaffold import new as scaffold

    checkout = scaffold.find_checkout(given)
    files = scaffold.render(family, checkout, name)
    if not dry_run:
        scaffold.write(checkout, files)
    for file in files:
        click.echo(f"{'would write' if dry_run else 'wrote'} {file.path}{' (a line)' if file.added else ''}")
        if dry_run:
            click.echo(f"\n{file.added or file.text}")
    if not dry_run:
        click.echo(f"next: make setup && ackclock check {family.command} {name}", err=True)
