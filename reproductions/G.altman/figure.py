"""The totals beside the published ones and Altman's formula."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.metrics.throughput import goodput_bps
from ackclock.theory import altman

#: The slide's table, in Mb/s.
PUBLISHED_MBPS = {1: 8353.66, 2: 8793.92, 5: 8987.49, 10: 9207.78}

#: The payload rate of a 10 Gb/s Ethernet, in Mb/s.
CARRIED_MBPS = 10_000 * 1448 / 1538


@style.styled
def draw(data: Mapping[str, Dataset], _formula: Mapping[str, Dataset]) -> Figure:
    """Total goodput over the streams of a source, as a share of what the link carries."""
    fig = style.figure(3.0)
    ax = fig.subplots()
    streams = np.linspace(1, 10, 200)
    for number, (kept, dash) in enumerate(((0.8, "-"), (0.875, "--"))):
        share = altman(streams, 100.0, kept)
        ax.plot(streams, share, dash, color=style.COLOURS[number], label=f"Altman, {kept:g} is kept at a loss")
    ax.plot(
        list(PUBLISHED_MBPS),
        [100 * total / CARRIED_MBPS for total in PUBLISHED_MBPS.values()],
        "D",
        mfc="white",
        mec=style.INK,
        label="published",
    )
    found = [(int(case.split()[0]), _share(each)) for case, each in data.items()]
    ax.plot(*zip(*found, strict=True), "o", color=style.INK, label="reproduced")
    ax.margins(x=0.03)
    ax.set_xlabel("streams of a source")
    ax.set_title("Total goodput (% of what the link carries)")
    ax.legend(loc="lower right")
    return fig


def _share(data: Dataset) -> float:
    view = style.first_run(data)
    rate_bps = float(view.links["rate_bps"][view.bottlenecks[0]])
    return 100 * (goodput_bps(view) or 0.0) / rate_bps / (1448 / 1538)
