"""`ackclock plot`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from ackclock.cli.options import Where, having
from ackclock.completion import words as completing
from ackclock.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ackclock.dataset import Dataset

#: Kinds of figures, for the help; `ackclock.figures.plots.KINDS` is the list itself.
KINDS = "cwnd, cwnd_total, goodput, queue, cdf, epochs, response, boxes"

#: Those of what is recorded on request; `ackclock.figures.plots.ON_REQUEST` is the list itself.
ON_REQUEST = "delay, tracking"

#: Those of what captures show; `ackclock.figures.plots.OF_CAPTURES` is the list itself.
OF_CAPTURES = "sequence, pipe, rtt, limits, stalls, level"

#: Those of a host; `ackclock.figures.plots.OF_HOSTS` is the list itself.
OF_HOSTS = "gaps, disk"

#: The kind of figure that shows a sweep, and the ways to show it; the list itself is `plots.swept`'s.
SWEEP = "sweep"
SHAPES = ("line", "dot", "heatmap", "ecdf", "box")


OfMap: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="METRIC",
        help="Of a sweep's heatmap: the metric, where --y is a key.",
        autocompletion=completing.of("scalars"),
    ),
]
Shape: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--kind",
        metavar="SHAPE",
        help=f"Of a sweep: {', '.join(SHAPES)}.",
        autocompletion=completing.of("shapes"),
    ),
]


def all_kinds() -> list[str]:
    """Every kind of figure."""
    return [kind for kinds in (KINDS, ON_REQUEST, OF_CAPTURES, OF_HOSTS, SWEEP) for kind in kinds.split(", ")]


def plot(  # noqa: PLR0913 (each is an option of the command line)
    *,
    result: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a result.")],
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]",
            help=(
                f"One of {KINDS}; of what \\[record] asked for also {ON_REQUEST}; of a capture's result {OF_CAPTURES}; "
                f"of a host's {OF_HOSTS}; of a sweep sweep, which is the default."
            ),
            autocompletion=completing.of("plots"),
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="PNG, PDF, SVG or PGF file, or .xpl for xplot (default: RUN/KIND.png)."),
    ] = None,
    over: Annotated[
        list[Path] | None,
        typer.Option(metavar="RUN", help="A result to overlay, dashed (boxes: side by side); repeatable."),
    ] = None,
    flow: Annotated[
        int | None, typer.Option(min=0, help="Draw this flow (default: that with the most data).", show_default=False)
    ] = None,
    between: Annotated[
        tuple[float, float] | None, typer.Option(metavar="FROM UNTIL", help="Only this part of the time, in seconds.")
    ] = None,
    x: Annotated[str | None, typer.Option("--x", metavar="KEY", help="Of a sweep: the key along the axis.")] = None,
    y: Annotated[
        str | None,
        typer.Option(
            "--y",
            metavar="METRIC",
            help="Of a sweep: a metric, or several; of a heatmap a key too.",
            autocompletion=completing.of("scalars,"),
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="KEY", help="Of a sweep: a line for each value (default: of all other keys).")
    ] = None,
    metric: OfMap = None,
    shape: Shape = None,
    where: Where = None,
    width: Annotated[
        str | None, typer.Option(metavar="WIDTH", help="Such as 3.5in or 89mm, a journal's column (default: 7in).")
    ] = None,
    no_title: Annotated[bool, typer.Option("--no-title", help="Leave the heading to the paper's caption.")] = False,
    dpi: Annotated[int | None, typer.Option(help="Dots per inch of a PNG (default: 200).", show_default=False)] = None,
) -> None:
    """Draw a figure for print, or for xplot.

    Examples:
        ackclock plot results/dumbbell-packet cwnd

        ackclock plot results/dumbbell-packet queue --out queue.pdf --width 3.5in --no-title

        ackclock plot results/pendulum-packet cwnd --over results/pendulum-theory

        ackclock plot results/buffer-sizing-fluid-sweep

        ackclock plot results/buffer-sizing-fluid-sweep --x limit --y utilisation --by congestion --out fig.pgf

        ackclock plot results/one-flow boxes --over results/ten-flows

        ackclock plot results/upload sequence --flow 0 --between 4 5 --out upload.xpl
    """
    of_sweep = {"x": x, "y": y, "by": by, "metric": metric, "kind": shape}
    wish = Wish(flow, between, {name: given for name, given in of_sweep.items() if given is not None}, having(where))
    page = Page(_width_in(width), titled=not no_title, dpi=_dots(dpi))
    typer.echo(f"wrote {draw(result, _kind(result, kind), out, over or [], wish, page)}")


@dataclass(frozen=True, slots=True)
class Wish:
    """What of a result is drawn: of captures a flow and a time, of a sweep (`of_sweep`) keys, metrics, points."""

    flow: int | None = None
    between: tuple[float, float] | None = None
    of_sweep: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Page:
    """What it is drawn for."""

    width_in: float | None = None
    titled: bool = True
    dpi: int | None = None


#: Inches in a unit of length.
INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}


def _width_in(text: str | None) -> float | None:
    """`3.5in`, `89mm`, `252pt` (of TeX). Raises `InputError`."""
    if text is None:
        return None
    from ackclock.figures.plots.layout import WIDTHS_IN
    from ackclock.input.fields import shown

    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*(in|cm|mm|pt)", text.strip(), re.ASCII)
    found = float(match[1]) * INCHES[match[2]] if match else 0.0
    if not WIDTHS_IN[0] <= found <= WIDTHS_IN[1]:
        raise InputError(f"--width: found {shown(text)}; expected a width such as 3.5in or 89mm, from 1.5in to 30in")
    return found


def _dots(dpi: int | None) -> int | None:
    if dpi is not None and not 30 <= dpi <= 2400:
        raise InputError(f"--dpi: found {dpi}; expected a whole number from 30 to 2400")
    return dpi


def _kind(result: Path, given: str | None) -> str:
    """The kind of figure; that of a sweep need not be said. Raises `InputError`."""
    from ackclock.dataset.result_kind import Kind, kind

    if given is not None:
        return given
    if kind(result) is Kind.SWEEP:
        return SWEEP
    raise InputError(f"KIND: found nothing; expected one of {KINDS}, or the folder of a sweep")


def draw(
    result: Path,
    kind: str,
    out: Path | None,
    over: Sequence[Path] = (),
    wish: Wish | None = None,
    page: Page | None = None,
) -> Path:
    """Draws a figure of a result, others laid over, into a file; returns its path. Raises `InputError`."""
    from ackclock.dataset import Dataset, folders
    from ackclock.figures import plots
    from ackclock.figures.plots.layout import WIDTH_IN
    from ackclock.input.fields import shown

    asked, paper = wish or Wish(), page or Page()
    _check(kind, over, asked)
    path = out or result / f"{kind}.png"
    suffix = path.suffix.lower()
    if suffix not in (".png", ".pdf", ".svg", ".pgf", ".xpl"):
        expected = "a file name that ends in .png, .pdf, .svg or .pgf, or .xpl for xplot"
        raise InputError(f"--out: found {shown(path.suffix)}; expected {expected}")
    if suffix == ".xpl":
        return _xplot(Dataset.read(result), kind, path, asked.flow, asked.between)
    with plots.page(paper.width_in or WIDTH_IN, titled=paper.titled):
        figure = _figure(result, kind, over, asked)
    drawn = _file(figure, suffix[1:], paper.dpi)
    folders.atomic_write(path, lambda new: new.write_bytes(drawn))
    return path


def _figure(result: Path, kind: str, over: Sequence[Path], wish: Wish) -> Figure:
    from ackclock.dataset import Dataset
    from ackclock.figures import plots

    if kind == SWEEP:
        from ackclock.experiments.sweep import result as sweep_result

        return plots.swept(*(sweep_result.read(each).only(wish.where) for each in [result, *over]), **wish.of_sweep)
    if kind in plots.OF_CAPTURES:
        return plots.OF_CAPTURES[kind](Dataset.read(result), flow=wish.flow, between=wish.between)
    if kind in (others := {**plots.OF_HOSTS, **plots.ON_REQUEST}):
        return others[kind](Dataset.read(result))
    laid = {"over": [Dataset.read(other) for other in over]} if over else {}
    return plots.KINDS[kind](Dataset.read(result), **laid)


def _file(figure: Figure, form: str, dpi: int | None) -> bytes:
    """The figure as a file, made in memory: where a disk is full, matplotlib fails in many ways."""
    if form == "pgf":
        from ackclock.figures.plots import pgf

        return pgf.picture(figure)
    drawn = BytesIO()
    named: dict[str, Any] = {"dpi": dpi} if dpi else {}
    figure.savefig(drawn, format=form, **named)
    return drawn.getvalue()


def _check(kind: str, over: Sequence[Path], wish: Wish) -> None:
    """Raises `InputError` for what does not go together."""
    from ackclock.figures import plots
    from ackclock.input import arguments
    from ackclock.input.fields import nearest, shown

    kinds = (*plots.KINDS, *plots.ON_REQUEST, *plots.OF_CAPTURES, *plots.OF_HOSTS, SWEEP)
    if kind not in kinds:
        raise InputError(f"KIND: found {shown(kind)}; expected {nearest(kind, kinds)}")
    several = (*plots.OVERLAID, *plots.SIDE_BY_SIDE, SWEEP)
    if over and kind not in several:
        raise InputError(f"--over: found {shown(kind)}; expected one of {', '.join(several)}")
    for option, given in (("--flow", wish.flow), ("--between", wish.between)):
        if given is not None and kind not in plots.OF_CAPTURES:
            raise InputError(f"{option}: found {shown(kind)}; expected one of {', '.join(plots.OF_CAPTURES)}")
    for name in (*wish.of_sweep, *(["where"] if wish.where else [])):
        if kind != SWEEP:
            raise InputError(f"--{name}: found {shown(kind)}; expected the folder of a sweep")
    if wish.between is not None:
        arguments.BETWEEN("--between", wish.between)


def _xplot(data: Dataset, kind: str, path: Path, flow: int | None, between: tuple[float, float] | None) -> Path:
    from ackclock import metrics
    from ackclock.dataset import folders
    from ackclock.figures import capture_figures, xplot
    from ackclock.input.fields import shown

    if kind not in capture_figures.KINDS:
        raise InputError(f"--out: found {shown(path.suffix)} for {kind}; expected .png, .pdf or .svg")
    view = next(iter(metrics.runs(data)), None)
    if view is None:
        raise InputError("the result holds no runs to draw")
    text = "\n".join(xplot.lines(capture_figures.KINDS[kind](view, flow, between))) + "\n"
    folders.atomic_write(path, lambda new: new.write_text(text, encoding="ascii"))
    return path
