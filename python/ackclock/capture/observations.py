"""Findings about TCP's options, the path's state, acknowledgements and congestion marks.

They explain a verdict, and decide none.

Each needs positive evidence: packets that can be found in the capture, not a gap in another explanation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ackclock.capture.findings import OF_LOSSES, WORTH, Cause, Finding, times, was
from ackclock.figures import numbers
from ackclock.figures.summary_text import counted

Flows = Sequence[Mapping[str, Any]]

#: An outage lasts for so long, in seconds, and at the sender for so many stalls in a row: the copies of a segment that
#: the retransmission timer sends, each of which is lost. Where they are not seen it must last longer than one timer.
MIN_OUTAGE_S, MIN_LOST_COPIES, MIN_GAP_S = 1.0, 3, 2.5

#: Round trips with data before an outage: what is too large for the path is lost from the first flight on.
MIN_ROUND_TRIPS = 4

#: Stalls follow each other without a packet of the other end between them, in seconds.
CONTIGUOUS_S = 0.02

#: Acknowledgements wait on a congested path: longer than jitter makes them, in seconds; for at least this share of the
#: shortest RTT; and for at least this share of the time by which the mean RTT exceeds it.
MIN_ACK_WAIT_S, ACK_WAIT_SHARE, QUEUEING_SHARE = 0.02, 0.25, 0.5

#: Away from the sender, an application that writes late delays data as a slow path of acknowledgements does.
MAX_APPLICATION_SHARE = 0.5

#: The number of keep-alives in a row without an answer that cannot be the loss of a single packet.
MIN_UNANSWERED = 3


def observations(flows: Flows) -> Iterator[Finding]:
    """Return the findings in the order of what they explain: handshake, path, acknowledgements, ends."""
    for kind in (_fast_open, _ecn, _outages, _route, _ack_path, zero_windows, _reneging, _keep_alives):
        yield from kind(flows)


def _connections(count: int, verb: str) -> str:
    return f"One connection {verb}" if count == 1 else f"{count:,} connections {verb}"


def _fast_open(flows: Flows) -> Iterable[Finding]:
    """Return the finding of data in SYNs (RFC 7413), and whether the server took them."""
    answered = [flow for flow in flows if flow["established"] and not flow["retransmissions"]["syn"]]
    opened = [flow["fast_open"] for flow in answered if flow["fast_open"]]
    if not opened:
        return
    ignored = sum(not one["accepted_bytes"] for one in opened)
    sentence = f"{_connections(len(opened), 'sent data in the SYN (TCP Fast Open)')}"
    evidence = {"connections": len(opened), "not_accepted": ignored}
    if not ignored:
        yield Finding(Cause.NOTHING, f"{sentence}, and the server accepted them.", evidence)
        return
    which = "" if ignored == len(opened) else f" of {ignored:,}"
    sentence += f"; the SYN/ACK{which} did not acknowledge them, so they were retransmitted a round trip later."
    then = "Enable TCP Fast Open at the server (net.ipv4.tcp_fastopen); a stale cookie is renewed by that SYN/ACK."
    yield Finding(Cause.HOST, sentence, evidence, next=then)


@dataclass(frozen=True, slots=True)
class _Outage:
    """A time in which no packet passed, in seconds, and how many transmissions were seen to be lost in a row in it.

    The retransmission timer backs off (RFC 6298 section 5.5), so the wait for it outlasts an outage: that lasted from
    the first retransmission that was lost to the last, at least; and no longer than to the first that passed.
    """

    begin_s: float
    min_s: float
    max_s: float
    copies: int

    @property
    def end_s(self) -> float:
        """Return when it was over at the latest."""
        return self.begin_s + self.max_s


def _outages(flows: Flows) -> Iterable[Finding]:
    """Return the finding of times in which nothing passed: each copy of a retransmitted segment was lost.

    What other flows sent at that time must have been lost, too.
    """
    runs = {flow["id"]: list(_outages_of(flow)) for flow in flows}
    found = [
        (outage, flow)
        for flow in flows
        for outage in runs[flow["id"]]
        if _has_passed(flow, outage) and all(_has_stopped(other, runs[other["id"]], outage) for other in flows)
    ]
    if not found:
        return
    longest, flow = max(found, key=lambda one: one[0].max_s)
    is_over = flow["last_data_s"] is None or flow["last_data_s"] > longest.end_s
    bounds = [f"at least {numbers.value(longest.min_s, 's')}"] if longest.min_s else []
    bounds += [f"at most {numbers.value(longest.max_s, 's')}"] if is_over or not bounds else []
    lost = f"; {longest.copies:,} copies of a segment were lost in a row" if longest.copies > 1 else ""
    sentence = (
        f"Nothing passed from {numbers.value(longest.begin_s, 's')} on, for {' and '.join(bounds)}{lost}: an outage of "
        "the path."
    )
    then = (
        "Look at the link's state at that time: a handover, a flapping port, a route that converged. As the "
        "retransmission timer backs off, the link may have been up before the transfer went on."
    )
    evidence = {"outages": len(found), "begin_s": longest.begin_s}
    evidence |= {"min_s": longest.min_s, "copies_lost": longest.copies} if longest.copies else {}
    evidence |= {"max_s": longest.max_s} if is_over else {}
    yield Finding(Cause.NETWORK, sentence, evidence, next=then, shown=("stalls", "sequence"))


def _has_passed(flow: Mapping[str, Any], outage: _Outage) -> bool:
    """Return True if data of this size has passed before the outage."""
    rtt_s = flow["rtt_min_s"] or flow["handshake_s"] or 0.0
    return bool(flow["first_data_s"] is not None and outage.begin_s - flow["first_data_s"] >= MIN_ROUND_TRIPS * rtt_s)


def _has_stopped(flow: Mapping[str, Any], runs: Iterable[_Outage], outage: _Outage) -> bool:
    """Return True if a flow had no data in the outage, or lost it for most of that time."""
    if flow["first_data_s"] is None or flow["first_data_s"] > outage.begin_s or flow["last_data_s"] < outage.end_s:
        return True
    overlaps_s = (min(one.end_s, outage.end_s) - max(one.begin_s, outage.begin_s) for one in runs)
    return any(overlap_s >= outage.max_s / 2 for overlap_s in overlaps_s)


def _outages_of(flow: Mapping[str, Any]) -> Iterator[_Outage]:
    """Return the outages that a flow's stalls show: of several in a row, each of which losses caused."""
    run: list[Mapping[str, Any]] = []
    for stall in [*flow["stalls"], None]:
        lossy = stall is not None and stall["class"] in OF_LOSSES
        if run and not (lossy and stall["start_s"] - _end_s(run[-1]) <= CONTIGUOUS_S):
            yield from _outage_at_sender(run) if flow["vantage"] == "sender" else _outage_behind_loss(run)
            run = []
        if lossy:
            run.append(stall)


def _outage_at_sender(run: Sequence[Mapping[str, Any]]) -> Iterator[_Outage]:
    """Return the outage of stalls whose retransmissions were captured: those that begin all but the first were lost."""
    begin_s, max_s = run[0]["start_s"], _end_s(run[-1]) - run[0]["start_s"]
    if len(run) >= MIN_LOST_COPIES and max_s >= MIN_OUTAGE_S:
        yield _Outage(begin_s, run[-1]["start_s"] - run[1]["start_s"], max_s, len(run))


def _outage_behind_loss(run: Sequence[Mapping[str, Any]]) -> Iterator[_Outage]:
    """Return the outage where lost retransmissions are not captured: what ends a stall has passed.

    Stalls that follow the longest one are waits for timers in the same recovery.
    """
    longest = max(run, key=lambda stall: stall["duration_s"])
    if longest["duration_s"] >= MIN_GAP_S:
        yield _Outage(longest["start_s"], 0.0, longest["duration_s"], 0)


def _end_s(stall: Mapping[str, Any]) -> float:
    return float(stall["start_s"] + stall["duration_s"])


def _route(flows: Flows) -> Iterable[Finding]:
    """Return the findings of another route: by the TTL, and by an RTT that rose at once and stayed."""
    changes = sum(flow["hop_changes"] or 0 for flow in flows)
    steps = [flow["rtt_step"] for flow in flows if flow["rtt_step"]]
    if not changes and not steps:
        return
    evidence: dict[str, Any] = {"hop_changes": changes}
    parts = []
    if steps:
        step = max(steps, key=lambda one: one["to_s"] - one["from_s"])
        evidence |= {"at_s": step["at_s"], "rtt_before_s": step["from_s"], "rtt_after_s": step["to_s"]}
        levels = f"from {numbers.value(step['from_s'], 's')} to {numbers.value(step['to_s'], 's')}"
        parts.append(f"the shortest RTT rose {levels} at {numbers.value(step['at_s'], 's')}, and stayed")
    if changes:
        parts.append(f"the TTL of the packets changed {times(changes)}")
    sentence = f"{', and '.join(parts)}: the route changed."
    then = "Compare traceroutes of both routes; a longer one needs larger windows."
    yield Finding(Cause.NETWORK, sentence[0].upper() + sentence[1:], evidence, next=then, shown=("rtt",))


def _ack_path(flows: Flows) -> Iterable[Finding]:
    """Return the finding of acknowledgements that waited on their way to the sender."""
    waited = [flow for flow in flows if has_slow_acks(flow)]
    if not waited:
        return
    wait_s = max(flow["ack_wait_s"] for flow in waited)
    sentence = (
        f"Acknowledgements waited {numbers.value(wait_s, 's')} on their way to the sender, on average, and account for "
        "most of the queueing delay: the return path is congested."
    )
    then = "Look for what fills the return path (an upload?), or let acknowledgements pass first (fq_codel, cake)."
    yield Finding(Cause.NETWORK, sentence, {"ack_wait_s": wait_s}, next=then, shown=("rtt",))


def has_slow_acks(flow: Mapping[str, Any]) -> bool:
    """Return True if acknowledgements account for most of the queueing delay of a flow."""
    wait_s, least_s, mean_s = flow["ack_wait_s"], flow["rtt_min_s"], flow["rtt_mean_s"]
    if wait_s is None or least_s is None or mean_s is None:
        return False
    if flow["vantage"] != "sender" and (flow["limited"] or {}).get("application", 0.0) > MAX_APPLICATION_SHARE:
        return False
    is_long = wait_s >= max(MIN_ACK_WAIT_S, ACK_WAIT_SHARE * least_s)
    return bool(is_long and wait_s >= QUEUEING_SHARE * (mean_s - least_s))


def zero_windows(flows: Flows) -> Iterable[Finding]:
    """Return the finding of receivers that advertised a window of zero for a good part of a connection's time.

    Stalls at a closed window have a finding of their own.
    """
    stalled = {flow["id"] for flow in flows for stall in flow["stalls"] if stall["class"] == "receiver"}
    windows = [flow["zero_window"] for flow in flows if flow["id"] not in stalled]
    closed = [window for window in windows if (window["share"] or 0.0) >= WORTH]
    if not closed:
        return
    count, seconds = sum(one["count"] for one in closed), sum(one["seconds"] for one in closed)
    sentence = f"The receive window was closed {times(count)}, for {numbers.value(seconds, 's')} in all (zero window)."
    evidence = {"zero_windows": count, "seconds": seconds, "share": max(one["share"] for one in closed)}
    then = "See why the receiving application does not read."
    yield Finding(Cause.RECEIVER, sentence, evidence, next=then, shown=("limits", "pipe"))


def _reneging(flows: Flows) -> Iterable[Finding]:
    """Return the finding of receivers that discarded data which they had acknowledged selectively (RFC 2018)."""
    reneged = sum(flow["sack_reneged"] or 0 for flow in flows)
    if reneged:
        sentence = (
            f"{counted(reneged, 'segment').capitalize()} {was(reneged)} retransmitted after the receiver had "
            f"acknowledged and then discarded {'it' if reneged == 1 else 'them'} (SACK reneging)."
        )
        then = "The receiver runs out of memory: raise net.ipv4.tcp_mem and tcp_rmem, or see why it reads slowly."
        yield Finding(Cause.RECEIVER, sentence, {"sack_reneged": reneged}, next=then, shown=("sequence",))


def _keep_alives(flows: Flows) -> Iterable[Finding]:
    """Return the findings of keep-alives: the connections were idle, and the peer answers or does not."""
    probes = sum(flow["keep_alives"]["probes"] for flow in flows)
    unanswered = max((flow["keep_alives"]["unanswered"] for flow in flows), default=0)
    evidence = {"keep_alives": probes, "unanswered": unanswered}
    if unanswered >= MIN_UNANSWERED:
        sentence = f"{unanswered:,} keep-alives in a row were not answered: the peer or the path is gone."
        then = (
            "See whether the peer runs, and whether a NAT or firewall forgot the connection: probe more often than it."
        )
        yield Finding(Cause.NETWORK, sentence, evidence, next=then)
    elif probes:
        sentence = (
            f"{counted(probes, 'keep-alive').capitalize()} {was(probes)} exchanged: the connection was open, and had "
            "nothing to send."
        )
        yield Finding(Cause.APPLICATION, sentence, evidence)


Counts = Mapping[str, Any]

#: Counts of a connection without ECN: of its packets, and of what the other end echoed or reported.
NO_ECN: Final[Counts] = {
    "ce_packets": 0,
    "ect1_packets": 0,
    "ece_packets": 0,
    "cwr_packets": 0,
    "reported_marks": None,
    "reported_is_minimum": False,
    "reported_marked_bytes": None,
}

#: Why the feedback cannot be read, and what to do.
UNREADABLE = (
    "what the receiver reported of marks is not readable from here: the handshake is not in the capture, and only it "
    "shows whether ECE and CWR are flags (RFC 3168) or bits of a counter (AccECN)"
)
CAPTURE_SYN = "Capture from before the connections open."

#: Why there is no feedback to read.
UNSEEN_FEEDBACK = "the packets of the receiver, which would echo or report it, are not in the capture"


def _ecn(flows: Flows) -> Iterable[Finding]:
    """Return the finding of congestion marks: those that passed, and those that the receivers echoed or reported.

    RFC 3168 (ECE and CWR), AccECN's counters (RFC 9768), and L4S (RFC 9331).
    """
    ecn = [flow["ecn"] for flow in flows]
    reasons = list(dict.fromkeys(filter(None, map(_unreadable, flows))))
    marks, l4s = _sum(ecn, "ce_packets"), _sum(ecn, "ect1_packets")
    low_latency = f" {counted(l4s, 'packet').capitalize()} carried ECT(1) (L4S)." if l4s else ""
    echoes = list(_feedback(ecn, marks))
    evidence = _evidence(ecn)
    if marks or echoes:
        marked = f"{counted(marks, 'packet').capitalize()} {was(marks)}" if marks else "Packets were"
        of_them = "; ".join([*echoes, *reasons])
        sentence = f"{marked} CE-marked instead of dropped (ECN): {of_them}.{low_latency}"
        then = "An AQM on the path signals congestion: look for what fills its link."
        yield Finding(Cause.NETWORK, sentence, evidence, next=then)
    elif UNREADABLE in reasons:
        sentence = f"{low_latency} {UNREADABLE[0].upper()}{UNREADABLE[1:]}.".strip()
        yield Finding(Cause.NOTHING, sentence, evidence, next=CAPTURE_SYN)
    elif l4s:
        yield Finding(Cause.NOTHING, f"{low_latency.strip()} None was marked.", evidence)


def _unreadable(flow: Mapping[str, Any]) -> str | None:
    """Return why nothing is known of a connection's feedback; None if something is, or nothing is to report."""
    ecn = flow["ecn"]
    if ecn["ece_packets"] is not None or ecn["reported_marks"] is not None:
        return None
    if flow["zero_window"]["count"] is not None:
        return UNREADABLE
    return UNSEEN_FEEDBACK if ecn["ce_packets"] else None


def _sum(ecn: Iterable[Counts], key: str) -> int:
    return sum(one[key] or 0 for one in ecn)


def _evidence(ecn: Sequence[Counts]) -> dict[str, int]:
    """Return the sums of what is known of any connection."""
    keys = (key for key in NO_ECN if key != "reported_is_minimum")
    return {key: _sum(ecn, key) for key in keys if any(one[key] is not None for one in ecn)}


def _feedback(ecn: Sequence[Counts], marks: int) -> Iterable[str]:
    """Return what the receivers echoed (RFC 3168) and reported (AccECN) of the marks, if anything or if some passed."""
    classic = [one for one in ecn if one["ece_packets"] or (one["ece_packets"] is not None and one["ce_packets"])]
    echoes, reductions = _sum(classic, "ece_packets"), _sum(classic, "cwr_packets")
    if classic and (echoes or marks):
        yield (
            f"{counted(echoes, 'acknowledgement')} echoed it (ECE), and the sender reduced its window "
            f"{times(reductions)} (CWR)"
        )
    accurate = [one for one in ecn if one["reported_marks"] is not None]
    reported = _sum(accurate, "reported_marks")
    if accurate and (reported or marks):
        at_least = "at least " if any(one["reported_is_minimum"] for one in accurate) else ""
        marked_bytes = _sum(accurate, "reported_marked_bytes")
        of_bytes = f" with {numbers.value(marked_bytes, 'bytes')} of data" if marked_bytes else ""
        yield f"the receiver reported {at_least}{counted(reported, 'marked packet')}{of_bytes} (AccECN)"
