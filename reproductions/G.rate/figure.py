"""The rate of one Reno flow over the packets from loss to loss."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ackclock import theory
from ackclock.dataset import Dataset
from ackclock.figures.plots import style


@style.styled
def draw(_data: Mapping[str, Dataset]) -> Figure:
    """Mathis and Padhye, and the slide's point."""
    fig = style.figure(2.8)
    ax = fig.subplots()
    packets = np.geomspace(1e2, 1e11, 200)
    for (name, formula), colour in zip(
        (("Mathis", theory.mathis), ("Padhye", theory.pftk)), style.COLOURS, strict=False
    ):
        ax.plot(packets, formula(1 / packets, 0.1, 1500), "-" if name == "Mathis" else "--", color=colour, label=name)
    ax.plot([5e9], [10e9], "D", mfc="white", mec=style.INK, label="published")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("packets from loss to loss")
    ax.set_title("Rate of one flow at 100 ms with packets of 1500 bytes (bit/s)")
    ax.legend(loc="upper left")
    return fig
