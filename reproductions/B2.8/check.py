"""The rule of B2.8: losses at fractions of packets and fast convergence without a cause."""

import itertools
from collections.abc import Mapping

import numpy as np

from ackclock.gallery import Measured, Row
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView
from ackclock.metrics.oscillation import swings
from ackclock.theory import single_flow

ENGINES = ("theory", "packet")

#: “Fractions of packet”: a tenth to one packet; a hundredth is not rounding.
FRACTIONS, SOME = (0.1, 1.0), (0.01, 2.0)

#: “Triggers”: in a tenth of the cycles at least; at all.
TRIGGERS, ONCE = (0.1, 1.0), (0.01, 1.0)

#: “Not the same behavior”, and none any more: less than a hundredth of a packet, or of the cycles; less than a tenth.
NONE, HARDLY = (0.0, 0.01), (0.0, 0.1)


def runs(engine: str, case: str) -> bool:
    """The simulation has whole packets."""
    return engine == "theory" or case == "whole"


def level_spread(view: RunView) -> float | None:
    """Greatest less smallest window at which a loss is seen, in packets: the model's own, or the peaks of samples."""
    if view.data.manifest["engine"] == "theory":
        return float(np.ptp([cycle.end_window for cycle in cycles(view)]))
    found = view.cached(swings)
    return None if found is None else float(np.ptp(found.peaks))


def fast_convergence(view: RunView) -> float | None:
    """Share of the cycles of the run's model that aim below the window of their loss."""
    aims = [after.epoch.plateau < before.end_window for before, after in itertools.pairwise(cycles(view))]
    return float(np.mean(aims))


def cycles(view: RunView) -> list[single_flow.Cycle]:
    """The model's cycles in the measured part."""
    link, given = view.plan.links[0], view.plan.options["theory"]["single_cubic"]
    capacity_pps = link.rate_bps / (8 * view.plan.packet_bytes)
    limit_p = link.queue.parameters["limit_packets"]
    flow = single_flow.SingleFlow(capacity_pps, view.plan.mean_base_rtt_s, limit_p, **given)
    return [cycle for start_s, cycle in single_flow.timeline(flow, view.duration_s) if start_s >= view.warmup_s]


MEASURES = {"levels": level_spread, "fast convergence": fast_convergence}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """The model's windows in fractions and in whole packets, or the simulation's."""
    if "fractions" not in measured:
        return [Row("simulation", measured["whole"]["levels"], NONE, HARDLY)]
    fractions, whole = measured["fractions"], measured["whole"]
    return [
        Row("fractions", fractions["levels"], FRACTIONS, SOME),
        Row("spurious", fractions["fast convergence"], TRIGGERS, ONCE),
        Row("whole", whole["levels"], NONE, HARDLY),
        Row("removed", whole["fast convergence"], NONE, HARDLY),
    ]
