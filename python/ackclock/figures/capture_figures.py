"""Figure specs of captures, and of runs where they have the tables.

Each is a function of a run, a flow's number (None: the one with the most data) and a part of the time; `KINDS` is the
list of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import polars as pl

from ackclock.errors import InputError
from ackclock.figures import figure_spec, numbers
from ackclock.figures.capture_part import Between, Part, array
from ackclock.figures.capture_sequence import sequence
from ackclock.figures.figure_spec import Axis, Drawing, Line, Panel, Points, Reference, Stack, Strokes
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
        Line("in flight: at most the window", times_s, in_flight, figure_spec.SKY),
        Points("congestion window, where it limits", times_s, cwnd, figure_spec.BLUE, ".")
        if "capture" in view.data.manifest
        else Line("congestion window", times_s, cwnd, figure_spec.BLUE),
    ]
    windows = part.rows("windows", number).drop_nulls("receiver_window_bytes")
    if windows.height:
        window = array(windows["receiver_window_bytes"]) / part.segment_bytes(number)
        near = np.where(window < NEAR * figure_spec.span([in_flight, cwnd]), window, np.nan)
        if not np.isnan(near).all():
            lines.append(Line("receiver’s window", array(windows["time_s"]), near, figure_spec.GREY, steps=True))
    title = f"Pipe and window of {part.name(number)}"
    caption = "What is under way (RFC 6675’s pipe), and the windows that bound it."
    panel = Panel(Axis("In flight (segments)", "segments", from_zero=True), lines)
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
LIMITS = {
    "bottleneck": ("own queue", figure_spec.BLUE),
    "shared_bottleneck": ("a full link", figure_spec.RED),
    "cwnd": ("congestion window", figure_spec.GREEN),
    "slow_start": ("slow start", figure_spec.ORANGE),
    "receiver": ("receiver", figure_spec.PINK),
    "application": ("application", figure_spec.SKY),
    "send_buffer": ("send buffer", figure_spec.PURPLE),
    "unknown_window": ("a window of unknown scale", figure_spec.GREY),
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
    heights = np.zeros((len(LIMITS), STEPS))
    # What was delivered between two samples is spread over that time.
    for row, name in enumerate(LIMITS):
        chosen = (samples["limit"] == name).to_numpy()[1:]
        heights[row] = _spread(edges, begun_s[chosen], over_s[chosen], bits[chosen]) / np.diff(edges)
    factor, unit = numbers.scale(float(heights.sum(axis=0).max()), "bit/s")
    seen = np.flatnonzero(heights.any(axis=1))
    looks = [list(LIMITS.values())[number] for number in seen]
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


def level(view: RunView, flow: int | None = None, between: Between = None) -> Drawing:
    """Return V(t), the bytes above the rate of the path's limiter; at losses and at what passed.

    V(t) = A(t) − r t − min over s ≤ t of (A(s) − r s), with A what has come until t and r the rate: what fills a token
    bucket, or a queue. For a policer it is the bucket's depth at losses, and below it where something passed.
    """
    if flow is not None:
        raise InputError(f"flow: found {flow}; expected none: this figure is of all flows of the path")
    part = Part.of(view, between)
    path = (view.data.manifest.get("capture") or {}).get("path") or {}
    points = part.rows("levels")
    if not points.height:
        raise InputError("the result holds no levels to draw: expected a captured result whose path has a rate")
    greatest = figure_spec.span([array(points["level_bytes"])])
    factor, unit = numbers.scale(greatest, "bytes")
    layers = []
    for lost, name, colour, sign in ((False, "passed", figure_spec.SKY, "."), (True, "lost", figure_spec.RED, "x")):
        rows = points.filter(pl.col("lost") == lost)
        if rows.height:
            layers.append(Points(name, array(rows["time_s"]), array(rows["level_bytes"]) / factor, colour, sign))
    depth = path.get("depth_bytes")
    references = (Reference(depth / factor, f"depth\n{numbers.value(depth, 'bytes')}"),) if depth else ()
    limiter, rate = path.get("limiter", "limiter"), numbers.value(path.get("rate_bps"), "bit/s")
    title = f"Bytes above {rate} ({limiter})"
    caption = f"Bytes of all flows above {rate}{LAWS.get(limiter, '')}."
    panel = Panel(Axis(f"Above the rate ({unit})", unit, from_zero=True), layers, references)
    return part.drawing("level", "Bytes above the limiter’s rate", title, caption, panel)


#: What each limiter does with the bytes above its rate.
LAWS = {
    "queue": ": a full queue drops where they reach its limit, and only there",
    "policer": ": a policer drops where they reach its depth, and only there",
    "shaper": ": a shaper lets them pass up to its burst, and delays the rest",
}

#: Words and colour → the classes of stalls that are meant.
STALLS = {
    ("host stalled", figure_spec.RED): ("host",),
    ("machine paused", figure_spec.PURPLE): ("machine",),
    ("capture lost packets", figure_spec.INK): ("capture_loss",),
    ("timeout, or no data left to detect a loss", figure_spec.ORANGE): (
        "timeout",
        "tail_loss",
        "double_retransmission",
        "small_window",
        "continuous_loss",
        "handshake",
    ),
    ("late acknowledgements", figure_spec.SKY): ("ack_delay", "nagle"),
    ("receive window closed", figure_spec.PINK): ("receiver",),
    ("application idle", figure_spec.GREEN): ("application",),
    ("unknown", figure_spec.LIGHT): ("unknown",),
}


def stalls(view: RunView, flow: int | None = None, between: Between = None) -> Drawing:
    """Return when each flow lived, and when it stalled, by cause. All flows, or one of them.

    Directions that only carry requests are left out, unless it was for a request that somebody waited.
    """
    part = Part.of(view, between)
    expected = pl.lit(value=True) if flow is None else pl.col("flow") == part.flow(flow)
    title = "Stalls of all flows" if flow is None else f"Stalls of {part.name(flow)}"
    flows = view.data.scan("flows").filter((pl.col("run") == view.run) & expected)
    stalls = view.data.scan("stalls").filter((pl.col("run") == view.run) & expected).collect()
    idle = np.setdiff1d(view.requests, stalls["flow"].to_numpy())
    shown = ~pl.col("flow").is_in(idle) if flow is None else pl.lit(value=True)
    lives = flows.filter(shown).select("flow", "start_s", "end_s").sort("flow").collect()
    if "capture" not in view.data.manifest:
        raise InputError("only captures have stalls: found a run; expected what ackclock capture wrote")
    carried = (
        view.data.scan("captured").filter((pl.col("run") == view.run) & expected).select("payload_bytes").collect()
    )
    if not carried["payload_bytes"].sum() and not stalls.height:
        raise InputError("the result holds no flows with data to draw")
    places = pl.DataFrame({"flow": lives["flow"], "place": np.arange(lives.height, dtype=float)})
    rows = lives.join(places, on="flow")
    layers = [_lives(rows, part.end_s), *_stalls(stalls.join(places, on="flow"))]
    axis = Axis("Flow, numbered by start")
    if lives.height <= figure_spec.MAX_LINES:
        axis = figure_spec.named("", [f"flow {number}" for number in lives["flow"]])
    caption = "A thin line while a flow lives, a bar while nothing of it is to be seen."
    return part.drawing("stalls", "Stalls", title, caption, Panel(axis, layers))


def _lives(rows: pl.DataFrame, end_s: float) -> Strokes:
    starts = array(rows["start_s"].fill_null(0.0))
    ends = array(rows["end_s"].fill_null(end_s))
    return Strokes("", starts, array(rows["place"]), ends, array(rows["place"]), figure_spec.LIGHT)


def _stalls(stalls: pl.DataFrame) -> Iterator[Strokes]:
    for (name, colour), classes in STALLS.items():
        rows = stalls.filter(pl.col("class").cast(pl.String).is_in(classes))
        if rows.height:
            starts, places = array(rows["time_s"]), array(rows["place"])
            label = f"{name} ({rows.height:,})"
            yield Strokes(label, starts, places, starts + array(rows["duration_s"]), places, colour, wide=True)


#: Every kind by its name.
KINDS: Mapping[str, Callable[..., Drawing]] = {
    "sequence": sequence,
    "pipe": pipe,
    "rtt": rtt,
    "limits": limits,
    "stalls": stalls,
    "level": level,
}
