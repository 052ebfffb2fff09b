"""Time–sequence graph: each segment when it was sent, and what its receiver reported of it.

The graph of T. Shepard, *TCP packet trace analysis*, MIT 1990, as tcptrace and xplot draw it, with the fate of each
copy.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from ackclock.errors import InputError
from ackclock.figures import figure_spec, numbers
from ackclock.figures.capture_part import Between, Part, array
from ackclock.figures.figure_spec import Axis, Drawing, Layer, Line, Panel, Points, Strokes
from ackclock.metrics.view import Array, RunView

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
