"""Bytes above the rate of a policer, at losses and at passes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from ackclock.errors import InputError
from ackclock.figures import figure_spec, numbers
from ackclock.figures.capture_figures.part import Between, Part, array
from ackclock.figures.figure_spec import Axis, Drawing, Panel, Points, Reference, Strokes
from ackclock.metrics.view import RunView


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
    title = f"What came above {rate} ({limiter})"
    caption = f"Bytes of all flows above {rate}: a policer drops where they reach its depth, and only there."
    panel = Panel(Axis(f"Level ({unit})", unit, from_zero=True), layers, references)
    return part.drawing("level", "What came above the limiter’s rate", title, caption, panel)


#: Words and colour → the classes of stalls that are meant.
STYLES = {
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
    ("late acknowledgements", figure_spec.SKY): ("ack_delay",),
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
    axis = Axis("Flow (number, in the order of their beginnings)")
    if lives.height <= figure_spec.MAX_LINES:
        axis = figure_spec.named("", [f"flow {number}" for number in lives["flow"]])
    caption = "A thin line while a flow lives, a bar while nothing of it is to be seen."
    return part.drawing("stalls", "Stalls", title, caption, Panel(axis, layers))


def _lives(rows: pl.DataFrame, end_s: float) -> Strokes:
    starts = array(rows["start_s"].fill_null(0.0))
    ends = array(rows["end_s"].fill_null(end_s))
    return Strokes("", starts, array(rows["place"]), ends, array(rows["place"]), figure_spec.LIGHT)


def _stalls(stalls: pl.DataFrame) -> Iterator[Strokes]:
    for (name, colour), classes in STYLES.items():
        rows = stalls.filter(pl.col("class").cast(pl.String).is_in(classes))
        if rows.height:
            starts, places = array(rows["time_s"]), array(rows["place"])
            label = f"{name} ({rows.height:,})"
            yield Strokes(label, starts, places, starts + array(rows["duration_s"]), places, colour, wide=True)
