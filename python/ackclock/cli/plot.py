"""`ackclock plot`."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ackclock.errors import InputError

if TYPE_CHECKING:
    from ackclock.dataset import Dataset

#: Kinds of figures, for the help; `ackclock.views.plots.KINDS` is the list itself.
KINDS = "cwnd, cwnd_total, goodput, queue, cdf, epochs, response, boxes"

#: Those of what is recorded on request; `ackclock.views.plots.ON_REQUEST` is the list itself.
ON_REQUEST = "delay, tracking"

#: Those of what captures show; `ackclock.views.plots.OF_CAPTURES` is the list itself.
OF_CAPTURES = "sequence, pipe, rtt, limits, silences, level"

#: Those of a host; `ackclock.views.plots.OF_HOSTS` is the list itself.
OF_HOSTS = "gaps, disk"

#: The kind of figure that shows a sweep.
SWEEP = "sweep"


def _kinds(incomplete: str) -> list[str]:
    kinds = (*KINDS.split(", "), *ON_REQUEST.split(", "), *OF_CAPTURES.split(", "), *OF_HOSTS.split(", "), SWEEP)
    return [kind for kind in kinds if kind.startswith(incomplete)]


def plot(
    result: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a result.")],
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help=(
                f"One of {KINDS}; of what [record] asked for also {ON_REQUEST}; of a capture's result {OF_CAPTURES}; "
                f"of a host's {OF_HOSTS}; of a sweep sweep."
            ),
            autocompletion=_kinds,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="PNG, PDF or SVG file, or .xpl for xplot (default: RUN/KIND.png)."),
    ] = None,
    over: Annotated[
        list[Path] | None, typer.Option(metavar="RUN", help="A result to overlay, dashed (boxes: beside); repeatable.")
    ] = None,
    flow: Annotated[
        int | None, typer.Option(min=0, help="Draw this flow (default: that with the most data).", show_default=False)
    ] = None,
    between: Annotated[
        tuple[float, float] | None, typer.Option(metavar="FROM UNTIL", help="Only this part of the time, in seconds.")
    ] = None,
) -> None:
    """Draw a figure for print, or for xplot.

    Examples:
        ackclock plot results/dumbbell-packet cwnd

        ackclock plot results/dumbbell-packet queue --out queue.pdf

        ackclock plot results/pendulum-packet cwnd --over results/pendulum-theory

        ackclock plot results/buffer-sizing-fluid sweep

        ackclock plot results/one-flow boxes --over results/ten-flows

        ackclock plot results/upload sequence --flow 0 --between 4 5 --out upload.xpl
    """
    typer.echo(f"wrote {draw(result, kind, out, over or [], flow, between)}")


def draw(
    result: Path,
    kind: str,
    out: Path | None,
    over: Sequence[Path] = (),
    flow: int | None = None,
    between: tuple[float, float] | None = None,
) -> Path:
    """Draws a figure of a result, others laid over, into a file; returns its path. Raises `InputError`."""
    from ackclock.dataset import Dataset, folders
    from ackclock.input.fields import shown
    from ackclock.views import plots

    _check(kind, over, flow, between)
    path = out or result / f"{kind}.png"
    if path.suffix.lower() not in (".png", ".pdf", ".svg", ".xpl"):
        expected = "a file name that ends in .png, .pdf or .svg, or .xpl for xplot"
        raise InputError(f"--out: found {shown(path.suffix)}; expected {expected}")
    if path.suffix.lower() == ".xpl":
        return _xplot(Dataset.read(result), kind, path, flow, between)
    if kind == SWEEP:
        from ackclock.campaigns.sweep import table

        figure = plots.swept(*map(table.read, [result, *over]))
    elif kind in plots.OF_CAPTURES:
        figure = plots.OF_CAPTURES[kind](Dataset.read(result), flow=flow, between=between)
    elif kind in (others := {**plots.OF_HOSTS, **plots.ON_REQUEST}):
        figure = others[kind](Dataset.read(result))
    else:
        laid = {"over": [Dataset.read(other) for other in over]} if over else {}
        figure = plots.KINDS[kind](Dataset.read(result), **laid)
    drawn = BytesIO()  # in memory: where a disk is full, matplotlib fails in many ways
    figure.savefig(drawn, format=path.suffix[1:].lower())
    folders.put(path, lambda new: new.write_bytes(drawn.getvalue()))
    return path


def _check(kind: str, over: Sequence[Path], flow: int | None, between: tuple[float, float] | None) -> None:
    """Raises `InputError` for what does not go together."""
    from ackclock.input import arguments
    from ackclock.input.fields import nearest, shown
    from ackclock.views import plots

    kinds = (*plots.KINDS, *plots.ON_REQUEST, *plots.OF_CAPTURES, *plots.OF_HOSTS, SWEEP)
    if kind not in kinds:
        raise InputError(f"KIND: found {shown(kind)}; expected {nearest(kind, kinds)}")
    several = (*plots.OVERLAID, *plots.BESIDE, SWEEP)
    if over and kind not in several:
        raise InputError(f"--over: found {shown(kind)}; expected one of {', '.join(several)}")
    for option, given in (("--flow", flow), ("--between", between)):
        if given is not None and kind not in plots.OF_CAPTURES:
            raise InputError(f"{option}: found {shown(kind)}; expected one of {', '.join(plots.OF_CAPTURES)}")
    if between is not None:
        arguments.BETWEEN("--between", between)


def _xplot(data: Dataset, kind: str, path: Path, flow: int | None, between: tuple[float, float] | None) -> Path:
    from ackclock import metrics
    from ackclock.dataset import folders
    from ackclock.input.fields import shown
    from ackclock.views import seen, xplot

    if kind not in seen.KINDS:
        raise InputError(f"--out: found {shown(path.suffix)} for {kind}; expected .png, .pdf or .svg")
    view = next(iter(metrics.runs(data)), None)
    if view is None:
        raise InputError("the result holds no runs to draw")
    text = "\n".join(xplot.lines(seen.KINDS[kind](view, flow, between))) + "\n"
    folders.put(path, lambda new: new.write_text(text, encoding="ascii"))
    return path
