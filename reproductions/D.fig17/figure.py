"""Rates of the three groups: the paper's, ns-3's and ours."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.metrics.throughput import flow_rates_bps

#: Mb/s of a sender of S1, S2, S3: the paper's on the wire; ns-3's is payload.
PUBLISHED_MBPS = {"SIGCOMM 2010": (46.0, 475.0, 54.0)}
NS3_PAYLOAD_MBPS = (20.9, 471.0, 75.5)

#: Bytes of a full packet on the wire over its payload: ours, and with the two bytes of a frame of ns-3's links.
WIRE, NS3_WIRE = 1538 / 1448, 1502 / 1448

GROUPS = ("S1", "S2", "S3")


@style.styled
def draw(data: Mapping[str, Dataset]) -> Figure:
    """A bar for each, side by side, in each group."""
    bars = dict(PUBLISHED_MBPS)
    bars["ns-3"] = tuple(rate * NS3_WIRE for rate in NS3_PAYLOAD_MBPS)
    bars |= {f"ackclock, {case}": _means_mbps(each) for case, each in data.items()}
    fig = style.figure(2.8)
    left, right = fig.subplots(1, 2)
    for ax, chosen, what in ((left, (0, 2), "into R1's 1 Gb/s"), (right, (1,), "over 10 Gb/s alone")):
        for number, (name, rates) in enumerate(bars.items()):
            places = np.arange(len(chosen)) + 0.16 * (number - 2)
            ax.bar(places, [rates[group] for group in chosen], 0.14, color=style.COLOURS[number], label=name)
        ax.set_xticks(range(len(chosen)), [GROUPS[group] for group in chosen])
        ax.set_title(f"Wire rate of a sender {what} (Mb/s)")
        ax.grid(visible=False, axis="x")
    fig.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return fig


def _means_mbps(data: Dataset) -> tuple[float, ...]:
    view = style.first_run(data)
    labels = [view.plan.groups[number].name for number in view.flows["group"]]
    rates = flow_rates_bps(view)
    assert rates is not None
    return tuple(float(rates[[label == group for label in labels]].mean()) * WIRE / 1e6 for group in GROUPS)
