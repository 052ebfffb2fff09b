"""The trace-study statistics of `ackclock capture --tables`."""

from __future__ import annotations

import polars as pl
from rich.console import Console
from rich.table import Table

from ackclock import metrics
from ackclock.capture import trace_statistics
from ackclock.cli.terminal import output
from ackclock.dataset import Dataset
from ackclock.figures import numbers

#: Quantity of `metrics.trace` → its label and unit.
TRACED = {
    "retransmission": ("retransmitted packets", "share"),
    "syn_share": ("SYNs and SYN/ACKs among them", "share"),
    "syn_packets": ("retransmitted SYNs", "share"),
    "syn_connections": ("connections with one", "share"),
    "retransmission_time_s": ("retransmission time", "s"),
    "retransmission_time_s_with_syn_loss": ("… with a retransmitted SYN", "s"),
    "retransmission_time_s_without_syn_loss": ("… without", "s"),
    "rate_bps": ("all IP packets", "bit/s"),
    "utilisation": ("… of the path's rate", "share"),
}

#: Column of `metrics.flow_means` → its label and unit.
MEANS = {
    "goodput_bps": ("goodput", "bit/s"),
    "loss": ("segments lost", "share"),
    "rtt_s": ("RTT", "s"),
    "window": ("pipe (segments)", ""),
}


def print_tables(data: Dataset, *, err: bool = False) -> None:
    """Print retransmissions by direction, distributions over the flows, loss epochs by rule, shared bottlenecks."""
    console = output.console(err=err)
    console.print()
    console.print(_trace(data))
    console.print()
    console.print(_means(data))
    _print_loss(console, data)
    console.print()
    console.print(_epochs(data))
    shared = metrics.shared_bottlenecks(data).drop_nulls("bottleneck")
    if shared.height:
        console.print()
        for number, flows in sorted(shared.group_by("bottleneck").agg("flow").iter_rows()):
            console.print(f"bottleneck {number + 1} is shared by the flows {', '.join(map(str, sorted(flows)))}")


def _trace(data: Dataset) -> Table:
    table = output.table("with a SYN in the trace", "clients", "95 %", "servers", "95 %", no_wrap=True)
    link_bps = data.manifest["capture"]["path"]["rate_bps"]
    rows = {
        (row["sender"], row["what"]): row
        for row in trace_statistics.trace(data, link_bps=link_bps).iter_rows(named=True)
    }
    for what, (label, unit) in TRACED.items():
        cells: list[str] = []
        for sender in ("client", "server"):
            row = rows[sender, what]
            cells += numbers.interval(row["value"], row["ci95_low"], row["ci95_high"], unit)
        table.add_row(label, *cells)
    return table


def _means(data: Dataset) -> Table:
    means = metrics.flow_means(data)
    table = output.table(f"over {means.height:,} flows", "min", "quartile", "median", "quartile", "max", no_wrap=True)
    for column, (label, unit) in MEANS.items():
        values = means[column]
        quantiles = [values.quantile(share, interpolation="linear") for share in (0, 0.25, 0.5, 0.75, 1)]
        table.add_row(label, *(numbers.value(value, unit) for value in quantiles))
    return table


def _print_loss(console: Console, data: Dataset) -> None:
    """Print the loss rate before the first packet that the capture missed, if it missed any."""
    losses = trace_statistics.losses_before_capture_loss(data)
    until_s = losses["until_s"].min()
    if isinstance(until_s, float):
        share = numbers.value(losses.select(pl.col("lost").sum() / pl.col("segments").sum()).item(), "share")
        console.print(f"Before the capture missed anything, until {until_s:.3f} s, {share} of the segments were lost.")


def _epochs(data: Dataset) -> Table:
    table = output.table(
        "loss epochs by", "epochs", "synchronisation", "flows hit", "packets lost", "duration", no_wrap=True
    )
    for row in metrics.epochs_by_rule(data).iter_rows(named=True):
        cells = (
            numbers.value(row["epochs"], ""),
            numbers.value(row["synchronisation"], "share"),
            numbers.value(row["flows_per_epoch"], ""),
            numbers.value(row["losses_per_epoch"], ""),
            numbers.value(row["duration_mean_s"], "s"),
        )
        table.add_row(row["rule"], *cells)
    return table
