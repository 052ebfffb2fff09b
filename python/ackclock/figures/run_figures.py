"""Figure specs of runs: windows, goodput, queue, delays and loss epochs."""

from __future__ import annotations

import numpy as np
import polars as pl

from ackclock.errors import InputError
from ackclock.figures import curves, numbers, palette
from ackclock.figures.curves import Lines
from ackclock.figures.figure_spec import (
    BLUE,
    INK,
    RED,
    Curves,
    Drawing,
    Layer,
    Line,
    Panel,
    Points,
    Reference,
    Spans,
    Strokes,
)
from ackclock.metrics import delay as delay_metrics
from ackclock.metrics import epoch, one_way
from ackclock.metrics.view import RunView

#: Colour of a congestion epoch.
EPOCH = "#FBE3D2"


def cwnd(view: RunView) -> Drawing:
    """Return the congestion window of each flow (segments)."""
    lines = curves.windows(view)
    panel = Panel("cwnd (segments)", [Curves(lines)], unit="segments")
    caption = explained(lines, "Each flow’s congestion window")
    return _over_run(view, "cwnd", "Congestion windows", caption, (panel,), 3.2, "Congestion window of each flow")


def cwnd_total(view: RunView) -> Drawing:
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
    layers = [Line("all flows", lines.times_s, total, BLUE, listed=False)]
    panel = Panel(curves.sum_label(lines), layers, references, unit="segments")
    return _over_run(view, "cwnd_total", "Total congestion window", caption, (panel,), 3.0)


def goodput(view: RunView) -> Drawing:
    """Return total and per-flow goodput, averaged over a sliding window that the title names."""
    window_s = curves.goodput_window(view)
    lines = curves.goodputs(view, window_s)
    rate_bps, total = curves.link_rate(view), lines.total()
    unit_bps, unit = numbers.scale(max(float(total.max(initial=0)), rate_bps or 0.0), "bit/s")
    each_bps, each_unit = numbers.scale(float(np.nanmax(lines.values, initial=0)), "bit/s")
    datagrams = curves.datagram_goodputs(view, lines.times_s, window_s)
    every = lines.join(datagrams)
    each: list[Layer] = [Curves(every, 1 / each_bps)]
    if lines.count > 1 and every.count <= palette.MAX_LINES:
        each.append(Line("equal share", lines.times_s, lines.mean() / each_bps, INK, dotted=True))
    what = f"Goodput at the senders, averaged over the last {window_s:.2g} s: of all flows together, and of each"
    caption = explained(every, what)
    if datagrams.count:
        caption += " UDP flows are drawn by what their receivers got; the upper curve is without them."
    above = Panel(
        f"{'All TCP flows' if datagrams.count else 'All flows'} ({unit})",
        [Line("all flows", lines.times_s, total / unit_bps, BLUE, listed=False)],
        (Reference(rate_bps / unit_bps, "link\nrate"),) if rate_bps else (),
        unit=unit,
    )
    below = Panel(f"Each flow ({each_unit})", each, unit=each_unit, weight=1.5)
    title = f"Goodput, mean over the last {window_s:.2g} s"
    return _over_run(view, "goodput", "Goodput", caption, (above, below), 4.6, title)


def queue(view: RunView) -> Drawing:
    """Return backlog (packets) and sojourn time of the bottleneck's queue."""
    samples = curves.queue(view)
    limits: tuple[Reference, ...] = ()
    if samples.limit_p is not None and curves.in_sight(samples.limit_p, float(np.nanmax(samples.backlog_p))):
        limits = (Reference(samples.limit_p, curves.limit_name(view)),)
    unit_s, unit = numbers.scale(float(np.nanmax(samples.sojourn_s, initial=0)), "s")
    above = Panel(
        "Backlog (packets)",
        [Line("backlog", samples.times_s, samples.backlog_p, BLUE, listed=False)],
        limits,
        unit="packets",
    )
    below = Panel(
        f"Sojourn time ({unit})",
        [Line("sojourn time", samples.times_s, samples.sojourn_s / unit_s, RED, listed=False)],
        _delay_references(view, unit_s),
        unit=unit,
    )
    caption = (
        f"Packets waiting at {samples.where}, and how long those that left in each interval had waited (their mean)."
    )
    title = f"Queue at {samples.where}"
    return _over_run(view, "queue", "Queue at the bottleneck", caption, (above, below), 4.2, title)


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
    rows = one_way.series(view)
    if not rows.height:
        raise InputError("the result has no one-way delays to draw; expected a run with [record] delays = true")
    wide = rows.pivot(on="flow", index="time_s", values="delay_mean_s").sort("time_s")
    flows = [name for name in wide.columns if name != "time_s"]
    values = wide.select(flows).cast(pl.Float64).to_numpy()
    labels = tuple(f"flow {name}" for name in flows)
    lines = Lines(wide["time_s"].to_numpy(), values, labels, ("all flows",) * len(flows))
    unit_s, unit = numbers.scale(float(np.nanmax(values)), "s")
    panel = Panel(f"One-way delay ({unit})", [Curves(lines, 1 / unit_s)], unit=unit)
    title = "One-way delay of the data, mean over each interval"
    return _over_run(view, "delay", "One-way delay", explained(lines, title), (panel,), 3.2, title)


def epochs(view: RunView) -> Drawing:
    """Return each drop at the bottleneck in the measured part, its epoch, and the share of flows hit."""
    if not epoch.is_recorded(view):
        raise InputError("the result has no record of drops to draw")
    drops, found = curves.loss_epochs(view)
    flows = curves.flow_count(view)
    starts_s, ends_s = found["start_s"].to_numpy(), found["end_s"].to_numpy()
    places = tuple((float(number), str(number)) for number in range(flows)) if flows <= palette.MAX_LINES else ()
    above = Panel(
        "Flow that lost a packet",
        [Spans(starts_s, ends_s, EPOCH), _drops(drops, flows)],
        from_zero=False,
        limits=(-0.7, flows - 0.3),
        ticks=places,
        weight=1.6,
    )
    shares, middle_s = found["share"].to_numpy(), (starts_s + ends_s) / 2
    mean = float(np.mean(shares)) if found.height else 0.0
    below = Panel(
        "Share of flows hit",
        [
            Strokes("", middle_s, np.zeros(found.height), middle_s, shares, RED),
            Points("", middle_s, shares, RED, size=3.7),
        ],
        (Reference(mean, f"mean\n{100 * mean:.0f} %"),) if found.height else (),
        limits=(0.0, 1.12),
        ticks=((0.0, "0"), (0.5, "50 %"), (1.0, "100 %")),
    )
    heading = "Loss epochs: no packet was dropped at the bottleneck"
    if found.height:
        lost = numbers.value(float(np.mean(found["drops"].to_numpy())), "packets")
        heading = f"Loss epochs: {found.height}, with {lost} lost in each on average"
    caption = (
        f"{heading}. A dot is a lost packet; a stroke is the share of the active flows that lost in an epoch. Drops "
        "less than one round-trip time apart belong to one epoch."
    )
    return _over_run(view, "epochs", "Loss epochs", caption, (above, below), 4.4, heading)


def _drops(drops: pl.DataFrame, flows: int) -> Points:
    size = float(np.sqrt(np.clip(260 / max(flows, 1), 0.6, 14)))
    known = drops.drop_nulls("flow")
    return Points("", known["time_s"].to_numpy(), known["flow"].cast(pl.Float64).to_numpy(), BLUE, size=size)


def explained(lines: Lines, what: str) -> str:
    """Return a caption for lines or for a cloud of them."""
    if lines.count > palette.MAX_LINES:
        some = f"some of the {lines.count:,} flows as thin lines, the mean as a thick one"
        return f"{what}: {some}, and the band that holds 80 % of all flows."
    return f"{what}. Click a name in the legend to hide it, double-click to see it alone."


def _over_run(
    view: RunView, key: str, heading: str, caption: str, panels: tuple[Panel, ...], height_in: float, title: str = ""
) -> Drawing:
    return Drawing(key, heading, caption, panels, 0.0, view.duration_s, view.warmup_s, height_in, title=title)
