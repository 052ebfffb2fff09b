"""Figures 4.39 to 4.43, of one capture: what flows deliver over time, and the silences, by the class that is told."""

from collections.abc import Mapping

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style

#: The case shown, which part of a second rates are taken over, and the classes in the order of their colours.
CASE, STEP_S = "17", 0.25
CLASSES = {"host": "host", "machine": "machine", "capture_loss": "capture", "transport": "transport"}


@style.styled
def draw(packet: Mapping[str, Dataset], captured: Mapping[str, Dataset]) -> Figure:
    """The mean rate of 17 flows above, the silences of each flow below."""
    fig = style.figure(4.2)
    above, below = fig.subplots(2, 1, sharex=True)
    data = captured[CASE]
    times_s, rates_bps = _rates(data)
    above.plot(times_s, rates_bps / 1e6, color=style.INK, linewidth=1)
    above.set_title(f"17 flows: what was seen of each, the mean, over {STEP_S} s (Mb/s)")
    above.set_ylim(bottom=0)
    stalls = data.scan("stalls").filter(pl.col("run") == 0).collect()
    told = pl.col("class").cast(pl.String)
    for number, (kind, label) in enumerate(CLASSES.items()):
        chosen = stalls.filter(~told.is_in([*CLASSES]) if kind == "transport" else told == kind)
        if chosen.is_empty():
            continue
        below.barh(chosen["flow"] // 2 + 1, chosen["duration_s"], left=chosen["time_s"], height=0.8,
                   color=style.COLOURS[number], label=label)  # fmt: skip
    below.set_title("silences of each flow, by the cause that is told")
    below.set_yticks([1, 5, 10, 17])
    below.set_xlabel("time (s)")
    fig.legend(loc="outside lower center", ncols=len(CLASSES))
    return fig


def _rates(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Middle of each step, and the mean over the flows of the payload bits seen in it."""
    segments = data.scan("segments").filter(pl.col("run") == 0, "seen").select("time_s", "payload_bytes").collect()
    flows = data.scan("captured").filter(pl.col("run") == 0).collect().height
    edges_s = np.arange(0, float(segments["time_s"].max() or 0) + STEP_S, STEP_S)
    seen, _ = np.histogram(segments["time_s"], edges_s, weights=segments["payload_bytes"].cast(pl.Float64))
    return edges_s[:-1] + STEP_S / 2, 8 * seen / STEP_S / flows
