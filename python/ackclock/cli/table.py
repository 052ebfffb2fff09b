"""`ackclock table`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ackclock.cli import options
from ackclock.cli.command import FOLDER, Argument, Command
from ackclock.errors import InputError
from ackclock.input import cli_values


@click.command(cls=Command)
@click.argument("sweep", cls=Argument, metavar="SWEEP", type=FOLDER, help="Folder of a finished sweep.")
@click.option("--latex", is_flag=True, help="LaTeX, with booktabs.")
@click.option("--markdown", is_flag=True, help="Markdown (the default).")
@click.option("--csv", "as_csv", is_flag=True, help="Comma-separated: SI units, interval bounds in columns.")
@options.metrics("These metrics (default: the main ones).")
@options.where
@options.out_file("Write to a file (default: standard output).")
def table(
    *,
    sweep: Path,
    latex: bool,
    markdown: bool,
    as_csv: bool,
    metrics: str | None,
    where: Sequence[str],
    out: Path | None,
) -> None:
    """Write a sweep's points as a table for a paper: means over the seeds ± half of their 95 % intervals.

    Examples:
        ackclock table results/buffer-sizing-fluid-sweep --latex --metrics utilisation
        ackclock table results/buffer-sizing-fluid-sweep --csv --out points.csv
    """
    from ackclock.dataset import folders
    from ackclock.experiments.sweep import result
    from ackclock.figures import table_export

    formats = [name for name, given in zip(table_export.FORMS, (latex, markdown, as_csv), strict=True) if given]
    if len(formats) > 1:
        first, second = formats[:2]
        raise InputError(f"--{second}: found both --{first} and --{second}; expected one of them")
    names = cli_values.items(metrics) if metrics else []
    points = result.read(sweep).only(options.selected_values(where))
    text = table_export.table(points, formats[0] if formats else "markdown", names)
    if out is None:
        click.echo(text, nl=False)
        return
    folders.atomic_write(out, lambda new: new.write_text(text, encoding="utf-8"))
    click.echo(f"wrote {out}")
