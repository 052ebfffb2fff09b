"""Figure specs of experiments: sweeps, comparisons of engines, and searches for settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np
import polars as pl

from ackclock.errors import InputError
from ackclock.figures import figure_spec, numbers, summary_text, sweep_axes
from ackclock.figures.figure_spec import Axis, Boxes, Drawing, Heat, Layer, Line, Panel, Points, Reference
from ackclock.figures.sweep_axes import Choice, Swept, named
from ackclock.input import cli_values
from ackclock.input.fields import nearest, shown
from ackclock.metrics import full_name
from ackclock.metrics.view import Array
from ackclock.scenario.points import label

#: Message for sweeps of one point.
NOTHING_SWEPT = (
    "sweep: found one point, without a swept key; expected keys with lists of values in its table [sweep] "
    "(`ackclock run` makes the figures of one setting)"
)

#: The ways to show a sweep.
KINDS = ("line", "dot", "heatmap", "ecdf", "box")


def swept(
    sweeps: Sequence[Swept],
    x: str | None = None,
    y: str | None = None,
    by: str | None = None,
    metric: str | None = None,
    kind: str | None = None,
) -> Drawing:
    """Return one sweep, or several over each other (by engine); see `ackclock.figures.plots.swept`."""
    if not sweeps or not all(sweep.axes for sweep in sweeps):
        raise InputError(NOTHING_SWEPT)
    if kind is not None and kind not in KINDS:
        raise InputError(f"--kind: found {shown(kind)}; expected {nearest(kind, KINDS)}")
    keys = {axis.key for axis in sweeps[0].axes} | {axis.last for axis in sweeps[0].axes}
    up = y if y in keys else None
    chosen = Choice(x, tuple(_items(None if up else y, metric)), tuple(_items(by)) if by else None)
    if up and kind not in (None, "heatmap"):
        raise InputError(f"--y: found {shown(up)}, a swept key; expected a metric, or --kind heatmap")
    engines = f"{', '.join(dict.fromkeys(sweep.engine for sweep in sweeps))} engine"
    if kind in ("ecdf", "box"):
        sweep = _single(sweeps, kind)
        panel = boxes(sweep, chosen) if kind == "box" else steps(sweep, chosen)
        what = "medians, quartiles and extremes" if kind == "box" else "distribution functions"
        below = f"{engines}, {sweep.table.height:,} runs: {what}"
        return Drawing("sweep", sweep.name, "", [panel], row_in=2.0, subtitle=below)
    if kind == "heatmap" or up or (kind is None and by is None and is_map(sweeps)):
        panels = list(maps(_single(sweeps, "heatmap"), chosen, up).values())
    else:
        panels = list(charts(sweeps, chosen, joined=kind != "dot").values())
    if not panels:
        raise InputError("the sweep has no metric to draw")
    below = f"{engines}: {summary_text.how(sweeps)}{', with 95 % intervals' if has_intervals(*panels) else ''}"
    return Drawing("sweep", sweeps[0].name, "", panels, columns=2, row_in=2.0, subtitle=below)


def _items(*texts: str | None) -> list[str]:
    return [word for text in texts if text for word in cli_values.items(text) if word]


def _single(sweeps: Sequence[Swept], kind: str) -> Swept:
    if len(sweeps) > 1:
        raise InputError(f"--overlay: found {kind} of several sweeps; expected line or dot")
    return sweeps[0]


def has_intervals(*panels: Panel) -> bool:
    """Return True if there is an interval to see."""
    ends = [layer.low for panel in panels for layer in panel.layers if isinstance(layer, Points)]
    return any(low is not None and not np.isnan(low).all() for low in ends)


def is_map(sweeps: Sequence[Swept]) -> bool:
    """Return True for a single sweep of two keys whose values are numbers or quantities."""
    varied = [axis for sweep in sweeps for axis in sweep_axes.varied(sweep.axes)]
    numeric = [axis for axis in varied if sweep_axes.quantities(axis.values) is not None]
    return len(sweeps) == 1 and len(varied) == len(numeric) == 2


def charts(sweeps: Sequence[Swept], choice: Choice | None = None, *, joined: bool = True) -> dict[str, Panel]:
    """Return a panel for each metric to show, with the lines of all sweeps (by engine, say). Raises `InputError`.

    The sweeps must have swept the same keys, or some of the same: the first one's horizontal axis is that of all.
    """
    chosen = choice or Choice()
    if not sweeps or not all(sweep.axes for sweep in sweeps):
        raise InputError(NOTHING_SWEPT)
    key = named(chosen.x, sweeps, "--x") if chosen.x else sweep_axes.key_across(sweeps)
    by = None if chosen.by is None else [named(each, sweeps, "--by") for each in chosen.by]
    places, across = sweep_axes.places_of(key, sweeps)
    found = {
        (name, number): sorted(((places[label(point["values"][key])], point) for point in points), key=itemgetter(0))
        for number, sweep in enumerate(sweeps)
        for name, points in _groups(sweep, key, by).items()
    }
    kinds = list(dict.fromkeys(name for name, _ in found))
    lines = []
    for (name, number), points in found.items():
        line = _Line(_line_name(name, number, sweeps), points, kinds.index(name), number)
        lines.append(line.marked(across, len(kinds)) if across.ticks or not joined else line)
    return {metric: _chart(metric, lines, across) for metric in sweep_axes.metrics_to_show(sweeps, chosen)}


@dataclass(frozen=True, slots=True)
class _Line:
    """Points that belong together, each with its position; `kind` is their colour, `sweep` their dash or mark."""

    name: str
    points: Sequence[tuple[float, Mapping[str, Any]]]
    kind: int
    sweep: int
    shift: float = 0.0
    joined: bool = True

    def marked(self, across: Axis, kinds: int) -> _Line:
        """Return marks in place of the line; over names, those of several kinds are side by side."""
        shift = 0.6 * (self.kind / (kinds - 1) - 0.5) if across.ticks and kinds > 1 else 0.0
        return replace(self, shift=shift, joined=False)

    def layer(self, metric: str, factor: float) -> Points:
        """Return the means of a metric and their intervals."""
        rows = [(x, point["summary"][metric]) for x, point in self.points if sweep_axes.has_value(point, metric)]
        x = np.array([x + self.shift for x, _ in rows])
        mean, low, high = (
            np.array([row[key] for _, row in rows], dtype=float) / factor for key in ("mean", "ci95_low", "ci95_high")
        )
        colour = figure_spec.colour(self.kind)
        if not self.joined:
            return Points(self.name, x, mean, colour, figure_spec.mark(self.kind + self.sweep), 3.5, low, high)
        dash = figure_spec.overlaid(self.sweep - 1) if self.sweep else figure_spec.dash(self.kind)
        return Points(self.name, x, mean, colour, figure_spec.mark(self.kind), 3.0, low, high, dash)


def _chart(metric: str, lines: Sequence[_Line], across: Axis) -> Panel:
    points = [point for line in lines for _, point in line.points if sweep_axes.has_value(point, metric)]
    factor, unit, title = sweep_axes.scale(metric, (point["summary"][metric]["mean"] for point in points))
    layers = [layer for line in lines if (layer := line.layer(metric, factor)).x.size]
    listed = len(layers) > 1
    axis = figure_spec.by_decades(Axis("", unit), [y for layer in layers for y in layer.y])
    shown = [figure_spec.on_axis(replace(layer, listed=listed), axis) for layer in layers]
    return Panel(axis, shown, x=across, title=title)


def _line_name(kind: str, number: int, sweeps: Sequence[Swept]) -> str:
    """Return the other swept values, and the engine or name if there are several sweeps."""
    owner = sweep_axes.origin(number, sweeps) if len(sweeps) > 1 else ""
    return ", ".join(filter(None, (kind, owner))) or sweeps[number].engine


def _groups(sweep: Swept, key: str, by: Sequence[str] | None) -> dict[str, list[Mapping[str, Any]]]:
    """Group the points by their values of the other keys. Raises `InputError` for several points at one place."""
    others = [axis for axis in sweep.axes if axis.key != key and (by is None or axis.key in by)]
    name = sweep_axes.namer(others)
    result: dict[str, dict[str, Mapping[str, Any]]] = {}
    for point in sweep.points:
        group, place = result.setdefault(name(point["values"]), {}), label(point["values"][key])
        if place in group:
            raise _several_at_one_place(sweep, [key, *(axis.key for axis in others)], "--by")
        group[place] = point
    return {name: list(group.values()) for name, group in result.items()}


def _several_at_one_place(sweep: Swept, keys: Sequence[str], option: str) -> InputError:
    others = [axis.key for axis in sweep_axes.varied(sweep.axes) if axis.key not in keys]
    return InputError(f"{option}: found several points at one place; expected {', '.join(others)} there too")


def maps(sweep: Swept, choice: Choice | None = None, y: str | None = None) -> dict[str, Panel]:
    """Return a map of each metric to show over two swept keys, `y` the other one. Raises `InputError`."""
    chosen = choice or Choice()
    varied = [axis.key for axis in sweep_axes.varied(sweep.axes)]
    if len(varied) < 2:
        raise InputError("--kind: found heatmap of a sweep of fewer than two keys; expected line or dot")
    up = named(y, [sweep], "--y") if y else None
    key = named(chosen.x, [sweep], "--x") if chosen.x else next(key for key in varied if key != up)
    other = up or next(each for each in varied if each != key)
    if key == other:
        raise InputError(f"--y: found {shown(key)}, which is along --x already; expected another key")
    return {metric: _map(metric, key, other, sweep) for metric in sweep_axes.metrics_to_show([sweep], chosen)}


def _map(metric: str, key: str, other: str, sweep: Swept) -> Panel:
    (places, x), (steps, y) = sweep_axes.places_of(key, [sweep]), sweep_axes.places_of(other, [sweep])
    columns, rows = sorted(set(places.values())), sorted(set(steps.values()))
    means, filled = np.full((len(rows), len(columns)), np.nan), set()
    for point in sweep.points:
        place = rows.index(steps[label(point["values"][other])]), columns.index(places[label(point["values"][key])])
        if place in filled:
            raise _several_at_one_place(sweep, [key, other], "--where")
        filled.add(place)
        if sweep_axes.has_value(point, metric):
            means[place] = point["summary"][metric]["mean"]
    factor, unit, title = sweep_axes.scale(metric, means[~np.isnan(means)])
    heat = Heat(means / factor, unit)
    return Panel(_cells(y, rows), [heat], x=_cells(x, columns), title=title)


def _cells(axis: Axis, places: Sequence[float]) -> Axis:
    """Return an axis with equal room for each of the places."""
    return figure_spec.named(axis.title, [text for _, text in axis.ticks] or [f"{place:g}" for place in places])


def boxes(sweep: Swept, chosen: Choice) -> Panel:
    """Return box plots of a metric's values along a swept key, side by side for each combination of the others."""
    if not sweep.axes:
        raise InputError(NOTHING_SWEPT)
    key = named(chosen.x, [sweep], "--x") if chosen.x else sweep_axes.key_across([sweep])
    by = _by(sweep, chosen) or [axis.key for axis in sweep_axes.varied(sweep.axes) if axis.key != key]
    groups, linear = _values(sweep, chosen, key, by)
    axis = figure_spec.by_decades(linear, [value for values in groups.values() for value in values])
    places, across = sweep_axes.places_of(key, [sweep])
    every = sorted(places.values())
    kinds = list(dict.fromkeys(name for name, _ in groups))
    layers: list[Layer] = []
    for number, kind in enumerate(kinds):
        some = {places[place]: values for (name, place), values in groups.items() if name == kind}
        x = [every.index(place) + (number - (len(kinds) - 1) / 2) * 0.8 / len(kinds) for place in some]
        name = kind if len(kinds) > 1 else ""
        box = Boxes(name, x, list(some.values()), figure_spec.colour(number), 0.6 / len(kinds))
        layers.append(figure_spec.on_axis(replace(box, dash=figure_spec.DASHES[number % 3]), axis))
    return Panel(axis, layers, x=_cells(across, every))


def steps(sweep: Swept, chosen: Choice) -> Panel:
    """Return the share of a metric's values at or below each, a line for each combination of the chosen keys."""
    by = _by(sweep, chosen) or [axis.key for axis in sweep_axes.varied(sweep.axes)[:1]]
    groups, linear = _values(sweep, chosen, None, by)
    axis = figure_spec.by_decades(linear, [value for values in groups.values() for value in values])
    layers, several, least = [], len(groups) > 1, (axis.low or -np.inf) if axis.logarithmic else -np.inf
    for number, ((name, _), values) in enumerate(groups.items()):
        shares = np.arange(len(values) + 1) / len(values)
        x, colour = np.maximum([values[0], *values], least), figure_spec.colour(number)
        sign = figure_spec.mark(number) if several else ""
        layers.append(Line(name, x, shares, colour, figure_spec.dash(number), steps=True, listed=several, sign=sign))
    return Panel(Axis("Share at or below", low=0.0, high=1.02), layers, x=axis)


def _by(sweep: Swept, chosen: Choice) -> list[str]:
    return [named(each, [sweep], "--by") for each in chosen.by or ()]


def _values(
    sweep: Swept, chosen: Choice, key: str | None, by: Sequence[str]
) -> tuple[dict[tuple[str, str], list[float]], Axis]:
    """Return the values of the one metric chosen, ascending, by group and by the value of a key; and their axis.

    What is not told apart is taken together: other swept keys, and all seeds. Raises `InputError`.
    """
    if len(chosen.metrics) != 1:
        raise InputError(f"--y: found {len(chosen.metrics)} metrics; expected one whose spread is to be shown")
    metric = full_name(chosen.metrics[0], sweep.metrics)
    if metric is None:
        raise InputError(f"--y: found {shown(chosen.metrics[0])}; expected {nearest(chosen.metrics[0], sweep.metrics)}")
    name = sweep_axes.namer([axis for axis in sweep.axes if axis.key in by])
    groups: dict[tuple[str, str], list[float]] = {}
    columns = list(dict.fromkeys([*by, *([key] if key else []), metric]))
    for row in sweep.table.select(columns).iter_rows(named=True):
        values = row[metric] if isinstance(row[metric], list) else [row[metric]]
        if known := [value for value in values if value is not None]:
            groups.setdefault((name(row), label(row[key]) if key else ""), []).extend(known)
    if not groups:
        raise InputError(f"--y: {metric}: found no value in any run; expected a metric that the engine measures")
    factor, unit, title = sweep_axes.scale(metric, (value for values in groups.values() for value in values))
    scaled = {group: sorted(value / factor for value in values) for group, values in groups.items()}
    return scaled, Axis(title, unit)


#: An axis spans at least this share of its middle: engines that agree shall look so. And the margin beside the values.
MIN_SPAN, MARGIN = 0.02, 0.25

#: Verdict on a setting → its mark.
SIGNS = {"holds": "o", "undecided": "D", "fails": "x"}


def compared(name: str, table: pl.DataFrame) -> Drawing:
    """Return a panel for each metric of a comparison, with the mean of each engine and its 95 % interval."""
    panels = [_engines(str(metric), rows) for (metric,), rows in table.group_by("metric", maintain_order=True)]
    if not panels:
        raise InputError("the comparison has no metrics to draw")
    heading = "Metrics by engine: means and 95 % intervals"
    return Drawing("compared", heading, "", panels, columns=4, row_in=1.3, subtitle=name)


def _engines(metric: str, rows: pl.DataFrame) -> Panel:
    factor, _, title = sweep_axes.scale(metric, rows["mean"].to_list())
    layers, names = [], []
    for number, row in enumerate(rows.iter_rows(named=True)):
        mean, low, high = (np.array([row[key]], dtype=float) / factor for key in ("mean", "ci95_low", "ci95_high"))
        x, colour = np.array([float(number)]), figure_spec.colour(number)
        layers.append(Points("", x, mean, colour, size=4.0, low=low, high=high))
        names.append(str(row["engine"]) + (f"\n{numbers.NOTHING}" if row["mean"] is None else ""))
    ends = np.concatenate([end for layer in layers for end in (layer.y, layer.low, layer.high) if end is not None])
    known = ends[~np.isnan(ends)]
    least, greatest = float(known.min(initial=np.inf)), float(known.max(initial=-np.inf))
    middle = (least + greatest) / 2
    half = max((0.5 + MARGIN) * (greatest - least), MIN_SPAN * abs(middle) / 2)
    y = Axis("", low=middle - half, high=middle + half) if known.size and half else Axis("")
    return Panel(y, layers, x=figure_spec.named("", names), title=title)


def searched(
    about: Mapping[str, Any], points: Sequence[Mapping[str, Any]], frontier: Sequence[Mapping[str, Any]] = ()
) -> Drawing:
    """Return the settings that a search evaluated: a panel for each requirement with its bound, and each objective.

    For several objectives there is also the first over the second, with the frontier. `about` has the keys `varied`,
    `bounds` and `goals`, `points` are those of `SearchResult`, `frontier` has the values of its settings.
    """
    objectives = [goal.partition(":")[2] for goal in about["goals"] if ":" in goal]
    bounds = {**dict.fromkeys(objectives), **dict(about["bounds"])}
    if not points or not bounds:
        raise InputError("the answer has no settings to draw")
    panels = [_settings(metric, bound, about["varied"], points) for metric, bound in bounds.items()]
    if len(objectives) > 1:
        panels.append(_trade(objectives, points, frontier))
    heading = f"Settings of {', '.join(about['varied'])}"
    below = "means over the seeds, with 95 % intervals"
    return Drawing("searched", heading, "", panels, columns=2, row_in=1.9, subtitle=below)


def _settings(
    metric: str, bound: float | None, varied: Mapping[str, Sequence[str]], points: Sequence[Mapping[str, Any]]
) -> Panel:
    *others, key = varied
    means = [point["metrics"][metric]["mean"] for point in points]
    factor, _, title = sweep_axes.scale(metric, means if bound is None else [bound])
    places, across = sweep_axes.places(key, [cli_values.value(text) for text in varied[key]])
    short = [sweep_axes.short_names([cli_values.value(text) for text in varied[other]]) for other in others]
    layers: list[Layer] = []

    def row(point: Mapping[str, Any]) -> str:
        return " ".join(names[label(point["values"][other])] for other, names in zip(others, short, strict=True))

    for number, name in enumerate(dict.fromkeys(map(row, points))):
        here = [point for point in points if row(point) == name and point["metrics"][metric]["n"]]
        for verdict, sign in SIGNS.items():
            chosen = [point for point in here if point["verdict"] == verdict]
            x = np.array([places[label(point["values"][key])] for point in chosen])
            columns = ([point["metrics"][metric][end] for point in chosen] for end in ("mean", "ci95_low", "ci95_high"))
            mean, low, high = (np.array(column, dtype=float) / factor for column in columns)
            if chosen:
                words = f"{name} {verdict}".strip()
                layers.append(Points(words, x, mean, figure_spec.colour(number), sign, 4.0, low, high))
    references = () if bound is None else (Reference(bound / factor, ""),)
    return Panel(Axis(""), layers, references, across, title)


def _trade(
    objectives: Sequence[str], points: Sequence[Mapping[str, Any]], frontier: Sequence[Mapping[str, Any]]
) -> Panel:
    """Return the first objective over the second, a mark for each setting; a line joins the Pareto front."""
    (above, _, y_title), (across, _, x_title) = (
        sweep_axes.scale(goal, [point["metrics"][goal]["mean"] for point in points]) for goal in objectives[:2]
    )

    def places(chosen: Sequence[Mapping[str, Any]]) -> Array:
        means = [[point["metrics"][goal]["mean"] for goal in objectives[:2]] for point in chosen]
        known = sorted((x / across, y / above) for y, x in means if x is not None and y is not None)
        return np.array(known).reshape(-1, 2).T

    layers: list[Layer] = []
    for verdict, sign in SIGNS.items():
        x, y = places([point for point in points if point["verdict"] == verdict])
        if x.size:
            layers.append(Points("", x, y, figure_spec.colour(0), sign, 4.0))
    x, y = places([point for point in points if point["values"] in frontier])
    layers.append(Line("", x, y, figure_spec.colour(1)))
    x, _ = places(points)
    wide = x.size > 0 and 0 < sweep_axes.WIDE * x.min() <= x.max()
    return Panel(Axis(""), layers, x=Axis(x_title, logarithmic=wide), title=f"{y_title}, frontier")
