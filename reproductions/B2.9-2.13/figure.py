"""Figures 2.9 to 2.13: the window of the model over those of the simulation, the kernel and ns-2 in five set-ups."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.gallery import figures

#: Set-up → seconds that are shown.
SPANS_S = {"ADSL": 10.0, "100 Mb/s": 30.0, "200 Mb/s": 10.0, "300 Mb/s": 25.0, "400 Mb/s": 10.0}


@style.styled
def draw(
    theory: Mapping[str, Dataset],
    packet: Mapping[str, Dataset],
    linux: Mapping[str, Dataset],
    ns2: Mapping[str, Dataset],
) -> Figure:
    """A panel for each set-up, and the signs in the sixth place."""
    fig = style.figure(6.6)
    axes = fig.subplots(3, 2).flatten()
    for ax, (set_up, span_s) in zip(axes, SPANS_S.items(), strict=False):
        together = {
            "simulation": packet.get(f"{set_up} as printed"),
            "model as printed": theory.get(f"{set_up} as printed"),
            "model by ACKs": theory.get(f"{set_up} by ACKs"),
            "kernel": linux.get(f"{set_up} as printed"),
            "ns-2": ns2.get(f"{set_up} as printed"),
        }
        together = {name: data for name, data in together.items() if data is not None}
        figures.overlay_windows(ax, together, span_s, f"{set_up}: window (segments)")
    axes[-1].set_axis_off()
    axes[-1].legend(*axes[0].get_legend_handles_labels(), loc="center")
    return fig
