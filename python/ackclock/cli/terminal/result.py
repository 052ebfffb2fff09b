"""What `ackclock run` shows of a result: the answer in a sentence, and the table of its main metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ackclock.dataset import Dataset
from ackclock.figures import numbers, phase
from ackclock.metrics import METRICS, main
from ackclock.metrics.protocols import PHASE

#: The answer in words: metric, and what is said of its mean.
ANSWER = (
    ("utilisation", "{links} {} busy"),
    ("jain", "Jain's index of the shares is {}"),
    ("queue_delay_mean_s", "a packet waited {} in the queue on average"),
    ("queue_delay_p95_s", "19 of 20 waited less than {}"),
)

#: What is said instead where the mean is 0.
NOTHING = {
    "queue_delay_mean_s": "no packet waited in the queue",
    "queue_delay_p95_s": "19 of 20 did not wait",
}


def print_result(data: Dataset, found: Mapping[str, Any]) -> None:
    """The answer to "how well did they share the link, at what delay", and the numbers behind it.

    `found` is `ackclock.metrics.table(data)`.
    """
    console = Console(emoji=False, highlight=False)
    console.print(Text(found["scenario"] or "", style="bold"))
    alone = len(data.plan.flows) == 1
    summary = {name: row for name, row in found["summary"].items() if not (alone and METRICS[name].of_several)}
    if answer := _answer(summary, len(data.plan.bottlenecks)):
        console.print(answer)
    for line in _rules(data):
        console.print(line)
    if measured := (data.plan.options.get("testbed") or {}).get("measured"):
        console.print(_measured(measured))
    if held := [run["held"] for run in data.runs if "held" in run]:
        console.print(_kept_up(held))
    if PHASE in found:
        console.print(phase.sentence(found[PHASE]))
    console.print(_table(summary, numbers.engine(data.manifest), len(found["runs"])))


def _answer(summary: Mapping[str, Any], bottlenecks: int) -> str:
    means = {name: mean for name, _ in ANSWER if (mean := summary.get(name, {}).get("mean")) is not None}
    if means.get("queue_delay_mean_s") == 0:
        means.pop("queue_delay_p95_s", None)
    links = "The link was" if bottlenecks == 1 else f"The {bottlenecks:,} bottlenecks were together"
    parts = [_said(name, sentence, means[name], links) for name, sentence in ANSWER if name in means]
    if parts:
        return "; ".join(parts) + "."
    return "" if any(row.get("mean") is not None for row in summary.values()) else "Nothing was measured."


def _rules(data: Dataset) -> Iterator[str]:
    """The sizes of the bottlenecks' queues that came of a buffer rule, and the numbers that it gave."""
    for link in data.plan.links:
        if link.bottleneck and link.queue:
            for key, rule in link.queue.rules.items():
                name, unit = key.rsplit("_", 1)
                yield f"The {name} of {link.name} is {link.queue.parameters[key]:,} {unit} ({rule})."


def _measured(path: Mapping[str, Any]) -> str:
    """What a testbed's hosts found out before its runs."""
    rate, rtt = numbers.value(path["rate_bps"], "bit/s"), numbers.value(path["rtt_s"], "s")
    return f"Measured before: a path of {rate} and a round trip of {rtt}."


def _kept_up(held: list[Mapping[str, Any]]) -> str:
    """How well a machine kept up with runs in real time, at worst."""
    shares = [share for run in held for share in run["shares"].values() if share is not None]
    rate = f"busy links held {numbers.value(min(shares), 'share')} of their rate" if shares else "no link was busy"
    mean, most = (numbers.value(max(run[key] for run in held), "s") for key in ("late_mean_s", "late_max_s"))
    return f"In real time: {rate}; samples came {mean} late on average, at most {most}."


def _said(name: str, sentence: str, mean: float, links: str) -> str:
    if mean == 0 and name in NOTHING:
        return NOTHING[name]
    return sentence.format(numbers.value(mean, METRICS[name].unit), links=links)


def _table(summary: Mapping[str, Any], engine: str, runs: int) -> Table:
    title = ", ".join(filter(None, (engine, f"{runs} runs" if runs > 1 else "one run: no intervals")))
    table = Table(title=title, title_justify="left", title_style="", box=None, pad_edge=False, header_style="bold")
    table.add_column("metric")
    for heading in ("mean", "95 % interval", "n"):
        table.add_column(heading, justify="right")
    for name in main("table"):
        row = summary.get(name, {})
        if row.get("mean") is not None:
            mean, interval = numbers.interval(row["mean"], row["ci95_low"], row["ci95_high"], METRICS[name].unit)
            table.add_row(METRICS[name].label, mean, interval if row["n"] > 1 else "one run: none", str(row["n"]))
    return table
