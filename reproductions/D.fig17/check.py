"""The rule of D.fig17: DCTCP over two bottlenecks."""

from collections.abc import Mapping

import numpy as np

from ackclock.gallery import Measured, Row, near
from ackclock.gallery.entry import Published
from ackclock.gallery.rows import Band, Measure
from ackclock.metrics import RunView
from ackclock.metrics.fairness import jain_index
from ackclock.metrics.throughput import flow_rates_bps

GROUPS = ("S1", "S2", "S3")

#: The paper calls 10 % from the fair share fair; we take the same distance from its own numbers. Up to 30 %, the
#: senders over both bottlenecks are a little behind, as published.
SAME, ALIKE = 0.1, 0.3

#: 0.99 to two digits; above 0.95 the senders are still alike.
FAIR: Band = (0.985, 1.0)
ALMOST_FAIR: Band = (0.95, 1.0)


def group_bps(group: str) -> Measure:
    """Mean goodput of a sender of the group."""

    def measure(view: RunView) -> float:
        return float(rates_bps(view, group).mean())

    return measure


def wire_bps(group: str) -> Measure:
    """The same in bytes on the wire, as the published numbers add up to 10 and 1 Gb/s."""

    def measure(view: RunView) -> float:
        payload_bytes = view.plan.groups[0].tcp.mss_bytes
        return float(rates_bps(view, group).mean()) * view.plan.packet_bytes / payload_bytes

    return measure


def rates_bps(view: RunView, group: str) -> np.ndarray:
    """Goodputs of the senders of a group."""
    labels = [view.plan.groups[number].name for number in view.flows["group"]]
    rates = flow_rates_bps(view)
    assert rates is not None
    return rates[[label == group for label in labels]]


def jain_in_groups(view: RunView) -> float | None:
    """The lowest of the three groups' indexes."""
    return min((jain_index(rates_bps(view, group)) or 0.0 for group in GROUPS), default=None)


def jain_at_r1(view: RunView) -> float | None:
    """The index of the senders that share R1's link."""
    return jain_index(np.concatenate([rates_bps(view, "S1"), rates_bps(view, "S3")]))


ENGINES = ("packet",)
MEASURES: Mapping[str, Measure] = {
    **{group: wire_bps(group) for group in GROUPS},
    **{f"ns3-{group}": group_bps(group) for group in GROUPS},
    "jain": jain_in_groups,
    "jain-R1": jain_at_r1,
}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rates and indexes; the other readings as asides, ns-3's numbers beside its own links and thresholds."""
    rows = []
    for case, found in measured.items():
        for claim, values in found.items():
            expected = published[claim].value or 0.0
            if claim.startswith("jain"):
                rows.append(Row(claim, values, FAIR, ALMOST_FAIR, case, case != PAPER or claim == "jain-R1"))
            elif not claim.startswith("ns3"):
                rows.append(Row(claim, values, near(expected, SAME), near(expected, ALIKE), case, case != PAPER))
            elif case == NS3:
                rows.append(Row(claim, values, near(expected, SAME), near(expected, ALIKE), aside=True))
    return sorted(rows, key=lambda row: [*published].index(row.claim))


#: The case that counts, and the one with ns-3's links and thresholds.
PAPER, NS3 = "testbed", "ns-3's"
