"""`ackclock claim`."""

from __future__ import annotations

import click

from ackclock.cli import options
from ackclock.cli.command import Argument, Command


@click.command(cls=Command)
@click.argument(
    "name", cls=Argument, metavar="ID", help="A claim, such as braud2016.four-lead, or an entry or a paper."
)
@click.option(
    "--vary",
    metavar="KEY=LOW..HIGH",
    help="Run the claim's entry at both values of a scenario key, and find where the claim turns; rtt_spread is by how "
    "much the last RTT is longer than the first.",
)
@options.json_flag("Print JSON only, one line for each claim.")
def claim(*, name: str, vary: str | None, as_json: bool) -> None:
    """Print the state of a claim, and where it holds: by engine, reading, host noise and scale.

    Of an entry these are the claims that it judges, of a paper all of its claims. With --vary the packet engine runs
    the claim's entry at the reduced scale of --quick; if the claim holds at one value and fails at the other, the
    range is halved six times.

    Examples:
        ackclock claim braud2016.four-lead
        ackclock claim R4.4
        ackclock claim R4.4 --vary rtt_spread=0..2ms
    """
    from ackclock.cli.terminal import reproduction
    from ackclock.gallery import claims

    found = claims.find_claims(name)
    for each in found:
        if vary is None:
            reproduction.print_claim(each, as_json=as_json)
        else:
            reproduction.vary_claim(each, vary, as_json=as_json)
