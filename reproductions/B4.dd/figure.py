"""The figure of B4.dd: distributions over the repeats, as the thesis draws them."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures import plots


def draw(found: Mapping[str, Dataset]) -> Figure:
    """Draw the figure of `ackclock plot DIR disk`."""
    (data,) = found.values()
    return plots.disk(data)
