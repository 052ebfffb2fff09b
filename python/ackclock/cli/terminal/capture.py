"""What `ackclock capture` and `ackclock doctor` show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ackclock.capture import congestion
from ackclock.capture.diagnosis import Diagnosis
from ackclock.figures import numbers
from ackclock.system.files import readable

#: Connections that are listed, those with the most data.
LISTED = 20

#: Heading, and the key and unit of what stands under it.
COLUMNS = (
    ("data", "bytes", "bytes"),
    ("goodput", "goodput_bps", "bit/s"),
    ("RTT", "rtt_mean_s", "s"),
    ("lost", "segments_lost", ""),
)


#: What limits a flow, in a word.
LIMITS = {
    "application": "application",
    "receiver": "receiver",
    "control": "window",
    "slow_start": "slow start",
    "bottleneck": "own queue",
    "shared_bottleneck": "full link",
}


def print_answers(answers: Mapping[str, Any]) -> None:
    """The summary, and a line for each connection."""
    console = Console(emoji=False, highlight=False)
    console.print(answers["summary"])
    if "joined" in answers:
        print_joined(console, answers["joined"])
    flows = sorted(answers["flows"], key=lambda flow: -(flow["bytes"] or 0))
    if not flows:
        return
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    table.add_column("connection", overflow="fold")
    for heading in (*(heading for heading, _, _ in COLUMNS), "repairs"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("limited by", no_wrap=True)
    table.add_column("control", no_wrap=True)
    for flow in flows[:LISTED]:
        cells = [numbers.value(flow[key], unit if flow[key] else "") for _, key, unit in COLUMNS]
        repairs = f"{sum(flow['retransmissions'].values()):,}"
        control = congestion.word(flow["congestion"]) if flow["congestion"] else numbers.NOTHING
        table.add_row(Text(_ends(flow)), *cells, repairs, _limit(flow["limited"]), control)
    console.print(table)
    for said in sorted({_same(flow["congestion"]) for flow in flows[:LISTED]} - {""}):
        console.print(said)
    if len(flows) > LISTED:
        console.print(f"… and {len(flows) - LISTED:,} more, which --json and --out have.")


#: What a join counts, and its key; one is told also if there are none.
BETWEEN = "segments_lost_between"
PLACED = (
    ("segments lost before the first point", "segments_lost_before"),
    ("segments lost between the points", BETWEEN),
    ("segments lost behind the second point", "segments_lost_after"),
    ("acknowledgements lost between", "acks_lost_between"),
    ("missed by the first capture", "missed_by_first"),
    ("missed by the second capture", "missed_by_second"),
    ("reordered between", "reordered"),
)


def print_joined(console: Console, joined: Mapping[str, Any]) -> None:
    """Where packets were lost between two captures, their delays, and how the clocks differ."""
    first, second = readable(joined["first"]), readable(joined["second"])
    console.print(Text(f"From {first} to {second}: {joined['packets']:,} packets at both."))
    counted = [f"{joined[key]:,} {words}" for words, key in PLACED if joined[key] or key == BETWEEN]
    console.print("  " + "; ".join(counted) + ".")
    if joined["offset_s"] is None:
        console.print("  The clocks cannot be related: packets are seen in one direction only.")
        return
    forward, back = joined["delay_forward_s"], joined["delay_back_s"]
    for words, delay in (("forward", forward), ("back", back)):
        each = ", ".join(f"{name} {numbers.value(delay[name], 's')}" for name in ("min", "mean", "p95", "max"))
        console.print(f"  Delay {words}: {each}.")
    console.print(
        f"  The second clock less the first: {joined['offset_s']:+.6f} s, by at most "
        f"{numbers.value(joined['offset_error_s'], 's')} more or less; it grows by {joined['drift_ppm']:+.3f} ± "
        f"{joined['drift_error_ppm']:.3f} ppm."
    )


def _ends(flow: Mapping[str, Any]) -> str:
    arrow = "→" if flow["sender"] == "client" else "←"
    return f"{flow['client']} {arrow} {flow['server']}"


def _same(ranking: congestion.Ranking | None) -> str:
    """What cannot be told from the control that is said, if anything."""
    others = " or ".join(congestion.same(ranking))
    return f"{congestion.word(ranking)}: or {others}, which would have done the same there." if others else ""


def _limit(limited: Mapping[str, float] | None) -> str:
    if not limited:
        return numbers.NOTHING
    name = max(limited, key=lambda limit: limited[limit])
    return f"{LIMITS[name]} {limited[name]:.0%}"


def print_diagnosis(answers: Mapping[str, Any], found: Diagnosis, console: Console | None = None) -> None:
    """The verdict, what each cause cost, and each finding with its figures; to a console other than the terminal."""
    console = console or Console(emoji=False, highlight=False)
    console.print(answers["summary"])
    console.print()
    console.print(Text(f"Verdict: {found.verdict.label}.", style="bold"))
    shares = ", ".join(f"{cause.cost_label} {numbers.value(share, 'share')}" for cause, share in found.dearest)
    if shares:
        console.print(f"Of the flows' time: {shares}.")
    for finding in found.findings:
        console.print()
        console.print(f"* {finding.sentence}")
        console.print(Text(f"  {numbers.evidence_line(finding.evidence)}", style="dim"))
        if finding.next:
            console.print(f"  {finding.next}")
