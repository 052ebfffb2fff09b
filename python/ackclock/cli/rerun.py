"""`ackclock rerun`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ackclock.cli import options
from ackclock.cli.command import FILE, Argument, Command

if TYPE_CHECKING:
    from rich.table import Table

    from ackclock.bundles.rerun import Outcome


#: A metric's verdict in words.
VERDICTS = {"equal": "equal", "within": "within the interval", "differs": "differs"}


@click.command(cls=Command)
@click.argument("file", cls=Argument, metavar="FILE", type=FILE, help="A bundle, as `ackclock bundle` writes it.")
@options.out("Keep the new results in this folder (default: they are compared and discarded).")
@options.json_flag("Print JSON only, one line for each result.")
@options.kernel
@options.module
@options.stack
@options.jobs
def rerun(
    *,
    file: Path,
    out: Path | None,
    as_json: bool,
    kernel: str | None,
    module: Path | None,
    stacks: Sequence[str],
    jobs: int | None,
) -> None:
    """Rerun a bundle and compare the results: byte for byte, or else by their metrics.

    A metric that is not equal is within the interval if the 95 % interval of the difference of the means contains zero;
    else it differs. The exit status is 1 if any metric differs, and 2 for a file that is damaged or not a bundle.
    Nothing in the bundle is executed: an algorithm or a transport stack of whoever made it is to be given again.

    Examples:
        ackclock rerun dumbbell-packet.bundle.tar
        ackclock rerun paper.bundle.tar --out results/again --json
        ackclock rerun mine.bundle.tar --module mine.py
    """
    from ackclock.bundles import rerun as running
    from ackclock.cli.terminal.output import progress
    from ackclock.experiments import user_control
    from ackclock.stacks import register

    own = user_control.bring(module) if module else None
    registered = [register(given) for given in stacks]
    with progress(f"{file.name}: rerun") as report_progress:
        settings = running.Options(jobs, kernel, own, registered, options.command_line(), report_progress)
        outcomes = list(running.rerun(file, out, settings))
    for outcome in outcomes:
        if as_json:
            click.echo(json.dumps(outcome.as_dict(), allow_nan=False))
        else:
            _print_outcome(outcome)
    if out is not None:
        click.echo(f"wrote {out}", err=as_json)
    if any(outcome.verdict == running.DIFFERS for outcome in outcomes):
        raise click.exceptions.Exit(1)


def _print_outcome(outcome: Outcome) -> None:
    """Print the verdict; and a table of the metrics if the bytes differ."""
    from rich.console import Console
    from rich.text import Text

    from ackclock.bundles import rerun as running
    from ackclock.dataset.result_kind import Kind

    files = "1 file" if outcome.files == 1 else f"{outcome.files} files"
    verdicts = {
        running.EQUAL: "other files, but every metric is equal",
        running.WITHIN: "other files, but no metric differs significantly",
        running.DIFFERS: "not reproduced: metrics differ",
    }
    summary = f"reproduced, byte for byte ({files})" if outcome.same_bytes else verdicts[outcome.verdict]
    console = Console(emoji=False, highlight=False)
    console.print(Text(f"{outcome.name}: {summary}"), soft_wrap=True)
    for note in outcome.notes:
        console.print(Text(f"  {note}"), soft_wrap=True)
    if not outcome.same_bytes:
        console.print(_points_table(outcome) if outcome.kind in (Kind.SWEEP, Kind.SEARCH) else _metrics_table(outcome))


def _metrics_table(outcome: Outcome) -> Table:
    from ackclock.cli.terminal import output
    from ackclock.figures import numbers
    from ackclock.metrics import METRICS

    table = output.table("metric", "in the bundle", "rerun", "verdict")
    for metric in outcome.metrics:
        known = METRICS[metric.name]
        label = f"{known.label} ({metric.where})" if metric.where else known.label
        values = [
            numbers.NOTHING if value is None else numbers.value(value, known.unit)
            for value in (metric.given, metric.rerun)
        ]
        table.add_row(label, *values, VERDICTS[metric.verdict])
    return table


def _points_table(outcome: Outcome) -> Table:
    """Return, for each of a sweep's metrics, the number of points with each verdict."""
    from ackclock import repr_format
    from ackclock.bundles import rerun as running
    from ackclock.cli.terminal import output
    from ackclock.metrics import METRICS

    verdicts = (running.EQUAL, running.WITHIN, running.DIFFERS)
    counts: dict[str, Counter[str]] = {}
    for metric in outcome.metrics:
        counts.setdefault(metric.name, Counter())[metric.verdict] += 1
    table = output.table("metric", *(VERDICTS[word] for word in verdicts))
    for name, count in counts.items():
        texts = (repr_format.counted(count[word], "point") if count[word] else "" for word in verdicts)
        table.add_row(METRICS[name].label, *texts)
    return table
