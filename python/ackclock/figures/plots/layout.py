"""Page for which figures are drawn, and the fitting of texts into it.

    with ac.plot.page(3.5, titled=False):       # a column of a journal; the caption is the paper's
        ac.plot.queue(data).savefig("queue.pdf")

Texts are measured as matplotlib draws them: headings are wrapped, legends get as many columns as there is room for, the
names of reference lines are moved apart.

Used by `style` and `drawing`, for every figure in print.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

from ackclock.input.arguments import FLAG, TEXT, checked, number, several

#: A page's text width, in inches.
WIDTH_IN = 7.0

#: Dots an inch of a figure in a notebook: a page is as wide as a screen's column.
SHOWN_DPI = 110

#: Narrower pages have one panel in a row, and there figures lower than the height are lower still.
NARROW_IN, NARROWED, ONE_PANEL_IN = 5.0, 0.8, 3.5

#: Height of a heading, in inches.
HEADING_IN = 0.4

#: Widths that a figure may have, in inches.
WIDTHS_IN = (1.5, 30.0)

#: Distance of texts from the figure's edge, and from each other, in inches.
EDGE_IN, GAP_IN = 0.06, 0.03

#: A text has at most so many lines, of at least so many letters; what would be left is an ellipsis.
MAX_LINES, MIN_LETTERS = 4, 6

#: Names of reference lines, by matplotlib's word for what an artist is.
REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class Page:
    """Width of figures in inches, whether they have a heading, and the names of their curves (none: their own)."""

    width_in: float = WIDTH_IN
    titled: bool = True
    labels: tuple[str, ...] = ()


_DEFAULT = Page()
_PAGE: ContextVar[Page] = ContextVar("page", default=_DEFAULT)


@contextmanager
@checked(
    width_in=number(*WIDTHS_IN, f"a width from {WIDTHS_IN[0]} to {WIDTHS_IN[1]:g} inches"),
    titled=FLAG,
    labels=several(TEXT, "names of curves"),
)
def page(width_in: float = WIDTH_IN, *, titled: bool = True, labels: Sequence[str] = ()) -> Iterator[None]:
    """Set the width of figures drawn within to `width_in` inches (a page's 7 by default), with or without heading.

    `labels` are names for the curves, in the order of the legend. Raises `InputError` for a width that no figure can
    have; a figure raises it for names that are more or fewer than those in its legend.
    """
    before = _PAGE.set(Page(width_in, titled, tuple(labels)))
    try:
        yield
    finally:
        _PAGE.reset(before)


def is_narrow() -> bool:
    """Return True if figures are drawn for a column rather than a page."""
    return _PAGE.get().width_in < NARROW_IN


def labels() -> tuple[str, ...]:
    """Return the names of the curves; empty where each has its own."""
    return _PAGE.get().labels


def columns(default: int) -> int:
    """Return the number of panels in a row."""
    return 1 if is_narrow() else default


class Shown(Figure):
    """A figure that a notebook shows without pyplot."""

    def _repr_png_(self) -> bytes:
        from io import BytesIO

        image = BytesIO()
        self.savefig(image, format="png", dpi=SHOWN_DPI)
        return image.getvalue()


def figure(height_in: float) -> Figure:
    """Return an empty figure of the page's width; `height_in` is that of a full-width figure with its heading."""
    given = _PAGE.get()
    height_in *= NARROWED if is_narrow() and height_in < ONE_PANEL_IN else 1.0
    return Shown(figsize=(given.width_in, height_in - (0 if given.titled else HEADING_IN)), layout="constrained")


def headline(fig: Figure, what: str, below: str, style: dict[str, Any], style_below: dict[str, Any]) -> None:
    """Write the heading and a line under it, wrapped; the panels begin below."""
    if not _PAGE.get().titled:
        return
    wide, high = fig.get_size_inches()
    room = wide - 2 * EDGE_IN
    place: dict[str, Any] = {"ha": "left", "va": "top"}
    first = fig.suptitle("", x=EDGE_IN / wide, y=1 - EDGE_IN / high, **place, **style)
    first.set_in_layout(False)
    _fit(first, what, room)
    bottom_in = high - EDGE_IN - _size_in(first)[1] - GAP_IN
    second = fig.text(EDGE_IN / wide, bottom_in / high, "", in_layout=False, **place, **style_below)
    _fit(second, below, room)
    bottom_in -= _size_in(second)[1] + EDGE_IN
    engine = fig.get_layout_engine()
    if engine is not None:
        engine.set(rect=(0, 0, 1, bottom_in / high))  # type: ignore[call-arg]  # that of `figure` is constrained


def legend(fig: Figure, *given: Any, ncols: int, **named: Any) -> Legend:
    """Place a legend under the panels, with at most `ncols` columns and no more than fit."""
    room = fig.get_figwidth() - 2 * EDGE_IN
    for count in range(ncols, 0, -1):
        made = fig.legend(*given, loc="outside lower center", ncols=count, **named)
        if count == 1 or made.get_window_extent().width / fig.dpi <= room:
            break
        made.remove()
    for text in made.get_texts():
        _fit(text, text.get_text(), room - 0.5)
    return made


def log_axis(axis: Axis, text: Callable[[float], str] = "{:g}".format) -> None:
    """Put ticks at 1, 2 and 5 of each decade, as plain numbers; fewer where there would be many."""
    low, high = axis.get_view_interval()
    spread = high / low if low > 0 else 1e3
    spec = axis.axes.get_subplotspec()
    columns = spec.get_gridspec().ncols if spec is not None else 1
    most = 30 if is_narrow() or columns > 2 else 150 if columns == 2 else 1e3
    axis.set_major_locator(LogLocator(subs=(1.0,) if spread > most else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axis.set_minor_formatter(NullFormatter())


def panel_title(ax: Axes, text: str, share: float = 0.82, **look: Any) -> None:
    """Write a panel's title, wrapped to this share of the panel's width."""
    across = ax.get_subplotspec().get_gridspec().ncols if ax.get_subplotspec() else 1  # type: ignore[union-attr]
    figure = ax.get_figure(root=True)
    assert figure is not None
    _fit(ax.set_title(text, **look), text, share * figure.get_figwidth() / across)


def adjust_texts(fig: Figure) -> None:
    """Wrap axis labels that are longer than their axis; move the names of reference lines apart."""
    if (engine := fig.get_layout_engine()) is not None:
        engine.execute(fig)  # sizes need the layout, but no drawing
    for ax in fig.axes:
        height_in = ax.bbox.height / fig.dpi
        if _size_in(ax.yaxis.label)[1] > height_in:
            _fit(ax.yaxis.label, ax.get_ylabel(), height_in, side=1)
        if _size_in(ax.xaxis.label)[0] > (width_in := ax.bbox.width / fig.dpi):
            _fit(ax.xaxis.label, ax.get_xlabel(), width_in)
        _turn(ax)
        _spread(ax, _references(ax), fig.dpi)


def _turn(ax: Axes) -> None:
    """Rotate tick labels that would touch."""
    is_fixed = isinstance(ax.xaxis.get_major_locator(), FixedLocator)
    if not ax.axison or not (is_fixed or ax.get_xscale() == "log"):
        return
    labels = [label for label in ax.get_xticklabels() if label.get_text()]
    boxes = [box for label in labels if ax.bbox.x0 <= (box := label.get_window_extent()).x1 and box.x0 <= ax.bbox.x1]
    if not any(one.x1 + 2 > other.x0 for one, other in pairwise(boxes)):
        return
    if is_fixed:
        names = [label.get_text() for label in ax.get_xticklabels()]
        ax.set_xticks(ax.get_xticks(), names, rotation=30, ha="right", rotation_mode="anchor")
    else:
        ax.tick_params("x", labelrotation=30)


def _references(ax: Axes) -> list[Annotation]:
    return [text for text in ax.texts if isinstance(text, Annotation) and text.get_gid() == REFERENCE]


def _spread(ax: Axes, texts: Sequence[Annotation], dpi: float) -> None:
    """Move texts apart from the lowest up, then down again from the panel's top."""
    boxes = sorted(((text.get_window_extent(), text) for text in texts), key=lambda pair: pair[0].y0 + pair[0].y1)
    starts: list[float] = []
    least = ax.bbox.y0
    for box, _ in boxes:
        starts.append(max(box.y0, least))
        least = starts[-1] + box.height
    most = ax.bbox.y1
    for at in range(len(boxes) - 1, -1, -1):
        starts[at] = min(starts[at], most - boxes[at][0].height)
        most = starts[at]
    for (box, text), start in zip(boxes, starts, strict=True):
        x, y = text.xyann
        text.xyann = (x, y + (start - box.y0) * 72 / dpi)


def _fit(artist: Text, text: str, room_in: float, side: int = 0) -> None:
    """Wrap a text to a width; `side` 1: to a height, of one that is vertical."""
    artist.set_text(text)
    long, letters = _size_in(artist)[side], len(text)
    if long <= room_in or not text:
        return
    for count in range(max(MIN_LETTERS, int(letters * room_in / long * 1.2)), MIN_LETTERS - 1, -1):
        artist.set_text("\n".join(textwrap.wrap(text, count, max_lines=MAX_LINES, placeholder=" …")))
        if _size_in(artist)[side] <= room_in:
            return


def _size_in(artist: Text) -> tuple[float, float]:
    box = artist.get_window_extent()
    dpi = artist.get_figure(root=True).dpi  # type: ignore[union-attr]
    return box.width / dpi, box.height / dpi
