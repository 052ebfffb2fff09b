"""`ackclock export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file (TOML).")],
    to: Annotated[str, typer.Option("--to", metavar="PROGRAM", help="tc, flent, mermaid, ns2 or ns3.")],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The script (default: standard output).")] = None,
    device: Annotated[
        str | None,
        typer.Option(metavar="DEV", help="With tc: shape this device as the bottleneck, instead of namespaces."),
    ] = None,
) -> None:
    """Write a scenario as a commented script for another program.

    What that program cannot express is named in the script's first comment, and on standard error.

    Examples:
        ackclock export scenarios/dumbbell.toml --to tc --out dumbbell.sh

        ackclock export scenarios/dumbbell.toml --to tc --device eth0

        ackclock export scenarios/parking-lot.toml --to mermaid
    """
    from ackclock import exporters
    from ackclock.dataset import folders
    from ackclock.scenario import planning

    made = exporters.export(planning.load(scenario).plan(), to, device)
    for note in made.notes:
        typer.echo(f"not in the script: {note}", err=True)
    if out is None:
        typer.echo(made.text, nl=False)
        return
    folders.atomic_write(out, lambda new: new.write_text(made.text, encoding="utf-8"))
    typer.echo(f"wrote {out}")
