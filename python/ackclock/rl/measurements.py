"""Measurements of senders in a step, and what is made of them: the observation of an agent, and the default reward.

An observation holds only what a sender knows: no link's rate, queue or loss. Each feature is a ratio of two
measurements of the same connection, so a policy can be used on a path of another rate or delay. Any function of a
`StepResult` may take the place of the reward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


class Feature(NamedTuple):
    """A column of the observation: its name, its bounds (values beyond are clipped to them), and its definition."""

    name: str
    low: float
    high: float
    definition: str


FEATURES = (
    Feature("queueing", 0, 1, "1 − minimum RTT / smoothed RTT: the share of the RTT that is queueing"),
    Feature("step_queueing", 0, 1, "the same of the mean RTT of the step's samples"),
    Feature("throughput", 0, 1, "throughput in the step / the highest in a step of the episode"),
    Feature("in_flight", 0, 4, "segments in flight / the window, or the rate times the minimum RTT"),
    Feature("retransmitted", 0, 1, "segments retransmitted in the step / segments sent"),
    Feature("marked", 0, 1, "segments with ECN marks in the step / segments delivered"),
    Feature("window", -8, 8, "log2 of the window / (the highest throughput times the minimum RTT)"),
    Feature("timeout", 0, 1, "1 if a retransmission timeout expired in the step"),
)

#: Measurements of a sender whose difference over a step counts.
COUNTS = ("sent_p", "delivered_p", "retransmissions", "timeouts", "marked_bytes", "rtt_sum_s", "rtt_samples")


@dataclass(frozen=True, slots=True)
class StepResult:
    """Measurements of the agent's senders in a step: numbers, and arrays with an item for each flow.

    Times are in seconds, windows and counts in segments. A flow that is not established, or over, has NaN.

    Attributes:
        time_s: simulated time at the step's end.
        duration_s: length of the step.
        is_active: whether the flow is established and not over.
        window_p: the agent's window; where it sets the rate, the rate times the minimum RTT.
        in_flight_p: segments in flight at the end.
        srtt_s: smoothed RTT (RFC 6298) at the end.
        min_rtt_s: smallest RTT since the connection began.
        rtt_s: mean of the RTT samples of the step; the smoothed RTT if there was none.
        sent_p: segments sent, retransmissions included.
        delivered_p: segments reported as delivered, by ACK or SACK.
        throughput_bps: their payload per second, each counted as a full segment.
        retransmitted_p: segments retransmitted.
        marked_p: segments reported with ECN marks.
        timeouts: retransmission timeouts.
    """

    time_s: float
    duration_s: float
    is_active: NDArray[np.bool_]
    window_p: Floats
    in_flight_p: Floats
    srtt_s: Floats
    min_rtt_s: Floats
    rtt_s: Floats
    sent_p: Floats
    delivered_p: Floats
    throughput_bps: Floats
    retransmitted_p: Floats
    marked_p: Floats
    timeouts: Floats

    def to_info(self) -> dict[str, Any]:
        """Return all fields by name, for Gymnasium's `info`."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


#: Measurements of a sender by name, as the engine gives them; None: no active connection.
Sender: TypeAlias = Mapping[str, float] | None


def step_result(
    before: Sequence[Sender], after: Sequence[Sender], windows_p: Sequence[float], time_s: float, duration_s: float
) -> StepResult:
    """Return the measurements of a step from those of each sender before and after it."""
    rows = [_row(*each, duration_s) for each in zip(before, after, windows_p, strict=True)]
    columns = {name: np.array([row[name] for row in rows], dtype=np.float64) for name in rows[0]}
    return StepResult(time_s=time_s, duration_s=duration_s, is_active=np.isfinite(columns["srtt_s"]), **columns)


def _row(before: Sender, after: Sender, window_p: float, duration_s: float) -> dict[str, float]:
    """Return the measurements of one flow."""
    if not is_established(after):
        return dict.fromkeys((each.name for each in fields(StepResult)[3:]), np.nan)
    assert after is not None
    first = before if is_established(before) and before else dict.fromkeys(COUNTS, 0.0)
    counted = {name: after[name] - first[name] for name in COUNTS}
    samples = counted["rtt_samples"]
    payload_bits = 8 * counted["delivered_p"] * after["mss_bytes"]
    return {
        "window_p": window_p,
        "in_flight_p": after["in_flight_p"],
        "srtt_s": after["srtt_s"],
        "min_rtt_s": after["min_rtt_s"],
        "rtt_s": counted["rtt_sum_s"] / samples if samples else after["srtt_s"],
        "sent_p": counted["sent_p"],
        "delivered_p": counted["delivered_p"],
        "throughput_bps": payload_bits / duration_s if duration_s else 0.0,
        "retransmitted_p": counted["retransmissions"],
        "marked_p": counted["marked_bytes"] / after["mss_bytes"],
        "timeouts": counted["timeouts"],
    }


def is_established(sender: Sender) -> bool:
    """Return True if a sender has measured an RTT."""
    return sender is not None and bool(np.isfinite(sender["srtt_s"]))


def observation(result: StepResult, highest_bps: Floats, mss_bytes: Floats) -> NDArray[np.float32]:
    """Return the features of each flow, shape (flows, features); zeros for a flow that is not active.

    `highest_bps` is the highest throughput of a step of the episode, by flow.
    """
    bdp_p = highest_bps * result.min_rtt_s / (8 * mss_bytes)
    columns = {
        "queueing": 1 - result.min_rtt_s / result.srtt_s,
        "step_queueing": 1 - result.min_rtt_s / result.rtt_s,
        "throughput": _ratio(result.throughput_bps, highest_bps),
        "in_flight": result.in_flight_p / result.window_p,
        "retransmitted": _ratio(result.retransmitted_p, result.sent_p),
        "marked": _ratio(result.marked_p, result.delivered_p),
        "window": np.log2(_ratio(result.window_p, bdp_p, otherwise=1.0)),
        "timeout": result.timeouts,
    }
    clipped = [np.clip(columns[each.name], each.low, each.high) for each in FEATURES]
    all_features = np.stack(clipped, axis=1)
    return np.where(result.is_active[:, None], all_features, 0.0).astype(np.float32)


def _ratio(part: Floats, whole: Floats, otherwise: float = 0.0) -> Floats:
    """Return part / whole, and another number where the whole is 0 or unknown."""
    return np.divide(part, whole, out=np.full_like(part, otherwise), where=whole > 0)


#: Weights of throughput (per packet/s), latency (per second) and loss (per fraction of packets).
THROUGHPUT, LATENCY, LOSS = 10.0, 1000.0, 2000.0


def aurora(result: StepResult) -> float:
    """Return 10 · throughput − 1000 · latency − 2000 · loss, the mean over the active flows; 0 without any.

    Throughput is in segments per second, latency is the mean RTT of the step in seconds, loss the fraction of the sent
    segments that were retransmissions. N. Jay, N. H. Rotman, P. B. Godfrey, M. Schapira, A. Tamar: A Deep Reinforcement
    Learning Perspective on Internet Congestion Control, ICML 2019, section 4.1. The paper counts packets that were
    sent and not acknowledged; a sender of TCP knows of those by its retransmissions. The weights were chosen for links
    of a few Mbit/s: at 100 times the rate, throughput outweighs all else, and a reward in other units is needed.
    """
    active = result.is_active
    if not active.any():
        return 0.0
    throughput_pps = result.delivered_p[active] / result.duration_s
    loss = result.retransmitted_p[active] / np.maximum(result.sent_p[active], 1)
    return float(np.mean(THROUGHPUT * throughput_pps - LATENCY * result.rtt_s[active] - LOSS * loss))
