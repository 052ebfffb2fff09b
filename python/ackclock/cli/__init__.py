"""The command line: a file per command, and what several of them share."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer


def application(asked: str = "") -> typer.Typer:
    """The program as Typer has it, see `program.application`."""
    from ackclock.cli import program

    return program.application(asked)


def main() -> None:
    """The program `ackclock`; Typer is imported if its words need that."""
    from ackclock.cli import plain

    if not plain.main(sys.argv[1:]):
        from ackclock.cli import program

        program.main()
