"""Diagnosis of QUIC connections from what their headers, sizes and times show, without keys.

Each connection's time is divided between what has positive evidence and the rest, which is undecided: losses, windows
and who limits a rate are encrypted.

| evidence | cause |
|---|---|
| Initials are retransmitted, and nothing comes back | the network |
| nothing but ICMP errors comes back | what they say (`icmp`) |
| the server offers other versions, and no connection follows | the host |
| the server stops at three times what it received, until the client's next datagram (RFC 9000 section 8.1) | the host |
| neither end sends for longer than a probe timer runs (`crates/ackclock-analysis/src/udp/gaps.rs`) | the application |
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from ackclock.capture import icmp
from ackclock.capture.findings import Cause, Finding, summed, times
from ackclock.figures import numbers
from ackclock.repr_format import counted

Flow: TypeAlias = Mapping[str, Any]

#: Mean RTTs of so many times the shortest are worth a word; those of packets at a steady rate differ by less.
LONGER = 1.5

#: A rate is constant if this share of the intervals is within so much of their median, of at least so many intervals.
CONSTANT, WITHIN, MIN_INTERVALS = 0.8, 0.1, 20


def costs(flows: Sequence[Flow]) -> dict[Cause, float]:
    """Return the share of the connections' time that each cause took."""
    spans = [(flow, flow["end_s"] - flow["start_s"]) for flow in flows]
    total_s = sum(span_s for _, span_s in spans)
    if total_s <= 0:
        return {}
    seconds = summed(item for flow, span_s in spans for item in _seconds(flow, span_s))
    return {cause: value_s / total_s for cause, value_s in seconds.items()}


def _seconds(flow: Flow, span_s: float) -> Iterable[tuple[Cause, float]]:
    """Yield the causes of a connection's time."""
    failed = _failure(flow)
    if failed is not None:
        yield failed, span_s
        return
    gaps, handshake = flow["gaps"], flow["quic"]["handshake"]
    application_s = gaps["client_application_s"] + gaps["server_application_s"]
    waited_s = handshake["amplification_wait_s"]
    yield Cause.APPLICATION, application_s
    yield Cause.HOST, waited_s
    yield Cause.UNDECIDED, span_s - application_s - waited_s


def _failure(flow: Flow) -> Cause | None:
    """Return the cause of a handshake that failed, if it is known that it did."""
    if (rejected := icmp.failure(flow)) is not None:
        return rejected
    if flow["quic"]["handshake"]["state"] == "unanswered":
        return Cause.NETWORK
    return Cause.HOST if _has_no_version(flow) else None


def _has_no_version(flow: Flow) -> bool:
    quic = flow["quic"]
    return bool(quic["versions_offered"]) and quic["handshake"]["state"] is None and quic["version"] != "reserved"


def verdict(flows: Sequence[Flow], shares: Mapping[Cause, float]) -> Cause:
    """Return the cause of most of the time; of handshakes that failed at once, theirs."""
    failed = [cause for flow in flows if (cause := _failure(flow)) is not None]
    if len(failed) == len(flows) and failed:
        return max(set(failed), key=lambda cause: (failed.count(cause), cause.exit_status))
    return max(shares, key=lambda cause: shares[cause]) if shares else Cause.UNDECIDED


def findings(flows: Sequence[Flow], shares: Mapping[Cause, float]) -> Iterable[Finding]:
    """Yield the findings on QUIC connections, failed handshakes first."""
    yield from _initials_without_response(flows)
    yield from _versions(flows)
    yield from _amplification(flows, shares.get(Cause.HOST))
    yield from _applications(flows, shares.get(Cause.APPLICATION))
    yield from _retries(flows)
    yield from _moves(flows)
    yield from _marks(flows)
    yield from _rtts(flows)
    yield from _constant_rates(flows)
    if shares.get(Cause.UNDECIDED, 0.0) > 0:
        sentence = "What limited the QUIC connections while they sent is undecided: losses and windows are encrypted."
        then = "Give `ackclock capture` the qlog of either end."
        yield Finding(Cause.UNDECIDED, sentence, {"connections": len(flows)}, shares[Cause.UNDECIDED], then)


def _initials_without_response(flows: Sequence[Flow]) -> Iterable[Finding]:
    silent = [flow for flow in flows if icmp.failure(flow) is None]
    those = [one for flow in silent if (one := flow["quic"]["handshake"])["state"] == "unanswered"]
    if not those:
        return
    longest_s = max(one["tried_s"] for one in those)
    sentence = (
        f"{counted(len(those), 'QUIC connection')} got no answer: the client sent Initials again, for up "
        f"to {numbers.value(longest_s, 's')}."
    )
    then = "See whether a firewall drops UDP to this port, and whether a QUIC server listens there."
    yield Finding(Cause.NETWORK, sentence, {"connections": len(those), "longest_s": longest_s}, next=then)


def _versions(flows: Sequence[Flow]) -> Iterable[Finding]:
    those = [flow for flow in flows if flow["quic"]["versions_offered"]]
    if not those:
        return
    without = sum(map(_has_no_version, those))
    offered = sorted({version for flow in those for version in flow["quic"]["versions_offered"]})
    sentence = f"Servers answered {counted(len(those), 'connection')} with Version Negotiation: {', '.join(offered)}."
    if without:
        sentence += f" {counted(without, 'connection')} ended there."
    cause = Cause.HOST if without else Cause.NOTHING
    then = "See which versions of QUIC both ends have in common." if without else ""
    yield Finding(cause, sentence, {"connections": len(those), "without_version": without}, next=then)


def _amplification(flows: Sequence[Flow], share: float | None) -> Iterable[Finding]:
    those = [one for flow in flows if (one := flow["quic"]["handshake"])["amplification_waits"]]
    if not those:
        return
    waited_s = sum(one["amplification_wait_s"] for one in those)
    first = those[0]
    sentence = (
        f"In {counted(len(those), 'handshake')} the server stopped at three times what it had received, and went on "
        "after the client's next datagram: the anti-amplification limit."
    )
    evidence = {
        "connections": len(those),
        "waited_s": waited_s,
        "sent_bytes": first["amplification_sent_bytes"],
        "received_bytes": first["amplification_received_bytes"],
    }
    then = "A shorter or compressed certificate chain fits; so does a session that is resumed."
    yield Finding(Cause.HOST, sentence, evidence, share, then)


def _applications(flows: Sequence[Flow], share: float | None) -> Iterable[Finding]:
    seconds = {end: sum(flow["gaps"][f"{end}_application_s"] for flow in flows) for end in ("client", "server")}
    if not any(seconds.values()):
        return
    end = max(seconds, key=lambda end: seconds[end])
    sentence = (
        f"Neither end sent for longer than a probe timer runs, {numbers.value(sum(seconds.values()), 's')} in all: "
        f"nothing was outstanding. The {end}, or its host, ended {numbers.value(seconds[end], 's')} of that."
    )
    evidence = {f"{end}_s": value_s for end, value_s in seconds.items()}
    yield Finding(Cause.APPLICATION, sentence, evidence, share, f"Look at what the {end}'s application waits for.")


def _retries(flows: Sequence[Flow]) -> Iterable[Finding]:
    if retries := sum(bool(flow["quic"]["datagrams"]["retry"]) for flow in flows):
        sentence = f"Servers validated the client's address first (Retry) in {counted(retries, 'handshake')}."
        yield Finding(Cause.NOTHING, f"{sentence} That takes a round trip.", {"connections": retries})


def _moves(flows: Sequence[Flow]) -> Iterable[Finding]:
    changes = [change for flow in flows for change in flow["quic"]["address_changes"]]
    if changes:
        ports = sum(change["kind"] == "port" for change in changes)
        sentence = f"Clients changed their address {times(len(changes))}, {ports:,} of these the port alone."
        evidence = {"changes": len(changes), "ports": ports, "first_s": changes[0]["time_s"]}
        then = (
            "A NAT bound them anew, or they migrated: both begin with a new congestion window (RFC 9000 section 9.4)."
        )
        yield Finding(Cause.NOTHING, sentence, evidence, next=then)


def _marks(flows: Sequence[Flow]) -> Iterable[Finding]:
    marks = sum(flow[direction]["ecn"]["ce"] for flow in flows for direction in ("from_client", "from_server"))
    if marks:
        sentence = f"{counted(marks, 'QUIC datagram')} carried CE when they passed (ECN)."
        then = "An AQM before the vantage point signals congestion: look for what fills its link."
        yield Finding(Cause.NETWORK, sentence, {"ce_datagrams": marks}, next=then)


def _rtts(flows: Sequence[Flow]) -> Iterable[Finding]:
    spins = [flow["quic"]["spin"] for flow in flows if flow["quic"]["spin"]["state"] == "spinning"]
    longer = [spin for spin in spins if spin["rtt_mean_s"] >= LONGER * spin["rtt_min_s"]]
    if longer:
        worst = max(longer, key=lambda spin: spin["rtt_mean_s"] / spin["rtt_min_s"])
        ratio = worst["rtt_mean_s"] / worst["rtt_min_s"]
        sentence = (
            f"Round trips by the spin bit took {ratio:.1f} times the shortest on average: a queue, or ends that had "
            "nothing to send when the bit was to change."
        )
        evidence = {"rtt_min_s": worst["rtt_min_s"], "rtt_mean_s": worst["rtt_mean_s"], "connections": len(longer)}
        yield Finding(Cause.UNDECIDED, sentence, evidence)


def _constant_rates(flows: Sequence[Flow]) -> Iterable[Finding]:
    rates = [rate_bps for flow in flows if (rate_bps := constant_rate_bps(flow)) is not None]
    if rates:
        fastest = numbers.value(max(rates), "bit/s")
        sentence = (
            f"{counted(len(rates), 'QUIC connection')} sent at a constant rate, up to {fastest}: a link, a "
            "policer, a shaper or a sender that paces. Which of them is undecided."
        )
        yield Finding(Cause.UNDECIDED, sentence, {"rate_bps": max(rates), "connections": len(rates)})


def constant_rate_bps(flow: Flow) -> float | None:
    """Return the rate of the direction with more data if it is constant, in bit/s of UDP payload."""
    end = max(("client", "server"), key=lambda end: flow[f"from_{end}"]["bytes"])
    # The first and the last interval are not full.
    inner = flow["rates"][f"{end}_bps"][1:-1]
    if len(inner) < MIN_INTERVALS:
        return None
    median_bps = statistics.median(inner)
    within = sum(abs(bps - median_bps) <= WITHIN * median_bps for bps in inner)
    return float(median_bps) if median_bps > 0 and within >= CONSTANT * len(inner) else None
