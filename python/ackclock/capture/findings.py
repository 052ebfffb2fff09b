"""Findings of a diagnosis: sentences with their evidence, and what to do next.

Each function looks at one kind of evidence in the analysis of a capture. `diagnosis` weighs what they cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ackclock.capture.analysis import RETRANSMISSIONS, depth_of, partial_sum, rate_of
from ackclock.dataset.tables import CLOCK_GAPS
from ackclock.figures import numbers

#: A cause is worth a word from this share of the time on, and of the capture's packets.
WORTH, WORTH_OF_CAPTURE = 0.05, 1e-3


#: Round trips on earth are shorter; by a geostationary satellite they take 0.55 s. One beyond the other bound is no
#: path's (RFC 9293's maximum segment lifetime).
LONG_RTT_S, MAX_RTT_S = 0.5, 120.0


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
    "nagle": Cause.APPLICATION,
    **dict.fromkeys(CLOCK_GAPS, Cause.HOST),
}


#: Classes of stalls in which losses are repaired.
OF_LOSSES = ("timeout", "tail_loss", "double_retransmission", "small_window", "continuous_loss")

#: Limit → its cause. A path that one flow fills is no fault: see `cause_on_path`.
LIMITS = {
    "application": Cause.APPLICATION,
    "receiver": Cause.RECEIVER,
    "cwnd": Cause.NETWORK,
    "slow_start": Cause.NOTHING,
    "bottleneck": Cause.NOTHING,
    "shared_bottleneck": Cause.NETWORK,
    "varying_bottleneck": Cause.NETWORK,
    "unknown_bottleneck": Cause.UNDECIDED,
    "bottleneck_beside_udp": Cause.UNDECIDED,
    "unknown_window": Cause.UNDECIDED,
    "unexplained_window": Cause.UNDECIDED,
    "send_buffer": Cause.HOST,
}


#: Limits that are a full link of which no more is known.
UNKNOWN_LINKS = ("unknown_bottleneck", "bottleneck_beside_udp")


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence with its evidence; `share` of the time if it has one; `shown`, the figures that illustrate it."""

    cause: Cause
    sentence: str
    evidence: Mapping[str, Any]
    share: float | None = None
    next: str = ""
    shown: tuple[str, ...] = ()


def times(count: int) -> str:
    """Return `once` or `7 times`."""
    return "once" if count == 1 else f"{count:,} times"


def was(count: int) -> str:
    """Return the verb of so many things."""
    return "was" if count == 1 else "were"


def summed(pairs: Iterable[tuple[Any, float]]) -> dict[Any, float]:
    """Return the sums of positive values by their keys."""
    result: dict[Any, float] = {}
    for key, value in pairs:
        if value > 0:
            result[key] = result.get(key, 0.0) + value
    return result


def cause_on_path(cause: Cause, name: str, path: Mapping[str, Any], bloat: float | None) -> Cause:
    """Return the cause of a limit on this path: the shaper if there is one, the network for a standing queue."""
    is_limited = cause is Cause.NETWORK or name in ("bottleneck", "unexplained_window")
    if path["limiter"] in ("policer", "shaper") and is_limited:
        return Cause.SHAPER
    if name in ("bottleneck", *UNKNOWN_LINKS) and bloat is not None and bloat >= BLOATED:
        return Cause.NETWORK
    return cause


def no_data(analysis: Mapping[str, Any]) -> Finding:
    """Return the finding that nothing can be explained."""
    evidence = {"packets": analysis["packets"], "connections": analysis["connections"]}
    if not analysis["connections"]:
        then = (
            "Check the capture filter: only TCP and QUIC can be diagnosed, and QUIC is recognised by the first packets "
            "of a connection."
        )
        return Finding(Cause.UNDECIDED, "The capture contains no connection of TCP or QUIC.", evidence, next=then)
    if silent := next((flow for flow in analysis["flows"] if _has_no_response(flow)), None):
        return _no_response(silent)
    sentence = "No data was captured together with its acknowledgements."
    return Finding(
        Cause.UNDECIDED, sentence, evidence, next="Capture both directions, from before the connection opens."
    )


def _has_no_response(flow: Mapping[str, Any]) -> bool:
    """Return True if the capture has the connection from its handshake on, both ways, and data of one end only."""
    return bool(flow["established"] and flow["bytes"] and flow["rtt_min_s"] is not None and not flow["reverse_bytes"])


def _no_response(flow: Mapping[str, Any]) -> Finding:
    """Return the finding that data from one end was acknowledged, but none from the other was captured."""
    other = "server" if flow["sender"] == "client" else "client"
    data = numbers.value(flow["bytes"], "bytes")
    sentence = f"{data} from the {flow['sender']} were acknowledged, but no data from the {other} was captured."
    then = (
        f"Capture at the {other}: that shows whether its application responded, and whether its segments were lost on "
        "the path, as segments larger than the path MTU are."
    )
    return Finding(Cause.UNDECIDED, sentence, {"bytes": flow["bytes"]}, next=then)


def too_little_data(total_s: float) -> Finding:
    """Return the finding that there is too little data; `total_s` is the time that it took, in seconds."""
    sentence = "All data passed within one round trip: too little to tell what limits the transfer."
    then = "Capture for longer, or a longer transfer."
    return Finding(Cause.UNDECIDED, sentence, {"seconds": total_s}, next=then)


def ends_early(total_s: float) -> Finding:
    """Return the finding that the capture ends in slow start; `total_s` is the time of the data, in seconds."""
    sentence = (
        f"The capture ends after {numbers.value(total_s, 's')} of data, in slow start and with the connection open: "
        "it does not show whether the capture was stopped, or data no longer came."
    )
    then = "Capture for longer; if the transfer itself ends there, capture at the sender: it shows retransmissions."
    return Finding(Cause.UNDECIDED, sentence, {"seconds": total_s}, next=then)


#: Limit → the pictures that show it, where that is not only what limited.
SHOWN = {
    "receiver": ("limits", "pipe"),
    **dict.fromkeys(("cwnd", "unexplained_window"), ("limits", "pipe")),
    "bottleneck": ("limits", "rtt"),
    "shared_bottleneck": ("limits", "rtt"),
    "varying_bottleneck": ("limits", "rtt"),
    **dict.fromkeys(UNKNOWN_LINKS, ("limits", "rtt")),
    "send_buffer": ("limits", "pipe"),
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
        "For {share} of the time the congestion window limited the sender.",
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
    "varying_bottleneck": (
        "For {share} of the time packets waited in a queue that drained at a varying rate.",
        "Others use the link, or its rate changes, as on radio: capture what else passes it.",
    ),
    "unknown_bottleneck": (
        "For {share} of the time the flows filled a link, or had what a shaper let through, and a queue may have stood "
        "before it all the time: the connections began before the capture.",
        "Capture from before the connections open: that shows the path without a queue, and a shaper's burst.",
    ),
    "bottleneck_beside_udp": (
        "For {share} of the time the flow filled a link, or what UDP left of it: the capture does not show whether its "
        "UDP traffic shares that link.",
        "Capture at the other end as well, or try without the UDP traffic.",
    ),
    "unknown_window": (
        "For {share} of the time a window limited the sender: the congestion window or the receive window, whose "
        "scale is unknown.",
        "Capture from before the connection opens: the SYN has the window scale.",
    ),
    "unexplained_window": (
        "For {share} of the time a window limited the sender, with nothing lost or marked, and no standing queue.",
        "Read the sender's TCP_INFO (ss -ti): a send buffer or a pacing rate may be the limit. If the window had only "
        "not grown yet, a longer transfer shows that.",
    ),
    "send_buffer": (
        "For {share} of the time the data in flight did not grow, as with a full send buffer, and nothing was lost.",
        "Raise the sender's buffer (SO_SNDBUF, net.ipv4.tcp_wmem), or leave it to the kernel to grow it.",
    ),
}


#: Sentence for a full link that is a shaper's, or is taken for one behind a policer.
LIMITED = dict.fromkeys(
    ("bottleneck", "shared_bottleneck"), "For {share} of the time the flow had what the {limiter} let through."
)


#: Limits that are a link with a queue, and what is to be done if that stands.
QUEUED = ("bottleneck", "shared_bottleneck", "varying_bottleneck", *UNKNOWN_LINKS)


SHORTER = "Give the bottleneck a smaller buffer, or a queue discipline that keeps it short (fq_codel, cake)."


def of_limits(
    limited_s: Mapping[str, float],
    total_s: float,
    path: Mapping[str, Any],
    bloat: float | None,
    flows: Sequence[Mapping[str, Any]],
) -> Iterable[Finding]:
    """Return a finding for each limit that took a share worth a word; `bloat` is the mean RTT over the least."""
    losses = any(flow["segments_lost"] for flow in flows)
    timeouts = any(flow["retransmissions"]["timeout"] for flow in flows)
    marks = any(flow["ecn"]["ece_packets"] or flow["ecn"]["reported_marks"] for flow in flows)
    for limit, value_s in limited_s.items():
        if (share := value_s / total_s) < WORTH:
            continue
        sentence, then = LIMIT_ADVICE[limit]
        cause = cause_on_path(LIMITS[limit], limit, path, bloat)
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
        elif limit == "cwnd" and not losses:
            marked = "Congestion marks (ECN) keep the window small: look for what fills the link of the AQM that marks."
            then = marked if marks else "Nothing was lost: see why round trips took longer or what was retransmitted."
        elif limit == "slow_start" and timeouts:
            then = "Each timeout begins it anew: find where packets are lost."
        said = sentence.format(share=numbers.value(share, "share"), limiter=path["limiter"])
        yield Finding(cause, said, evidence, share, then, SHOWN.get(limit, ("limits",)))


#: Class of a stall → what is said of it, and what to do next.
STALL_ADVICE = {
    "application": (
        "nothing was outstanding, and the {end}'s application sent nothing",
        "Look at the {end}'s application, and at what it waits for.",
    ),
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
    "nagle": (
        "a small segment waited for a delayed ACK (Nagle's algorithm)",
        "Write each message at once, or set TCP_NODELAY at its sender.",
    ),
    "handshake": ("the handshake was not answered", "Look for lost SYNs, a firewall, or a full accept queue."),
    "capture_loss": ("the flow went on, unseen by the capture", "Capture fewer bytes per packet, or to a faster disk."),
    "scheduler": ("the host's log shows that it ran something else", "See what else runs on the host's CPUs."),
    "steal": (
        "the host's log shows that its hypervisor ran other guests",
        "Ask whoever runs the hypervisor for CPU time.",
    ),
    "stop": (
        "the host's log shows that its processes were stopped",
        "See who stops them: a debugger, a cgroup's freezer.",
    ),
    "pause": (
        "the host's log shows that its machine was paused",
        "Ask whoever runs the hypervisor whether the machine was paused or moved.",
    ),
    "step": ("the host's log shows that its clock was set", "Let the clock be slewed (chrony, ntpd -x), not set."),
}


#: Classes of stalls of which one end is the cause, which their sentences name.
ENDS_STALLS = ("application",)


#: Advice for a stall of no known class.
UNKNOWN_STALL = "Capture at the sender too: what it sent meanwhile did not pass this point."


def of_stalls(
    flows: Iterable[Mapping[str, Any]],
    stalled_s: Mapping[str, float],
    total_s: float,
    causes: Mapping[str, Cause],
    path: Mapping[str, Any],
    bloat: float | None,
) -> Iterable[Finding]:
    """Return a finding for each class of stalls; `stalled_s` has their seconds, of `total_s` in all."""
    stalls = [stall for flow in flows for stall in flow["stalls"]]
    is_too_large = any(flow["too_large_bytes"] is not None for flow in flows)
    for name, value_s in stalled_s.items():
        if name == "nagle":  # `of_nagle` has all of it
            continue
        those = [stall for stall in stalls if stall["class"] == name]
        longest_s = max(stall["duration_s"] for stall in those)
        count = len(those)
        words, then = STALL_ADVICE.get(name, ("the capture does not show why", UNKNOWN_STALL))
        if is_too_large and name in OF_LOSSES:
            then = "The segments that never arrived explain it."
        if name in ENDS_STALLS:
            end_s = summed((stall["sender"], stall["duration_s"]) for stall in those)
            end = max(end_s, key=lambda end: end_s[end])
            words, then = words.format(end=end), then.format(end=end)
        often = "one stall" if count == 1 else f"{count} stalls"
        sentence = f"{numbers.value(value_s / total_s, 'share')} of the time went into {often}: {words}."
        cause = cause_on_path(causes.get(name, Cause.UNDECIDED), name, path, bloat)
        evidence = {"class": name, "count": count, "seconds": value_s, "longest_s": longest_s}
        yield Finding(cause, sentence, evidence, value_s / total_s, then, ("stalls", "sequence"))


def of_limiter(path: Mapping[str, Any]) -> Iterable[Finding]:
    """Return the finding of a policer or shaper on the path, if there is one."""
    if path["limiter"] not in ("policer", "shaper"):
        return
    is_shaper = path["limiter"] == "shaper"
    does = "holds back what exceeds" if is_shaper else "drops what exceeds"
    burst = f", after a burst of {_burst_of(path)}" if path["burst_bytes" if is_shaper else "depth_bytes"] else ""
    sentence = f"A {path['limiter']} {does} {rate_of(path)}{burst}."
    evidence = {key: path[key] for key in ("rate_bps", "rate_ci95", "depth_bytes", "depth_ci95")}
    then = "This is a contract or a setting, not congestion: send more slowly than that, or have the rate raised."
    yield Finding(Cause.SHAPER, sentence, evidence, next=then, shown=("level", "rtt"))


def _burst_of(path: Mapping[str, Any]) -> str:
    """Return what passes before the limit: a shaper's bucket, without its queue; a policer's depth."""
    return numbers.value(path["burst_bytes"], "bytes") if path["limiter"] == "shaper" else depth_of(path)


def of_distance(flows: Iterable[Mapping[str, Any]]) -> Iterable[Finding]:
    """Return the finding of a path whose round trips are long without any load."""
    answered = [flow for flow in flows if not any(flow["retransmissions"][name] for name in ("syn", "synack"))]
    known_s = [min(filter(None, (flow["handshake_s"], flow["rtt_min_s"])), default=0.0) for flow in answered]
    rtt_s = max(known_s, default=0.0)
    if LONG_RTT_S <= rtt_s <= MAX_RTT_S:
        sentence = f"A round trip takes at least {numbers.value(rtt_s, 's')}, even without load."
        then = "Look for a satellite or radio link, a detour, or a queue that others keep full; use fewer round trips."
        yield Finding(Cause.NETWORK, sentence, {"rtt_s": rtt_s}, next=then, shown=("rtt",))


def connection_resets(flows: Sequence[Mapping[str, Any]]) -> Iterable[Finding]:
    """Return the finding of connections whose SYN was answered by a reset (RFC 9293 section 3.10.7.1)."""
    refused = sum(flow["refused"] for flow in flows)
    if refused:
        those = "One connection was" if refused == 1 else f"{refused:,} connections were"
        sentence = f"{those} refused: a reset answered the SYN."
        then = "See whether a server listens on that port, and whether a firewall rejects the connection."
        yield Finding(Cause.HOST, sentence, {"refused": refused}, next=then)


def of_nagle(flows: Sequence[Mapping[str, Any]], charged_s: float, total_s: float) -> Iterable[Finding]:
    """Return the finding of small segments that waited for delayed ACKs (RFC 896, RFC 1122 section 4.2.3.4).

    `charged_s` is what these waits took of `total_s`: no other cause has that time.
    """
    waits = sum(flow["nagle"]["waits"] or 0 for flow in flows)
    waited_s = sum(flow["nagle"]["seconds"] or 0.0 for flow in flows)
    share = charged_s / total_s
    if waits and share >= WORTH:
        each = numbers.value(waited_s / waits, "s")
        sentence = (
            f"For {numbers.value(share, 'share')} of the time a small segment waited for a delayed ACK, "
            f"{waits:,} times {each}: Nagle's algorithm against delayed ACKs."
        )
        then = STALL_ADVICE["nagle"][1]
        yield Finding(Cause.APPLICATION, sentence, {"waits": waits, "seconds": waited_s}, share, then)


def of_sizes(flows: Iterable[Mapping[str, Any]]) -> Iterable[Finding]:
    """Return the finding of an MTU black hole: what is larger than a size never arrives (RFC 2923 section 2.1).

    Where no data arrived at all, an outage from the first data on looks the same.
    """
    stuck = [flow for flow in flows if flow["too_large_bytes"] is not None]
    if not stuck:
        return
    size_bytes = min(flow["too_large_bytes"] for flow in stuck)
    sentence = f"Segments of {size_bytes:,} bytes and more were retransmitted and never arrived"
    remedy = "ICMP (fragmentation needed, packet too big) pass, clamp the MSS, or set net.ipv4.tcp_mtu_probing=1."
    if any(flow["largest_delivered_bytes"] is not None for flow in stuck):
        sentence += ", while smaller packets did: an MTU black hole."
        then = f"Let {remedy}"
    else:
        sentence += ", nor did any data: an MTU black hole, or an outage from the first data on."
        then = f"See whether pings of that size with DF are lost and small ones are not; then let {remedy}"
    yield Finding(Cause.NETWORK, sentence, {"too_large_bytes": size_bytes}, next=then, shown=("sequence",))


def of_losses(flows: Sequence[Mapping[str, Any]]) -> Iterable[Finding]:
    """Return the finding of lost and retransmitted segments, if any; None where it is unknown for every flow."""
    lost = partial_sum(flow["segments_lost"] for flow in flows)
    by_cause = {cause: partial_sum(flow["retransmissions"][cause] for flow in flows) for cause in RETRANSMISSIONS}
    retransmitted, syns = sum(filter(None, by_cause.values())), sum(by_cause[name] or 0 for name in ("syn", "synack"))
    if retransmitted or lost:
        reasons = (
            (by_cause["timeout"], "after a timeout"),
            (by_cause["spurious"], "spurious"),
            (syns, "of handshakes"),
        )
        shown = reasons if syns else reasons[:2]
        parts = ", ".join(f"{number:,} {words}" for number, words in shown if number is not None)
        count = "unknown" if lost is None else f"{lost:,}"
        sentence = f"Segments lost: {count}; retransmitted: {retransmitted:,}{parts and f' ({parts})'}."
        counts = {"segments_lost": lost, "retransmissions": retransmitted}
        evidence = counts | {cause: by_cause[cause] for cause in ("timeout", "spurious")}
        yield Finding(Cause.NETWORK, sentence, evidence, shown=("sequence",))


def of_capture(analysis: Mapping[str, Any]) -> Iterable[Finding]:
    """Return the findings of faults of the capture itself: its clock, packets that it has twice or lacks."""
    steps = analysis["clock_steps"]
    if steps["count"]:
        times = "once" if steps["count"] == 1 else f"{steps['count']} times"
        sentence = f"The capture's clock was set back {times}, by {numbers.value(steps['seconds'], 's')} in all."
        then = "Slew the clock (chrony, ntpd -x) while you capture: times before and after a step do not compare."
        yield Finding(Cause.CAPTURE, sentence, dict(steps), next=then)
    copies = sum(flow["duplicates"] or 0 for flow in analysis["flows"] if flow["vantage"] == "sender")
    if copies and copies >= WORTH_OF_CAPTURE * analysis["packets"]:
        those = "one segment" if copies == 1 else f"{copies:,} segments"
        sentence = f"The capture contains {those} twice; the copies were ignored."
        then = "A mirror (SPAN) port for both directions, or two interfaces, capture each packet twice: mirror one."
        yield Finding(Cause.CAPTURE, sentence, {"duplicates": copies}, next=then)
    loss = analysis["capture_loss"]
    if loss["share"] is not None and loss["share"] >= WORTH_OF_CAPTURE:
        share = numbers.value(loss["share"], "share")
        sentence = f"The capture lacks {share} of the data segments that arrived: the capture itself dropped them."
        then = "Capture fewer bytes per packet (snaplen 96), with a larger buffer (tcpdump -B), or to a faster disk."
        yield Finding(Cause.CAPTURE, sentence, dict(loss), next=then, shown=("sequence",))
