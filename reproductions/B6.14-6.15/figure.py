"""Figures 6.14 and 6.15: round-trip times and goodput by target, in the simulation and in the kernel."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.metrics import METRICS

AQMS = {"ared": "ARED", "codel": "CoDel", "pie": "PIE"}
TARGETS = ("1 ms", "5 ms", "10 ms", "20 ms", "30 ms")
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@style.styled
def draw(packet: Mapping[str, Dataset], linux: Mapping[str, Dataset]) -> Figure:
    """The first run of each case: the 5th to 95th percentile, the middle half, the median; goodput."""
    fig = style.figure(4.6)
    axes = fig.subplots(2, 2, sharex=True, sharey="row")
    for column, (engine, data) in enumerate((("packet", packet), ("linux", linux))):
        times, goodput = axes[:, column]
        for number, aqm in enumerate(AQMS):
            _aqm(times, goodput, data, aqm, number)
        times.set_title(f"{engine}: smoothed RTT (ms)")
        goodput.set_title(f"{engine}: total goodput (Mb/s)")
        style.reference(goodput, 9.0, "9" if column else "")
        goodput.set_xticks(range(len(TARGETS)), TARGETS)
        goodput.set_xlim(-0.5, len(TARGETS) - 0.5)
        goodput.set_xlabel("Target")
    fig.legend(*axes[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return fig


def _aqm(times: Axes, goodput: Axes, data: Mapping[str, Dataset], aqm: str, number: int) -> None:
    """One AQM at the targets that were run."""
    views = {place: style.first_run(data[f"{aqm} {at}"]) for place, at in enumerate(TARGETS) if f"{aqm} {at}" in data}
    x = np.array(list(views)) + (number - 1) * 0.2
    boxes = [np.quantile(view.measured_samples["srtt_s"].drop_nulls(), QUANTILES) * 1e3 for view in views.values()]
    low, first, median, third, high = np.array(boxes).reshape(-1, len(QUANTILES)).T
    look = {"color": style.COLOURS[number]}
    times.vlines(x, low, high, linewidth=1, **look)
    times.vlines(x, first, third, linewidth=5, **look)
    times.plot(x, median, "_", color="white", ms=6)
    rates = [(METRICS["goodput_bps"].function(view) or 0) / 1e6 for view in views.values()]
    goodput.plot(x, rates, "o", ms=4, label=AQMS[aqm], **look)
