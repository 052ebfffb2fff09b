"""The rule of B2.2: the round trip above which a CUBIC flow is always in cubic mode."""

from collections.abc import Mapping
from math import inf

from ackclock.campaigns.reproduce import Measured, Row, near
from ackclock.campaigns.reproduce.entry import Published
from ackclock.campaigns.reproduce.measured import Values
from ackclock.metrics import RunView
from ackclock.theory import single_flow

ENGINES = ("theory",)
CASES = {"100": "100 Mb/s", "1000": "1 Gb/s"}

#: Printed to a millisecond; within 20 % it is of its kind.
ROUNDING_S, ALIKE = 0.0005, 0.2

#: “Always in Cubic mode”: D_min is positive.
ALWAYS, NEARLY = (0.0, inf), (-1.0, inf)


def flow(view: RunView, buffer_p: float | None = None) -> single_flow.SingleFlow:
    """The run's flow, with another buffer if one is given."""
    link = view.plan.links[0]
    buffer_p = link.queue.parameters["limit_packets"] if buffer_p is None else buffer_p
    capacity_pps = link.rate_bps / (8 * view.plan.packet_bytes)
    return single_flow.SingleFlow(capacity_pps, view.plan.mean_base_rtt_s, buffer_p)


def threshold_s(view: RunView) -> float:
    """Without a buffer."""
    return single_flow.cubic_threshold_rtt_s(flow(view).capacity_pps)


def threshold_with_buffer_s(view: RunView) -> float:
    """With the scenario's buffer."""
    return single_flow.cubic_threshold_rtt_s(flow(view).capacity_pps, flow(view).buffer_p)


def least_difference_p(view: RunView) -> float:
    """D_min at the printed round trip, without a buffer, in packets."""
    return single_flow.least_difference(flow(view), flow(view).pipe_p)


MEASURES = {"threshold": threshold_s, "buffer": threshold_with_buffer_s, "least": least_difference_p}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Thresholds; with a buffer as asides; and whether the flow is in cubic mode at the printed ones."""
    rows = [_threshold("threshold", rate, measured[case]["threshold"], published) for rate, case in CASES.items()]
    rows += [_threshold("buffer", rate, measured[case]["buffer"], published) for rate, case in CASES.items()]
    return [*rows, *(Row("cubic-at", measured[case]["least"], ALWAYS, NEARLY, case) for case in CASES.values())]


def _threshold(claim: str, rate: str, values: Values, published: Mapping[str, Published]) -> Row:
    printed_s = published[f"{claim}-{rate}"].value or 0.0
    rounded = (printed_s - ROUNDING_S, printed_s + ROUNDING_S)
    return Row(f"{claim}-{rate}", values, rounded, near(printed_s, ALIKE), aside=claim == "buffer")
