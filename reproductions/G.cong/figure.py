"""Figure of the rows of the judged interpretation, and the slides' distributions of completion times."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.gallery import Row, figures, find
from ackclock.gallery.entry import Published
from ackclock.gallery.rows import Measure, Measured, of_run
from ackclock.metrics import runs

CONTROLS, LEVELS = ("CUBIC", "Scalable"), ("90 %", "150 %", "210 %")

#: Half the width of a band's box, and how far an axis reaches beyond the bands, as a share of what they span.
HALF, MARGIN = 0.32, 0.08


@style.styled
def draw(packet: Mapping[str, Dataset], _ns2: Mapping[str, Dataset]) -> Figure:
    """Above, times and widths with the bands of the rule; below, when files ended, at each level."""
    entry = find("G.cong")
    packet[f"{CONTROLS[0]} {LEVELS[0]}"]  # without packets there is no such figure
    rows = entry.check(_measured(packet, entry.measures))
    times, widths = [row for row in rows if row.claim != "wider"], [row for row in rows if row.claim == "wider"]
    fig = style.figure(6.2)
    above, below = fig.subfigures(2, 1, height_ratios=(1.15, 1))
    left, right = above.subplots(1, 2, width_ratios=(3, 1))
    _judged(left, times, entry.published, [row.claim.replace(" ", "\n", 1) for row in times])
    left.set_title("mean completion time (s)")
    _judged(right, widths, entry.published, [row.at for row in widths])
    right.set_title("width, Scalable / CUBIC")
    _legend(above, left)
    panels = below.subplots(1, len(LEVELS), sharex=True, sharey=True)
    for ax, level in zip(panels, LEVELS, strict=True):
        for control, colour in zip(CONTROLS, style.COLOURS, strict=False):
            _ended(ax, packet[f"{control} {level}"], colour, control)
        ax.set_title(f"{level}: files that have ended")
        ax.set_xlabel("time (s)")
        ax.margins(x=MARGIN)
    panels[0].yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    below.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(CONTROLS))
    return fig


def _measured(packet: Mapping[str, Dataset], measures: Mapping[str, Measure]) -> Measured:
    by_run = {case: [of_run(view, measures) for view in runs(data)] for case, data in packet.items()}
    return {case: {name: tuple(run[name] for run in found) for name in measures} for case, found in by_run.items()}


def _judged(ax: Axes, rows: Sequence[Row], published: Mapping[str, Published], names: Sequence[str]) -> None:
    """A box of bands for each row, with the published value and what was reproduced."""
    low, high = _reach(rows)
    for x, row in enumerate(rows):
        for band, shade in ((row.differs, figures.OUTER), (row.agrees, figures.INNER)):
            bottom, top = max(band[0], low), min(band[1], high)
            ax.fill_between([x - HALF, x + HALF], bottom, top, color=shade, linewidth=0, zorder=0)
        if (value := published[row.claim].value) is not None:
            ax.plot([x - HALF / 2], [value], "D", mfc="white", mec=style.INK, ms=6, zorder=3)
        found = row.summary
        if found.mean is not None:
            ax.plot([x + HALF / 2], [found.mean], "o", color=style.COLOURS[0], ms=5, zorder=5)
        if found.ci95_low is not None and found.ci95_high is not None:
            ax.vlines(x + HALF / 2, found.ci95_low, found.ci95_high, color=style.COLOURS[0], linewidth=2.5, zorder=4)
    ax.set_xticks(range(len(rows)), names)
    ax.set_xlim(-0.5, len(rows) - 0.5)
    ax.set_ylim(low, high)


def _reach(rows: Sequence[Row]) -> tuple[float, float]:
    known = [(*row.agrees, *row.differs, row.summary.mean, row.summary.ci95_low, row.summary.ci95_high) for row in rows]
    finite = [number for each in known for number in each if number is not None and np.isfinite(number)]
    margin = MARGIN * (max(finite) - min(finite))
    return min(finite) - margin, max(finite) + margin


def _legend(above: SubFigure, ax: Axes) -> None:
    diamond = ax.plot([], [], "D", mfc="white", mec=style.INK, label="published")
    dot = ax.plot([], [], "o-", color=style.COLOURS[0], label="packet, with its 95 % interval")
    boxes = [Patch(color=figures.INNER, label="agrees"), Patch(color=figures.OUTER, label="differs")]
    above.legend(handles=[*diamond, *dot, *boxes], loc="outside lower center", ncols=4)


def _ended(ax: Axes, data: Dataset, colour: str, control: str) -> None:
    """The files of all seeds together."""
    times_s = np.sort(np.concatenate([view.flows["fct_s"].to_numpy() for view in runs(data)]))
    shares = np.arange(times_s.size + 1) / times_s.size
    ax.step([times_s[0], *times_s], shares, where="post", color=colour, linewidth=1.2, label=control)
