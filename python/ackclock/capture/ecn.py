"""Findings about congestion marks: RFC 3168 (ECE and CWR), AccECN's counters (RFC 9768), and L4S (RFC 9331)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ackclock.capture.findings import Cause, Finding, times, was
from ackclock.figures import numbers
from ackclock.figures.summary_text import counted

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


def of_ecn(flows: Sequence[Mapping[str, Any]]) -> Iterable[Finding]:
    """Return the finding of congestion marks: those that passed, and those that the receivers echoed or reported."""
    ecn = [flow["ecn"] for flow in flows]
    unreadable = any(_is_unreadable(one) for one in ecn)
    marks, l4s = _sum(ecn, "ce_packets"), _sum(ecn, "ect1_packets")
    low_latency = f" {counted(l4s, 'packet').capitalize()} carried ECT(1) (L4S)." if l4s else ""
    echoes = list(_feedback(ecn, marks))
    evidence = _evidence(ecn)
    if marks or echoes:
        marked = f"{counted(marks, 'packet').capitalize()} {was(marks)}" if marks else "Packets were"
        of_them = "; ".join([*echoes, *([UNREADABLE] if unreadable else [])])
        sentence = f"{marked} CE-marked instead of dropped (ECN): {of_them}.{low_latency}"
        then = "An AQM on the path signals congestion: look for what fills its link."
        yield Finding(Cause.NETWORK, sentence, evidence, next=then)
    elif unreadable:
        sentence = f"{low_latency} {UNREADABLE[0].upper()}{UNREADABLE[1:]}.".strip()
        yield Finding(Cause.NOTHING, sentence, evidence, next=CAPTURE_SYN)
    elif l4s:
        yield Finding(Cause.NOTHING, f"{low_latency.strip()} None was marked.", evidence)


def _is_unreadable(ecn: Counts) -> bool:
    return ecn["ece_packets"] is None and ecn["reported_marks"] is None


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
