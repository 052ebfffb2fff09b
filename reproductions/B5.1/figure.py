"""The figure of B5.1: the total window over time, as the thesis draws it."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.views import plots


def draw(found: Mapping[str, Dataset]) -> Figure:
    """As `ackclock plot DIR cwnd_total` does."""
    (data,) = found.values()
    return plots.cwnd_total(data)
