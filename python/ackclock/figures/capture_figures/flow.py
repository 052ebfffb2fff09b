"""Pipe, congestion window and receive window of a flow."""

from __future__ import annotations

import numpy as np

from ackclock.errors import InputError
from ackclock.figures import figure_spec, numbers
from ackclock.figures.capture_figures.part import Between, Part, array
from ackclock.figures.figure_spec import Axis, Drawing, Line, Panel, Points, Reference, Stack
from ackclock.metrics.view import Array, RunView

#: The receiver's window is drawn up to so many times all else: what is far above does not limit, and would hide it.
NEAR = 1.5


def pipe(view: RunView, flow: int | None = None, between: Between = None) -> Drawing:
    """Return RFC 6675's pipe of a flow, its cwnd where known, and the receive window where it is in range.

    In captures the pipe is the congestion window only while that limits; else a lower bound of it.
    """
    part = Part.of(view, between)
    number = part.flow(flow)
    samples = part.rows("flow_samples", number)
    if not samples["in_flight"].count():
        raise InputError("the result holds no flow samples with a pipe to draw")
    times_s, in_flight, cwnd = (array(samples[column]) for column in ("time_s", "in_flight", "cwnd"))
    lines: list[figure_spec.Layer] = [
        Line("pipe: at most the window", times_s, in_flight, figure_spec.SKY),
        Points("congestion window, where it limits", times_s, cwnd, figure_spec.BLUE, ".")
        if "capture" in view.data.manifest
        else Line("congestion window", times_s, cwnd, figure_spec.BLUE),
    ]
    windows = part.rows("windows", number).drop_nulls("receiver_window_bytes")
    if windows.height:
        window = array(windows["receiver_window_bytes"]) / part.segment_bytes(number)
        near = np.where(window < NEAR * figure_spec.span([in_flight, cwnd]), window, np.nan)
        if not np.isnan(near).all():
            lines.append(Line("receiver’s window", array(windows["time_s"]), near, figure_spec.GREY))
    title = f"Pipe and window of {part.name(number)}"
    caption = "What is under way (RFC 6675’s pipe), and the windows that bound it."
    panel = Panel(Axis("Under way (segments)", "segments", from_zero=True), lines)
    return part.drawing("pipe", "Pipe and windows", title, caption, panel)


def rtt(view: RunView, flow: int | None = None, between: Between = None) -> Drawing:
    """Return the smoothed RTT of a flow over time, with its minimum."""
    part = Part.of(view, between)
    number = part.flow(flow)
    samples = part.rows("flow_samples", number).drop_nulls("srtt_s")
    if not samples.height:
        raise InputError("the result holds no flow samples with an RTT to draw")
    srtt_s = array(samples["srtt_s"])
    unit_s, unit = numbers.scale(figure_spec.span([srtt_s]), "s")
    rows = view.flows
    base_s = rows.filter(rows["flow"] == number)["base_rtt_s"].item()
    references = (Reference(base_s / unit_s, f"shortest\n{numbers.value(base_s, 's')}"),) if base_s else ()
    lines = [Line("smoothed RTT", array(samples["time_s"]), srtt_s / unit_s, figure_spec.RED, listed=False)]
    title = f"Round-trip time of {part.name(number)}"
    caption = f"The smoothed RTT; half of the samples are below {numbers.value(float(np.median(srtt_s)), 's')}."
    panel = Panel(Axis(f"RTT ({unit})", unit, from_zero=True), lines, references)
    return part.drawing("rtt", "Round-trip times", title, caption, panel)


#: Limit → its words and colour.
STYLES = {
    "bottleneck": ("own queue", figure_spec.BLUE),
    "shared_bottleneck": ("a full link", figure_spec.RED),
    "cwnd": ("congestion window", figure_spec.GREEN),
    "slow_start": ("slow start", figure_spec.ORANGE),
    "receiver": ("receiver", figure_spec.PINK),
    "application": ("application", figure_spec.SKY),
    "unknown": ("unknown", figure_spec.LIGHT),
}

#: Steps of the time, of which each has its throughput.
STEPS = 150


def limits(view: RunView, flow: int | None = None, between: Between = None) -> Drawing:
    """Return what a flow delivered in each of 150 steps, by what limited its sender then."""
    part = Part.of(view, between)
    number = part.flow(flow)
    samples = part.rows("windows", number).select("time_s", "limit")
    samples = samples.join(part.rows("flow_samples", number).select("time_s", "delivered_bytes"), on="time_s")
    if samples.height < 2:
        raise InputError("the result holds no limits to draw: expected a captured result with samples of the flow")
    edges = np.linspace(part.start_s, part.end_s, STEPS + 1)
    bits = 8 * np.diff(array(samples["delivered_bytes"]))
    begun_s, over_s = array(samples["time_s"])[:-1], array(samples["time_s"])[1:]
    heights = np.zeros((len(STYLES), STEPS))
    # What was delivered between two samples is spread over that time.
    for row, name in enumerate(STYLES):
        chosen = (samples["limit"] == name).to_numpy()[1:]
        heights[row] = _spread(edges, begun_s[chosen], over_s[chosen], bits[chosen]) / np.diff(edges)
    factor, unit = numbers.scale(float(heights.sum(axis=0).max()), "bit/s")
    seen = np.flatnonzero(heights.any(axis=1))
    looks = [list(STYLES.values())[number] for number in seen]
    names, colours = tuple(name for name, _ in looks), tuple(colour for _, colour in looks)
    stack = Stack(names, edges, heights[seen] / factor, colours)
    title = f"What limited {part.name(number)}"
    caption = "Acknowledged data, coloured by what held the sender back at the time."
    panel = Panel(Axis(f"Throughput ({unit})", unit, from_zero=True), [stack])
    return part.drawing("limits", "What limited the throughput", title, caption, panel)


def _spread(edges: Array, begun_s: Array, over_s: Array, values: Array) -> Array:
    """Spread values evenly from `begun_s` to `over_s` and return the amount between each two edges."""
    total = np.zeros(edges.size)
    for begin_s, end_s, value in zip(begun_s, over_s, values, strict=True):
        total += value * np.clip((edges - begin_s) / max(end_s - begin_s, 1e-9), 0, 1)
    return np.diff(total)
