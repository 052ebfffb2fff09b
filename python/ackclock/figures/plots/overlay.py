"""Overlay of other results on a figure: a model on a simulation, one engine on another.

What belongs to the first result is solid, each other result has its dashes. A model of averages has no curves: its
mean is drawn as a level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from ackclock import metrics
from ackclock.dataset import Dataset
from ackclock.errors import InputError
from ackclock.figures import palette
from ackclock.figures.curves import Lines
from ackclock.figures.plots import style
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.view import Array, RunView, runs

#: An overlay: nothing, a result, or several.
Over: TypeAlias = "Dataset | Sequence[Dataset] | None"

#: One for each result laid over.
DASHES = ((0, (5, 2)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)))


@dataclass(frozen=True, slots=True)
class Other:
    """An overlaid result: its number, its name, all its runs."""

    number: int
    name: str
    views: Sequence[RunView]

    @property
    def view(self) -> RunView:
        """Return the run to draw: the first."""
        return self.views[0]

    @property
    def line_style(self) -> dict[str, Any]:
        """Return its dashes, above everything else."""
        return {"linestyle": DASHES[self.number % len(DASHES)], "zorder": 4}

    @property
    def colour(self) -> str:
        """Return its colour where there is one curve for a result."""
        return palette.colour(self.number + 1)


def others(data: Dataset, over: Over) -> list[Other]:
    """Return the results to lay over `data`. Raises `InputError` for one without runs."""
    given = [] if over is None else [over] if isinstance(over, Dataset) else list(over)
    views = [list(runs(other)) for other in given]
    if not all(views):
        raise InputError("the result to be laid over holds no runs")
    return [
        Other(n, name, result) for n, (name, result) in enumerate(zip(names([data, *given])[1:], views, strict=True))
    ]


def names(every: Sequence[Recorded]) -> list[str]:
    """Return the name of each result: its engine, else its scenario, else its number."""
    engines = [str(each.manifest.get("engine") or "") for each in every]
    scenarios = [str(each.plan.name or "") for each in every]
    for result in (engines, scenarios):
        if len(set(result)) == len(result):
            return result
    return [f"{engine} ({number})" for number, engine in enumerate(engines, start=1)]


def read(other: Other, what: Callable[[RunView], Any]) -> Any:
    """Evaluate a function of the other result's first run; an `InputError` names the result."""
    try:
        return what(other.view)
    except InputError as error:
        raise InputError(f"{other.name}: {error}") from error


def curve(
    ax: Axes,
    other: Other,
    what: Callable[[RunView], tuple[Array, Array]],
    mean: str,
    *,
    scale: float = 1.0,
    level: float = 1.0,
    colour: str | None = None,
) -> None:
    """Draw the other's curve; or `level` × its metric `mean` where its engine gave that without tables."""
    look = {"color": colour or other.colour, **other.line_style}
    if mean in other.view.given:
        ax.axhline(scale * level * _number(metrics.value(other.view, mean)), **look)
        return
    times_s, values = read(other, what)
    style.curve(ax, times_s, scale * values, **look)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, float) else float("nan")


def lines(ax: Axes, other: Other, mine: Lines, theirs: Lines, scale: float = 1.0) -> None:
    """Draw each of its lines in the colour of ours, where there are as many; else the mean of its lines."""
    if theirs.count == mine.count <= len(style.COLOURS):
        for number in range(theirs.count):
            look = {"color": style.COLOURS[number], **other.line_style}
            style.curve(ax, theirs.times_s, scale * theirs.values[:, number], **look)
    else:
        style.curve(ax, theirs.times_s, scale * theirs.mean(), color=style.INK, **other.line_style)


def signs(data: Dataset, laid: Sequence[Other], *, coloured: bool = False) -> list[Line2D]:
    """Return legend entries for the dashes of each result; none without an overlay."""
    if not laid:
        return []
    own = names([data, *(other.view.data for other in laid)])[0]
    first = Line2D([], [], color=style.COLOURS[0] if coloured else style.INK, label=own)
    return [
        first,
        *(Line2D([], [], color=o.colour if coloured else style.INK, label=o.name, **o.line_style) for o in laid),
    ]
