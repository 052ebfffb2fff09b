"""Figure 4-4: the throughputs' ratio over the queues' ratio, a line for each pair of rates."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.reproductions import antiparallel


def draw(simulated: Mapping[str, Dataset], model: Mapping[str, Dataset]) -> Figure:
    """Means over the seeds."""
    return antiparallel.ratios(simulated, model, "limit_bytes")
