"""Figure specs of a host: the gaps of its clock and the speeds of its disk."""

from __future__ import annotations

import numpy as np
import polars as pl

from ackclock.dataset import Dataset
from ackclock.dataset.tables import CLOCK_GAPS
from ackclock.errors import InputError
from ackclock.figures import figure_spec, numbers
from ackclock.figures.figure_spec import Axis, Drawing, Line, Panel, Points


def disk(data: Dataset) -> Drawing:
    """Return the distribution of the disk's speeds over the repeats, a line for each block size."""
    rows = data.frame("disk").with_columns(speed=pl.col("bytes") / pl.col("duration_s"))
    if not rows.height:
        raise InputError("the result holds no speeds of a disk to draw; expected what ackclock doctor host disk wrote")
    panels = []
    for (target, operation), cells in rows.sort("target", "operation").group_by(
        "target", "operation", maintain_order=True
    ):
        title = f"{str(operation).capitalize()}{' of the device' if target == 'device' else ''}"
        x = Axis(title, "bytes/s", logarithmic=True, text=lambda speed: f"{numbers.value(speed, 'bytes', 1)}/s")
        panels.append(Panel(Axis("Share of the repeats"), _speeds(cells), x=x))
    below = "solid: to and from the disk; dashed: in the system's cache"
    return Drawing("disk", "Speed of the disk", "", panels, columns=min(len(panels), 2), share_y=True, subtitle=below)


def _speeds(cells: pl.DataFrame) -> list[Line]:
    lines = []
    for number, block in enumerate(sorted(cells["block_bytes"].unique())):
        for cached, dash in ((True, "dash"), (False, "solid")):
            speeds = cells.filter((pl.col("block_bytes") == block) & (pl.col("cached") == cached))["speed"]
            ordered = np.sort(speeds.to_numpy())
            share = np.arange(ordered.size + 1) / max(ordered.size, 1)
            x, colour = np.append(ordered[:1], ordered), figure_spec.colour(number)
            lines.append(Line(numbers.block(block), x, share[: x.size], colour, dash, steps=True, listed=not cached))
    return lines


def gaps(data: Dataset) -> Drawing:
    """Return the gaps of a host's clock over time: their length and kind."""
    rows = data.frame("clock_gaps")
    if not rows.height:
        raise InputError("the result holds no gaps to draw; expected what ackclock doctor host stalls wrote")
    layers = []
    for number, kind in enumerate(CLOCK_GAPS):
        of = rows.filter((pl.col("class") == kind) & (pl.col("duration_s") > 0))
        if of.height:
            name, lengths_ms = f"{kind} ({of.height:,})", 1e3 * of["duration_s"].to_numpy()
            layers.append(Points(name, of["time_s"].to_numpy(), lengths_ms, figure_spec.colour(number), size=4.0))
    highest = max(20.0, 2e3 * float(rows["duration_s"].to_numpy().max()))
    panel = Panel(Axis("Length of the gap (ms)", "ms", low=1.0, high=highest, logarithmic=True), layers)
    below = "each of them by its beginning, its length and its kind"
    return Drawing("gaps", "Gaps in the clock of the host", "", [panel], Axis("Time (s)", "s", low=0.0), subtitle=below)
