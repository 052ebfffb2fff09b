"""Figures 5-1, 5-3, 5-5 and 5-7: the use of both links by every pair of controls."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.metrics import runs

LINES = ("slow right-sized", "fast right-sized", "slow bloated", "fast bloated")
NAMES = {"reno": "N", "cubic": "C", "vegas": "V", "compound": "T"}

#: The link capacity for TCP in table 5.1, relative to its rate.
TCP_SHARE = 0.96


#: Style of the kernel's values.
KERNEL: Mapping[str, Any] = {"ms": 3, "mfc": "white", "mec": style.INK, "mew": 0.7}


@style.styled
def draw(packet: Mapping[str, Dataset], linux: Mapping[str, Dataset]) -> Figure:
    """Means over the seeds: bars for the simulation, diamonds for the kernel."""
    fig = style.figure(4.4)
    axes = fig.subplots(2, 2, sharey=True)
    for ax, line in zip(axes.flat, LINES, strict=True):
        pairs = [f"{line} {down} {up}" for down in NAMES for up in NAMES]
        _bars(ax, {pair.removeprefix(f"{line} "): packet[pair] for pair in pairs})
        _diamonds(ax, {place: linux[pair] for place, pair in enumerate(pairs) if pair in linux})
        ax.set_title(f"{line}: use of the links")
    bars, labels = axes[0, 0].get_legend_handles_labels()
    diamond = Line2D([], [], marker="D", linestyle="", **KERNEL)
    fig.legend([*bars, diamond], [*labels, "in the kernel"], loc="outside upper right", ncols=3)
    fig.supxlabel("download and upload: New Reno, Cubic, Vegas, Compound (T)", fontsize=8)
    return fig


def _bars(ax: Axes, pairs: Mapping[str, Dataset]) -> None:
    used = np.array([_used(data) for data in pairs.values()])
    places = np.arange(len(pairs))
    for flow, label in enumerate(("download", "upload")):
        ax.bar(places + 0.4 * flow - 0.2, used[:, flow], 0.4, color=style.COLOURS[flow], linewidth=0, label=label)
    ax.set_xticks(places, ["".join(NAMES[name] for name in pair.split()) for pair in pairs], fontsize=6)
    ax.grid(visible=False, axis="x")


def _diamonds(ax: Axes, pairs: Mapping[int, Dataset]) -> None:
    """The kernel's values, by the pair's place."""
    for flow in range(2):
        ax.plot(
            [place + 0.4 * flow - 0.2 for place in pairs], [_used(data)[flow] for data in pairs.values()], "D", **KERNEL
        )


def _used(data: Dataset) -> list[float]:
    """Mean over the runs of each flow's share of its link."""
    shares = [
        [
            8 * measured / view.measured_s / (link.rate_bps * TCP_SHARE)
            for measured, link in zip(view.flows["measured_bytes"], view.plan.links, strict=True)
        ]
        for view in runs(data)
    ]
    return [float(share) for share in np.mean(shares, axis=0)]
