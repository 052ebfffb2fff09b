"""The output of `ackclock run`: a summary in a sentence, and the table of the main metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from ackclock.cli.terminal import output
from ackclock.dataset import Dataset
from ackclock.figures import numbers, summary_text
from ackclock.metrics import JAIN_OF_ALL, METRICS, is_shown, main, runs
from ackclock.metrics.protocols import PHASE

#: Metrics of the summary, each with the words before its mean.
SUMMARY = (
    ("utilisation", "{links} utilisation"),
    ("jain", "Jain's index of like flows"),
    (JAIN_OF_ALL, "Jain's index of flows that differ"),
    ("min_group_share", "smallest share of a group"),
    ("queue_delay_mean_s", "mean queueing delay"),
    ("queue_delay_p95_s", "p95 queueing delay"),
)


#: Groups in the table of who got what; all are in the report and in JSON.
MAX_GROUPS = 5


def print_result(data: Dataset, metrics: Mapping[str, Any], *, err: bool = False) -> None:
    """Print utilisation, fairness and queueing delay in a sentence, and the table of the main metrics.

    `metrics` is `ackclock.metrics.table(data)`; with `err`, all goes to standard error.
    """
    console = output.console(err=err)
    console.print(Text(metrics["scenario"] or "", style="bold"))
    is_single = (len(data.plan.flows) or metrics["summary"]["flows_active"]["mean"]) == 1
    summary = {name: row for name, row in metrics["summary"].items() if not (is_single and METRICS[name].of_several)}
    if summary.get("jain", {}).get("mean") is not None or is_single:
        summary.pop(JAIN_OF_ALL, None)
    if sentence := _sentence(summary, summary_text.bottleneck(next(runs(data)), "link")):
        console.print(sentence)
    for line in _buffer_sizes(data):
        console.print(line)
    if measured := (data.plan.options.get("testbed") or {}).get("measured"):
        console.print(_measured(measured))
    if timing := [run["held"] for run in data.runs if "held" in run]:
        console.print(_timing(timing))
    if PHASE in metrics:
        console.print(summary_text.phase_sentence(metrics[PHASE]))
    if metrics["groups"]:
        console.print(_group_table(metrics["groups"]))
    if metrics["links"]:
        console.print(_link_table(metrics["links"]))
    console.print(_table(summary, numbers.engine(data.manifest), len(metrics["runs"])))


def _sentence(summary: Mapping[str, Any], links: str) -> str:
    means = {name: mean for name, _ in SUMMARY if (mean := summary.get(name, {}).get("mean")) is not None}
    if means.get("queue_delay_mean_s") == 0:
        means.pop("queue_delay_p95_s", None)
    parts = [
        f"{label.format(links=links)} {numbers.value(means[name], METRICS[name].unit)}"
        for name, label in SUMMARY
        if name in means
    ]
    if parts:
        text = "; ".join(parts)
        return f"{text[0].upper()}{text[1:]}."
    return "" if any(row.get("mean") is not None for row in summary.values()) else "Nothing was measured."


def _buffer_sizes(data: Dataset) -> Iterator[str]:
    """Yield the bottlenecks' buffer sizes that a rule determined."""
    for link in data.plan.links:
        if link.bottleneck and link.queue:
            for key, rule in link.queue.rules.items():
                name, unit = key.rsplit("_", 1)
                yield f"The {name} of {link.name} is {link.queue.parameters[key]:,} {unit} ({rule})."


def _measured(path: Mapping[str, Any]) -> str:
    """Return the rate and RTT of a testbed's path, as measured before the runs."""
    rate, rtt = numbers.value(path["rate_bps"], "bit/s"), numbers.value(path["rtt_s"], "s")
    return f"Measured before the runs: path rate {rate}, RTT {rtt}."


def _timing(runs: list[Mapping[str, Any]]) -> str:
    """Return how well the machine kept up with runs in real time, in the worst run."""
    shares = [share for run in runs for share in run["shares"].values() if share is not None]
    rate = f"busy links kept {numbers.value(min(shares), 'share')} of their rate" if shares else "no link was busy"
    mean, maximum = (numbers.value(max(run[key] for run in runs), "s") for key in ("late_mean_s", "late_max_s"))
    return f"Real time: {rate}; samples were {mean} late on average, at most {maximum}."


def _group_table(by_group: Mapping[str, Any]) -> Table:
    """Return who got what, a column a group; the first ones, where there are many."""
    heads, rows = summary_text.group_table(by_group)
    shown = rows[:MAX_GROUPS]
    title = f"the first {MAX_GROUPS} of {len(rows)} groups" if len(rows) > MAX_GROUPS else ""
    table = output.table("", *(Text(row[0]) for row in shown), title=title, title_justify="left", title_style="")
    for place, head in enumerate(heads[1:], 1):
        table.add_row(head, *(row[place] for row in shown))
    return table


def _link_table(by_link: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return what each of several bottlenecks did, a column a link."""
    table = output.table("bottleneck", *map(Text, by_link))
    for name in next(iter(by_link.values())):
        means = [rows[name]["mean"] for rows in by_link.values()]
        if is_shown(name, means):
            label = METRICS[name].label.removesuffix(" at the bottleneck").lower()
            table.add_row(label, *(numbers.value(mean, METRICS[name].unit) for mean in means))
    return table


def _table(summary: Mapping[str, Any], engine: str, runs: int) -> Table:
    title = ", ".join(filter(None, (engine, f"{runs} runs" if runs > 1 else "one run: no intervals")))
    headings = ("metric", "mean", "95 % interval", "n")
    table = output.table(*headings, title=title, title_justify="left", title_style="")
    names = main("table")
    names.insert(names.index("jain") + 1, JAIN_OF_ALL)
    competing = summary.get("min_group_share", {}).get("mean") is not None
    for name in names:
        row = summary.get(name, {})
        if is_shown(name, [row.get("mean")]):
            mean, interval = numbers.interval(row["mean"], row["ci95_low"], row["ci95_high"], METRICS[name].unit)
            label = summary_text.metric_label(name, competing=competing)
            table.add_row(label, mean, interval if row["n"] > 1 else "one run: none", str(row["n"]))
    return table
