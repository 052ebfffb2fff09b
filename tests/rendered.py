"""Faults of the texts in a rendered figure: cut at its edge, or overlapping.

Measured in pixels with matplotlib's own renderer (`Text.get_window_extent`), after the layout has been made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

#: The overlap allowed between boxes, or out of the figure, in points: the room that a font leaves around its letters.
SLACK = 1.0


def faults(figure: Figure) -> list[str]:
    """A line for each text that is cut, and for each two that lie over each other."""
    FigureCanvasAgg(figure)
    figure.canvas.draw()
    slack = SLACK * figure.dpi / 72
    found = [(text, text.get_window_extent()) for text in _texts(figure)]
    cut = [f"cut: {_shown(text)}" for text, box in found if not _inside(box, figure.bbox, slack)]
    over = [
        f"over each other: {_shown(one)} and {_shown(other)}"
        for (one, first), (other, second) in combinations(found, 2)
        if _overlap(first, second, slack) and not _side_by_side(one, other, first, second)
    ]
    return cut + over


def _texts(figure: Figure) -> Iterator[Text]:
    """Every text that is drawn: of ticks those whose place is in sight."""
    axes = [ax for ax in figure.axes if ax.get_visible()]
    unseen: set[Text] = set()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            ticks = {label for tick in (*axis.majorTicks, *axis.minorTicks) for label in (tick.label1, tick.label2)}
            seen = set(_tick_labels(axis)) if ax in axes and ax.axison else set()
            unseen |= (ticks | set(_every_tick(axis))) - seen
            if ax not in axes or not ax.axison:
                unseen |= {axis.label, axis.offsetText}
        if ax not in axes:
            unseen |= set(ax.findobj(Text))
    for text in figure.findobj(Text):
        if text not in unseen and text.get_visible() and text.get_text().strip():
            yield text


def _every_tick(axis: Axis) -> list[Text]:
    return [*axis.get_ticklabels(), *axis.get_ticklabels(minor=True)]


def _tick_labels(axis: Axis) -> Iterator[Text]:
    low, high = sorted(axis.get_view_interval())
    room = 1e-9 * (high - low)
    for minor in (False, True):
        for place, label in zip(axis.get_ticklocs(minor=minor), axis.get_ticklabels(minor=minor), strict=False):
            if low - room <= place <= high + room:
                yield label


def _shown(text: Text) -> str:
    return repr(text.get_text())


def _inside(box: Bbox, page: Bbox, slack: float) -> bool:
    return bool(
        box.x0 >= page.x0 - slack
        and box.x1 <= page.x1 + slack
        and box.y0 >= page.y0 - slack
        and box.y1 <= page.y1 + slack
    )


def _side_by_side(one: Text, other: Text, first: Bbox, second: Bbox) -> bool:
    """Return True if two lines turned alike are side by side: at least a line's height apart, across it."""
    angle = math.radians(one.get_rotation())
    if one.get_rotation() != other.get_rotation() or one.get_rotation() % 90 == 0:
        return False
    apart = (first.x1 - second.x1) * math.sin(angle) - (first.y1 - second.y1) * math.cos(angle)
    figure = one.get_figure(root=True)
    return figure is not None and abs(apart) >= one.get_fontsize() * figure.dpi / 72


def _overlap(one: Bbox, other: Bbox, slack: float) -> bool:
    across = min(one.x1, other.x1) - max(one.x0, other.x0)
    along = min(one.y1, other.y1) - max(one.y0, other.y0)
    return bool(across > slack and along > slack)
