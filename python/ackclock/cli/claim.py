"""`ackclock claim`."""

from __future__ import annotations

import click

from ackclock.cli import options
from ackclock.cli.command import Argument, Command


@click.command(cls=Command)
@click.argument("name", cls=Argument, metavar="ID", help="A claim, such as braud2016.tilt, or an entry or a paper.")
@options.json_flag("Print JSON only, one line for each claim.")
def claim(*, name: str, as_json: bool) -> None:
    """Print the state of a claim, and where it holds: by engine, reading and host noise.

    Of an entry these are the claims that it judges, of a paper all of its claims.

    Examples:
        ackclock claim braud2016.tilt
        ackclock claim R4.4
    """
    from ackclock.cli.terminal import reproduction
    from ackclock.gallery import claims

    for each in claims.find_claims(name):
        reproduction.print_claim(each, as_json=as_json)
