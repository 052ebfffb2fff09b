"""Figures 5.7 to 5.9."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.reproduce import figures


def draw(data: Mapping[str, Dataset]) -> Figure:
    """The first run of each control."""
    return figures.windows_and_epochs(data, {"cubic": "CUBIC", "reno": "New Reno"})
