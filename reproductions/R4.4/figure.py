"""Figure 4-4: the throughputs' ratio over the queues' ratio, a line for each pair of rates."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.reproductions import antiparallel


def draw(packet: Mapping[str, Dataset], theory: Mapping[str, Dataset], ns2: Mapping[str, Dataset]) -> Figure:
    """Means over the seeds."""
    return antiparallel.ratios({"packet": packet, "ns2": ns2, "theory": theory}, "limit_bytes")
