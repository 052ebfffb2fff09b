"""Figure specs of captures, and of runs where they have the tables.

Each is a function of a run, a flow's number (None: the one with the most data) and a part of the time; `KINDS` is the
list of all.

The time–sequence graph has each segment when it was sent, and what its receiver reported of it: the graph of T.
Shepard, *TCP packet trace analysis*, MIT 1990, as tcptrace and xplot draw it, with the fate of each copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from ackclock.errors import InputError
from ackclock.figures import figure_spec, numbers, overlay
from ackclock.figures.figure_spec import Axis, Drawing, Layer, Line, Panel, Points, Reference, Stack, Strokes
from ackclock.metrics.view import Array, RunView

#: From, until: in seconds.
Between = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Part:
    """A run from `start_s` to `end_s`."""

    view: RunView
    start_s: float
    end_s: float

    @staticmethod
    def of(view: RunView, between: Between) -> Part:
        """Return the whole run, or a part of it. Raises `InputError` if the run is over before."""
        start_s, end_s = between or (0.0, view.duration_s)
        if between is not None and start_s >= view.duration_s:
            found, last = numbers.value(start_s, "s"), numbers.value(view.duration_s, "s")
            raise InputError(f"between: found {found} and later; expected times before {last}, when the result ends")
        return Part(view, start_s, end_s)

    def rows(self, table: str, flow: int | None = None) -> pl.DataFrame:
        """Return the rows of a table, of one flow or of all, in the order of time."""
        rows = self.view.data.scan(table).filter(pl.col("run") == self.view.run)
        rows = rows.filter(pl.col("time_s").is_between(self.start_s, self.end_s))
        return (rows if flow is None else rows.filter(pl.col("flow") == flow)).sort("time_s").collect()

    def flow(self, expected: int | None) -> int:
        """Return the flow requested, else that with the most data. Raises `InputError` if it does not exist.

        A direction of requests may be wanted, too.
        """
        flows = self.view.flows.select("flow", pl.col("delivered_bytes").fill_null(0))
        if not flows.height:
            raise InputError("the result holds no flows with data to draw")
        if expected is None:
            return int(flows.sort("delivered_bytes", -pl.col("flow").cast(pl.Int64))["flow"][-1])
        if expected not in flows["flow"] and expected not in self.view.requests:
            some = ", ".join(map(str, flows["flow"].sort().head(10))) + (", …" if flows.height > 10 else "")
            raise InputError(f"flow: found {expected}; expected one of {some}")
        return expected

    def name(self, flow: int) -> str:
        """Return a flow's ends, or its number."""
        rows = self.view.data.scan("flows").filter((pl.col("run") == self.view.run) & (pl.col("flow") == flow))
        ends = rows.select("source", "destination").collect().row(0)
        return f"flow {flow}" + (f", {ends[0]} → {ends[1]}" if all(ends) else "")

    def segment_bytes(self, flow: int) -> float:
        """Return the flow's MSS as far as it is known; else 1448."""
        captured = self.view.data.scan("captured")
        rows = captured.filter((pl.col("run") == self.view.run) & (pl.col("flow") == flow)).select("mss").collect()
        return float(rows["mss"][0] or 1448) if rows.height else 1448.0

    def drawing(self, key: str, heading: str, title: str, caption: str, panel: Panel) -> Drawing:
        """Return a figure of one panel over this part."""
        x, subtitle = figure_spec.over_time(self.start_s, self.end_s), overlay.origin(self.view.data)
        caption = f"{title}. {caption} Drag to zoom, double-click to see all."
        return Drawing(key, heading, caption, [panel], x, row_in=2.4, title=title, subtitle=subtitle, precise=True)


def array(column: pl.Series) -> Array:
    """Return numbers, NaN for null."""
    return np.asarray(column.cast(pl.Float64).to_numpy())


#: Style of a copy: its name, colour, and marker if it has one; in this order.
STYLES = {
    "data": ("data", figure_spec.BLUE, ""),
    "retransmission": ("retransmitted", figure_spec.ORANGE, "^"),
    "lost": ("lost", figure_spec.RED, "x"),
    "spurious": ("spurious retransmission", figure_spec.PINK, "v"),
    "reordered": ("reordered", figure_spec.SKY, "D"),
    "not_captured": ("missed by the capture", figure_spec.GREY, "o"),
}

#: Fate of a copy → its look; a copy that was delivered is data, or a repair.
FATES = {
    "lost": "lost",
    "lost_upstream": "lost",
    "dropped": "lost",
    "spurious": "spurious",
    "duplicate": "spurious",
    "reordered": "reordered",
    "not_captured": "not_captured",
}

#: Causes that are repairs.
RETRANSMISSIONS = ("fast", "tail_probe", "timeout", "fast_retransmit", "after_timeout")


def sequence(view: RunView, flow: int | None = None, between: Between = None) -> Drawing:
    """Return the time–sequence graph of a flow: data by fate, the ACK line, SACK, the receive window's edge.

    Of captures that were read with `segments`, and of runs that wrote captures (`[record] pcap`).
    """
    part = Part.of(view, between)
    number = part.flow(flow)
    copies, acks, unit = _captured(part, number)
    if not copies.height:
        copies, acks, unit = *_sent(part, number), "segments"
    if not copies.height:
        raise InputError(
            "the result holds no segments to draw: capture them with --segments, or run with [record] pcap = true"
        )
    layers = [*_edge(acks, copies, part.end_s), *_received(acks, part.end_s), *_copies(copies)]
    title = f"Time–sequence of {part.name(number)}"
    caption = (
        "Each stroke is a segment as it passed the capture’s point. Below it runs the line of what is acknowledged, "
        "above it the edge of the receiver’s window, where it is near; SACK blocks stand where they were reported."
    )
    return part.drawing(
        "sequence", "Time and sequence", title, caption, Panel(Axis(f"Sequence ({unit})", unit), layers)
    )


def _captured(part: Part, flow: int) -> tuple[pl.DataFrame, pl.DataFrame, str]:
    """Return copies and acknowledgements of a capture, and their unit."""
    rows = part.rows("segments", flow)
    start = pl.col("offset_bytes").cast(pl.Float64)
    end = start + pl.col("payload_bytes")
    factor, unit = numbers.scale(rows.select(end.max()).item() or 0.0, "bytes")
    look = _style_of(pl.col("fate"), pl.col("cause"))
    copies = rows.select("time_s", start=start / factor, end=end / factor, look=look)
    acks = part.rows("acknowledgements", flow).select(
        "time_s",
        acked=start / factor,
        edge=(start + pl.col("receiver_window_bytes")) / factor,
        sack_start=pl.col("sack_start_bytes") / factor,
        sack_end=pl.col("sack_end_bytes") / factor,
    )
    return copies, acks, unit


def _sent(part: Part, flow: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return copies and acknowledgements of a run, in segments: ACKs when they reached the sender."""
    rows = part.rows("transmissions", flow).filter(pl.col("segment").is_not_null())
    is_data = (pl.col("end") == "sender") & (pl.col("payload_bytes") > 0)
    copies = rows.filter(is_data).select(
        "time_s",
        start=pl.col("segment").cast(pl.Float64),
        end=pl.col("segment") + 1.0,
        look=_style_of(pl.col("fate"), pl.col("cause")),
    )
    nothing = pl.lit(None, dtype=pl.Float64)
    heard = rows.filter((pl.col("end") == "receiver") & pl.col("arrival_s").is_not_null())
    acks = heard.select(
        time_s="arrival_s", acked=pl.col("segment").cast(pl.Float64), edge=nothing, sack_start=nothing, sack_end=nothing
    )
    return copies, acks.sort("time_s")


def _style_of(fate: pl.Expr, cause: pl.Expr) -> pl.Expr:
    usual = (
        pl.when(cause.cast(pl.String).is_in(RETRANSMISSIONS)).then(pl.lit("retransmission")).otherwise(pl.lit("data"))
    )
    return fate.cast(pl.String).replace_strict(FATES, default=None, return_dtype=pl.String).fill_null(usual)


def _copies(copies: pl.DataFrame) -> Iterator[Layer]:
    for look, (name, colour, sign) in STYLES.items():
        rows = copies.filter(pl.col("look") == look)
        if not rows.height:
            continue
        times_s, starts, ends = (array(rows[column]) for column in ("time_s", "start", "end"))
        label = f"{name} ({rows.height:,})" if sign else name
        yield Strokes("" if sign else label, times_s, starts, times_s, ends, colour)
        if sign:
            yield Points(label, times_s, ends, colour, sign)


def _edge(acks: pl.DataFrame, copies: pl.DataFrame, end_s: float) -> Iterator[Layer]:
    """Yield the edge of the receive window, unless it is so far away that it would compress the rest."""
    edge = acks.drop_nulls("edge")
    if not edge.height:
        return
    highest = np.maximum.accumulate(array(edge["edge"]))
    low, high = float(array(copies["start"]).min()), float(array(copies["end"]).max())
    if highest[0] < high + (high - low):
        yield _until(end_s, "receiver’s window", array(edge["time_s"]), highest, figure_spec.GREY)


def _until(end_s: float, name: str, times_s: Array, values: Array, colour: str) -> Line:
    """Return steps of which the last one ends at `end_s`."""
    return Line(name, np.append(times_s, end_s), np.append(values, values[-1]), colour, steps=True)


def _received(acks: pl.DataFrame, end_s: float) -> Iterator[Layer]:
    if not acks.height:
        return
    acked = np.maximum.accumulate(array(acks["acked"]))
    yield _until(end_s, "acknowledged", array(acks["time_s"]), acked, figure_spec.GREEN)
    sacks = acks.drop_nulls("sack_start")
    if sacks.height:
        times_s = array(sacks["time_s"])
        yield Strokes(
            "SACK", times_s, array(sacks["sack_start"]), times_s, array(sacks["sack_end"]), figure_spec.PURPLE
        )


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


#: Law of each limiter for the bytes above its rate.
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
