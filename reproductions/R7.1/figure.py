"""Figure 7-1: response times with and without a lost SYN over the size, and what a lost SYN adds."""

from collections.abc import Mapping

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from ackclock import theory
from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.metrics import runs
from ackclock.metrics.completion import transfers

#: Section 7.1.6; the repair of a loss takes 1 s in the traces, and one RTT in the packet engine.
RTT_S, P = 0.2, 0.02
RECOVERIES = ((1.0, "-", "model, repair of a loss 1 s"), (RTT_S, "--", "model, one RTT"))


@style.styled
def draw(_model: Mapping[str, Dataset], packet: Mapping[str, Dataset]) -> Figure:
    """Lines: the model for both lengths of a repair. Points: the packet engine."""
    fig = style.figure(3.2)
    times, added = fig.subplots(1, 2)
    sizes = np.geomspace(25, 10_000, 200)
    for recovery_s, dash, name in RECOVERIES:
        kept_s = theory.response_time(sizes, RTT_S, P, recovery_s=recovery_s).total_s
        times.plot(sizes, kept_s, dash, color=style.INK, label=f"{name}: none lost")
        for number, rto_s in enumerate((1, 3)):
            colour = style.COLOURS[number]
            times.plot(sizes, kept_s + rto_s, dash, color=colour)
            added.plot(sizes, 100 * rto_s / kept_s, dash, color=colour)
    for case, data in packet.items():
        _points(times, added, case, data)
    for number, rto_s in enumerate((1, 3)):
        times.plot([], [], "o", color=style.COLOURS[number], label=f"one SYN lost, RTO {rto_s} s")
    style.reference(added, 10, "10 %")
    for ax in (times, added):
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("size (segments)")
    times.set_title("Response time (s); points: packet engine")
    added.set_title("What a lost SYN adds (%)")
    fig.legend(loc="outside lower center", ncols=2)
    return fig


def _points(times, added, case: str, data: Dataset) -> None:
    size, _, rto, _ = case.split()
    found = pl.concat([transfers(view).filter("finished") for view in runs(data)])
    kept_s, once_s = (
        float(found.filter(pl.col("syn_retransmissions") == lost)["time_s"].mean()) + RTT_S for lost in (0, 1)
    )
    colour = style.COLOURS[(1, 3).index(int(rto))]
    times.plot([int(size)], [kept_s], "o", color=style.INK)
    times.plot([int(size)], [once_s], "o", color=colour)
    added.plot([int(size)], [100 * (once_s / kept_s - 1)], "o", color=colour)
