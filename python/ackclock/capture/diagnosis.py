"""Diagnosis of a slow transfer: network, host, capture, shaper, receiver or application.

What each cost is a share of the time of the flows: of the round trips in which it held the sender back, and of the
stalls that it caused. The greatest share is the verdict, if it is worth a word; what the flows took from the path at
full speed costs nothing that could be won elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ackclock.capture.analysis import depth_of, rate_of
from ackclock.dataset.tables import CLOCK_GAPS
from ackclock.figures import numbers

#: A cause is worth a word from this share of the time on, and of the capture's packets.
WORTH, WORTH_OF_CAPTURE = 0.05, 1e-3

#: Smaller shares of the time are not told.
REPORTED = 1e-3

#: Verdicts on a capture that lost more than this share speak of the capture first.
SPOILT = 0.1

#: Flows that are so many times as fast as a link, all together, do not share it.
FASTER = 1.2

#: An RTT under load that is so many times the smallest is a standing queue.
BLOATED = 3.0


class Cause(Enum):
    """Root cause of a slow transfer, and the exit status of a verdict on it."""

    NOTHING = ("nothing stands out", 0)
    NETWORK = ("the network", 10)
    HOST = ("the host", 11)
    CAPTURE = ("the capture", 12)
    SHAPER = ("a shaper or policer", 13)
    RECEIVER = ("the receiver", 14)
    APPLICATION = ("the application", 15)
    UNDECIDED = ("undecided", 19)

    def __init__(self, label: str, exit_status: int) -> None:
        self.label = label
        self.exit_status = exit_status

    @property
    def cost_label(self) -> str:
        """Return what the share of time is attributed to."""
        return "the path at full speed" if self is Cause.NOTHING else self.label


#: Class of a stall → its cause.
STALLS = {
    "application": Cause.APPLICATION,
    "receiver": Cause.RECEIVER,
    "host": Cause.HOST,
    "machine": Cause.HOST,
    "timeout": Cause.NETWORK,
    "tail_loss": Cause.NETWORK,
    "double_retransmission": Cause.NETWORK,
    "small_window": Cause.NETWORK,
    "continuous_loss": Cause.NETWORK,
    "ack_delay": Cause.NETWORK,
    "handshake": Cause.NETWORK,
    "capture_loss": Cause.CAPTURE,
    **dict.fromkeys(CLOCK_GAPS, Cause.HOST),
}

#: Limit → its cause. A path that one flow fills is no fault: see `_of_path`.
LIMITS = {
    "application": Cause.APPLICATION,
    "receiver": Cause.RECEIVER,
    "cwnd": Cause.NETWORK,
    "slow_start": Cause.NOTHING,
    "bottleneck": Cause.NOTHING,
    "shared_bottleneck": Cause.NETWORK,
}


#: Cause of a stall → what seems to limit its round trips: an application that does not send what it might, or the
#: window, as long as something is under way.
HIDDEN_LIMITS = {
    Cause.APPLICATION: ("application", "cwnd"),
    Cause.HOST: ("application", "cwnd"),
    Cause.RECEIVER: ("receiver", "application"),
    Cause.NETWORK: ("cwnd", "slow_start", "application"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence with its evidence; `share` of the time if it has one; `shown`, the figures that illustrate it."""

    cause: Cause
    sentence: str
    evidence: Mapping[str, Any]
    share: float | None = None
    next: str = ""
    shown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The verdict, the share of the time of each cause, and the findings, the largest share first."""

    verdict: Cause
    costs: Mapping[Cause, float]
    findings: tuple[Finding, ...] = field(default=())

    @property
    def dearest(self) -> list[tuple[Cause, float]]:
        """Return the causes with a reportable share, the greatest first."""
        told = [(cause, share) for cause, share in self.costs.items() if share >= REPORTED]
        return sorted(told, key=lambda cost: -cost[1])

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "verdict": self.verdict.name.lower(),
            "costs": {cause.name.lower(): share for cause, share in self.costs.items()},
            "findings": [
                {
                    "cause": result.cause.name.lower(),
                    "share": result.share,
                    "sentence": result.sentence,
                    "evidence": dict(result.evidence),
                    "next": result.next,
                }
                for result in self.findings
            ],
        }


def diagnose(analysis: Mapping[str, Any]) -> Diagnosis:
    """Diagnose the analysis that `ackclock capture` gives."""
    flows = [_Flow.of(flow) for flow in analysis["flows"]]
    flows = [flow for flow in flows if flow.span_s > 0]
    path, loss = analysis["path"], analysis["capture_loss"]["share"]
    own = "bottleneck" if _apart(analysis) else "shared_bottleneck"
    named = {"shared_bottleneck": own}
    limited_s = _summed((named.get(limit, limit), value) for flow in flows for limit, value in flow.limited_s.items())
    stalled_s = _summed((name, value) for flow in flows for name, value in flow.stalled_s.items())
    total_s = sum(flow.span_s for flow in flows)
    if not limited_s and not stalled_s:
        return Diagnosis(Cause.UNDECIDED, {}, (_no_data(analysis), *_of_capture(analysis)))
    bloat = _bloat(flows)
    spent_s = [(LIMITS[limit], limit, value_s) for limit, value_s in limited_s.items()]
    spent_s += [(STALLS.get(name, Cause.UNDECIDED), name, value_s) for name, value_s in stalled_s.items()]
    costs = _summed((_of_path(cause, name, path, bloat), value_s / total_s) for cause, name, value_s in spent_s)
    timeouts = any(flow["retransmissions"]["timeout"] for flow in analysis["flows"])
    findings = [
        *_of_limits(limited_s, total_s, path, bloat, timeouts=timeouts),
        *_of_stalls(analysis["flows"], stalled_s, total_s, path, bloat),
        *_of_losses(analysis["flows"]),
        *_of_capture(analysis),
    ]
    findings.sort(key=lambda result: -(result.share or 0.0))
    return Diagnosis(_verdict(costs, loss), costs, (*_of_limiter(path), *findings))


@dataclass(frozen=True, slots=True)
class _Flow:
    """Active time of a flow, and its division among limits and stalls."""

    span_s: float
    limited_s: Mapping[str, float]
    stalled_s: Mapping[str, float]
    rtt_min_s: float | None
    rtt_mean_s: float | None
    data_bytes: int

    @staticmethod
    def of(flow: Mapping[str, Any]) -> _Flow:
        """Take the stalls first and divide the rest by the shares of the round trips."""
        stalled_s = _summed((stall["class"], stall["duration_s"]) for stall in flow["stalls"])
        goodput_bps, data_bytes = flow["goodput_bps"] or 0.0, flow["bytes"] or 0
        span_s = max(8 * data_bytes / goodput_bps if goodput_bps else 0.0, sum(stalled_s.values()))
        rounds_s = {limit: share * span_s for limit, share in (flow["limited"] or {}).items()}
        limited_s = _between(rounds_s, stalled_s)
        return _Flow(span_s, limited_s, stalled_s, flow["rtt_min_s"], flow["rtt_mean_s"], data_bytes)


def _between(rounds_s: Mapping[str, float], stalled_s: Mapping[str, float]) -> dict[str, float]:
    """Return the time of each limit outside stalls, so that the round trips of a stall are not counted twice."""
    left_s = dict(rounds_s)
    over_s = sum(_take(left_s, name, silent_s) for name, silent_s in stalled_s.items())
    total_s = sum(left_s.values())
    kept = max(1 - over_s / total_s, 0.0) if total_s else 0.0
    return {limit: kept * value_s for limit, value_s in left_s.items()}


def _take(left_s: dict[str, float], name: str, silent_s: float) -> float:
    """Subtract a class of stalls from the limits that it hides behind; return what exceeds them."""
    for limit in HIDDEN_LIMITS.get(STALLS.get(name, Cause.UNDECIDED), ()):
        taken_s = min(silent_s, left_s.get(limit, 0.0))
        left_s[limit] = left_s.get(limit, 0.0) - taken_s
        silent_s -= taken_s
    return silent_s


def _apart(analysis: Mapping[str, Any]) -> bool:
    """Return True if the flows together are faster than the path's link, so that they cannot share it."""
    rate_bps = analysis["path"]["rate_bps"]
    return any(rate_bps and _aggregate_bps(analysis["flows"], end) > FASTER * rate_bps for end in ("client", "server"))


def _aggregate_bps(flows: Iterable[Mapping[str, Any]], sender: str) -> float:
    """Return the aggregate rate of the flows that one end sends, from their first to their last data."""
    those = [flow for flow in flows if flow.get("sender") == sender and flow["bytes"] and flow.get("last_data_s")]
    if not those:
        return 0.0
    span_s = max(flow["last_data_s"] for flow in those) - min(flow["first_data_s"] for flow in those)
    return sum(8.0 * flow["bytes"] for flow in those) / span_s if span_s > 0 else 0.0


def _summed(pairs: Iterable[tuple[Any, float]]) -> dict[Any, float]:
    result: dict[Any, float] = {}
    for key, value in pairs:
        if value > 0:
            result[key] = result.get(key, 0.0) + value
    return result


def _bloat(flows: Iterable[_Flow]) -> float | None:
    """Return the mean RTT over the smallest, weighted by bytes; None if unknown."""
    known = [
        (flow.rtt_mean_s / flow.rtt_min_s, flow.data_bytes) for flow in flows if flow.rtt_min_s and flow.rtt_mean_s
    ]
    data_bytes = sum(weight for _, weight in known)
    return sum(ratio * weight for ratio, weight in known) / data_bytes if data_bytes else None


def _of_path(cause: Cause, name: str, path: Mapping[str, Any], bloat: float | None) -> Cause:
    """Return the cause of a limit on this path: the shaper if there is one, the network for a standing queue."""
    if path["limiter"] in ("policer", "shaper") and (cause is Cause.NETWORK or name == "bottleneck"):
        return Cause.SHAPER
    if name == "bottleneck" and bloat is not None and bloat >= BLOATED:
        return Cause.NETWORK
    return cause


def _verdict(costs: Mapping[Cause, float], capture_loss: float | None) -> Cause:
    if capture_loss is not None and capture_loss >= SPOILT:
        return Cause.CAPTURE
    blamed = {cause: share for cause, share in costs.items() if cause is not Cause.NOTHING and share >= WORTH}
    return max(blamed, key=lambda cause: blamed[cause]) if blamed else Cause.NOTHING


def _no_data(analysis: Mapping[str, Any]) -> Finding:
    evidence = {"packets": analysis["packets"], "connections": analysis["connections"]}
    if not analysis["connections"]:
        then = "Look at the filter, if there is one, and at what was captured: TCP is what can be explained."
        return Finding(Cause.UNDECIDED, "There is no connection to look at.", evidence, next=then)
    sentence = "No connection carries data whose acknowledgements are seen."
    return Finding(
        Cause.UNDECIDED, sentence, evidence, next="Capture both directions, from before the connection opens."
    )


#: Limit → the pictures that show it, where that is not only what limited.
SHOWN = {
    "receiver": ("limits", "pipe"),
    "cwnd": ("limits", "pipe"),
    "bottleneck": ("limits", "rtt"),
    "shared_bottleneck": ("limits", "rtt"),
}

#: Limit → what is said of it, and what to do next.
LIMIT_ADVICE = {
    "application": (
        "For {share} of the time the sender's application had nothing to send.",
        "Look at the application and at what it reads from, not at the network.",
    ),
    "receiver": (
        "For {share} of the time the receive window was full: it is too small for this path, or is read too slowly.",
        "Raise the receiver's buffer (net.ipv4.tcp_rmem), or see why its application reads slowly.",
    ),
    "cwnd": (
        "For {share} of the time the congestion window limited the sender, and no queue was visible.",
        "Losses keep the window small: find where they come from, or try another congestion control.",
    ),
    "slow_start": (
        "{share} of the time went by in slow start.",
        "Transfers are short for this round-trip time: fewer and longer connections would start less often.",
    ),
    "bottleneck": (
        "For {share} of the time the flow filled a link by itself.",
        "This is the path's capacity.",
    ),
    "shared_bottleneck": (
        "For {share} of the time the flow shared a full link with others.",
        "Look for what else uses the link.",
    ),
}

#: Sentence for a full link that is a shaper's, or is taken for one behind a policer.
LIMITED = dict.fromkeys(
    ("bottleneck", "shared_bottleneck"), "For {share} of the time the flow had what the {limiter} let through."
)

#: Limits that are a link with a queue, and what is to be done if that stands.
QUEUED = ("bottleneck", "shared_bottleneck")
SHORTER = "Give the bottleneck a smaller buffer, or a queue discipline that keeps it short (fq_codel, cake)."


def _of_limits(
    limited_s: Mapping[str, float], total_s: float, path: Mapping[str, Any], bloat: float | None, *, timeouts: bool
) -> Iterable[Finding]:
    for limit, value_s in limited_s.items():
        share = value_s / total_s
        if share < WORTH:
            continue
        sentence, then = LIMIT_ADVICE[limit]
        cause = _of_path(LIMITS[limit], limit, path, bloat)
        evidence: dict[str, Any] = {"limited": limit, "seconds": value_s}
        if limit in QUEUED and bloat is not None:
            evidence["rtt_ratio"] = bloat
            if bloat >= BLOATED:
                sentence += f" Its queue is standing: round trips take {bloat:.1f} times the shortest."
                then = SHORTER if limit == "bottleneck" else f"{then} {SHORTER}"
        if cause is Cause.SHAPER:
            done = "dropped" if path["limiter"] == "policer" else "held back"
            then = f"That is the {path['limiter']}'s doing: what exceeds its rate is {done}."
            sentence = LIMITED.get(limit, sentence)
        elif limit == "slow_start" and timeouts:
            then = "Each timeout begins it anew: find where packets are lost."
        said = sentence.format(share=numbers.value(share, "share"), limiter=path["limiter"])
        yield Finding(cause, said, evidence, share, then, SHOWN.get(limit, ("limits",)))


#: Class of a stall → what is said of it, and what to do next.
STALL_ADVICE = {
    "application": ("nothing was outstanding", "Look at the application."),
    "receiver": ("the receive window was closed", "See why the receiving application does not read."),
    "host": ("the sending host stalled while its clock went on", "Look at the host's scheduler, disks and CPU."),
    "machine": (
        "the machine was paused, and its clock with it",
        "Ask whoever runs the hypervisor whether the machine was paused or moved.",
    ),
    "timeout": ("the retransmission timer had to expire", "Find where packets are lost."),
    "tail_loss": ("the end of a flight was lost", "See that tail loss probes (RACK-TLP) are on."),
    "double_retransmission": ("a retransmission was lost too", "See that RACK is on; find where packets are lost."),
    "small_window": ("too few segments were in flight to reveal a loss", "Find where packets are lost."),
    "continuous_loss": ("a whole window was lost", "Look for outages, and for a policer."),
    "ack_delay": ("acknowledgements came late", "Look at the return path, and at the receiver's delayed ACKs."),
    "handshake": ("the handshake was not answered", "Look for lost SYNs, a firewall, or a full accept queue."),
    "capture_loss": ("the flow went on, unseen by the capture", "Capture fewer bytes per packet, or to a faster disk."),
    "scheduler": ("the host's log gives that it ran something else", "See what else runs on the host's CPUs."),
    "steal": (
        "the host's log gives that its hypervisor ran other guests",
        "Ask whoever runs the hypervisor for CPU time.",
    ),
    "stop": (
        "the host's log gives that its processes were stopped",
        "See who stops them: a debugger, a cgroup's freezer.",
    ),
    "pause": (
        "the host's log gives that its machine was paused",
        "Ask whoever runs the hypervisor whether the machine was paused or moved.",
    ),
    "step": ("the host's log gives that its clock was set", "Let the clock be slewed (chrony, ntpd -x), not set."),
}


def _of_stalls(
    flows: Iterable[Mapping[str, Any]],
    stalled_s: Mapping[str, float],
    total_s: float,
    path: Mapping[str, Any],
    bloat: float | None,
) -> Iterable[Finding]:
    stalls = [stall for flow in flows for stall in flow["stalls"]]
    for name, value_s in stalled_s.items():
        longest_s = max(stall["duration_s"] for stall in stalls if stall["class"] == name)
        count = sum(stall["class"] == name for stall in stalls)
        words, then = STALL_ADVICE.get(name, ("the cause is unknown", ""))
        often = "one stall" if count == 1 else f"{count} stalls"
        sentence = f"{numbers.value(value_s / total_s, 'share')} of the time went into {often}: {words}."
        cause = _of_path(STALLS.get(name, Cause.UNDECIDED), name, path, bloat)
        evidence = {"class": name, "count": count, "seconds": value_s, "longest_s": longest_s}
        yield Finding(cause, sentence, evidence, value_s / total_s, then, ("stalls", "sequence"))


def _of_limiter(path: Mapping[str, Any]) -> Iterable[Finding]:
    if path["limiter"] not in ("policer", "shaper"):
        return
    does = "drops what exceeds" if path["limiter"] == "policer" else "holds back what exceeds"
    burst = f", after a burst of {depth_of(path)}" if path["depth_bytes"] else ""
    sentence = f"A {path['limiter']} {does} {rate_of(path)}{burst}."
    evidence = {key: path[key] for key in ("rate_bps", "rate_ci95", "depth_bytes", "depth_ci95")}
    then = "This is a contract or a setting, not congestion: send more slowly than that, or have the rate raised."
    yield Finding(Cause.SHAPER, sentence, evidence, next=then, shown=("level", "rtt"))


def _of_losses(flows: Iterable[Mapping[str, Any]]) -> Iterable[Finding]:
    lost = repaired = timeouts = spurious = 0
    for flow in flows:
        lost += flow["segments_lost"] or 0
        repaired += sum(flow["retransmissions"].values())
        timeouts += flow["retransmissions"]["timeout"]
        spurious += flow["retransmissions"]["spurious"]
    if repaired or lost:
        sentence = (
            f"{lost:,} segments were lost; {repaired:,} were retransmitted, {timeouts:,} of them after a timeout and "
            f"{spurious:,} spuriously."
        )
        evidence = {"segments_lost": lost, "retransmissions": repaired, "timeout": timeouts, "spurious": spurious}
        yield Finding(Cause.NETWORK, sentence, evidence, shown=("sequence",))


def _of_capture(analysis: Mapping[str, Any]) -> Iterable[Finding]:
    loss = analysis["capture_loss"]
    if loss["share"] is not None and loss["share"] >= WORTH_OF_CAPTURE:
        share = numbers.value(loss["share"], "share")
        sentence = f"The capture lacks {share} of the data segments that arrived: the capture itself dropped them."
        then = "Capture fewer bytes per packet (snaplen 96), with a larger buffer (tcpdump -B), or to a faster disk."
        yield Finding(Cause.CAPTURE, sentence, dict(loss), next=then, shown=("sequence",))
