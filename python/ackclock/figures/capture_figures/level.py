"""Bytes above the rate of a policer, at losses and at passes."""

from __future__ import annotations

import polars as pl

from ackclock.errors import InputError
from ackclock.figures import figure_spec, numbers
from ackclock.figures.capture_figures.part import Between, Part, array
from ackclock.figures.figure_spec import Drawing, Panel, Points
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
    references = ((depth / factor, f"depth\n{numbers.value(depth, 'bytes')}"),) if depth else ()
    limiter, rate = path.get("limiter", "limiter"), numbers.value(path.get("rate_bps"), "bit/s")
    heading = f"What came above {rate} ({limiter})"
    caption = f"Bytes of all flows above {rate}: a policer drops where they reach its depth, and only there."
    return Drawing("level", heading, caption, (Panel(f"Level ({unit})", layers, references),), part.start_s, part.end_s)
