"""Figures of a sweep: metrics over the swept keys, as lines, marks, maps, boxes or distribution functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from ackclock.errors import InputError
from ackclock.figures import charts, numbers, palette, sweep_summary
from ackclock.figures.charts import Across, Chart, Choice, Line, Map, Swept
from ackclock.figures.plots import overlay, style
from ackclock.figures.plots.spread import boxes, steps
from ackclock.input import arguments, cli_values
from ackclock.input.arguments import checked, optional
from ackclock.input.fields import nearest, shown

#: Panels in a row.
COLUMNS = 2

#: The ways to show a sweep.
KINDS = ("line", "dot", "heatmap", "ecdf", "box")

#: Maps of at most so many places along a side have their numbers written in.
MAX_WRITTEN = (9, 14)

#: Colours of maps: light to dark, so that the order shows in grey too.
COLOURS = LinearSegmentedColormap.from_list("ackclock", ["#F2F7FB", "#9BBBD3", "#0072B2", "#003A5C"])


@checked(
    x=optional(arguments.WORD),
    y=optional(arguments.WORD),
    by=optional(arguments.WORD),
    metric=optional(arguments.WORD),
    kind=optional(arguments.WORD),
)
@style.public
def swept(
    *sweeps: Swept,
    x: str | None = None,
    y: str | None = None,
    by: str | None = None,
    metric: str | None = None,
    kind: str | None = None,
) -> Figure:
    """Draws one sweep, or several over each other (by engine): means over the seeds with 95 % intervals.

    Args:
        sweeps: what `ackclock.sweep` gives.
        x: the swept key along the horizontal axis, or its last name.
        y: a metric, or several with commas between them; of a map the other key.
        by: the keys of which each combination has a line or a colour, with commas between them; by default all others.
        metric: the metrics where `y` is a key.
        kind: "line", "dot", "heatmap", "ecdf" or "box"; by default a heatmap where two keys are swept whose values are
            numbers, else lines along numbers and marks along names.

    Raises:
        InputError: keys, metrics or a kind that the sweep does not have.
    """
    if not sweeps or not all(sweep.axes for sweep in sweeps):
        raise InputError("there is nothing swept to draw")
    if kind is not None and kind not in KINDS:
        raise InputError(f"--kind: found {shown(kind)}; expected {nearest(kind, KINDS)}")
    keys = {axis.key for axis in sweeps[0].axes} | {axis.last for axis in sweeps[0].axes}
    up = y if y in keys else None
    words = [word for word in (None if up else y, metric) if word]
    chosen = Choice(x, tuple(_split(",".join(words))), tuple(_split(by)) if by else None)
    if up and kind not in (None, "heatmap"):
        raise InputError(f"--y: found {shown(up)}, a swept key; expected a metric, or --kind heatmap")
    if kind in ("ecdf", "box"):
        draw = boxes if kind == "box" else steps
        return draw(_one(sweeps, kind), chosen)
    if kind == "heatmap" or up or (kind is None and by is None and charts.is_map(sweeps)):
        drawn: Sequence[Chart | Map] = charts.maps(_one(sweeps, "heatmap"), chosen, up)
    else:
        drawn = charts.charts(sweeps, chosen)
    return _panels(sweeps, drawn, joined=kind != "dot")


def _split(words: str) -> list[str]:
    return [word for word in cli_values.items(words) if word]


def _one(sweeps: Sequence[Swept], kind: str) -> Any:
    if len(sweeps) > 1:
        raise InputError(f"--overlay: found {kind} of several sweeps; expected line or dot")
    return sweeps[0]


def _panels(sweeps: Sequence[Swept], drawn: Sequence[Chart | Map], *, joined: bool) -> Figure:
    if not drawn:
        raise InputError("the sweep has no metric to draw")
    columns = min(style.columns(COLUMNS), len(drawn))
    rows = math.ceil(len(drawn) / columns)
    fig = style.figure(1.2 + 2.1 * rows if rows > 1 or columns > 1 else 3.4)
    panels = list(fig.subplots(rows, columns, squeeze=False).flat)
    for ax, each in zip(panels, drawn, strict=False):
        if isinstance(each, Map):
            _map(fig, ax, each)
        else:
            _panel(ax, each, joined=joined)
        style.panel_title(ax, f"{each.title} ({each.unit})" if each.unit else each.title)
    for ax in panels[len(drawn) :]:
        ax.set_axis_off()
    handles, names = panels[0].get_legend_handles_labels()
    if len(names) > 1:
        style.legend(fig, handles, names, ncols=5)
    engines = ", ".join(dict.fromkeys(sweep.engine for sweep in sweeps))
    style.headline(fig, sweeps[0].name, f"{engines} engine: {sweep_summary.how(sweeps)}{_intervals(drawn)}")
    return fig


def _intervals(drawn: Sequence[Chart | Map]) -> str:
    lows = [low for each in drawn if isinstance(each, Chart) for line in each.lines for low in line.lows]
    return ", with 95 % intervals" if any(not math.isnan(low) for low in lows) else ""


def _panel(ax: Axes, chart: Chart, *, joined: bool) -> None:
    has_names = bool(chart.across.names)
    for line in chart.lines:
        means = np.array(line.means)
        bars = np.nan_to_num(np.stack([means - np.array(line.lows), np.array(line.highs) - means]))
        some: dict[str, Any] = {
            "marker": "o",
            "markersize": 2.5,
            "capsize": 1.5,
            "elinewidth": 0.7,
            **_line_style(line),
        }
        if has_names or not joined:
            some |= {"linestyle": "none", "markersize": 3.5, "marker": MARKS[line.sweep % len(MARKS)]}
        x = np.array(line.x) + (_offset(line, chart) if has_names else 0.0)
        ax.errorbar(x, means, yerr=np.maximum(bars, 0), label=line.name, **some)
    ax.set_xlabel(chart.across.title)
    ax.margins(x=0.04)
    axis_across(ax, chart.across)


#: One for each of several sweeps.
MARKS = ("o", "s", "^", "D")


def _offset(line: Line, chart: Chart) -> float:
    """Return the horizontal shift of a line's marks from their name, so that those of several do not overlap."""
    kinds = 1 + max(each.kind for each in chart.lines)
    return 0.0 if kinds == 1 else 0.6 * (line.kind / (kinds - 1) - 0.5)


def _line_style(line: Line) -> dict[str, Any]:
    """Return a colour for each kind; of several sweeps, dashes for each but the first."""
    if line.sweep == 0:
        return style.line_style(line.kind)
    return {"color": palette.colour(line.kind), "linestyle": overlay.DASHES[(line.sweep - 1) % len(overlay.DASHES)]}


def axis_across(ax: Axes, across: Across) -> None:
    """Set up the horizontal axis for names or numbers."""
    if across.names:
        ax.set_xticks(range(len(across.names)), across.names)
        ax.set_xlim(-0.5, len(across.names) - 0.5)
    elif across.logarithmic:
        ax.set_xscale("log")
        style.log_axis(ax.xaxis)


def _map(fig: Figure, ax: Axes, shown_map: Map) -> None:
    """Draw a colour for each point, with its number where there is room."""
    means = np.array(shown_map.means)
    mesh = ax.pcolormesh(np.arange(len(shown_map.x) + 1) - 0.5, np.arange(len(shown_map.y) + 1) - 0.5, means,
                         cmap=COLOURS, edgecolors="white", linewidth=0.5)  # fmt: skip
    for axis, set_ticks, places in (
        (shown_map.across, ax.set_xticks, shown_map.x),
        (shown_map.up, ax.set_yticks, shown_map.y),
    ):
        set_ticks(range(len(places)), axis.names or [f"{place:g}" for place in places])
    ax.grid(visible=False)
    ax.set_xlabel(shown_map.across.title)
    ax.set_ylabel(shown_map.up.title)
    fig.colorbar(mesh, ax=ax, fraction=0.05, pad=0.02).outline.set_visible(False)
    if len(shown_map.x) <= MAX_WRITTEN[0] and len(shown_map.y) <= MAX_WRITTEN[1]:
        _write(ax, means)


def _write(ax: Axes, means: Any) -> None:
    middle = (np.nanmin(means) + np.nanmax(means)) / 2
    for (row, column), mean in np.ndenumerate(means):
        if math.isfinite(mean):
            colour = "white" if mean > middle else style.INK
            text = numbers.value(float(mean), "1")
            ax.annotate(text, (column, row), ha="center", va="center", fontsize=6.5, color=colour)
