"""What settings were looked at for an answer: a panel for each need, its bound, and what each setting gave."""

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
from ackclock.metrics import METRICS
from ackclock.views import numbers, palette
from ackclock.views.plots import style

#: Verdict → how its settings are marked.
MARKS: Mapping[str, dict[str, Any]] = {"holds": {"marker": "o"}, "undecided": {"marker": "D"}, "fails": {"marker": "x"}}

#: A ladder whose ends are so far apart is drawn in logarithms.
DECADES = 5.0

_NUMBER = re.compile(r"[\d.]+(?:[eE][+-]?\d+)?")


@style.styled
def found(about: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> Figure:
    """Draws an answer: `about` has the `varied` keys and the `bounds`, `points` are those of `Answer.points`."""
    bounds: Sequence[tuple[str, float]] = about["bounds"]
    if not points or not bounds:
        raise InputError("the answer has no settings to draw")
    across = min(style.columns(2), len(bounds))
    rows = math.ceil(len(bounds) / across)
    fig = style.figure(1.0 + 2.0 * rows)
    panels = list(fig.subplots(rows, across, squeeze=False).flat)
    for ax, (metric, bound) in zip(panels, bounds, strict=False):
        _panel(ax, metric, bound, about["varied"], points)
    for ax in panels[len(bounds) :]:
        ax.set_axis_off()
    handles = dict(zip(*reversed(panels[0].get_legend_handles_labels()), strict=True))
    style.legend(fig, handles.values(), handles.keys(), ncols=5)
    style.headline(fig, f"Settings of {', '.join(about['varied'])}", "means over the seeds, with 95 % intervals")
    return fig


def _panel(
    ax: Axes, name: str, bound: float, varied: Mapping[str, Sequence[str]], points: Sequence[Mapping[str, Any]]
) -> None:
    metric, (*others, key) = METRICS[name], varied
    factor, unit = numbers.scale(bound, metric.unit)
    rows = list(dict.fromkeys(tuple(point["values"][other] for other in others) for point in points))
    for number, row in enumerate(rows):
        of_row = [point for point in points if tuple(point["values"][other] for other in others) == row]
        measured = [(point, point["metrics"][name]) for point in of_row]
        _row(ax, measured, (key, varied[key]), factor, (number, " ".join(map(str, row))))
    ax.axhline(bound / factor, color=style.QUIET, linewidth=0.8, linestyle="--")
    ax.set_title(f"{metric.label} ({unit})" if unit else metric.label)
    ax.set_xlabel(key)
    _across(ax, varied[key])


def _row(
    ax: Axes,
    found: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    across: tuple[str, Sequence[str]],
    factor: float,
    which: tuple[int, str],
) -> None:
    """The settings of one combination of the other keys, a mark for each verdict."""
    key, values = across
    for verdict, mark in MARKS.items():
        chosen = [(point["values"][key], of) for point, of in found if point["verdict"] == verdict and of["n"]]
        if not chosen:
            continue
        places = [_place(str(value), values) for value, _ in chosen]
        means = np.array([of["mean"] for _, of in chosen])
        ends = [np.array([of[end] if of[end] is not None else of["mean"] for _, of in chosen]) for end in _ENDS]
        bars = np.maximum(np.stack([means - ends[0], ends[1] - means]), 0) / factor
        number, name = which
        look: dict[str, Any] = {"color": palette.colour(number), "linestyle": "", "markersize": 4, "capsize": 2}
        ax.errorbar(places, means / factor, yerr=bars, label=f"{name} {verdict}".strip(), **mark, **look)


_ENDS = ("ci95_low", "ci95_high")


def _place(value: str, values: Sequence[str]) -> float:
    """Where a value stands: a number of its own, or its place in the list."""
    return _amount(value) if _are_numbers(values) else float(list(values).index(value))


def _are_numbers(values: Sequence[str]) -> bool:
    units = {_NUMBER.sub("", value, count=1) for value in values}
    return len(units) == 1 and all(_NUMBER.match(value) for value in values)


def _amount(value: str) -> float:
    match = _NUMBER.match(value)
    return float(match[0]) if match else math.nan


def _across(ax: Axes, values: Sequence[str]) -> None:
    if not _are_numbers(values):
        ax.set_xticks(range(len(values)), values)
        return
    unit = _NUMBER.sub("", values[0], count=1)
    ends = sorted(map(_amount, values))
    if ends[0] > 0 and ends[-1] >= DECADES * ends[0]:
        ax.set_xscale("log")
        ax.xaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}{unit}"))
