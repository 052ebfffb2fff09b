"""Overlay of other results on a figure: a model on a simulation, one engine on another.

What belongs to the first result is solid, each other result has its dashes. A model of averages has no curves: its
mean is drawn as a level.

Used by the figure specs of runs, results and captures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ackclock import metrics
from ackclock.dataset import Dataset
from ackclock.errors import InputError
from ackclock.figures import figure_spec, numbers
from ackclock.figures.curves import Lines
from ackclock.figures.figure_spec import COLOURS, INK, Line
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.view import Array, RunView, runs

#: An overlay: nothing, a result, or several.
Over: TypeAlias = "Dataset | Sequence[Dataset] | None"


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
    def colour(self) -> str:
        """Return its colour where there is one curve for a result."""
        return figure_spec.colour(self.number + 1)

    def line(self, x: Array, y: Array, colour: str) -> Line:
        """Return a line with the dashes of this result."""
        return Line("", x, y, colour, figure_spec.overlaid(self.number), over=True)

    def read(self, what: Callable[[RunView], Any]) -> Any:
        """Evaluate a function of the first run; an `InputError` names the result."""
        try:
            return what(self.view)
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from error

    def curve(
        self,
        what: Callable[[RunView], tuple[Array, Array]],
        mean: str,
        *,
        scale: float = 1.0,
        level: float = 1.0,
        colour: str = INK,
    ) -> Line:
        """Return its curve; or `level` × its metric `mean` where its engine gave that without tables."""
        if mean in self.view.given:
            value = metrics.value(self.view, mean)
            height = scale * level * value if isinstance(value, float) else float("nan")
            return self.line(np.array([0.0, self.view.duration_s]), np.full(2, height), colour)
        times_s, values = self.read(what)
        return self.line(times_s, scale * values, colour)

    def lines(self, mine: Lines, theirs: Lines, scale: float = 1.0) -> list[Line]:
        """Return each of its lines in the colour of ours, where there are as many; else the mean of its lines."""
        if theirs.count == mine.count <= len(COLOURS):
            columns = zip(theirs.values.T, COLOURS, strict=False)
            return [self.line(theirs.times_s, scale * values, colour) for values, colour in columns]
        return [self.line(theirs.times_s, scale * theirs.mean(), INK)]


def others(data: Dataset, over: Over) -> list[Other]:
    """Return the results to lay over `data`. Raises `InputError` for one without runs."""
    given = [] if over is None else [over] if isinstance(over, Dataset) else list(over)
    views = [list(runs(other)) for other in given]
    if not all(views):
        raise InputError("the result to be laid over holds no runs")
    result = zip(names([data, *given])[1:], views, strict=True)
    return [Other(number, name, its_views) for number, (name, its_views) in enumerate(result)]


def names(every: Sequence[Recorded]) -> list[str]:
    """Return the name of each result: its engine, else its scenario, else its number."""
    engines = [str(each.manifest.get("engine") or "") for each in every]
    scenarios = [str(each.plan.name or "") for each in every]
    for result in (engines, scenarios):
        if len(set(result)) == len(result):
            return result
    return [f"{engine} ({number})" for number, engine in enumerate(engines, start=1)]


def entries(data: Recorded, laid: Sequence[Other], *, coloured: bool = False) -> list[Line]:
    """Return lines without points that name the results in the legend; none without an overlay."""
    if not laid:
        return []
    nothing = np.empty(0)
    own = names([data, *(other.view.data for other in laid)])[0]
    lines = [Line(own, nothing, nothing, COLOURS[0] if coloured else INK)]
    for each in laid:
        dash = figure_spec.overlaid(each.number)
        lines.append(Line(each.name, nothing, nothing, each.colour if coloured else INK, dash))
    return lines


def origin(data: Recorded, *, pooled: bool = False) -> str:
    """Return the scenario's name, the engine, and the run that is drawn: the first, or with `pooled` all of them."""
    runs_of = [view.name for view in runs(data) if view.seed is not None or len(data.runs) > 1]
    which = runs_of[:1]
    if len(runs_of) > 1:
        which = [f"{len(runs_of)} runs" if pooled else f"{runs_of[0]} (one of {len(runs_of)} runs)"]
    made = ", ".join(filter(None, (numbers.engine(data.manifest), *which)))
    return " · ".join(filter(None, (str(data.plan.name or ""), made)))
