"""Box plots over the flows of results, one for each: Belhareth 2014, figures 4.48 and 4.49."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.errors import InputError
from ackclock.figures import numbers
from ackclock.figures.plots import style
from ackclock.figures.plots.overlay import Over
from ackclock.metrics import flow_means

#: Panels: column of `metrics.flow_means`, unit, the axis's label.
PANELS = (
    ("goodput_bps", "bit/s", "Goodput of a flow ({})"),
    ("loss", "share", "Segments lost ({})"),
    ("rtt_s", "s", "Mean RTT ({})"),
    ("window", "segments", "Mean window ({})"),
)


@style.public
def boxes(data: Dataset, over: Over = None) -> Figure:
    """Draw the spread of the flows' means: median and quartiles, whiskers to the extremes, by number of flows.

    Of captures the window is what was under way. `over`: further results, a box each, by their numbers of flows.
    """
    others = [] if over is None else [over] if isinstance(over, Dataset) else over
    result = sorted((flow_means(each) for each in (data, *others)), key=lambda rows: rows.height)
    if not result[-1].height:
        raise InputError("the result holds no flows to draw")
    across = style.columns(2)
    rows_of = len(PANELS) // across
    fig = style.figure(2.4 * rows_of)
    for ax, (column, unit, label) in zip(fig.subplots(rows_of, across).flat, PANELS, strict=True):
        _panel(ax, [rows[column].drop_nulls().to_list() for rows in result], unit, label)
        ax.set_xticks(range(1, len(result) + 1), [f"{rows.height:,}" for rows in result])
    fig.supxlabel("Flows", fontsize="medium")
    style.title(fig, "Means of the flows", data, pooled=True)
    return fig


def _panel(ax: Axes, values: Sequence[Sequence[float]], unit: str, label: str) -> None:
    factor, name = numbers.scale(max((max(each) for each in values if each), default=1.0), unit)
    look = {"color": style.INK, "linewidth": 1}
    ax.boxplot([[value / factor for value in each] for each in values], whis=(0, 100), widths=0.5, boxprops=look,
               medianprops={"color": style.COLOURS[1], "linewidth": 1.5}, whiskerprops=look, capprops=look)  # fmt: skip
    ax.set_ylim(0, 1.05 * ax.get_ylim()[1])
    ax.set_ylabel(label.format(name))
