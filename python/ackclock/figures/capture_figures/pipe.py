"""Pipe, congestion window and receive window of a flow."""

from __future__ import annotations

import numpy as np

from ackclock.errors import InputError
from ackclock.figures import figure_spec
from ackclock.figures.capture_figures.part import Between, Part, array
from ackclock.figures.figure_spec import Drawing, Line, Panel, Points
from ackclock.metrics.view import RunView

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
    heading = f"Pipe and window of {part.name(number)}"
    caption = "What is under way (RFC 6675’s pipe), and the windows that bound it."
    return Drawing("pipe", heading, caption, (Panel("Under way (segments)", lines),), part.start_s, part.end_s)
