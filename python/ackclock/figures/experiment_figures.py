"""Figure specs of comparisons of engines, and of searches for settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.errors import InputError
from ackclock.figures import figure_spec, numbers, sweep_axes
from ackclock.figures.figure_spec import Axis, Drawing, Layer, Line, Panel, Points, Reference
from ackclock.input import cli_values
from ackclock.metrics.view import Array
from ackclock.scenario.points import label

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
