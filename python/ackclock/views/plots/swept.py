"""A sweep: each main metric over the swept key, a line for every other swept value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from ackclock.errors import InputError
from ackclock.views import palette
from ackclock.views.charts import Across, Chart, Line, Swept, charts
from ackclock.views.plots import overlay, style

#: Panels in a row.
COLUMNS = 2


@style.public
def swept(*sweeps: Swept) -> Figure:
    """Draws one sweep, or several over each other (by engine): means over the seeds with 95 % intervals."""
    drawn = charts(sweeps)
    if not drawn:
        raise InputError("the sweep has no metric to draw")
    rows = math.ceil(len(drawn) / COLUMNS)
    fig = style.figure(1.2 + 2.1 * rows)
    panels = list(fig.subplots(rows, COLUMNS, squeeze=False).flat)
    for ax, chart in zip(panels, drawn, strict=False):
        _panel(ax, chart)
    for ax in panels[len(drawn) :]:
        ax.set_axis_off()
    handles, names = panels[0].get_legend_handles_labels()
    if len(names) > 1:
        fig.legend(handles, names, loc="outside lower center", ncols=min(len(names), 5))
    engines = ", ".join(dict.fromkeys(sweep.engine for sweep in sweeps))
    style.headline(fig, sweeps[0].name, f"{engines} engine: means over the seeds, with 95 % intervals")
    return fig


def _panel(ax: Axes, chart: Chart) -> None:
    for line in chart.lines:
        means = np.array(line.means)
        bars = np.nan_to_num(np.stack([means - np.array(line.lows), np.array(line.highs) - means]))
        some: dict[str, Any] = {"marker": "o", "markersize": 2.5, "capsize": 1.5, "elinewidth": 0.7}
        ax.errorbar(line.x, means, yerr=np.maximum(bars, 0), label=line.name, **some, **_look(line))
    ax.set_title(f"{chart.title} ({chart.unit})" if chart.unit else chart.title)
    ax.set_xlabel(chart.across.title)
    ax.margins(x=0.04)
    _axis_across(ax, chart.across)


def _look(line: Line) -> dict[str, Any]:
    """A colour for each kind; of several sweeps, dashes for each but the first."""
    if line.sweep == 0:
        return style.look(line.kind)
    dashes = overlay.DASHES[(line.sweep - 1) % len(overlay.DASHES)]
    return {"color": palette.colour(line.kind), "linestyle": dashes}


def _axis_across(ax: Axes, across: Across) -> None:
    if across.names:
        ax.set_xticks(range(len(across.names)), across.names)
    elif across.logarithmic:
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())
