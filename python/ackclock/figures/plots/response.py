"""Response time by size: how long transfers took, with 95 % intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures import curves, numbers
from ackclock.figures.curves import Responses
from ackclock.figures.plots import overlay, style
from ackclock.input import arguments
from ackclock.input.arguments import checked
from ackclock.metrics.response import response_times
from ackclock.metrics.view import Array

#: Closed forms by their names: seconds for sizes in bytes.
Formulas: TypeAlias = Mapping[str, Callable[[Array], Array]]

#: Points of a formula's curve.
FORMULA_POINTS = 200


def _formulas(name: str, value: object) -> object:
    """None, or functions by their names."""
    expected = "functions by their names"
    if not isinstance(value, (Mapping, type(None))):
        arguments.wrong_type(name, value, expected)
    for key, formula in (value or {}).items():
        arguments.CALL(f"{name}[{arguments.readable_value(key)}]", formula)
    return value


@checked(formulas=_formulas)
@style.public
def response(data: Dataset, formulas: Formulas | None = None) -> Figure:
    """Draw the mean completion time over the size of the transfer, both logarithmic, one line a group.

    The bars are 95 % intervals; a hollow mark is the mean that counts unfinished transfers as far as they were
    watched (Kaplan and Meier), where there are some. `formulas` are laid over, dashed: by their names, functions that
    give seconds for sizes in bytes (arrays).
    """
    style.first_run(data)
    lines = curves.responses(response_times(data))
    size, size_name = numbers.scale(max(float(line.sizes_bytes.max()) for line in lines), "bytes")
    time, time_name = numbers.scale(max(float(np.nanmax(line.means_s)) for line in lines), "s")
    first_cut = next((line for line in lines if line.unfinished), None)
    fig = style.figure(3.4)
    ax = fig.subplots()
    for number, line in enumerate(lines):
        look = style.line_style(number)
        bars = np.abs(np.stack([line.means_s - line.lows_s, line.highs_s - line.means_s]))
        text = f"{line.label}: {line.finished:,} finished, {line.unfinished:,} not"
        ax.errorbar(
            line.sizes_bytes / size,
            line.means_s / time,
            yerr=np.nan_to_num(bars) / time,
            marker="o",
            markersize=3,
            capsize=2,
            label=text,
            **look,
        )
        left = line.cut
        ax.plot(
            line.sizes_bytes[left] / size,
            line.km_means_s[left] / time,
            linestyle="none",
            marker="o",
            markersize=5,
            markerfacecolor="none",
            color=look["color"],
            label="with unfinished ones, as far as watched" if line is first_cut else None,
        )
    _lay_over(ax, formulas or {}, lines, size, time)
    ax.set_xscale("log")
    ax.set_yscale("log", nonpositive="clip")
    for axis in (ax.xaxis, ax.yaxis):
        style.log_axis(axis)
    ax.set_xlabel(f"Size of the transfer ({size_name})")
    ax.set_ylabel(f"Completion time ({time_name})")
    style.legend(fig, ncols=1 if len(lines) < 4 else 2)
    style.title(fig, "Response time by size: mean and 95 % interval", data, pooled=True)
    return fig


def _lay_over(ax: Axes, formulas: Formulas, lines: Sequence[Responses], size: float, time: float) -> None:
    """The formulas over the sizes that were measured."""
    measured = np.concatenate([line.sizes_bytes for line in lines])
    sizes_bytes = np.geomspace(measured.min(), measured.max(), FORMULA_POINTS)
    for number, (name, seconds) in enumerate(formulas.items()):
        dashes = overlay.DASHES[number % len(overlay.DASHES)]
        ax.plot(sizes_bytes / size, seconds(sizes_bytes) / time, color=style.INK, linestyle=dashes, label=name)
