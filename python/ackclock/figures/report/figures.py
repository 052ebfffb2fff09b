"""The report's figures of one result."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl

from ackclock.errors import InputError
from ackclock.figures import curves, numbers, palette
from ackclock.figures.curves import Lines
from ackclock.figures.report import capture_figures, plotly, search_result
from ackclock.figures.report.distributions import distributions
from ackclock.figures.report.plotly import Figure, Trace
from ackclock.figures.report.response import response
from ackclock.figures.report.runs import Runs
from ackclock.metrics import delay
from ackclock.metrics.view import RunView

#: What pointing at a curve gives (plotly templates).
SEGMENTS = "%{y:.0f} segments at %{x:.2f} s"
PACKETS = "%{y:.0f} packets at %{x:.2f} s"

#: What is shown of captures, in this order.
KINDS = ("limits", "stalls", "level", "sequence", "pipe", "rtt")

#: Flow-and-epoch pairs that the epoch figure shows.
MAX_HITS = 20_000


def of_result(view: RunView, runs: Runs, points: int) -> list[Figure]:
    """Return all figures of one result: `view` is the run drawn, `runs` are all; about `points` a figure."""
    made = (
        lambda: cwnd(view, points),
        lambda: cwnd_total(view, points),
        lambda: goodput(view, points),
        lambda: queue(view, points),
        lambda: distributions(runs.distributions, runs.names, points),
        lambda: epochs(view),
        lambda: response(runs.data),
    )
    return [figure for figure in (*map(possible, made), *_of_capture(view, points)) if figure is not None]


def _of_capture(view: RunView, points: int) -> list[Figure | None]:
    """Return the figures that only captures have."""
    if "capture" not in view.data.manifest:
        return []
    return [possible(partial(capture_figures.figure, kind, view, points)) for kind in KINDS]


def possible(make: Callable[[], Figure]) -> Figure | None:
    """Return a figure, or None if the engine did not give its data."""
    try:
        return make()
    except InputError:
        return None


def cwnd(view: RunView, points: int) -> Figure:
    """Return the congestion windows."""
    lines = curves.windows(view)
    data = plotly.traces(lines, points, SEGMENTS)
    layout = plotly.over_time(view, {"yaxis": plotly.axis("Congestion window (segments)", rangemode="tozero")})
    layout["showlegend"] = len(data) > 1
    return Figure("cwnd", "Congestion windows", plotly.explained(lines, "Each flow’s congestion window"), data, layout)


def cwnd_total(view: RunView, points: int) -> Figure:
    """Return the sum of the windows."""
    lines = curves.windows_to_add(view)
    total = lines.total()
    data = [plotly.curve(lines.times_s, total, points, plotly.line_style(0), "all flows", SEGMENTS)]
    layout = plotly.over_time(view, {"yaxis": plotly.axis(curves.sum_label(lines), rangemode="tozero")})
    caption = "The sum of all windows: it swings as a single flow’s window would where losses are synchronised."
    for value, name in curves.path_limits(view):
        if curves.in_sight(value, float(total.max(initial=0))):
            plotly.reference(layout, "y", value, name.replace("+ ", "+<br>"))
    if layout["margin"]["r"] > plotly.RIGHT:
        caption += " The lines mark what the path holds: the bandwidth-delay product (BDP), and with the buffer full."
    return Figure("cwnd_total", "Total congestion window", caption, data, layout)


def goodput(view: RunView, points: int) -> Figure:
    """Return goodput in total and of each flow."""
    window_s = curves.goodput_window(view)
    lines = curves.goodputs(view, window_s)
    rate_bps, total = curves.link_rate(view), lines.total()
    factor, unit = numbers.scale(max(float(total.max(initial=0)), rate_bps or 0.0), "bit/s")
    datagrams = curves.datagram_goodputs(view, lines.times_s, window_s)
    each_factor, each_unit = numbers.scale(float(np.nanmax(lines.values, initial=0)), "bit/s")
    every = lines.join(datagrams)
    scaled = Lines(every.times_s, every.values / each_factor, every.labels, every.groups)
    above = plotly.curve(
        lines.times_s, total / factor, points, {"color": palette.INK}, "all flows", f"%{{y:.4g}} {unit} at %{{x:.1f}} s"
    )
    below = plotly.traces(scaled, points, f"%{{y:.3g}} {each_unit} at %{{x:.1f}} s")
    data = [above | {"showlegend": False}, *[trace | {"yaxis": "y2"} for trace in below]]
    all_flows = "All TCP flows" if datagrams.count else "All flows"
    layout = plotly.two_panels(view, f"{all_flows} ({unit})", f"Each flow ({each_unit})")
    layout["showlegend"] = len(below) > 1
    if rate_bps:
        plotly.reference(layout, "y", rate_bps / factor, "link<br>rate")
    what = f"Goodput seen at the senders, averaged over the last {window_s:.2g} s: of all flows together, and of each"
    caption = plotly.explained(every, what)
    if datagrams.count:
        caption += " UDP flows are drawn by what their receivers got; the upper curve is without them."
    return Figure("goodput", "Goodput", caption, data, layout)


def queue(view: RunView, points: int) -> Figure:
    """Return backlog and sojourn time."""
    samples = curves.queue(view)
    factor, unit = numbers.scale(float(np.nanmax(samples.sojourn_s, initial=0)), "s")
    above = plotly.curve(
        samples.times_s, samples.backlog_p, points, plotly.line_style(0), "backlog", "%{y:.0f} packets at %{x:.2f} s"
    )
    below = plotly.curve(
        samples.times_s,
        samples.sojourn_s / factor,
        points,
        plotly.line_style(1),
        "sojourn time",
        f"%{{y:.3g}} {unit} at %{{x:.2f}} s",
    )
    layout = plotly.two_panels(view, "Backlog (packets)", f"Sojourn time ({unit})")
    if samples.limit_p is not None and curves.in_sight(samples.limit_p, float(np.nanmax(samples.backlog_p))):
        plotly.reference(layout, "y", samples.limit_p, curves.limit_name(view))
    mean_s = None if curves.is_shared(view) else delay.queue_delay_mean_s(view)
    if mean_s is not None:
        plotly.reference(layout, "y2", mean_s / factor, f"mean<br>{numbers.value(mean_s, 's')}")
    caption = (
        f"Packets waiting at {samples.where}, and how long those that left in each interval had waited (their mean)."
    )
    return Figure(
        "queue", "Queue at the bottleneck", caption, [above, below | {"yaxis": "y2"}], layout | {"showlegend": False}
    )


def epochs(view: RunView) -> Figure:
    """Return the flows that lost in each congestion epoch."""
    drops, result = curves.loss_epochs(view)
    if not result.height:
        raise InputError("no packet was dropped at the bottleneck")
    hits = drops.group_by("epoch", "flow", maintain_order=True).agg(pl.col("time_s").first(), pl.len().alias("lost"))
    hits = hits.drop_nulls().head(MAX_HITS)
    middle = (result["start_s"] + result["end_s"]).to_numpy() / 2
    data: list[Trace] = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "lost packets",
            "x": plotly.numbers(hits["time_s"].to_numpy()),
            "y": plotly.numbers(hits["flow"].to_numpy()),
            "customdata": hits["lost"].to_list(),
            "marker": {"color": palette.COLOURS[0], "size": _marker_size(curves.tcp_flow_count(view))},
            "hovertemplate": "flow %{y:.0f} lost %{customdata} in the epoch at %{x:.2f} s",
        },
        {
            "type": "bar",
            "name": "share of flows hit",
            "x": plotly.numbers(middle),
            "y": plotly.numbers(100 * result["share"].to_numpy()),
            "yaxis": "y2",
            "width": view.duration_s / 250,
            "marker": {"color": palette.COLOURS[1]},
            "customdata": result["drops"].to_list(),
            "hovertemplate": "%{y:.0f} % of the flows, %{customdata} packets, at %{x:.2f} s",
        },
    ]
    layout = plotly.two_panels(view, "Flow that lost", "Flows hit (%)") | {"showlegend": False}
    layout["yaxis"] |= {"range": [-0.8, curves.flow_count(view) - 0.2], "rangemode": "normal"}
    layout["yaxis2"] |= {"range": [0, 108], "tickvals": [0, 50, 100]}
    mean = float(np.mean(result["share"].to_numpy()))
    plotly.reference(layout, "y2", 100 * mean, f"mean<br>{100 * mean:.0f} %")
    lost = numbers.value(float(np.mean(result["drops"].to_numpy())), "packets")
    epochs_found = search_result.counted(result.height, "congestion epoch").capitalize()
    caption = (
        f"{epochs_found} in the measured part, with {lost} lost in each on average. "
        "A dot is a flow that lost in an epoch (placed at its first loss); a bar is the share of the active flows "
        "that did. "
        "Drops less than one round-trip time apart belong to one epoch."
    )
    return Figure("epochs", "Loss epochs", caption, data, layout)


def _marker_size(flows: int) -> float:
    return float(np.clip(160 / max(flows, 1), 3, 8))
