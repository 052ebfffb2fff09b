"""`ackclock effects`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ackclock.cli import completion, options
from ackclock.cli.command import FOLDER, Argument, Command
from ackclock.input import cli_values

if TYPE_CHECKING:
    from ackclock.experiments.effects import Effects


@click.command(cls=Command)
@click.argument("sweep", cls=Argument, metavar="SWEEP", type=FOLDER, help="Folder of a finished sweep.")
@click.option(
    "--metric",
    metavar="NAME[,NAME]",
    required=True,
    shell_complete=completion.list_of(completion.scalar_metrics),
    help="The metrics to analyse.",
)
@options.as_json
def effects(*, sweep: Path, metric: str, as_json: bool) -> None:
    """Rank a sweep's keys by their effect on a metric, with 95 % intervals, by analysis of variance.

    For each key: its share of the variance between runs, and the change of the mean between the two values that are
    farthest apart. Pairs of keys are listed if they interact.

    Examples:
        ackclock effects results/buffers-packet-sweep --metric utilisation
        ackclock effects results/buffers-packet-sweep --metric queue_delay_mean,jain
    """
    from ackclock.experiments import effects as analysis
    from ackclock.experiments.sweep import result

    read = result.read(sweep)
    analysed = [analysis.effects(read, name) for name in cli_values.items(metric)]
    for each in analysed:
        if as_json:
            click.echo(json.dumps(each.as_dict(), allow_nan=False))
        else:
            _print_effects(each)


def _print_effects(result: Effects) -> None:
    """Print the sentences, then a row for each key and pair, the greatest effect first."""
    from rich.text import Text

    from ackclock.cli.terminal import output
    from ackclock.experiments.effects import effect, sentences, share
    from ackclock.figures import numbers

    console = output.console()
    for sentence in sentences(result):
        console.print(Text(sentence))
    table = output.table("key", "share", "from", "to", "change of the mean", "significant")
    for term in result.terms:
        step = result.step(term)
        low, high = result.values(step) if step else ("", "")
        significant = numbers.NOTHING if term.p is None else "yes" if result.clear(term) else "no"
        cells = (result.named(term), share(term.share), low, high, effect(result, step) if step else "", significant)
        table.add_row(*map(Text, cells))
    console.print(table)
