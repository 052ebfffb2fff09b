"""Style of the figures: light, colour-blind safe, legible in grey, at the width of a journal's page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.errors import InputError
from ackclock.figures import figure_spec
from ackclock.figures.curves import thinned
from ackclock.figures.figure_spec import COLOURS, INK
from ackclock.figures.plots import layout
from ackclock.figures.plots.layout import WIDTH_IN, columns, figure, legend, log_axis, panel_title
from ackclock.input.arguments import BETWEEN, RECORDED, SWEPT, Take, checked, integer, optional, several
from ackclock.metrics.view import Array, RunView, runs
from ackclock.system.files import visible

QUIET, FAINT = "#777777", "#DDDDDD"

#: Points of a drawn curve: several for each dot of a printed line.
POINTS = 4000

#: Markers along a curve.
MARKERS = 8

STYLE: dict[str, Any] = {
    "font.size": 8.5,
    "font.family": "sans-serif",
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.labelcolor": INK,
    "axes.edgecolor": QUIET,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.xmargin": 0.01,
    "grid.color": FAINT,
    "grid.linewidth": 0.5,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "lines.linewidth": 1.0,
    "lines.solid_joinstyle": "round",
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.titlesize": 10,
    "figure.facecolor": "white",
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
}

__all__ = ["COLOURS", "INK", "WIDTH_IN", "columns", "figure", "legend", "log_axis", "panel_title"]  # and what is here

#: Names of dashes → matplotlib's.
DASHES: Mapping[str, Any] = {
    "": "none",
    "solid": "-",
    "dash": (0, (4, 1.2)),
    "dot": (0, (1.5, 1.2)),
    "longdash": (0, (5, 2)),
    "dashdot": (0, (6, 1.5, 1.5, 1.5)),
}

Given = ParamSpec("Given")


def _over(name: str, value: Any) -> Any:
    if value is None or isinstance(value, Dataset):
        return value
    return several(RECORDED, "a dataset, or several")(name, value)


#: Checks of the figures' arguments, by name.
DRAWN: Mapping[str, Take] = {
    "data": RECORDED,
    "over": _over,
    "sweeps": several(SWEPT, "what ackclock.sweep gives"),
    "flow": optional(integer(0, 2**32 - 1)),
    "between": optional(BETWEEN),
}


def styled(draw: Callable[Given, Figure]) -> Callable[Given, Figure]:
    """Decorate a drawing function to use this style whatever the caller's settings are."""

    @wraps(draw)
    def in_style(*given: Given.args, **named: Given.kwargs) -> Figure:
        with mpl.rc_context(_settings()):
            drawn = draw(*given, **named)
            layout.adjust_texts(drawn)
            return drawn

    return in_style


def public(draw: Callable[Given, Figure]) -> Callable[Given, Figure]:
    """Decorate a figure of the Python interface: check its arguments and draw it in this style."""
    takes = {name: take for name, take in DRAWN.items() if name in signature(draw).parameters}
    return checked(**takes)(styled(draw))


def _settings() -> Any:
    return dict(mpl.rcParamsDefault) | STYLE | {"backend": mpl.rcParams["backend"]}


def first_run(data: Dataset) -> RunView:
    """Return the run to draw: the first. Raises `InputError` if there is none."""
    for view in runs(data):
        return view
    raise InputError("the result holds no runs to draw")


def headline(fig: Figure, what: str, below: str) -> None:
    """Write a heading and a line in small letters under it; nothing on a page without headings."""
    look = {"fontweight": "bold", "color": INK}
    layout.headline(fig, escaped(what), escaped(below), look, {"fontsize": 8, "color": QUIET})


def escaped(text: str) -> str:
    """Escape mathtext: a dollar sign is a dollar sign."""
    return visible(text).replace("$", r"\$")


def curve(ax: Axes, x: Array, y: Array, sign: str = "", **look: Any) -> None:
    """Draw one curve, thinned, with a few markers `sign` along it; those of each sign are at places of their own."""
    x, y = thinned(x, y, POINTS)
    if sign and x.size:
        shift = (figure_spec.MARKS.index(sign) + 0.5) / len(figure_spec.MARKS)
        places = np.searchsorted(x, x[0] + (x[-1] - x[0]) * (np.arange(MARKERS) + shift) / MARKERS)
        look |= {"marker": sign, "markersize": 3.5, "markevery": np.unique(places.clip(0, x.size - 1)).tolist()}
    ax.plot(x, y, **look)


def line_style(number: int) -> dict[str, Any]:
    """Return colour and dash of line `number`: each colour solid, then each dashed."""
    return {"color": figure_spec.colour(number), "linestyle": DASHES[figure_spec.dash(number)]}


def reference(ax: Axes, value: float, text: str, *, side: str = "center") -> None:
    """Draw a horizontal dashed line with its name in the right margin, vertically aligned by `side`."""
    ax.axhline(value, color=INK, linewidth=0.8, linestyle=(0, (5, 2)), zorder=2.5)
    ax.annotate(
        text,
        (1.0, value),
        xycoords=("axes fraction", "data"),
        xytext=(3, 0),
        textcoords="offset points",
        ha="left",
        va=side,
        fontsize=7.5,
        color=INK,
        annotation_clip=False,
        gid=layout.REFERENCE,
    )


def note(ax: Axes, text: str) -> None:
    """Write a text into the upper right corner."""
    ax.annotate(text, (1, 1), xycoords="axes fraction", xytext=(-2, -2), textcoords="offset points", ha="right",
                va="top", fontsize=7.5, color=INK)  # fmt: skip


def warmup(axes: Sequence[Axes], until_s: float, *, text: bool = True) -> None:
    """Shade the warm-up, which the metrics leave out."""
    if until_s <= 0:
        return
    for ax in axes:
        ax.axvspan(0, until_s, color="#F3F3F3", zorder=0)
    if text:
        axes[0].annotate(
            "warm-up",
            (0, 1),
            xycoords=("data", "axes fraction"),
            xytext=(4, -3),
            textcoords="offset points",
            va="top",
            fontsize=7.5,
            color=QUIET,
            annotation_clip=True,
            bbox={"facecolor": "#F3F3F3", "edgecolor": "none", "pad": 0.5},
            zorder=5,
        )


def time_axis(ax: Axes, view: RunView) -> None:
    """Set the horizontal axis: the run from start to end."""
    ax.set_xlim(0, view.duration_s)
    ax.set_xlabel("Time (s)")
