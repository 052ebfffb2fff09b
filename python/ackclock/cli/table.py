"""`ackclock table`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ackclock.cli.options import Where, having
from ackclock.completion import words as completing
from ackclock.errors import InputError


def table(
    *,
    sweep: Annotated[Path, typer.Argument(metavar="SWEEP", help="Folder of a finished sweep.")],
    latex: Annotated[bool, typer.Option("--latex", help="For LaTeX, with booktabs.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="For Markdown (the default).")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Comma-separated: SI units, intervals in columns.")] = False,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,NAME]",
            help="These metrics (default: the main ones).",
            autocompletion=completing.of("metrics,"),
        ),
    ] = None,
    where: Where = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to a file (default: print it).")] = None,
) -> None:
    """Write the points of a sweep as a table for a paper: means over the seeds ± half of their 95 % intervals.

    Examples:
        ackclock table results/buffer-sizing-fluid-sweep --latex --metrics utilisation,queue_delay_mean

        ackclock table results/buffer-sizing-fluid-sweep --csv --where congestion=cubic --out cubic.csv
    """
    from ackclock.dataset import folders
    from ackclock.experiments.sweep import result as tables
    from ackclock.figures import table_export
    from ackclock.input import cli_values

    asked = [form for form, given in zip(table_export.FORMS, (latex, markdown, as_csv), strict=True) if given]
    if len(asked) > 1:
        raise InputError(f"--{asked[1]}: found both --{asked[0]} and --{asked[1]}; expected one of them")
    names = cli_values.items(metrics) if metrics else []
    text = table_export.table(tables.read(sweep).only(having(where)), asked[0] if asked else "markdown", names)
    if out is None:
        typer.echo(text, nl=False)
        return
    folders.atomic_write(out, lambda new: new.write_text(text, encoding="utf-8"))
    typer.echo(f"wrote {out}")
