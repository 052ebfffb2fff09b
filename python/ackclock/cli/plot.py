"""`ackclock plot`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ackclock.cli import completion, options
from ackclock.cli.command import FOLDER, Argument, Command
from ackclock.errors import InputError
from ackclock.input import cli_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Kinds of figures for the help and for completion; the lists themselves are those of `ackclock.figures.plots`.
KINDS = "cwnd, cwnd_total, goodput, queue, cdf, epochs, response, boxes"
ON_REQUEST = "delay, tracking"
OF_CAPTURES = "sequence, pipe, rtt, limits, stalls, level"
OF_HOSTS = "gaps, disk"

#: The kind of figure that shows a sweep, and its variants (`ackclock.figures.plots.sweep`).
SWEEP = "sweep"
SHAPES = ("line", "dot", "heatmap", "ecdf", "box")

SUFFIXES = (".png", ".pdf", ".svg", ".pgf", ".xpl")

#: Inches in a unit of length.
INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}


def all_kinds() -> list[str]:
    """Return every kind of figure."""
    return [kind for kinds in (KINDS, ON_REQUEST, OF_CAPTURES, OF_HOSTS, SWEEP) for kind in kinds.split(", ")]


@dataclass(frozen=True, slots=True)
class Content:
    """The part of a result that is drawn: of captures a flow and a time, of a sweep keys, metrics and points."""

    flow: int | None = None
    between: tuple[float, float] | None = None
    of_sweep: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Page:
    """The size and resolution of the figure, and the names of its curves (none: their own)."""

    width_in: float | None = None
    titled: bool = True
    dpi: int | None = None
    labels: Sequence[str] = ()


@click.command(cls=Command)
@click.argument("result", cls=Argument, metavar="RUN", type=FOLDER, help="Folder of a result.")
@click.argument(
    "kind",
    cls=Argument,
    metavar="[KIND]",
    required=False,
    shell_complete=completion.one_of(lambda: dict.fromkeys(all_kinds(), "")),
    help=f"One of {KINDS}; of data recorded on request (table [record]) {ON_REQUEST}; of captures {OF_CAPTURES}; of a "
    f"host {OF_HOSTS}; of a sweep only sweep (default: the first of these that the result has data for).",
)
@options.out_file("PNG, PDF, SVG or PGF file, or .xpl for xplot (default: RUN/KIND.png).")
@click.option(
    "--overlay",
    metavar="RUN",
    type=FOLDER,
    multiple=True,
    help="Result to overlay with dashed lines (boxes: side by side); repeatable.",
)
@click.option(
    "--flow", metavar="N", type=click.IntRange(min=0), help="Flow to draw (default: the one with the most data)."
)
@click.option("--between", metavar="FROM UNTIL", type=(float, float), help="Of captures: only this time interval (s).")
@click.option("--x", metavar="KEY", help="Sweep: the key of the x-axis.")
@click.option(
    "--y",
    metavar="METRIC",
    shell_complete=completion.list_of(completion.scalar_metrics),
    help="Sweep: a metric, or several; for a heatmap also a key.",
)
@click.option("--by", metavar="KEY", help="Sweep: one line for each value of this key (default: all other keys).")
@click.option(
    "--metric",
    metavar="METRIC",
    shell_complete=completion.one_of(completion.scalar_metrics),
    help="Heatmap of a sweep: the metric, if --y is a key.",
)
@click.option(
    "--kind",
    "shape",
    metavar="SHAPE",
    shell_complete=completion.one_of(lambda: dict.fromkeys(SHAPES, "")),
    help=f"Sweep: {', '.join(SHAPES)}.",
)
@options.where
@click.option("--width", metavar="WIDTH", help="Such as 3.5in or 89mm, a journal's column (default: 7in).")
@click.option("--no-title", is_flag=True, help="Draw no title, for a paper with captions.")
@click.option("--label", metavar="NAME[,NAME]", help="Names of the curves, in the order of the legend.")
@click.option("--dpi", metavar="DPI", type=int, help="Resolution of a PNG (default: 200).")
def plot(  # noqa: PLR0913 (each is an option of the command line)
    *,
    result: Path,
    kind: str | None,
    out: Path | None,
    overlay: Sequence[Path],
    flow: int | None,
    between: tuple[float, float] | None,
    x: str | None,
    y: str | None,
    by: str | None,
    metric: str | None,
    shape: str | None,
    where: Sequence[str],
    width: str | None,
    no_title: bool,
    label: str | None,
    dpi: int | None,
) -> None:
    """Draw a figure for print, or for xplot.

    Examples:
        ackclock plot results/dumbbell-packet cwnd
        ackclock plot results/dumbbell-packet queue --out queue.pdf --width 3.5in
        ackclock plot results/pendulum-packet cwnd --overlay results/pendulum-theory
        ackclock plot results/pendulum-packet queue --overlay results/pendulum-theory --label 'Simulation,Closed form'
        ackclock plot results/buffer-sizing-fluid-sweep
        ackclock plot results/buffer-sizing-fluid-sweep --x limit --y utilisation
        ackclock plot results/one-flow boxes --overlay results/ten-flows
        ackclock plot results/upload sequence --flow 0 --between 4 5 --out upload.xpl
    """
    given = {"x": x, "y": y, "by": by, "metric": metric, "kind": shape}
    of_sweep = {name: value for name, value in given.items() if value is not None}
    content = Content(flow, between, of_sweep, options.selected_values(where))
    names = cli_values.items(label) if label is not None else []
    page = Page(_width_in(width), titled=not no_title, dpi=_checked_dpi(dpi), labels=names)
    click.echo(f"wrote {draw(result, kind, out, overlay, content, page)}")


def _width_in(text: str | None) -> float | None:
    """Parse `3.5in`, `89mm` or `252pt` (TeX points). Raises `InputError`."""
    if text is None:
        return None
    from ackclock.figures.plots.layout import WIDTHS_IN
    from ackclock.input.fields import shown

    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*(in|cm|mm|pt)", text.strip(), re.ASCII)
    width_in = float(match[1]) * INCHES[match[2]] if match else 0.0
    if not WIDTHS_IN[0] <= width_in <= WIDTHS_IN[1]:
        raise InputError(f"--width: found {shown(text)}; expected a width such as 3.5in or 89mm, from 1.5in to 30in")
    return width_in


def _checked_dpi(dpi: int | None) -> int | None:
    if dpi is not None and not 30 <= dpi <= 2400:
        raise InputError(f"--dpi: found {dpi}; expected a whole number from 30 to 2400")
    return dpi


def _default_kinds(result: Path) -> list[str]:
    """Return the kinds of figures of a result, in the order in which they are tried. Raises `InputError`."""
    from ackclock.dataset import Dataset
    from ackclock.dataset.result_kind import Kind, kind

    found = kind(result)
    if found is Kind.SWEEP:
        return [SWEEP]
    Dataset.read(result)  # a folder that is no result is reported as such
    orders = {Kind.CAPTURE: (OF_CAPTURES, KINDS), Kind.HOST: (OF_HOSTS,)}
    return ", ".join(orders.get(found, (KINDS, ON_REQUEST))).split(", ")


def draw(
    result: Path,
    kind: str | None,
    out: Path | None,
    overlay: Sequence[Path] = (),
    content: Content | None = None,
    page: Page | None = None,
) -> Path:
    """Draw a figure of a result, with others overlaid, into a file; return its path. Raises `InputError`.

    Without a kind it is the first for which the result has data.
    """
    from ackclock.dataset import folders
    from ackclock.input.fields import shown

    if kind is not None and str(result) in all_kinds() and not result.exists():
        raise InputError(f"RUN: found a kind of figure; expected the result first: ackclock plot {kind} {result}")
    content, page = content or Content(), page or Page()
    suffix = out.suffix.lower() if out else ".png"
    if suffix not in SUFFIXES and kind is not None:
        _check(kind, overlay, content)
    if suffix not in SUFFIXES:
        expected = "a file name that ends in .png, .pdf, .svg or .pgf, or .xpl for xplot"
        raise InputError(f"--out: found {shown((out or result).suffix)}; expected {expected}")
    make = partial(_encoded, result, suffix[1:], overlay, content, page)
    if kind is not None:
        drawn = make(kind)
    else:
        is_plain = content == Content() and not (overlay or page.labels) and suffix != ".xpl"
        kind, drawn = _first(result, make, is_plain=is_plain)
    path = out or result / f"{kind}.png"
    folders.atomic_write(path, lambda new: new.write_bytes(drawn))
    return path


def _first(result: Path, make: Callable[[str], bytes], *, is_plain: bool) -> tuple[str, bytes]:
    """Return the first kind of figure that the result has data for, and the figure.

    Unless `is_plain`, a failure may be one of the options, which is reported if there is data. Raises `InputError`.
    """
    kinds = _default_kinds(result)
    for name in kinds:
        try:
            return name, make(name)
        except InputError:
            if not is_plain and _has_data(result, name):
                raise
    raise InputError(f"{result}: found no data for a figure; expected some for one of {', '.join(kinds)}")


def _has_data(result: Path, kind: str) -> bool:
    with suppress(InputError):  # nothing to draw
        _figure(result, kind, (), Content())
        return True
    return False


def _figure(result: Path, kind: str, overlay: Sequence[Path], content: Content) -> Figure:
    from ackclock.dataset import Dataset
    from ackclock.figures import plots

    if kind == SWEEP:
        from ackclock.experiments.sweep import result as sweeps

        several = (sweeps.read(each).only(content.where) for each in [result, *overlay])
        return plots.swept(*several, **content.of_sweep)
    if kind in plots.OF_CAPTURES:
        return plots.OF_CAPTURES[kind](Dataset.read(result), flow=content.flow, between=content.between)
    if kind in (others := {**plots.OF_HOSTS, **plots.ON_REQUEST}):
        return others[kind](Dataset.read(result))
    overlaid = {"over": [Dataset.read(other) for other in overlay]} if overlay else {}
    return plots.KINDS[kind](Dataset.read(result), **overlaid)


def _encoded(result: Path, suffix: str, overlay: Sequence[Path], content: Content, page: Page, kind: str) -> bytes:
    """Return the file's content, made in memory: on a full disk, matplotlib fails in many ways."""
    from ackclock.figures import plots
    from ackclock.figures.plots.layout import WIDTH_IN

    _check(kind, overlay, content)
    if suffix == "xpl":
        _check_no_page(page)
        return _xplot(result, kind, content)
    with plots.page(page.width_in or WIDTH_IN, titled=page.titled, labels=page.labels):
        figure = _figure(result, kind, overlay, content)
    if suffix == "pgf":
        from ackclock.figures.plots import pgf

        return pgf.picture(figure)
    drawn = BytesIO()
    resolution: dict[str, Any] = {"dpi": page.dpi} if page.dpi else {}
    figure.savefig(drawn, format=suffix, **resolution)
    return drawn.getvalue()


def _check(kind: str, overlay: Sequence[Path], content: Content) -> None:
    """Raise `InputError` for options that do not go with the kind of figure."""
    from ackclock.figures import plots
    from ackclock.input import arguments
    from ackclock.input.fields import nearest, shown

    kinds = (*plots.KINDS, *plots.ON_REQUEST, *plots.OF_CAPTURES, *plots.OF_HOSTS, SWEEP)
    if kind not in kinds:
        raise InputError(f"KIND: found {shown(kind)}; expected {nearest(kind, kinds)}")
    several = (*plots.OVERLAID, *plots.SIDE_BY_SIDE, SWEEP)
    if overlay and kind not in several:
        raise InputError(f"--overlay: found {shown(kind)}; expected one of {', '.join(several)}")
    for option, given in (("--flow", content.flow), ("--between", content.between)):
        if given is not None and kind not in plots.OF_CAPTURES:
            raise InputError(f"{option}: found {shown(kind)}; expected one of {', '.join(plots.OF_CAPTURES)}")
    for name in (*content.of_sweep, *(["where"] if content.where else [])):
        if kind != SWEEP:
            raise InputError(f"--{name}: found {shown(kind)}; expected the folder of a sweep")
    if content.between is not None:
        arguments.BETWEEN("--between", content.between)


def _check_no_page(page: Page) -> None:
    """Raise `InputError` for options of a printed figure: xplot lays out its window itself."""
    given = {
        "--width": page.width_in is not None,
        "--no-title": not page.titled,
        "--label": bool(page.labels),
        "--dpi": page.dpi is not None,
    }
    for option in (name for name, is_given in given.items() if is_given):
        raise InputError(f"{option}: found a file for xplot; expected .png, .pdf, .svg or .pgf")


def _xplot(result: Path, kind: str, content: Content) -> bytes:
    from ackclock import metrics
    from ackclock.dataset import Dataset
    from ackclock.figures import capture_figures, xplot
    from ackclock.input.fields import shown

    if kind not in capture_figures.KINDS:
        raise InputError(f"--out: found {shown('.xpl')} for {kind}; expected .png, .pdf, .svg or .pgf")
    view = next(iter(metrics.runs(Dataset.read(result))), None)
    if view is None:
        raise InputError("the result holds no runs to draw")
    lines = xplot.lines(capture_figures.KINDS[kind](view, content.flow, content.between))
    return ("\n".join(lines) + "\n").encode("ascii")
