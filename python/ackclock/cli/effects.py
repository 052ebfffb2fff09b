"""`ackclock effects`: which swept key matters most."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ackclock.cli.options import AsJson
from ackclock.completion import words as completing


def effects(
    *,
    sweep: Annotated[Path, typer.Argument(metavar="SWEEP", help="Folder of a finished sweep.")],
    metric: Annotated[
        str,
        typer.Option(metavar="NAME[,NAME]", help="The metrics to analyse.", autocompletion=completing.of("scalars,")),
    ],
    as_json: AsJson = False,
) -> None:
    """Say which swept key matters most for a metric: effects with 95 % intervals, by analysis of variance.

    Each key's share of the differences between runs, and how much the mean changes between the two of its values that
    are farthest apart; pairs of keys whose effects depend on each other.

    Examples:
        ackclock effects results/buffers-packet-sweep --metric utilisation

        ackclock effects results/buffers-packet-sweep --metric queue_delay_mean,jain --json
    """
    from ackclock.cli.terminal.effects import print_effects
    from ackclock.experiments.effects import effects as of_sweep
    from ackclock.experiments.sweep import result
    from ackclock.input import cli_values

    read = result.read(sweep)
    found = [of_sweep.effects(read, name) for name in cli_values.items(metric)]
    for each in found:
        if as_json:
            typer.echo(json.dumps(each.as_dict(), allow_nan=False))
        else:
            print_effects(each)
