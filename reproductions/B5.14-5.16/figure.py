"""The curve around its plateau with the windows of simulation and kernel, and w_max from loss to loss."""

from collections.abc import Mapping
from itertools import islice

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from ackclock import theory
from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.metrics import runs

CAPACITY_P, RTT_S, BETA, RAISED_S = 80, 1.0, 0.8, 200.0


@style.styled
def draw(_curve: Mapping[str, Dataset], packet: Mapping[str, Dataset], linux: Mapping[str, Dataset]) -> Figure:
    """Left: packets beyond w_max, from when the window is first w_max. Right: the iteration of figure 5.15."""
    fig = style.figure(3.0)
    around, losses = fig.subplots(1, 2)
    times_s = np.linspace(-3, 2.6, 300)
    around.plot(times_s, 0.4 * times_s**3, color=style.INK, label="curve")
    for (engine, data), colour in zip((("packet", packet), ("linux", linux)), style.COLOURS, strict=False):
        for number, view in enumerate(runs(data["link"]) if "link" in data else ()):
            label = engine if number == 0 else None
            around.plot(*_window(view), color=colour, linewidth=0.7, drawstyle="steps-post", label=label)
    around.set_xlim(-3, 2.6)
    around.set_ylim(-8, 6)
    around.set_xlabel("seconds from w_max")
    around.set_title("Window − w_max (packets)")
    around.legend(loc="upper left")
    for number, start in enumerate((50, 70, 95, 120)):
        path = list(islice(theory.cubic_convergence(start, CAPACITY_P, RTT_S, beta=BETA), 16))
        losses.plot(path, ".-", color=style.COLOURS[number], label=f"from {start}")
    style.reference(losses, CAPACITY_P + 1, "BDP + BS + 1")
    losses.set_xlabel("losses")
    losses.set_title("w_max by the closed form (packets)")
    losses.legend(loc="upper right")
    return fig


def _window(view) -> tuple[np.ndarray, np.ndarray]:
    """After the last loss: the window less that at the loss, and the time from when it is 0."""
    heard_s = view.events_of("recovery")["time_s"]
    lost_s = heard_s.filter(heard_s < RAISED_S + 1.5 * RTT_S).max()
    samples = view.flow_samples.sort("time_s")
    w_max = samples.filter(pl.col("time_s") < lost_s)["cwnd"][-1]
    later = samples.filter(pl.col("time_s") > lost_s + RTT_S)
    reached_s = later.filter(pl.col("cwnd") >= w_max)["time_s"].min()
    return later["time_s"].to_numpy() - reached_s, later["cwnd"].to_numpy() - w_max
