"""D_min over the round trip, and where the print has its zero."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.theory import single_flow

RATES = (("100 Mb/s", 1e8, 0.039), ("1 Gb/s", 1e9, 0.018))
BUFFERS_P = ((0.0, "-", "no buffer"), (50.0, "--", "50 packets"))


@style.styled
def draw(_: Mapping[str, Dataset]) -> Figure:
    """A panel for each rate."""
    fig = style.figure(2.8)
    axes = fig.subplots(1, 2, squeeze=False)[0]
    for ax, (name, rate_bps, printed_s) in zip(axes, RATES, strict=True):
        rtts_s = np.linspace(0.2, 1.6, 200) * printed_s
        for (buffer_p, dashes, what), colour in zip(BUFFERS_P, style.COLOURS, strict=False):
            flows = [single_flow.SingleFlow(rate_bps / 12_000, rtt_s, buffer_p) for rtt_s in rtts_s]
            least = [single_flow.min_difference(flow, flow.pipe_p + buffer_p) for flow in flows]
            ax.plot(1e3 * rtts_s, least, dashes, color=colour, label=what)
        ax.axhline(0.0, color=style.INK, linewidth=0.6)
        ax.axvline(1e3 * printed_s, color=style.INK, linestyle=":", label=f"printed: {1e3 * printed_s:.0f} ms")
        ax.set_title(f"{name}: least difference (packets)")
        ax.set_xlabel("Round trip without queue (ms)")
        ax.legend(loc="lower right")
    return fig
