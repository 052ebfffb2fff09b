"""Diagnosis of a slow transfer: network, host, capture, shaper, receiver or application.

What each cost is a share of the time of the flows: of the round trips in which it held the sender back, and of the
stalls that it caused. The greatest share is the verdict, if it is worth a word; what the flows took from the path at
full speed costs nothing that could be won elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ackclock import repr_format
from ackclock.capture import quic, udp
from ackclock.capture.findings import (
    BLOATED,
    LIMITS,
    STALLS,
    UNKNOWN_LINKS,
    WORTH,
    Cause,
    Finding,
    cause_on_path,
    connection_resets,
    ends_early,
    no_data,
    of_capture,
    of_distance,
    of_limiter,
    of_limits,
    of_losses,
    of_nagle,
    of_sizes,
    of_stalls,
    summed,
    too_little_data,
)
from ackclock.capture.icmp import failed_handshakes, of_datagrams, of_mtu
from ackclock.capture.observations import has_slow_acks, observations, zero_windows
from ackclock.figures import numbers

#: A cause is not worth a word beside a path at full speed that has so many times its share.
OUTWEIGHED = 4.0

#: Smaller shares of the time are not told.
REPORTED = 1e-3

#: Verdicts on a capture that lost more than this share speak of the capture first.
SPOILT = 0.1

#: Flows that are so many times as fast as a link, all together, do not share it.
FASTER = 1.2


#: Flows that together get this share of a limiter's rate take all of it; headers are the rest.
FILLS = 0.85

#: A queue is the limit from this share of the time on; and its link has one rate if it has it for half of that.
BUSY, STEADY = 0.2, 0.5

#: Mean round trips that are less than so many times the shortest show no queue.
QUEUED_RTT = 1.15

#: A standing queue is longer, in seconds (RFC 8289 section 4.2: TARGET); on a LAN a shorter one triples the RTT.
CODEL_TARGET_S = 0.005

#: A share of lost packets that random losses hardly reach where a transfer goes on, and policers do.
HEAVY_LOSS = 0.02

#: A bucket explains the losses if it takes away so much of the uncertainty about which segments were lost (McFadden's
#: ρ²): the share from which a limiter is found. Random losses reach less than 0.1.
EXPLAINED = 0.5

#: Flows with less than this share of the largest one's data do not share its link.
NEGLIGIBLE = 0.02


#: Lost segments are retransmitted after so many seconds where no RTT is known (RFC 6298 section 2.1): a shorter capture
#: shows no difference between an outage and its own end.
INITIAL_RTO_S = 1.0


#: Cause of a stall → what seems to limit its round trips: an application that does not send what it might, or the
#: window, as long as something is under way.
HIDDEN_LIMITS = {
    Cause.APPLICATION: ("application", "cwnd"),
    Cause.HOST: ("application", "cwnd"),
    Cause.RECEIVER: ("receiver", "application"),
    Cause.NETWORK: ("cwnd", "slow_start", "application"),
}

#: Limits that a wait for a delayed ACK (Nagle's algorithm) is hidden behind: nothing is sent meanwhile.
NAGLE_LIMITS = ("application", "cwnd")


@dataclass(frozen=True, slots=True, repr=False)
class Diagnosis:
    """The verdict, the share of the time of each cause, and the findings, the largest share first."""

    verdict: Cause
    costs: Mapping[Cause, float]
    findings: tuple[Finding, ...] = field(default=())

    @property
    def largest_costs(self) -> list[tuple[Cause, float]]:
        """Return the causes with a reportable share, the greatest first."""
        told = [(cause, share) for cause, share in self.costs.items() if share >= REPORTED]
        return sorted(told, key=lambda cost: -cost[1])

    @property
    def heading(self) -> tuple[str, str]:
        """Return the verdict, and the share of the time of each cause, if any has one."""
        shares = ", ".join(f"{cause.cost_label} {numbers.value(share, 'share')}" for cause, share in self.largest_costs)
        return f"Verdict: {self.verdict.label}.", f"Time by cause: {shares}." if shares else ""

    def __repr__(self) -> str:
        return "\n".join(filter(None, (*self.heading, *(f"* {finding.sentence}" for finding in self.findings))))

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the verdict, and each finding with its evidence and the next step."""
        verdict, shares = self.heading
        rows = [(each.sentence, numbers.evidence_line(each.evidence), each.next) for each in self.findings]
        return repr_format.html(verdict, [shares] if shares else [], ("finding", "evidence", "next"), rows)

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
    """Diagnose the analysis that `ackclock capture` gives. The verdict is on TCP or QUIC, which has more data."""
    result, rejected = _of_streams(analysis), tuple(of_datagrams(udp.of_analysis(analysis)["flows"]))
    return replace(result, findings=(*rejected, *result.findings)) if rejected else result


def _of_streams(analysis: Mapping[str, Any]) -> Diagnosis:
    """Diagnose TCP and QUIC."""
    connections = udp.connections(analysis)
    if not connections:
        return _of_tcp(analysis)
    shares = quic.costs(connections)
    of_quic = Diagnosis(quic.verdict(connections, shares), shares, tuple(quic.findings(connections, shares)))
    if not analysis["connections"]:
        return of_quic
    of_tcp, tcp_bytes = _of_tcp(analysis), sum(flow["bytes"] or 0 for flow in analysis["flows"])
    is_mainly_quic = sum(flow["bytes"] for flow in connections) > tcp_bytes
    main, other = (of_quic, of_tcp) if is_mainly_quic else (of_tcp, of_quic)
    return Diagnosis(main.verdict, main.costs, (*main.findings, *other.findings))


def _of_tcp(analysis: Mapping[str, Any]) -> Diagnosis:
    flows = [_Flow.of(flow) for flow in analysis["flows"]]
    flows = [flow for flow in flows if flow.span_s > 0]
    path, loss = analysis["path"], analysis["capture_loss"]["share"]
    stalled_s = summed((name, value) for flow in flows for name, value in flow.stalled_s.items())
    total_s = sum(flow.span_s for flow in flows)
    limit_on_path = _limits_on_path(analysis, flows, total_s - sum(stalled_s.values()))
    limited_s = summed(
        (limit_on_path.get(limit, limit), value) for flow in flows for limit, value in flow.limited_s.items()
    )
    if not limited_s and not stalled_s:
        explain = _options_cut if any(map(_options_are_cut, analysis["flows"])) else no_data
        return _without_round_trips(analysis, explain(analysis))
    if not stalled_s and total_s < max(flow.shortest_s for flow in flows):
        return _without_round_trips(analysis, too_little_data(total_s))
    if not stalled_s and total_s < INITIAL_RTO_S and _ends_in_slow_start(analysis["flows"], limited_s):
        return _without_round_trips(analysis, ends_early(total_s))
    bloat, unanswered = _queue_ratio(flows), list(failed_handshakes(analysis["flows"]))
    causes = {**STALLS, **({"handshake": unanswered[0].cause} if unanswered else {})}
    spent_s = [(LIMITS[limit], limit, value_s) for limit, value_s in limited_s.items()]
    spent_s += [(causes.get(name, Cause.UNDECIDED), name, value_s) for name, value_s in stalled_s.items()]
    costs = summed((cause_on_path(cause, name, path, bloat), value_s / total_s) for cause, name, value_s in spent_s)
    by_share = [
        *of_limits(limited_s, total_s, path, bloat, analysis["flows"]),
        *of_stalls(analysis["flows"], stalled_s, total_s, causes, path, bloat),
    ]
    by_share.sort(key=lambda finding: -(finding.share or 0.0))
    full = summed(
        (cause_on_path(cause, name, path, bloat), value_s / total_s)
        for cause, name, value_s in spent_s
        if name in UNKNOWN_LINKS
    )
    verdict, long = _verdict(costs, loss, full.get(Cause.UNDECIDED, 0.0)), list(of_distance(analysis["flows"]))
    if _is_clock_wrong(analysis, total_s):
        verdict = Cause.CAPTURE
    elif verdict is Cause.NETWORK and _has_unknown_bucket(path):
        verdict = Cause.UNDECIDED
        by_share.insert(0, _unknown_bucket(path))
    elif verdict in (Cause.APPLICATION, Cause.NETWORK) and _has_unexplained_losses(analysis):
        verdict = Cause.UNDECIDED
    elif long and verdict is Cause.NOTHING:
        verdict = Cause.NETWORK
    of_file = list(of_capture(analysis))
    is_spoilt = verdict is Cause.CAPTURE
    findings = (
        *(of_file if is_spoilt else ()),
        *of_limiter(path),
        *long,
        *connection_resets(analysis["flows"]),
        *unanswered,
        *_of_mtu(analysis["flows"]),
        *of_nagle(analysis["flows"], stalled_s.get("nagle", 0.0), total_s),
        *observations(analysis["flows"]),
        *by_share,
        *of_losses(analysis["flows"]),
        *(() if is_spoilt else of_file),
    )
    return Diagnosis(verdict, costs, findings)


def _options_are_cut(flow: Mapping[str, Any]) -> bool:
    """Return True if the losses of a flow are unknown, though its data and acknowledgements were captured."""
    return flow["rtt_min_s"] is not None and flow["segments_lost"] is None


def _options_cut(analysis: Mapping[str, Any]) -> Finding:
    """Return the finding that nothing can be explained without the options of TCP."""
    evidence = {"packets": analysis["packets"], "connections": analysis["connections"]}
    sentence = "The snap length cut TCP's options, which report losses and scale windows."
    then = "Capture 96 bytes or more of each packet (`tcpdump -s 96`)."
    return Finding(Cause.UNDECIDED, sentence, evidence, next=then)


def _without_round_trips(analysis: Mapping[str, Any], reason: Finding) -> Diagnosis:
    """Return the diagnosis of a capture without a round trip of data: what the handshakes and timers tell.

    If they tell nothing, `reason` says why it is undecided.
    """
    refused, long = list(connection_resets(analysis["flows"])), list(of_distance(analysis["flows"]))
    refused += failed_handshakes(analysis["flows"])
    flows = analysis["flows"]
    timeouts = any(flow["retransmissions"]["timeout"] for flow in flows)
    is_closed = bool(list(zero_windows(flows)))
    findings = [*refused, *long, *_of_mtu(flows), *observations(flows), *of_losses(flows), *of_capture(analysis)]
    if refused:
        verdict = refused[0].cause
    elif is_closed:
        verdict = Cause.RECEIVER
    elif long or timeouts:
        verdict = Cause.NETWORK
    else:
        verdict = Cause.UNDECIDED
        findings.insert(0, reason)
    return Diagnosis(verdict, {}, tuple(findings))


def _of_mtu(flows: Sequence[Mapping[str, Any]]) -> Iterable[Finding]:
    """Return the finding of a path's MTU: as a router reported it, else as the sizes of lost segments show."""
    reported = list(of_mtu(flows))
    return reported or of_sizes(flows)


def _limits_on_path(analysis: Mapping[str, Any], flows: Sequence[_Flow], active_s: float) -> dict[str, str]:
    """Return limits of round trips that are others in view of the path and of all flows; `active_s` without stalls."""
    path = analysis["path"]
    limits: dict[str, str] = {}
    is_single = _is_single_flow(analysis)
    if udp.shares_path(analysis["flows"], udp.of_analysis(analysis)["flows"]):
        limits |= dict.fromkeys(("bottleneck", "shared_bottleneck"), "bottleneck_beside_udp")
    elif _are_faster_than_link(analysis) or (is_single and path["rate_bps"] is not None):
        limits["shared_bottleneck"] = "bottleneck"
    elif _varies(path):
        limits |= dict.fromkeys(("bottleneck", "shared_bottleneck"), "varying_bottleneck")
    elif is_single:
        waits = (_bloat(flows) or 0.0) >= QUEUED_RTT
        limits["shared_bottleneck"] = "varying_bottleneck" if waits else "cwnd"
    if _takes_all(path, flows, active_s):
        limits |= dict.fromkeys(("application", "cwnd", "unexplained_window"), "bottleneck")
    if path["limiter"] == "queue" and _is_mid_stream(analysis["flows"]):
        full = {
            "bottleneck",
            "shared_bottleneck",
            *(limit for limit, on_path in limits.items() if on_path == "bottleneck"),
        }
        limits |= dict.fromkeys(full, "unknown_bottleneck")
    return limits


def _ends_in_slow_start(flows: Iterable[Mapping[str, Any]], limited_s: Mapping[str, float]) -> bool:
    """Return True if the capture ends in slow start, with connections that are open."""
    is_open = not any(flow["closed"] for flow in flows if flow["bytes"])
    return is_open and limited_s.get("slow_start", 0.0) == max(limited_s.values(), default=0.0)


def _is_mid_stream(flows: Iterable[Mapping[str, Any]]) -> bool:
    """Return True if the capture has no beginning of a connection with data."""
    return not any(flow["established"] for flow in flows if flow["bytes"])


def _has_unknown_bucket(path: Mapping[str, Any]) -> bool:
    """Return True if a bucket explains which segments were lost, and it may be a queue's or a policer's."""
    return path["limiter"] == "undecided" and (path.get("losses_explained") or 0.0) >= EXPLAINED


def _unknown_bucket(path: Mapping[str, Any]) -> Finding:
    sentence = (
        "What exceeds a burst of a few segments is lost, by a policer or by a queue that is as short: the capture does "
        "not show which."
    )
    then = "Capture at the other end as well: behind a queue, but not a policer, packets come at the pace of a link."
    return Finding(Cause.UNDECIDED, sentence, {"losses_explained": path["losses_explained"]}, next=then)


def _has_unexplained_losses(analysis: Mapping[str, Any]) -> bool:
    """Return True if many losses of connections that began before the capture may be a policer's.

    Behind it, none that is found is no evidence that there is none.
    """
    flows, limiter = analysis["flows"], analysis["path"]["limiter"]
    lost = sum(flow["segments_lost"] or 0 for flow in flows)
    at_sender = all(flow["vantage"] == "sender" for flow in flows if flow["segments_lost"])
    is_heavy = lost >= HEAVY_LOSS * sum(flow["packets"] for flow in flows) > 0
    return is_heavy and limiter in ({"undecided"} if at_sender else {"undecided", "none"}) and _is_mid_stream(flows)


def _is_clock_wrong(analysis: Mapping[str, Any], total_s: float) -> bool:
    """Return True if the clock was set back by a good part of the time that is to be explained."""
    return bool(analysis["clock_steps"]["seconds"] >= SPOILT * total_s > 0)


@dataclass(frozen=True, slots=True)
class _Flow:
    """Active time of a flow, and its division among limits and stalls."""

    span_s: float
    limited_s: Mapping[str, float]
    stalled_s: Mapping[str, float]
    #: The shortest round trip, on average over the time: it is another before and behind a change of the route.
    rtt_base_s: float | None
    rtt_mean_s: float | None
    data_bytes: int
    #: The shortest round trip, by data or the handshake; 0 if none is known.
    shortest_s: float

    @staticmethod
    def of(flow: Mapping[str, Any]) -> _Flow:
        """Take the stalls first and divide the rest by the shares of the round trips.

        Stalls before the first data, as of a server that thinks, are not in the time that the data took. Waits for
        delayed ACKs count as stalls of their own, however short.
        """
        goodput_bps, data_bytes = flow["goodput_bps"] or 0.0, flow["bytes"] or 0
        transfer_s = 8 * data_bytes / goodput_bps if goodput_bps else 0.0
        begin_s = flow["first_data_s"] or 0.0
        stalled_s = summed((stall["class"], stall["duration_s"]) for stall in flow["stalls"])
        before_s = summed((stall["class"], _before(stall, begin_s)) for stall in flow["stalls"])
        within_s = {name: value_s - before_s.get(name, 0.0) for name, value_s in stalled_s.items()}
        transfer_s = max(transfer_s, sum(within_s.values()))
        rounds_s = {limit: share * transfer_s for limit, share in (flow["limited"] or {}).items()}
        limited_s = _between(rounds_s, within_s)
        short_s = (flow["nagle"]["seconds"] or 0.0) - stalled_s.get("nagle", 0.0)
        waited_s = short_s - _take_limits(limited_s, NAGLE_LIMITS, short_s)
        stalled_s = summed((*stalled_s.items(), ("nagle", waited_s)))
        span_s = transfer_s + sum(before_s.values())
        shortest_s = min(filter(None, (flow["handshake_s"], flow["rtt_min_s"])), default=0.0)
        this = _Flow(span_s, limited_s, stalled_s, _base_rtt_s(flow), flow["rtt_mean_s"], data_bytes, shortest_s)
        if "cwnd" in limited_s and not _has_congestion(flow, _queue_ratio([this])):
            limited_s["unexplained_window"] = limited_s.pop("cwnd")
        return this


def _has_congestion(flow: Mapping[str, Any], queue_ratio: float | None) -> bool:
    """Return True if something keeps the congestion window small: losses, retransmissions, marks, or a longer RTT.

    `queue_ratio` is the mean RTT over the smallest, None without a queue.
    """
    ecn = flow["ecn"]
    is_signalled = flow["segments_lost"] or any(flow["retransmissions"].values())
    is_marked = ecn["ce_packets"] or ecn["ece_packets"] or ecn["reported_marks"]
    is_late = flow["rtt_step"] or has_slow_acks(flow) or (queue_ratio or 0.0) >= BLOATED
    return bool(is_signalled or is_marked or is_late)


def _base_rtt_s(flow: Mapping[str, Any]) -> float | None:
    """Return the shortest RTT, on average over the time of the data if the route changed and with it the RTT."""
    step = flow["rtt_step"]
    if step is None or flow["first_data_s"] is None:
        return None if flow["rtt_min_s"] is None else float(flow["rtt_min_s"])
    begin_s, end_s = flow["first_data_s"], flow["last_data_s"]
    before = min(max((step["at_s"] - begin_s) / (end_s - begin_s), 0.0), 1.0) if end_s > begin_s else 0.0
    return float(before * step["from_s"] + (1.0 - before) * step["to_s"])


def _before(stall: Mapping[str, Any], begin_s: float) -> float:
    """Return how much of a stall passed before a time, in seconds."""
    return float(min(stall["duration_s"], max(begin_s - stall["start_s"], 0.0)))


def _between(rounds_s: Mapping[str, float], stalled_s: Mapping[str, float]) -> dict[str, float]:
    """Return the time of each limit outside stalls, so that the round trips of a stall are not counted twice."""
    left_s = dict(rounds_s)
    over_s = sum(_take(left_s, name, silent_s) for name, silent_s in stalled_s.items())
    total_s = sum(left_s.values())
    kept = max(1 - over_s / total_s, 0.0) if total_s else 0.0
    return {limit: kept * value_s for limit, value_s in left_s.items()}


def _take(left_s: dict[str, float], name: str, silent_s: float) -> float:
    """Subtract a class of stalls from the limits that it hides behind; return what exceeds them."""
    return _take_limits(left_s, HIDDEN_LIMITS.get(STALLS.get(name, Cause.UNDECIDED), ()), silent_s)


def _take_limits(left_s: dict[str, float], limits: Sequence[str], silent_s: float) -> float:
    """Subtract a time from these limits, one after the other; return what exceeds them."""
    for limit in limits:
        taken_s = max(min(silent_s, left_s.get(limit, 0.0)), 0.0)
        left_s[limit] = left_s.get(limit, 0.0) - taken_s
        silent_s -= taken_s
    return silent_s


def _are_faster_than_link(analysis: Mapping[str, Any]) -> bool:
    """Return True if the flows together are faster than the path's link, so that they cannot share it."""
    rate_bps = analysis["path"]["rate_bps"]
    return any(rate_bps and _aggregate_bps(analysis["flows"], end) > FASTER * rate_bps for end in ("client", "server"))


def _is_single_flow(analysis: Mapping[str, Any]) -> bool:
    """Return True if one flow has nearly all of the data: there is nobody in the capture to share a link with."""
    most = max((flow["bytes"] or 0 for flow in analysis["flows"]), default=0)
    return bool(sum((flow["bytes"] or 0) >= NEGLIGIBLE * most for flow in analysis["flows"]) == 1)


def _varies(path: Mapping[str, Any]) -> bool:
    """Return True if a queue was there for much of the time, and no rate of a link explains it."""
    busy, steady = path.get("queue_busy"), path.get("queue_steady")
    return path["rate_bps"] is None and (busy or 0.0) >= BUSY and (steady or 0.0) < STEADY


def _takes_all(path: Mapping[str, Any], flows: Iterable[_Flow], active_s: float) -> bool:
    """Return True if the flows get all that the path lets through: who paces does so at that rate by itself."""
    rate_bps = path["rate_bps"]
    return bool(rate_bps) and 8.0 * sum(flow.data_bytes for flow in flows) >= FILLS * rate_bps * active_s


def _aggregate_bps(flows: Iterable[Mapping[str, Any]], sender: str) -> float:
    """Return the aggregate rate of the flows that one end sends, from their first to their last data."""
    those = [flow for flow in flows if flow.get("sender") == sender and flow["bytes"] and flow.get("last_data_s")]
    if not those:
        return 0.0
    span_s = max(flow["last_data_s"] for flow in those) - min(flow["first_data_s"] for flow in those)
    return sum(8.0 * flow["bytes"] for flow in those) / span_s if span_s > 0 else 0.0


def _bloat(flows: Iterable[_Flow]) -> float | None:
    """Return the mean RTT over the smallest, weighted by bytes; None if unknown."""
    known = [
        (flow.rtt_mean_s / flow.rtt_base_s, flow.data_bytes) for flow in flows if flow.rtt_base_s and flow.rtt_mean_s
    ]
    data_bytes = sum(weight for _, weight in known)
    return sum(ratio * weight for ratio, weight in known) / data_bytes if data_bytes else None


def _queue_ratio(flows: Iterable[_Flow]) -> float | None:
    """Return the mean RTT over the smallest of the flows whose packets queue for longer than CoDel's target."""
    return _bloat(flow for flow in flows if (flow.rtt_mean_s or 0.0) - (flow.rtt_base_s or 0.0) >= CODEL_TARGET_S)


def _verdict(costs: Mapping[Cause, float], capture_loss: float | None, unknown_link: float) -> Cause:
    """Return the greatest cost, if it is worth a word beside a full link.

    `unknown_link` is the share of the time of a full link of which no more is known.
    """
    if capture_loss is not None and capture_loss >= SPOILT:
        return Cause.CAPTURE
    rest = {**costs, Cause.UNDECIDED: costs.get(Cause.UNDECIDED, 0.0) - unknown_link}
    full_speed = rest.pop(Cause.NOTHING, 0.0)
    least = max(WORTH, (full_speed + unknown_link) / OUTWEIGHED)
    blamed = {cause: share for cause, share in rest.items() if share >= least}
    if blamed:
        return max(blamed, key=lambda cause: blamed[cause])
    return Cause.UNDECIDED if unknown_link > full_speed else Cause.NOTHING
