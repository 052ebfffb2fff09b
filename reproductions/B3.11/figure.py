"""Figure 3.11: utilisation over time; and the mean window below it."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.reproductions.measures import mean_windows

#: The drawn part of a series.
LAST_S = 20.0

#: Utilisation is averaged over so many samples.
SMOOTH = 10


@style.styled
def draw(model: Mapping[str, Dataset], packet: Mapping[str, Dataset]) -> Figure:
    """The model's cases and the simulator, over the last seconds."""
    fig = style.figure(4.6)
    upper, lower = fig.subplots(2, 1, sharex=True)
    curves = {f"mean field, {case}": data for case, data in model.items()}
    curves["simulator"] = next(iter(packet.values()))
    for number, (name, data) in enumerate(curves.items()):
        view = style.first_run(data)
        look = {"color": style.COLOURS[number], "label": name, "linewidth": 0.9}
        used, windows = view.queue_samples, mean_windows(view)
        smooth = used["utilisation"].rolling_mean(SMOOTH)
        for ax, times_s, values in (
            (upper, used["time_s"].to_numpy(), smooth.to_numpy()),
            (lower, windows["time_s"].to_numpy(), windows["cwnd"].to_numpy()),
        ):
            late = times_s >= view.duration_s - LAST_S
            ax.plot(times_s[late], values[late], **look)
    upper.set_title("utilisation of the link, over 0.1 s", fontsize=8)
    lower.set_title("mean window (segments)", fontsize=8)
    lower.set_xlabel("time (s)")
    lower.set_ylim(bottom=0)
    lower.legend(fontsize=6, ncols=2)
    return fig
