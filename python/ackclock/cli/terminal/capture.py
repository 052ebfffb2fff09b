"""The output of `ackclock capture` and `ackclock doctor`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from ackclock.capture import congestion, udp
from ackclock.cli.terminal import output
from ackclock.figures import numbers
from ackclock.system.files import readable

if TYPE_CHECKING:
    from ackclock.capture.agreement import Agreement, Point
    from ackclock.capture.diagnosis import Diagnosis

#: Connections in the table, those with the most data.
MAX_ROWS = 20

#: Heading, key and unit of each column.
COLUMNS = (
    ("data", "bytes", "bytes"),
    ("goodput", "goodput_bps", "bit/s"),
    ("RTT", "rtt_mean_s", "s"),
    ("lost", "segments_lost", ""),
)


#: Labels of what limits a flow.
LIMITS = {
    "application": "application",
    "receiver": "receiver",
    "cwnd": "window",
    "slow_start": "slow start",
    "bottleneck": "own queue",
    "shared_bottleneck": "full link",
    "send_buffer": "send buffer",
    "unknown_window": "unknown window",
}


def print_analysis(answers: Mapping[str, Any]) -> None:
    """Print the summary, and a line for each connection and flow."""
    console = output.console()
    console.print(answers["summary"])
    if "joined" in answers:
        print_joined(console, answers["joined"])
    _print_connections(console, answers)
    _print_udp(console, udp.of_analysis(answers)["flows"])


def _print_connections(console: Console, answers: Mapping[str, Any]) -> None:
    """Print a line for each connection of TCP, those with the most data first."""
    flows = sorted(answers["flows"], key=lambda flow: -(flow["bytes"] or 0))
    if not flows:
        return
    table = output.table(collapse_padding=True)
    table.add_column("connection", overflow="fold")
    for heading in (*(heading for heading, _, _ in COLUMNS), "retrans"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("limited by", no_wrap=True)
    table.add_column("CCA", no_wrap=True)
    for flow in flows[:MAX_ROWS]:
        cells = [numbers.value(flow[key], unit if flow[key] else "") for _, key, unit in COLUMNS]
        retransmissions = _retransmissions(flow["retransmissions"])
        cca = congestion.word(flow["congestion"]) if flow["congestion"] else numbers.NOTHING
        table.add_row(Text(_endpoints(flow)), *cells, retransmissions, _limit(flow["limited"]), cca)
    console.print(table)
    for sentence in sorted({_equivalents(flow["congestion"]) for flow in flows[:MAX_ROWS]} - {""}):
        console.print(sentence)
    if len(flows) > MAX_ROWS:
        console.print(f"… and {len(flows) - MAX_ROWS:,} more: see --json or --out.")


def _print_udp(console: Console, flows: Sequence[Mapping[str, Any]]) -> None:
    """Print a line for each flow of UDP, those with the most data first."""
    if not flows:
        return
    table = output.table(collapse_padding=True)
    table.add_column("UDP flow", overflow="fold")
    table.add_column("protocol", no_wrap=True)
    for heading in ("data", "rate", "RTT", "gaps"):
        table.add_column(heading, justify="right", no_wrap=True)
    for flow in sorted(flows, key=lambda flow: -flow["bytes"])[:MAX_ROWS]:
        sender = max(("client", "server"), key=lambda end: flow[f"from_{end}"]["bytes"])
        one = flow[f"from_{sender}"]
        protocol = f"QUIC {flow['quic']['version'] or ''}" if flow["quic"] else numbers.NOTHING
        figures = ((one["bytes"], "bytes"), (one["rate_bps"], "bit/s"), (_rtt_s(flow), "s"))
        gaps = numbers.value(flow["gaps"]["seconds"], "s") if flow["gaps"]["count"] else numbers.NOTHING
        cells = [numbers.value(value, unit) if value is not None else numbers.NOTHING for value, unit in figures]
        table.add_row(Text(_endpoints({**flow, "sender": sender})), protocol, *cells, gaps)
    console.print(table)
    if len(flows) > MAX_ROWS:
        console.print(f"… and {len(flows) - MAX_ROWS:,} more: see --json or --out.")


def _rtt_s(flow: Mapping[str, Any]) -> float | None:
    """Return the mean RTT by the spin bit, else that of the handshake; None if neither is known."""
    if not flow["quic"]:
        return None
    spin_s, handshake_s = flow["quic"]["spin"]["rtt_mean_s"], flow["quic"]["handshake"]["rtt_s"]
    rtt_s: float | None = handshake_s if spin_s is None else spin_s
    return rtt_s


#: Counts of matched captures, and their keys; one is printed even if it is zero.
BETWEEN = "segments_lost_between"
COUNTS = (
    ("segments lost before the first vantage point", "segments_lost_before"),
    ("segments lost between the vantage points", BETWEEN),
    ("segments lost after the second vantage point", "segments_lost_after"),
    ("acknowledgements lost between", "acks_lost_between"),
    ("missed by the first capture", "missed_by_first"),
    ("missed by the second capture", "missed_by_second"),
    ("reordered between", "reordered"),
)


def print_joined(console: Console, joined: Mapping[str, Any]) -> None:
    """Print where packets were lost between two captures, one-way delays, and the clocks' difference."""
    first, second = readable(joined["first"]), readable(joined["second"])
    console.print(Text(f"From {first} to {second}: {joined['packets']:,} packets in both."))
    counts = [
        f"{joined[key]:,} {label}" for label, key in COUNTS if joined[key] or (key == BETWEEN and joined[key] == 0)
    ]
    counts += ["losses of data unknown: none were captured"] if joined[BETWEEN] is None else []
    console.print("  " + "; ".join(counts) + ".")
    if joined["offset_s"] is None:
        console.print("  The clock offset is unknown: there are packets in one direction only.")
        return
    forward, back = joined["delay_forward_s"], joined["delay_back_s"]
    for direction, delay in (("forward", forward), ("back", back)):
        each = ", ".join(f"{name} {numbers.value(delay[name], 's')}" for name in ("min", "mean", "p95", "max"))
        console.print(f"  Delay {direction}: {each}.")
    console.print(
        f"  Clock offset (second − first): {joined['offset_s']:+.6f} s ± "
        f"{numbers.value(joined['offset_error_s'], 's')}; "
        f"{_drift(joined)}."
    )


def _retransmissions(by_cause: Mapping[str, int | None]) -> str:
    """Return the sum of what is known; nothing where retransmissions of data are not."""
    known = [count for count in by_cause.values() if count is not None]
    return numbers.NOTHING if by_cause["unknown"] is None else f"{sum(known):,}"


def _endpoints(flow: Mapping[str, Any]) -> str:
    arrow = "→" if flow["sender"] == "client" else "←"
    return f"{flow['client']} {arrow} {flow['server']}"


def _equivalents(ranking: congestion.Ranking | None) -> str:
    """Return a sentence on the CCAs that the flow may have used instead of the most probable one, if any."""
    others = " or ".join(congestion.same(ranking))
    parts = [f"indistinguishable from {others} in these flows"] if others else []
    if second := congestion.second(ranking):
        parts.append(f"next most probable is {second['name']} ({second['probability']:.0%})")
    return f"{congestion.word(ranking)}: {'; '.join(parts)}." if parts else ""


def _limit(limited: Mapping[str, float] | None) -> str:
    if not limited:
        return numbers.NOTHING
    name = max(limited, key=lambda limit: limited[limit])
    return f"{LIMITS[name]} {limited[name]:.0%}"


def print_diagnoses(points: Sequence[Point], agreement: Agreement) -> None:
    """Print the diagnosis of each vantage point of the same connections, and whether they agree."""
    console = output.console()
    console.print("The captures have the same packets: each vantage point is examined alone.")
    for point in points:
        console.print()
        console.print(Text(f"{point.name}:", style="bold"))
        print_diagnosis(point.analysis, point.diagnosis, console)
    console.print()
    console.print(Text(agreement.sentence, style="bold"))


def print_diagnosis(answers: Mapping[str, Any], diagnosis: Diagnosis, console: Console | None = None) -> None:
    """Print the verdict, each cause's share of the time, and each finding with its evidence."""
    console = console or output.console()
    console.print(answers["summary"])
    console.print()
    verdict, shares = diagnosis.heading
    console.print(Text(verdict, style="bold"))
    if shares:
        console.print(shares)
    for finding in diagnosis.findings:
        console.print()
        console.print(f"* {finding.sentence}")
        console.print(Text(f"  {numbers.evidence_line(finding.evidence)}", style="dim"))
        if finding.next:
            console.print(f"  {finding.next}")


def _drift(joined: Mapping[str, Any]) -> str:
    """Return how the clocks drift, if the packets tell."""
    if joined["drift_ppm"] is None:
        return "too few packets to tell their drift"
    return f"drift {joined['drift_ppm']:+.3f} ± {joined['drift_error_ppm']:.3f} ppm"
