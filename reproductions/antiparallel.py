"""What entries on two antiparallel flows share: the download is flow 0 over link 0, the upload flow 1 over link 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock.campaigns.reproduce.measured import Values
from ackclock.dataset import Dataset
from ackclock.metrics import RunView, runs, value
from ackclock.views.plots import style


def throughput_ratio(view: RunView) -> float | None:
    """X_down / X_up over the measured part."""
    down, up = view.flows["measured_bytes"]
    return float(down / up) if up else None


def window_ratio(view: RunView) -> float | None:
    """The mean window of the download over that of the upload: what Braud 2016 takes for a model's ratio of rates."""
    windows = value(view, "cwnd_flow")
    return windows[0] / windows[1] if isinstance(windows, list) and len(windows) == 2 else None


#: Of both engines: measured throughputs, mean windows.
RATIOS: Mapping[str, Callable[[RunView], float | None]] = {"ratio": throughput_ratio, "windows": window_ratio}


def determination(expected: list[float], found: list[Values]) -> Values:
    """R² of a straight line through expected and found values, for each seed."""
    seeds = zip(*found, strict=True)
    return tuple(None if None in seed else float(np.corrcoef(expected, seed)[0, 1] ** 2) for seed in seeds)


@style.styled
def ratios(simulated: Mapping[str, Dataset], model: Mapping[str, Dataset], limit: str) -> Figure:
    """The throughputs' ratio over the queues' ratio, a colour for each pair of rates; dashed: the model's windows.

    A case begins with its rates (`10:2 36KB`); `limit` is the queues' parameter. Means over the seeds.
    """
    fig = style.figure(3.4)
    ax = fig.subplots()
    for number, rates in enumerate(dict.fromkeys(case.split()[0] for case in simulated)):
        look = {"color": style.COLOURS[number], "ms": 4}
        one, other = ([data for case, data in of.items() if case.split()[0] == rates] for of in (simulated, model))
        line(ax, one, limit, "ratio", marker="o", label=f"{rates.replace(':', '/')} Mb/s", **look)
        line(ax, other, limit, "windows", marker="x", linestyle="--", **look)
    ax.plot([], [], color=style.INK, marker="o", ms=4, label="packet")
    ax.plot([], [], color=style.INK, linestyle="--", marker="x", ms=4, label="theory")
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
