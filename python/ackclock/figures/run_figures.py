"""Figure specs of a run: windows, goodput, queue, delays and loss epochs, with other results laid over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ackclock import algorithms
from ackclock.errors import InputError
from ackclock.figures import curves, figure_spec, numbers, overlay
from ackclock.figures.curves import Lines
from ackclock.figures.figure_spec import (
    BLUE,
    INK,
    LIGHT,
    RED,
    Axis,
    Drawing,
    Layer,
    Line,
    Panel,
    Points,
    Reference,
    Spans,
    Strokes,
)
from ackclock.figures.overlay import Other
from ackclock.metrics import delay as delay_metrics
from ackclock.metrics import epoch
from ackclock.metrics.view import Array, RunView

#: Colour of a congestion epoch.
EPOCH = "#FBE3D2"

#: In print, up to this many flows share a panel; up to `figure_spec.MAX_LINES` each has its own; more are a cloud.
MAX_IN_ONE_PANEL = 3


def cwnd(view: RunView, laid: Sequence[Other] = ()) -> Drawing:
    """Return the congestion window of each flow (segments)."""
    lines = curves.windows(view)
    layers: list[Layer] = [*figure_spec.curves(lines), *overlay.entries(view.data, laid)]
    for other in laid:
        layers += other.lines(lines, other.read(curves.windows))
    panel = Panel(Axis("Congestion window (segments)", "segments", from_zero=True), layers)
    caption = explained(lines, "Each flow’s congestion window")
    return _over_run(view, "cwnd", "Congestion windows", caption, [panel], "Congestion window of each flow")


def cwnd_by_flow(view: RunView, laid: Sequence[Other] = ()) -> Drawing:
    """Return the congestion window of each flow; for print: a panel for each where they are several, but not many."""
    lines = curves.windows(view)
    if not MAX_IN_ONE_PANEL < lines.count <= figure_spec.MAX_LINES:
        return cwnd(view, laid)
    mean, groups = lines.mean(), list(dict.fromkeys(lines.groups))
    entries, theirs = overlay.entries(view.data, laid), [other.read(curves.windows) for other in laid]
    axis = Axis("Congestion window (segments)", "segments", from_zero=True)
    panels = []
    for number, label in enumerate(lines.labels):
        colour = figure_spec.colour(groups.index(lines.groups[number]))
        layers = [
            Line("mean of all flows", lines.times_s, mean, LIGHT, width=0.8),
            Line("", lines.times_s, lines.values[:, number], colour),
            *entries,
        ]
        for other, each in zip(laid, theirs, strict=True):
            values = each.values[:, number] if each.count == lines.count else each.mean()
            layers.append(other.line(each.times_s, values, INK))
        panels.append(Panel(axis, layers, title=label))
    heading = "Congestion window of each flow"
    return _over_run(view, "cwnd", heading, "", panels, columns=2, share_y=True, row_in=0.8)


def cwnd_total(view: RunView, laid: Sequence[Other] = ()) -> Drawing:
    """Return the sum of the windows (segments), with the BDP and BDP + buffer where known."""
    lines = curves.windows_to_add(view)
    total = lines.total()
    references = tuple(
        Reference(value, name)
        for value, name in curves.path_limits(view)
        if curves.in_sight(value, float(total.max(initial=0)))
    )
    caption = "The sum of all windows: it swings as a single flow’s window would where losses are synchronised."
    if references:
        caption += " The lines mark what the path holds: the bandwidth-delay product (BDP), and with the buffer full."
    layers = [
        Line("all flows", lines.times_s, total, BLUE, listed=False),
        *overlay.entries(view.data, laid, coloured=True),
        *(other.curve(_total_window, "cwnd_mean", level=lines.count, colour=other.colour) for other in laid),
    ]
    title = f"Sum of {lines.count} windows (segments)" if lines.count > 1 else "Window (segments)"
    panel = Panel(Axis(title, "segments", from_zero=True), layers, references)
    return _over_run(view, "cwnd_total", "Total congestion window", caption, [panel])


def _total_window(view: RunView) -> tuple[Array, Array]:
    lines = curves.windows_to_add(view)
    return lines.times_s, lines.total()


def goodput(view: RunView, laid: Sequence[Other] = ()) -> Drawing:
    """Return total and per-flow goodput, averaged over a sliding window that the title names."""
    window_s = curves.goodput_window(view)
    lines = curves.goodputs(view, window_s)
    datagrams = curves.datagram_goodputs(view, lines.times_s, window_s)
    every, is_mixed = lines.join(datagrams), bool(lines.count and datagrams.count)
    summed = lines if lines.count else datagrams
    rate_bps, total = curves.link_rate(view), summed.total()
    unit_bps, unit = numbers.scale(max(float(total.max(initial=0)), rate_bps or 0.0), "bit/s")
    each_bps, each_unit = numbers.scale(float(np.nanmax(summed.values, initial=0)), "bit/s")
    sums: list[Layer] = [Line("all flows", lines.times_s, total / unit_bps, BLUE, listed=False)]
    each: list[Layer] = [*figure_spec.curves(every, 1 / each_bps)]
    if lines.count > 1 and every.count <= figure_spec.MAX_LINES:
        each.append(Line("equal share", lines.times_s, lines.mean() / each_bps, INK, "dot", width=0.8))
    each += overlay.entries(view.data, laid)
    for other in laid:
        sums.append(other.curve(lambda view: _total_goodput(view, window_s), "goodput_bps", scale=1 / unit_bps))
        if "goodput_bps" not in other.view.given:
            theirs = other.read(lambda view: curves.goodputs(view, window_s))
            each += other.lines(lines, theirs, 1 / each_bps)
    is_single = every.count == 1 and not laid
    whose = "" if is_single else ": of all flows together, and of each"
    what = f"Goodput{' at the senders' if lines.count else ''}, averaged over the last {window_s:.2g} s{whose}"
    caption = explained(every, what)
    if datagrams.count:
        without = "; the upper curve is without them" if is_mixed else ""
        caption += f" UDP flows are drawn by what their receivers got{without}."
    all_flows = "All TCP flows" if is_mixed else "All flows"
    above = Panel(
        Axis(f"{all_flows} ({unit})", unit, from_zero=True),
        sums,
        (Reference(rate_bps / unit_bps, "link\nrate"),) if rate_bps else (),
    )
    below = Panel(Axis(f"Each flow ({each_unit})", each_unit, from_zero=True), each, weight=1.5)
    panels = [replace(above, y=replace(above.y, title=f"Goodput ({unit})"))] if is_single else [above, below]
    return _over_run(view, "goodput", "Goodput", caption, panels, f"Goodput, mean over the last {window_s:.2g} s")


def _total_goodput(view: RunView, window_s: float) -> tuple[Array, Array]:
    lines = curves.goodputs(view, window_s)
    return lines.times_s, lines.total()


def queue(view: RunView, laid: Sequence[Other] = ()) -> Drawing:
    """Return backlog (packets) and sojourn time of the bottleneck's queue; of other results, that of the same link.

    With an overlay there are no lines for the limit and the delays: dashed, they would look like the overlay's.
    """
    samples = curves.queue(view)
    limits: tuple[Reference, ...] = ()
    if (
        not laid
        and samples.limit_p is not None
        and curves.in_sight(samples.limit_p, float(np.nanmax(samples.backlog_p)))
    ):
        limits = (Reference(samples.limit_p, curves.limit_name(view)),)
    unit_s, unit = numbers.scale(float(np.nanmax(samples.sojourn_s, initial=0)), "s")
    backlog: list[Layer] = [Line("backlog", samples.times_s, samples.backlog_p, BLUE, listed=False)]
    sojourn: list[Layer] = [Line("sojourn time", samples.times_s, samples.sojourn_s / unit_s, RED, listed=False)]
    for other in laid:
        backlog.append(other.curve(lambda view: _samples(view, samples.link, "backlog_p"), "queue_mean_p"))
        theirs = lambda view: _samples(view, samples.link, "sojourn_s")  # noqa: E731
        sojourn.append(other.curve(theirs, "queue_delay_mean_s", scale=1 / unit_s))
    above = Panel(
        Axis("Backlog (packets)", "packets", from_zero=True), [*backlog, *overlay.entries(view.data, laid)], limits
    )
    delays = () if laid else _delay_references(view, unit_s)
    below = Panel(Axis(f"Sojourn time ({unit})", unit, from_zero=True), sojourn, delays)
    caption = (
        f"Packets waiting at {samples.where}, and how long those that left in each interval had waited (their mean)."
    )
    title = f"Queue at {samples.where}"
    if several := _several(view, samples.link):
        title += f": the queues of {several.name} together"
        caption += (
            f" Both are of all queues of {several.name} together ({several.queues}); the figure delay shows each "
            "flow's delay (delays = true in [record])."
        )
    return _over_run(view, "queue", "Queue at the bottleneck", caption, [above, below], title)


def _several(view: RunView, link: int) -> algorithms.AlgorithmSpec | None:
    """Return the spec of a link's qdisc if it has several queues, whose samples are of all of them together."""
    known = view.plan.links[link].queue if link < len(view.plan.links) else None
    if known is None or known.discipline not in algorithms.names("queue"):
        return None
    spec = algorithms.spec("queue", known.discipline)
    return spec if spec.queues else None


def _samples(view: RunView, link: int, column: str) -> tuple[Array, Array]:
    samples = curves.queue(view, link)
    return samples.times_s, getattr(samples, column)


def _delay_references(view: RunView, unit_s: float) -> tuple[Reference, ...]:
    """Return mean and 95th percentile; the name of the upper one stands above its line, that of the lower one below."""
    mean_s, p95_s = delay_metrics.queue_delay_mean_s(view), delay_metrics.queue_delay_p95_s(view)
    if mean_s is None or p95_s is None or curves.is_shared(view):
        return ()
    sides = ("bottom", "top") if p95_s < mean_s else ("top", "bottom")
    return (
        Reference(mean_s / unit_s, f"mean\n{numbers.value(mean_s, 's')}", sides[0]),
        Reference(p95_s / unit_s, f"95 % below\n{numbers.value(p95_s, 's')}", sides[1]),
    )


def delay(view: RunView) -> Drawing:
    """Return the one-way delay of each flow's data, the mean of each interval."""
    rows = delay_metrics.one_way_series(view)
    if not rows.height:
        raise InputError("the result has no one-way delays to draw; expected a run with [record] delays = true")
    flows = np.sort(rows["flow"].unique().to_numpy())
    wide = _merged(rows, flows.size).pivot(on="flow", index="time_s", values="delay_mean_s").sort("time_s")
    values = wide.select(map(str, flows)).cast(pl.Float64).to_numpy()
    lines = curves.of_numbers(view, flows, wide["time_s"].to_numpy(), values)
    unit_s, unit = numbers.scale(float(np.nanmax(values)), "s")
    panel = Panel(Axis(f"One-way delay ({unit})", unit, from_zero=True), [*figure_spec.curves(lines, 1 / unit_s)])
    title = "One-way delay of the data, mean over each interval"
    return _over_run(view, "delay", "One-way delay", explained(lines, title), [panel], title)


def _merged(rows: pl.DataFrame, flows: int) -> pl.DataFrame:
    """Return mean delays over longer intervals, if times and flows together are more than curves may have.

    Each mean is that of the packets, and its time is the end of the longer interval, in seconds.
    """
    times_s = np.sort(rows["time_s"].unique().to_numpy())
    stretch = -(-times_s.size * flows // curves.CELLS)
    if stretch <= 1:
        return rows
    last = np.searchsorted(times_s, rows["time_s"].to_numpy()) // stretch * stretch + stretch - 1
    ends_s = pl.Series("time_s", times_s[np.minimum(last, times_s.size - 1)])
    mean_s = (pl.col("delay_mean_s") * pl.col("packets")).sum() / pl.col("packets").sum()
    return rows.with_columns(ends_s).group_by("flow", "time_s", maintain_order=True).agg(delay_mean_s=mean_s)


def epochs(view: RunView) -> Drawing:
    """Return each drop at the bottleneck in the measured part, its epoch, and the share of flows hit."""
    if not epoch.is_recorded(view):
        raise InputError("the result has no record of drops to draw")
    drops, found = curves.loss_epochs(view)
    flows = curves.flow_count(view)
    starts_s, ends_s = found["start_s"].to_numpy(), found["end_s"].to_numpy()
    places = tuple((float(number), str(number)) for number in range(flows)) if flows <= figure_spec.MAX_LINES else ()
    above = Panel(
        Axis("Flow that lost a packet", low=-0.7, high=flows - 0.3, ticks=places),
        [Spans(starts_s, ends_s, EPOCH), _drops(drops, flows)],
        weight=1.6,
    )
    shares, middle_s = found["share"].to_numpy(), (starts_s + ends_s) / 2
    mean = float(np.mean(shares)) if found.height else 0.0
    below = Panel(
        Axis("Share of flows hit", low=0.0, high=1.12, ticks=((0.0, "0"), (0.5, "50 %"), (1.0, "100 %"))),
        [
            Strokes("", middle_s, np.zeros(found.height), middle_s, shares, RED),
            Points("", middle_s, shares, RED, size=3.7),
        ],
        (Reference(mean, f"mean\n{100 * mean:.0f} %"),) if found.height else (),
    )
    heading = "Loss epochs: no packet was dropped at the bottleneck"
    if found.height:
        lost = numbers.value(float(np.mean(found["drops"].to_numpy())), "packets")
        heading = f"Loss epochs: {found.height}, with {lost} lost in each on average"
    caption = (
        f"{heading}. A dot is a lost packet; a stroke is the share of the active flows that lost in an epoch. Drops "
        "less than one round-trip time apart belong to one epoch."
    )
    return _over_run(view, "epochs", "Loss epochs", caption, [above, below], heading)


def _drops(drops: pl.DataFrame, flows: int) -> Points:
    size = float(np.sqrt(np.clip(260 / max(flows, 1), 0.6, 14)))
    known = drops.drop_nulls("flow")
    return Points("", known["time_s"].to_numpy(), known["flow"].cast(pl.Float64).to_numpy(), BLUE, size=size)


def explained(lines: Lines, what: str) -> str:
    """Return a caption for lines or for a cloud of them."""
    if lines.count > figure_spec.MAX_LINES:
        some = f"some of the {lines.count:,} flows as thin lines, the mean as a thick one"
        return f"{what}: {some}, and the band that holds 80 % of all flows."
    legend = " Click a name in the legend to hide it, double-click to see it alone." if lines.count > 1 else ""
    return f"{what}.{legend}"


def goodputs(names: Sequence[str], views: Sequence[RunView]) -> Drawing:
    """Return the total goodput of several results in the same axes."""
    every = [_total_goodput(view, curves.goodput_window(view)) for view in views]
    factor, unit = numbers.scale(max(float(total.max(initial=0)) for _, total in every), "bit/s")
    axis = Axis(f"Goodput of all flows ({unit})", unit, from_zero=True)
    layers = [
        Line(name, times_s, total / factor, figure_spec.colour(number), figure_spec.dash(number))
        for number, (name, (times_s, total)) in enumerate(zip(names, every, strict=True))
    ]
    longest = max(views, key=lambda view: view.duration_s)
    caption = "Goodput of all flows together, first run of each result."
    return _over_run(longest, "goodput", "Total goodput", caption, [Panel(axis, layers)])


def backlogs(names: Sequence[str], views: Sequence[RunView]) -> Drawing:
    """Return the queues at the bottlenecks of several results in the same axes."""
    every = [curves.queue(view) for view in views]
    layers = [
        Line(name, samples.times_s, samples.backlog_p, figure_spec.colour(number), figure_spec.dash(number))
        for number, (name, samples) in enumerate(zip(names, every, strict=True))
    ]
    panel = Panel(Axis("Backlog (packets)", "packets", from_zero=True), layers)
    longest = max(views, key=lambda view: view.duration_s)
    caption = "Packets waiting, first run of each result."
    return _over_run(longest, "queue", "Queue at the bottleneck", caption, [panel])


def _over_run(
    view: RunView, key: str, heading: str, caption: str, panels: Sequence[Panel], title: str = "", **more: Any
) -> Drawing:
    x = figure_spec.over_time(0.0, view.duration_s)
    subtitle = overlay.origin(view.data)
    return Drawing(key, heading, caption, panels, x, view.warmup_s, title=title, subtitle=subtitle, **more)
