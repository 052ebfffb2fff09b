"""Figures 6.22 and 6.24: the total window and the epochs, drop tail and ARED."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.gallery import figures


def draw(packet: Mapping[str, Dataset], linux: Mapping[str, Dataset]) -> Figure:
    """The first run with drop tail and ARED."""
    return figures.windows_and_epochs({"packet": packet, "linux": linux}, {"droptail": "drop tail", "ared": "ARED"})
