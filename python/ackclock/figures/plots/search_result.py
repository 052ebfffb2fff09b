"""Settings evaluated in a search: a panel for each requirement with its bound, and for each objective.

For several goals there is also the first over the second, with the frontier.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from ackclock.errors import InputError
from ackclock.figures import numbers, palette
from ackclock.figures.plots import style
from ackclock.input import cli_values
from ackclock.metrics import METRICS
from ackclock.scenario.points import label, short_labels

#: Verdict → how its settings are marked.
MARKS: Mapping[str, dict[str, Any]] = {"holds": {"marker": "o"}, "undecided": {"marker": "D"}, "fails": {"marker": "x"}}

#: A ladder whose ends are so far apart is drawn in logarithms.
DECADES = 5.0

_NUMBER = re.compile(r"[\d.]+(?:[eE][+-]?\d+)?")


@style.styled
def draw(
    about: Mapping[str, Any], points: Sequence[Mapping[str, Any]], frontier: Sequence[Mapping[str, Any]] = ()
) -> Figure:
    """Draw a search: `about` has the keys `varied`, `bounds` and `goals`, `points` are those of `SearchResult`.

    `frontier` has the values of its settings.
    """
    objectives = [goal.partition(":")[2] for goal in about["goals"] if ":" in goal]
    bounds = {**dict.fromkeys(objectives), **dict(about["bounds"])}
    if not points or not bounds:
        raise InputError("the answer has no settings to draw")
    count = len(bounds) + (len(objectives) > 1)
    across = min(style.columns(2), count)
    rows = math.ceil(count / across)
    fig = style.figure(1.0 + 2.0 * rows)
    panels = list(fig.subplots(rows, across, squeeze=False).flat)
    for ax, (metric, bound) in zip(panels, bounds.items(), strict=False):
        _panel(ax, metric, bound, about["varied"], points)
    if len(objectives) > 1:
        _trade(panels[len(bounds)], objectives, points, frontier)
    for ax in panels[count:]:
        ax.set_axis_off()
    handles = dict(zip(*reversed(panels[0].get_legend_handles_labels()), strict=True))
    style.legend(fig, handles.values(), handles.keys(), ncols=5)
    style.headline(fig, f"Settings of {', '.join(about['varied'])}", "means over the seeds, with 95 % intervals")
    return fig


def _panel(
    ax: Axes, name: str, bound: float | None, varied: Mapping[str, Sequence[str]], points: Sequence[Mapping[str, Any]]
) -> None:
    *others, key = varied
    factor, title = _scale(name, bound, points)
    short = {other: dict(zip(varied[other], _short(varied[other]), strict=True)) for other in others}

    def row(point: Mapping[str, Any]) -> str:
        return " ".join(short[other][label(point["values"][other])] for other in others)

    for number, words in enumerate(dict.fromkeys(map(row, points))):
        measured = [(point, point["metrics"][name]) for point in points if row(point) == words]
        _row(ax, measured, (key, varied[key]), factor, (number, words))
    if bound is not None:
        ax.axhline(bound / factor, color=style.QUIET, linewidth=0.8, linestyle="--")
    ax.set_title(title)
    ax.set_xlabel(key)
    _across(ax, varied[key])


def _short(values: Sequence[str]) -> list[str]:
    """Return the short labels that tables use for these values."""
    return short_labels([cli_values.value(value) for value in values])


def _scale(name: str, bound: float | None, points: Sequence[Mapping[str, Any]]) -> tuple[float, str]:
    """Return the divisor of a metric's values and its label with the unit, for the bound or else the greatest mean."""
    metric = METRICS[name]
    means = [abs(mean) for point in points if (mean := point["metrics"][name]["mean"]) is not None]
    factor, unit = numbers.scale(max(means, default=0.0) if bound is None else bound, metric.unit)
    return factor, f"{metric.label} ({unit})" if unit else metric.label


def _trade(
    ax: Axes, objectives: Sequence[str], points: Sequence[Mapping[str, Any]], frontier: Sequence[Mapping[str, Any]]
) -> None:
    """Draw the first objective over the second, a mark for each setting; a line joins the Pareto front."""
    (above, y_label), (across, x_label) = (_scale(goal, None, points) for goal in objectives[:2])

    def places(chosen: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
        means = [[point["metrics"][goal]["mean"] for goal in objectives[:2]] for point in chosen]
        return sorted((x / across, y / above) for y, x in means if x is not None and y is not None)

    for verdict, mark in MARKS.items():
        if result := places([point for point in points if point["verdict"] == verdict]):
            ax.plot(*zip(*result, strict=True), color=palette.colour(0), linestyle="", markersize=4, **mark)
    if result := places([point for point in points if point["values"] in frontier]):
        ax.plot(*zip(*result, strict=True), color=palette.colour(1), linewidth=1.2, zorder=0)
    _logarithmic(ax, [x for x, _ in places(points)], "")
    ax.set_title(f"{y_label}, frontier")
    ax.set_xlabel(x_label)


def _row(
    ax: Axes,
    result: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    across: tuple[str, Sequence[str]],
    factor: float,
    which: tuple[int, str],
) -> None:
    """Draw the settings of one combination of the other keys, a mark for each verdict."""
    key, values = across
    for verdict, mark in MARKS.items():
        chosen = [(point["values"][key], of) for point, of in result if point["verdict"] == verdict and of["n"]]
        if not chosen:
            continue
        places = [_place(label(value), values) for value, _ in chosen]
        means = np.array([of["mean"] for _, of in chosen])
        ends = [np.array([of[end] if of[end] is not None else of["mean"] for _, of in chosen]) for end in _ENDS]
        bars = np.maximum(np.stack([means - ends[0], ends[1] - means]), 0) / factor
        number, name = which
        evaluate: dict[str, Any] = {"color": palette.colour(number), "linestyle": "", "markersize": 4, "capsize": 2}
        ax.errorbar(places, means / factor, yerr=bars, label=f"{name} {verdict}".strip(), **mark, **evaluate)


_ENDS = ("ci95_low", "ci95_high")


def _place(value: str, values: Sequence[str]) -> float:
    """Return the position of a value: its own number, or its index in the list."""
    return _amount(value) if _are_numbers(values) else float(list(values).index(value))


def _are_numbers(values: Sequence[str]) -> bool:
    units = {_NUMBER.sub("", value, count=1) for value in values}
    return len(units) == 1 and all(_NUMBER.match(value) for value in values)


def _amount(value: str) -> float:
    match = _NUMBER.match(value)
    return float(match[0]) if match else math.nan


def _across(ax: Axes, values: Sequence[str]) -> None:
    if not _are_numbers(values):
        ax.set_xticks(range(len(values)), _short(values))
        return
    _logarithmic(ax, [*map(_amount, values)], _NUMBER.sub("", values[0], count=1))


def _logarithmic(ax: Axes, places: Sequence[float], unit: str) -> None:
    """Use a logarithmic axis where values are far apart; ticks are numbers with their unit."""
    ends = sorted(places)
    if ends and ends[0] > 0 and ends[-1] >= DECADES * ends[0]:
        ax.set_xscale("log")
        ax.xaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}{unit}"))
