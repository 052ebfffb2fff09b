"""Figure 2.8: the window of the model in fractions and in whole packets, and that of the simulation."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.gallery import figures
from ackclock.metrics.oscillation import swings

#: Seconds of the windows, and of their peaks.
SPAN_S, PEAKS_S = 8.0, 40.0


@style.styled
def draw(theory: Mapping[str, Dataset], packet: Mapping[str, Dataset]) -> Figure:
    """Whole cycles, and their peaks alone."""
    fig = style.figure(3.1)
    whole, peaks = fig.subplots(1, 2, squeeze=False)[0]
    together = {
        "simulation": packet["whole"],
        "model, fractions": theory["fractions"],
        "model, whole packets": theory["whole"],
    }
    figures.overlay_windows(whole, together, SPAN_S, "Window (segments)")
    for data, colour, sign in zip(together.values(), style.COLOURS, "s.x", strict=False):
        found = style.first_run(data).cached(swings)
        if found is not None:
            since_s = found.times_s - found.times_s[0]
            chosen = since_s <= PEAKS_S
            peaks.plot(since_s[chosen], found.peaks[chosen], sign, color=colour, linestyle="")
    peaks.set_xlabel("Time since the first peak (s)")
    peaks.set_title("Its peaks (segments)")
    fig.legend(*whole.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return fig
