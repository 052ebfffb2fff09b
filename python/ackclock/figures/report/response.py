"""The report's figure of response times by size."""

from __future__ import annotations

import numpy as np

from ackclock.errors import InputError
from ackclock.figures import curves, numbers
from ackclock.figures.curves import Responses
from ackclock.figures.report import plotly
from ackclock.figures.report.plotly import Figure, Trace
from ackclock.metrics.protocols import Recorded
from ackclock.metrics.response import response_means

#: Finished transfers that make the figure worth showing.
FEWEST = 20


def response(data: Recorded) -> Figure:
    """Return mean completion time over size, with 95 % intervals; `InputError` below 20 finished transfers."""
    lines = curves.responses(response_means(data))
    if sum(line.finished for line in lines) < FEWEST:
        raise InputError("too few finished transfers for a figure")
    size, size_name = numbers.scale(max(float(line.sizes_bytes.max()) for line in lines), "bytes")
    time, time_name = numbers.scale(max(float(np.nanmax(line.means_s)) for line in lines), "s")
    traces = [
        _line(line, number, (size, time), f"{size_name}: %{{y:.3g}} {time_name}") for number, line in enumerate(lines)
    ]
    layout = plotly.plain() | {
        "xaxis": plotly.axis(f"Size of the transfer ({size_name})", type="log", dtick="D2"),
        "yaxis": plotly.axis(f"Completion time ({time_name})", type="log", dtick="D2"),
        "showlegend": True,
    }
    left = sum(line.unfinished for line in lines)
    intervals = "over the runs" if len(data.runs) > 1 else "over the transfers"
    caption = f"Mean completion time of the finished transfers by their size, with 95 % intervals {intervals}. " + (
        f"{left:,} transfers were not finished and are not in the means, which makes those of long ones too small."
        if left
        else "All transfers that began in the measured part were finished."
    )
    return Figure("response", "Response time by size", caption, traces, layout)


def _line(line: Responses, number: int, scales: tuple[float, float], unit: str) -> Trace:
    size, time = scales
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": f"{line.label}: {line.finished:,} finished, {line.unfinished:,} not",
        "x": plotly.numbers(line.sizes_bytes / size),
        "y": plotly.numbers(line.means_s / time),
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": plotly.numbers(np.nan_to_num(line.highs_s - line.means_s) / time),
            "arrayminus": plotly.numbers(np.nan_to_num(line.means_s - line.lows_s) / time),
            "thickness": 1,
        },
        "line": {"width": 1.3, **plotly.line_style(number)},
        "hovertemplate": f"%{{x:.3g}} {unit}",
    }
