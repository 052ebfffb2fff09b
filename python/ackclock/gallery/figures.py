"""Figures of the gallery: the one that every entry has, and parts for those that draw their own.

All are drawn in the style of `ackclock.figures.plots`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ackclock.dataset import Dataset
from ackclock.figures import curves, figure_spec, numbers
from ackclock.figures.plots import style
from ackclock.gallery.entry import Published
from ackclock.gallery.rows import Row

#: Height of a row's strip, in inches.
STRIP_IN = 0.72

#: Height of the legend below the strips, in inches.
FOOT_IN = 0.7

#: Letters that fit side by side in the legend, and what a sign takes of them.
LINE_LETTERS, SIGN_LETTERS = 80, 7

#: Colours of the bands in which a row agrees and differs.
INNER, OUTER = "#D9E8F5", "#F0F0F0"

#: Margin of an axis beyond the finite bounds and values of its row, as a share of their range.
MARGIN = 0.12


@style.styled
def rows(found: Mapping[str, Sequence[Row]], published: Mapping[str, Published]) -> Figure:
    """A strip for each row: the bands of the rule, the published value, the reproduced ones with their intervals."""
    found = {name: each for name, each in found.items() if each}
    keys = list(dict.fromkeys((row.claim, row.at) for each in found.values() for row in each))
    fig = style.figure(STRIP_IN * len(keys) + FOOT_IN)
    strips = fig.subplots(len(keys), 1, squeeze=False)[:, 0]
    for ax, key in zip(strips, keys, strict=True):
        same = {number: row for number, each in enumerate(found.values()) for row in each if (row.claim, row.at) == key}
        _strip(ax, same, published[key[0]])
    signs = _signs(list(found))
    columns = _columns([str(sign.get_label()) for sign in signs])
    fig.legend(handles=signs, loc="outside lower center", ncols=columns)
    return fig


def _columns(labels: Sequence[str]) -> int:
    """The most columns in which the labels fit side by side: matplotlib fills the first ones a label higher."""
    for columns in range(len(labels), 1, -1):
        widths = [max(map(len, column)) for column in np.array_split(labels, columns)]
        if sum(widths) + SIGN_LETTERS * len(widths) <= LINE_LETTERS:
            return columns
    return 1


def _signs(engines: Sequence[str]) -> list[Patch | Line2D]:
    dots = [
        Line2D([], [], marker=_marker(number), color=_colour(number), label=name) for number, name in enumerate(engines)
    ]
    diamond = Line2D([], [], marker="D", mfc="white", mec=style.INK, linestyle="", label="published")
    return [diamond, *dots, Patch(color=INNER, label="agrees"), Patch(color=OUTER, label="differs")]


def _colour(engine: int) -> str:
    return figure_spec.colour(engine)


def _marker(engine: int) -> str:
    """Return the marker of an engine, which differs where colours repeat."""
    return "os^"[engine // len(figure_spec.COLOURS) % 3]


def _strip(ax: Axes, same: Mapping[int, Row], claim: Published) -> None:
    """Draw a row, by the number of its engine."""
    row = next(iter(same.values()))
    factor, unit = _scale(row, claim)
    low, high = _reach(same, claim)
    for band, shade in ((row.differs, OUTER), (row.agrees, INNER)):
        ax.axvspan(max(band[0], low) / factor, min(band[1], high) / factor, color=shade, zorder=0)
    if claim.value is not None:
        ax.plot([claim.value / factor], [0], "D", mfc="white", mec=style.INK, ms=6, zorder=3, clip_on=False)
    for place, (number, each) in enumerate(same.items()):
        _point(ax, each, factor, number, 0.0 if len(same) == 1 else 0.6 - 1.2 * place / (len(same) - 1))
    ax.set_xlim(low / factor, high / factor)
    ax.set_ylim(-1, 1)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.grid(visible=False)
    what = f"{claim.what}, {row.at}" if row.at else claim.what
    ax.set_title(f"{what}{f' ({unit})' if unit else ''}", fontsize=8, pad=2)


def _point(ax: Axes, row: Row, factor: float, number: int, y: float) -> None:
    found = row.summary
    if found.mean is None:
        return
    colour = _colour(number)
    if found.ci95_low is not None and found.ci95_high is not None:
        ax.hlines(y, found.ci95_low / factor, found.ci95_high / factor, color=colour, linewidth=2.5, zorder=4)
    ax.plot([found.mean / factor], [y], _marker(number), color=colour, ms=5, zorder=5, clip_on=False)


def _scale(row: Row, claim: Published) -> tuple[float, str]:
    known = [abs(number) for number in (claim.value, row.summary.mean, *row.agrees) if number and np.isfinite(number)]
    return numbers.scale(max(known, default=1.0), claim.unit)


def _reach(same: Mapping[int, Row], claim: Published) -> tuple[float, float]:
    known = [claim.value]
    for row in same.values():
        found = row.summary
        known += [*row.agrees, *row.differs, found.mean, found.ci95_low, found.ci95_high]
    finite = [number for number in known if number is not None and np.isfinite(number)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    margin = MARGIN * (high - low or abs(high) or 1.0)
    return low - margin, high + margin


@style.styled
def windows_and_epochs(engines: Mapping[str, Mapping[str, Dataset]], names: Mapping[str, str]) -> Figure:
    """The total window of some cases side by side, below it what each congestion epoch cost; so for each engine.

    `names` has what each case is called, in the order in which they are drawn. An engine without datasets is left out,
    and so is a case that it did not run.
    """
    drawn = {engine: data for engine, data in engines.items() if data}
    fig = style.figure(0.6 + 2.0 * 2 * len(drawn))
    axes = fig.subplots(2 * len(drawn), len(names), sharey="row", squeeze=False)
    for row, (engine, data) in enumerate(drawn.items()):
        for column, (case, name) in enumerate(names.items()):
            if case not in data:
                continue
            windows, epochs = axes[2 * row : 2 * row + 2, column]
            total_window(windows, data[case], f"{name}, {engine}: sum of the windows (segments)")
            epoch_bars(epochs, data[case], f"{name}, {engine}: in each congestion epoch")
    fig.legend(*axes[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return fig


def total_window(ax: Axes, data: Dataset, label: str, between: tuple[float, float] | None = None) -> None:
    """The sum of all windows over time in the first run, with what the path holds.

    `between` are the windows that are shown (segments): all by default.
    """
    view = style.first_run(data)
    lines = curves.windows(view)
    style.curve(ax, lines.times_s, lines.total(), color=style.COLOURS[0], linewidth=0.9)
    low, high = between or (0.0, float("inf"))
    for value, name in curves.path_limits(view):
        if low <= value <= high and curves.in_sight(value, float(lines.total().max())):
            style.reference(ax, value, name)
    style.warmup([ax], view.warmup_s)
    style.time_axis(ax, view)
    ax.set_ylim(low, high if between else None)
    ax.set_title(label)


def epoch_bars(ax: Axes, data: Dataset, label: str) -> None:
    """Synchronised flows and lost packets of each congestion epoch in the first run, side by side."""
    view = style.first_run(data)
    _, found = curves.loss_epochs(view)
    times_s = found["start_s"].to_numpy()
    width = 0.3 * float(np.median(np.diff(times_s))) if times_s.size > 1 else 0.5
    pairs = (("flows_hit", "synchronised flows", -0.5), ("drops", "lost packets", 0.5))
    for (column, name, shift), colour in zip(pairs, style.COLOURS, strict=False):
        ax.bar(times_s + shift * width, found[column].to_numpy(), width, color=colour, linewidth=0, label=name)
    style.warmup([ax], view.warmup_s, text=False)
    style.time_axis(ax, view)
    ax.set_title(label)


def overlay_windows(ax: Axes, runs: Mapping[str, Dataset], span_s: float, label: str) -> None:
    """The windows of one flow in several runs over each other, `span_s` from a loss on.

    Each from the loss in the measured part that begins its longest cycle, since the runs are not in step.
    """
    for (name, data), colour in zip(runs.items(), style.COLOURS, strict=False):
        view = style.first_run(data)
        lines, since_s = curves.windows(view), _longest_from(curves.loss_epochs(view)[1]["start_s"].to_numpy(), span_s)
        shown_here = (lines.times_s >= since_s) & (lines.times_s <= since_s + span_s)
        style.curve(ax, lines.times_s[shown_here] - since_s, lines.total()[shown_here], color=colour, label=name)
    ax.set_xlim(0, span_s)
    ax.set_xlabel("Time since a loss (s)")
    ax.set_title(label)


def _longest_from(losses_s: np.ndarray, span_s: float) -> float:
    """The loss before the longest time without one, of those with the span behind them; 0 if there are none."""
    if losses_s.size < 2:
        return 0.0
    gaps_s = np.diff(losses_s)
    whole = losses_s[:-1] + span_s <= losses_s[-1]
    return float(losses_s[:-1][np.argmax(np.where(whole, np.round(gaps_s, 1), 0.0))])
