"""Helpers for entries on two antiparallel flows: the download is flow 0 over link 0, the upload flow 1 over link 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.gallery.rows import Measured, Row, Values
from ackclock.metrics import RunView, runs, value


def throughput_ratio(view: RunView) -> float | None:
    """X_down / X_up over the measured part."""
    down, up = view.flows["measured_bytes"]
    return float(down / up) if up else None


def window_ratio(view: RunView) -> float | None:
    """The mean window of the download over that of the upload: what Braud 2016 takes for a model's ratio of rates."""
    windows = value(view, "cwnd_flow")
    return windows[0] / windows[1] if isinstance(windows, list) and len(windows) == 2 else None


#: Ratios for both engines: measured throughputs, mean windows.
RATIOS: Mapping[str, Callable[[RunView], float | None]] = {"ratio": throughput_ratio, "windows": window_ratio}


def compare_with_theory(
    measured: Mapping[str, Measured], rows: Callable[[Measured, Measured], list[Row]]
) -> dict[str, list[Row]]:
    """Rows of each simulator beside the model, by both names; none without the model."""
    simulators = [name for name in measured if name != "theory"]
    return {f"{name}, theory": rows(measured[name], measured["theory"]) for name in simulators if "theory" in measured}


def determination(expected: list[float], found: list[Values]) -> Values:
    """R² of a straight line through expected and found values, for each seed."""
    seeds = zip(*found, strict=True)
    return tuple(None if None in seed else float(np.corrcoef(expected, seed)[0, 1] ** 2) for seed in seeds)


#: Engine → how its line looks, and which of `RATIOS` it shows.
STYLES: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "packet": ({"marker": "o"}, "ratio"),
    "ns2": ({"marker": "s", "linestyle": ":", "mfc": "white"}, "ratio"),
    "theory": ({"marker": "x", "linestyle": "--"}, "windows"),
}


@style.styled
def ratios(engines: Mapping[str, Mapping[str, Dataset]], limit: str) -> Figure:
    """The throughputs' ratio over the queues' ratio, a colour for each pair of rates; of the model that of the windows.

    By engine and case. A case begins with its rates (`10:2 36KB`); `limit` is the queues' parameter. Means over the
    seeds.
    """
    fig = style.figure(3.4)
    ax = fig.subplots()
    there = {engine: cases for engine, cases in engines.items() if cases}
    every = dict.fromkeys(case.split()[0] for cases in there.values() for case in cases)
    for number, rates in enumerate(every):
        ax.plot([], [], color=style.COLOURS[number], label=f"{rates.replace(':', '/')} Mb/s")
        for engine, cases in there.items():
            look, measure = STYLES[engine]
            of_rates = [data for case, data in cases.items() if case.split()[0] == rates]
            line(ax, of_rates, limit, measure, color=style.COLOURS[number], ms=4, **look)
    for engine in there:
        ax.plot([], [], color=style.INK, ms=4, label=engine, **STYLES[engine][0])
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("down queue / up queue")
    ax.set_title("throughput of the download / of the upload")
    fig.legend(loc="outside lower center", ncols=3)
    return fig


def line(ax: Axes, cases: Iterable[Dataset], limit: str, measure: str, **look: Any) -> None:
    """One of `RATIOS` over the queues' ratio, a point for each case."""
    points = sorted(_point(case, limit, measure) for case in cases)
    ax.plot([queues for queues, _ in points], [found for _, found in points], **look)


def _point(data: Dataset, limit: str, measure: str) -> tuple[float, float]:
    """The ratio of the queues, and the mean of the measured ratio."""
    down, up = (link.queue.parameters[limit] for link in data.plan.links if link.queue)
    found = [RATIOS[measure](view) for view in runs(data)]
    return down / up, float(np.mean([ratio for ratio in found if ratio is not None]))
