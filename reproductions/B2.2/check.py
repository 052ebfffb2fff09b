"""The rule of B2.2: the round trip above which a CUBIC flow is always in cubic mode."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from math import inf

import numpy as np

from ackclock.gallery import Measured, Row, near
from ackclock.gallery.entry import Published
from ackclock.gallery.rows import Values
from ackclock.metrics import RunView
from ackclock.theory import single_flow

ENGINES = ("theory",)
CASES = {"100": "100 Mb/s", "1000": "1 Gb/s"}

#: Printed to a millisecond; within 20 % it is of its kind.
ROUNDING_S, ALIKE = 0.0005, 0.2

#: “Always in Cubic mode”: D_min is positive.
ALWAYS, NEARLY = (0.0, inf), (-1.0, inf)

#: The same of a run's time in TCP mode: none; up to a twentieth it is rare.
NONE_OF_IT, RARELY = (0.0, 0.0), (0.0, 0.05)

#: In whole packets there is no formula: round trips are tried, so far apart, up to this part of the printed one; and
#: of each some cycles, after some to settle.
STEP_S, UP_TO = 0.00025, 1.5
SETTLING, LOOKED_AT = 32, 64

#: Buffers: none, that of section 2.4, and another that the text does not have.
BUFFERS_P = {"none": 0.0, "50 packets": 50.0, "100 packets": 100.0}


def flow_of(view: RunView) -> single_flow.SingleFlow:
    """The run's flow."""
    link, given = view.plan.links[0], view.plan.options["theory"]["single_cubic"]
    capacity_pps, buffer_p = link.rate_bps / (8 * view.plan.packet_bytes), link.queue.parameters["limit_packets"]
    converges = view.plan.groups[0].congestion.parameters["fast_convergence"]
    return single_flow.SingleFlow(
        capacity_pps, view.plan.mean_base_rtt_s, buffer_p, fast_convergence=converges, **given
    )


def in_integer_packets(view: RunView) -> bool:
    """Return True if the run's windows are whole packets: the second interpretation."""
    return flow_of(view).rounding == "window"


def threshold_s(buffer: str, view: RunView) -> float | None:
    """From which round trip on a flow is always in cubic mode."""
    flow = replace(flow_of(view), buffer_p=BUFFERS_P[buffer])
    if not in_integer_packets(view):
        return single_flow.cubic_threshold_rtt_s(flow.capacity_pps, flow.buffer_p)
    if buffer == "none":
        return None
    tried = np.arange(round(UP_TO * flow.rtt_s / STEP_S), 0, -1)
    return next((STEP_S * (steps + 1) for steps in tried if in_tcp_mode(flow, STEP_S * steps)), None)


def shortest_s(view: RunView) -> float | None:
    """The shortest round trip at which a flow is always in cubic mode; there may be longer ones at which it is not."""
    if not in_integer_packets(view):
        return None
    flow = flow_of(view)
    tried = np.arange(1, round(UP_TO * flow.rtt_s / STEP_S) + 1)
    return next((STEP_S * steps for steps in tried if not in_tcp_mode(flow, STEP_S * steps)), None)


def in_tcp_mode(flow: single_flow.SingleFlow, rtt_s: float) -> float:
    """The share of the time in which Reno's estimate leads, at another round trip."""
    every = single_flow.cycles(replace(flow, rtt_s=float(rtt_s)))
    cycles = list(islice(every, SETTLING, SETTLING + LOOKED_AT))
    stages = [stage for cycle in cycles for stage in cycle.stages]
    led_s = sum(stage.end_s - stage.start_s for stage in stages if stage.state in ("A", "C"))
    return led_s / sum(cycle.end_s for cycle in cycles)


def tcp_share(view: RunView) -> float | None:
    """The same at the printed round trip."""
    flow = flow_of(view)
    return in_tcp_mode(flow, flow.rtt_s) if in_integer_packets(view) else None


def min_difference_p(view: RunView) -> float | None:
    """D_min at the printed round trip, without a buffer, in packets."""
    flow = flow_of(view)
    return None if in_integer_packets(view) else single_flow.min_difference(flow, flow.pipe_p)


MEASURES = {buffer: partial(threshold_s, buffer) for buffer in BUFFERS_P} | {
    "shortest": shortest_s,
    "tcp": tcp_share,
    "least": min_difference_p,
}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Thresholds, without a buffer or in whole packets with that of section 2.4; the mode at the printed ones."""
    whole = measured[CASES["100"]]["least"][0] is None
    counts = "50 packets" if whole else "none"
    rows = []
    for buffer in list(BUFFERS_P)[whole:]:
        claim, at = ("threshold", "") if buffer == "none" else ("buffer", buffer)
        for rate, case in CASES.items():
            rows.append(_threshold(f"{claim}-{rate}", measured[case][buffer], published, at, aside=buffer != counts))
    if not whole:
        return [*rows, *(Row("cubic-at", measured[case]["least"], ALWAYS, NEARLY, case) for case in CASES.values())]
    for rate, case in CASES.items():
        rows.append(_threshold(f"shortest-{rate}", measured[case]["shortest"], published, "50 packets", aside=True))
    return [*rows, *(Row("tcp-at", measured[case]["tcp"], NONE_OF_IT, RARELY, case) for case in CASES.values())]


def _threshold(claim: str, values: Values, published: Mapping[str, Published], at: str, *, aside: bool) -> Row:
    printed_s = published[claim].value or 0.0
    rounded = (printed_s - ROUNDING_S, printed_s + ROUNDING_S)
    return Row(claim, values, rounded, near(printed_s, ALIKE), at, aside)
