"""What `ackclock capture` and `ackclock doctor` show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ackclock.captures import congestion
from ackclock.captures.diagnosis import Diagnosis
from ackclock.views import numbers

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
    if len(flows) > LISTED:
        console.print(f"… and {len(flows) - LISTED:,} more, which --json and --out have.")


def _ends(flow: Mapping[str, Any]) -> str:
    arrow = "→" if flow["sender"] == "client" else "←"
    return f"{flow['client']} {arrow} {flow['server']}"


def _limit(limited: Mapping[str, float] | None) -> str:
    if not limited:
        return numbers.NOTHING
    name = max(limited, key=lambda limit: limited[limit])
    return f"{LIMITS[name]} {limited[name]:.0%}"


def print_diagnosis(answers: Mapping[str, Any], found: Diagnosis) -> None:
    """The verdict, what each cause cost, and each finding with its figures."""
    console = Console(emoji=False, highlight=False)
    console.print(answers["summary"])
    console.print()
    console.print(Text(f"Verdict: {found.verdict.words}.", style="bold"))
    for finding in found.findings:
        console.print()
        console.print(f"* {finding.sentence}")
        figures = ", ".join(f"{key} {_figure(value)}" for key, value in finding.evidence.items())
        console.print(Text(f"  {figures}", style="dim"))
        if finding.next:
            console.print(f"  {finding.next}")


def _figure(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_figure, value)) + "]"
    return f"{value:,}" if isinstance(value, int) else str(value)
