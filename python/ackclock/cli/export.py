"""`ackclock export`."""

from __future__ import annotations

from pathlib import Path

import click

from ackclock.cli import options
from ackclock.cli.command import Command


@click.command(cls=Command)
@options.scenario
@click.option("--to", metavar="PROGRAM", required=True, help="tc, flent, mermaid, ns2 or ns3.")
@options.out_file("The script (default: standard output).")
@click.option(
    "--device", metavar="DEV", help="With tc: shape this device as the bottleneck, instead of network namespaces."
)
def export(*, scenario: Path, to: str, out: Path | None, device: str | None) -> None:
    """Write a scenario as a commented script for another program.

    Features that the program does not support are listed in the script's first comment and on standard error.

    Examples:
        ackclock export scenarios/dumbbell.toml --to tc --out dumbbell.sh
        ackclock export scenarios/dumbbell.toml --to tc --device eth0
        ackclock export scenarios/parking-lot.toml --to mermaid
    """
    from ackclock import exporters
    from ackclock.dataset import folders
    from ackclock.scenario import planning

    script = exporters.export(planning.load(scenario).plan(), to, device)
    for note in script.notes:
        click.echo(f"not in the script: {note}", err=True)
    if out is None:
        click.echo(script.text, nl=False)
        return
    folders.atomic_write(out, lambda new: new.write_text(script.text, encoding="utf-8"))
    click.echo(f"wrote {out}")
