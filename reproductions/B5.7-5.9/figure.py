"""Figures 5.7 to 5.9."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.gallery import figures


def draw(packet: Mapping[str, Dataset], linux: Mapping[str, Dataset]) -> Figure:
    """The first run of each control, simulated and in the kernel."""
    return figures.windows_and_epochs({"packet": packet, "linux": linux}, {"cubic": "CUBIC", "reno": "New Reno"})
