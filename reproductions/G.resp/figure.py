"""The response functions as lines, and the windows of the packet engine on them, or beside."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ackclock import theory
from ackclock.dataset import Dataset
from ackclock.figures.plots import style

NAMES = {"reno": "Reno", "bic": "BIC", "highspeed": "HighSpeed TCP", "htcp": "H-TCP", "scalable": "Scalable TCP"}


@style.styled
def draw(_formula: Mapping[str, Dataset], packet: Mapping[str, Dataset]) -> Figure:
    """HighSpeed TCP and H-TCP have one published line. CUBIC's is RFC 9438's."""
    fig = style.figure(4.0)
    ax = fig.subplots()
    losses = np.geomspace(3e-6, 3e-3, 50)
    for number, (variant, name) in enumerate((*NAMES.items(), ("cubic", "CUBIC (RFC 9438)"))):
        colour = style.COLOURS[number % len(style.COLOURS)]
        known = variant != "cubic"
        line = theory.response_window(variant, losses) if known else theory.cubic_window(losses, 0.1)
        ax.plot(losses, line, "--" if variant == "htcp" else "-", color=colour, label=name)
        points = [(float(case.split()[1]), _window(data)) for case, data in packet.items() if case.startswith(variant)]
        ax.plot(*zip(*points, strict=True), "o", color=colour)
    ax.plot([], [], "o", color=style.INK, label="packet engine")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("loss probability")
    ax.set_title("Average window (segments)")
    ax.legend(loc="upper right")
    return fig


def _window(data: Dataset) -> float:
    return data.metrics()["summary"]["cwnd_mean"]["mean"]
