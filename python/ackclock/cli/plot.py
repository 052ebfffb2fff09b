"""`ackclock plot`."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Annotated

import typer

from ackclock.errors import InputError

#: Kinds of figures, for the help; `ackclock.views.plots.KINDS` is the list itself.
KINDS = "cwnd, cwnd_total, goodput, queue, cdf, epochs, response"

#: The kind of figure that shows a sweep.
SWEEP = "sweep"


def _kinds(incomplete: str) -> list[str]:
    return [kind for kind in (*KINDS.split(", "), SWEEP) if kind.startswith(incomplete)]


def plot(
    result: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a result.")],
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help=f"One of {KINDS}; of a sweep: sweep.", autocompletion=_kinds)
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="PNG, PDF or SVG file (default: RUN/KIND.png).")
    ] = None,
    over: Annotated[
        list[Path] | None, typer.Option(metavar="RUN", help="A result whose curves are laid over, dashed; several too.")
    ] = None,
) -> None:
    """Draw a figure for print.

    Examples:
        ackclock plot results/dumbbell-packet cwnd

        ackclock plot results/dumbbell-packet queue --out queue.pdf

        ackclock plot results/pendulum-packet cwnd --over results/pendulum-theory

        ackclock plot results/buffer-sizing-fluid sweep
    """
    typer.echo(f"wrote {draw(result, kind, out, over or [])}")


def draw(result: Path, kind: str, out: Path | None, over: Sequence[Path]) -> Path:
    """Draws a figure of a result, others laid over, into a file; returns its path. Raises `InputError`."""
    from ackclock.campaigns.sweep import table
    from ackclock.dataset import Dataset, folders
    from ackclock.input.fields import nearest, shown
    from ackclock.views import plots

    if kind not in (*plots.KINDS, SWEEP):
        raise InputError(f"KIND: found {shown(kind)}; expected {nearest(kind, (*plots.KINDS, SWEEP))}")
    path = out or result / f"{kind}.png"
    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise InputError(f"--out: found {shown(path.suffix)}; expected a file name that ends in .png, .pdf or .svg")
    if over and kind not in (*plots.OVERLAID, SWEEP):
        raise InputError(f"--over: found {shown(kind)}; expected one of {', '.join((*plots.OVERLAID, SWEEP))}")
    if kind == SWEEP:
        figure = plots.swept(*map(table.read, [result, *over]))
    else:
        laid = {"over": [Dataset.read(other) for other in over]} if over else {}
        figure = plots.KINDS[kind](Dataset.read(result), **laid)
    drawn = BytesIO()  # in memory: where a disk is full, matplotlib fails in many ways
    figure.savefig(drawn, format=path.suffix[1:].lower())
    folders.put(path, lambda new: new.write_bytes(drawn.getvalue()))
    return path
