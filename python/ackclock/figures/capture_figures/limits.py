"""Throughput of a flow by its limit."""

from __future__ import annotations

import numpy as np

from ackclock.errors import InputError
from ackclock.figures import figure_spec, numbers
from ackclock.figures.capture_figures.part import Between, Part, array
from ackclock.figures.figure_spec import Drawing, Panel, Stack
from ackclock.metrics.view import Array, RunView

#: Limit → its words and colour.
STYLES = {
    "bottleneck": ("own queue", figure_spec.BLUE),
    "shared_bottleneck": ("a full link", figure_spec.RED),
    "control": ("congestion window", figure_spec.GREEN),
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
    heading = f"What limited {part.name(number)}"
    caption = "Acknowledged data, coloured by what held the sender back at the time."
    return Drawing("limits", heading, caption, (Panel(f"Throughput ({unit})", [stack]),), part.start_s, part.end_s)


def _spread(edges: Array, begun_s: Array, over_s: Array, values: Array) -> Array:
    """Spread values evenly from `begun_s` to `over_s` and return the amount between each two edges."""
    total = np.zeros(edges.size)
    for begin_s, end_s, value in zip(begun_s, over_s, values, strict=True):
        total += value * np.clip((edges - begin_s) / max(end_s - begin_s, 1e-9), 0, 1)
    return np.diff(total)
