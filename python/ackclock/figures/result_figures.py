"""Figure specs of a result with all its runs: distributions, response times, flows; a host's clock and disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import polars as pl

from ackclock import theory
from ackclock.dataset import Dataset
from ackclock.dataset.tables import CLOCK_GAPS
from ackclock.errors import InputError
from ackclock.figures import curves, figure_spec, numbers, overlay
from ackclock.figures.figure_spec import (
    BLUE,
    INK,
    RED,
    Axis,
    Boxes,
    Drawing,
    Layer,
    Line,
    Panel,
    Points,
    Reference,
)
from ackclock.metrics import flow_means
from ackclock.metrics.distributions import empirical
from ackclock.metrics.flow_tables import cubic_epochs
from ackclock.metrics.view import Array, RunView

#: Quantities of the distributions: unit, the axis's label, and what has them.
QUANTITIES = {
    "queue_delay_s": ("s", "Sojourn time", "packets"),
    "rtt_s": ("s", "Smoothed RTT", "RTT samples"),
    "goodput_bps": ("bit/s", "Goodput of a flow", "flows"),
    "cwnd": ("segments", "Congestion window", "window samples"),
    "fct_s": ("s", "Completion time", "transfers"),
}

#: For each quantity the ascending values, and the share at or below each.
Distributions: TypeAlias = Mapping[str, tuple[Array, Array]]

#: Closed forms by their names: seconds for sizes in bytes.
Formulas: TypeAlias = Mapping[str, Callable[[Array], Array]]

#: Colour of each of several runs.
PALE = "#9BBBD3"

#: Factor of room below the lowest mean response time and above the highest.
ROOM = 2.0

#: Distributions are over a logarithmic axis where all but this share at either end spans decades.
INNER = 0.05

#: Points of a formula's curve.
FORMULA_POINTS = 200


def distributions(view: RunView) -> Distributions:
    """Return the distributions of one run."""
    return {quantity: curves.distribution(view, quantity) for quantity in QUANTITIES}


def cdf(results: Mapping[str, Sequence[tuple[str, Distributions]]], subtitle: str = "") -> Drawing:
    """Return the distribution functions of the quantities that are known, all runs of each result together.

    `results` has the names of the runs of each result, with their distributions. Of the first each run has a line, too.
    Raises `InputError` if there are no samples.
    """
    known = [
        quantity
        for quantity in QUANTITIES
        if any(run[quantity][0].size for every in results.values() for _, run in every)
    ]
    if not known:
        raise InputError("the result has no samples: there are no distributions to draw")
    panels = [_distribution(quantity, results) for quantity in known]
    *others, last = [QUANTITIES[quantity][2] for quantity in known]
    every = f"{', '.join(others)} and {last}" if others else last
    caption = (
        f"Distribution functions of {every}, of the measured part of all runs: the share of the values at or below."
    )
    if "fct_s" in known:
        caption += " Completion times end below 1 where transfers were not finished."
    columns = 2 if len(panels) <= 4 else 3
    heading = "Distributions in the measured part"
    return Drawing("cdf", "Distributions", caption, panels, columns=columns, share_y=True, title=heading,
                   subtitle=subtitle)  # fmt: skip


def _distribution(quantity: str, results: Mapping[str, Sequence[tuple[str, Distributions]]]) -> Panel:
    unit, title, _ = QUANTITIES[quantity]
    known = {
        name: [(which, *run[quantity]) for which, run in every if run[quantity][0].size]
        for name, every in results.items()
    }
    every = [values for result in known.values() for _, values, _ in result]
    greatest = max((float(values[-1]) for values in every), default=1.0)
    factor, unit_name = numbers.scale(greatest, unit)
    layers: list[Line] = []
    for number, (name, result) in enumerate(known.items()):
        if number == 0 and len(result) > 1:
            layers += [
                replace(_steps("each run", x / factor, share, PALE, width=0.8), detail=which)
                for which, x, share in result
            ]
        pooled = _pooled([(x, share) for _, x, share in result], factor) if result else (np.empty(0), np.empty(0))
        label = name if len(known) > 1 else "all runs together" if len(result) > 1 else ""
        dash = figure_spec.overlaid(number - 1) if number else "solid"
        layers.append(_steps(label, *pooled, figure_spec.colour(number), dash, 1.2, over=number > 0))
    wide = greatest > 4 * min((float(values[0]) for values in every), default=0.0)
    x = Axis(f"{title} ({unit_name})", unit_name, low=0.0 if wide else None)
    shares = np.linspace(INNER, 1 - INNER, 99)
    spread = [np.interp(shares, share, x) / factor for result in known.values() for _, x, share in result]
    axis = figure_spec.by_decades(x, np.concatenate([np.empty(0), *spread]))
    if axis.logarithmic:
        axis = replace(axis, high=1.5 * greatest / factor)
        layers = [replace(line, x=np.maximum(line.x, axis.low or 0.0)) for line in layers]
    return Panel(_shares("Share at or below"), layers, x=axis)


def _shares(title: str) -> Axis:
    ticks = tuple((share, f"{share:.2f}") for share in (0.0, 0.25, 0.5, 0.75, 1.0))
    return Axis(title, low=0.0, high=1.02, ticks=ticks)


def _steps(
    name: str, values: Array, share: Array, colour: str, dash: str = "solid", width: float = 1.0, *, over: bool = False
) -> Line:
    """Return a distribution function as steps from 0."""
    x, y = np.append(values[:1], values), np.append(np.zeros(min(values.size, 1)), share)
    return Line(name, x, y, colour, dash, width, steps=True, listed=bool(name), over=over)


def _pooled(result: Sequence[tuple[Array, Array]], factor: float) -> tuple[Array, Array]:
    """Pool all runs into one distribution, each with the same weight; it ends at the mean of their ends."""
    if len(result) == 1:
        return result[0][0] / factor, result[0][1]
    weights = np.concatenate([np.diff(share, prepend=0.0) for _, share in result])
    x, share = empirical(np.concatenate([x for x, _ in result]) / factor, weights)
    return x, share * float(np.mean([share[-1] for _, share in result]))


def response(table: pl.DataFrame, formulas: Formulas | None = None, subtitle: str = "") -> Drawing:
    """Return the mean completion times of `metrics.response_times` over the size, one line a group.

    The bars are 95 % intervals; a hollow mark is the mean that counts unfinished transfers as far as they were watched
    (Kaplan and Meier), where there are some. `formulas` are laid over. Raises `InputError` if no transfer of known size
    was finished.
    """
    known = table.filter(pl.col("size_low_bytes") > 0)
    rows = known.filter(pl.col("n") > 0)
    if not rows.height:
        raise InputError("the result has no finished transfers to draw")
    rows = rows.with_columns(size=(pl.col("size_low_bytes").cast(pl.Float64) * pl.col("size_high_bytes")).sqrt())
    size, size_name = numbers.scale(float(rows["size"].to_numpy().max()), "bytes")
    time, time_name = numbers.scale(float(rows["mean_s"].to_numpy().max()), "s")
    layers: list[Layer] = []
    for number, group in enumerate(rows.partition_by("group", maintain_order=True)):
        layers += _responses(group, number, size, time)
    ends = rows["size"].to_numpy()
    sizes_bytes = np.geomspace(ends.min(), ends.max(), FORMULA_POINTS)
    for number, (name, seconds) in enumerate((formulas or {}).items()):
        dash = figure_spec.overlaid(number)
        layers.append(Line(name, sizes_bytes / size, seconds(sizes_bytes) / time, INK, dash))
    means = np.concatenate([layer.y[np.isfinite(layer.y)] for layer in layers if isinstance(layer, Points)])
    low, high = means.min() / ROOM, means.max() * ROOM  # an interval may reach 0, which no axis of logarithms has
    panel = Panel(
        Axis(f"Completion time ({time_name})", time_name, low=low, high=high, logarithmic=True),
        layers,
        x=Axis(f"Size of the transfer ({size_name})", size_name, logarithmic=True),
    )
    left = int(known["unfinished"].sum())
    caption = "Mean completion time of the finished transfers by their size, with 95 % intervals. " + (
        f"{left:,} transfers were not finished and are not in the means, which makes those of long ones too small."
        if left
        else "All transfers that began in the measured part were finished."
    )
    title = "Response time by size: mean and 95 % interval"
    return Drawing("response", "Response time by size", caption, [panel], row_in=2.0, title=title, subtitle=subtitle)


def _responses(rows: pl.DataFrame, number: int, size: float, time: float) -> Iterator[Points]:
    sizes, colour = rows["size"].to_numpy() / size, figure_spec.colour(number)
    mean, low, high = (rows[name].to_numpy() / time for name in ("mean_s", "ci95_low_s", "ci95_high_s"))
    name = f"{rows['name'][0]}: {rows['n'].sum():,} finished, {rows['unfinished'].sum():,} not"
    sign, dash = figure_spec.mark(number), figure_spec.dash(number)
    yield Points(name, sizes, mean, colour, sign, size=3.0, low=low, high=high, dash=dash)
    cut = rows.with_columns(size=sizes).filter(pl.col("unfinished") > 0).drop_nulls("km_mean_s")
    if cut.height:
        name = "with unfinished ones, as far as watched"
        yield Points(name, cut["size"].to_numpy(), cut["km_mean_s"].to_numpy() / time, colour, listed=number == 0)


#: Panels of `boxes`: column of `metrics.flow_means`, unit, the axis's label.
MEANS = (
    ("goodput_bps", "bit/s", "Goodput of a flow ({})"),
    ("loss", "share", "Segments lost ({})"),
    ("rtt_s", "s", "Mean RTT ({})"),
    ("window", "segments", "Mean window ({})"),
)


def boxes(results: Sequence[Dataset]) -> Drawing:
    """Return the spread of the flows' means of each result, by their numbers of flows.

    Box plots as in Belhareth 2014, figures 4.48 and 4.49.
    """
    result = sorted((flow_means(each) for each in results), key=lambda rows: rows.height)
    if not result[-1].height:
        raise InputError("the result holds no flows to draw")
    x = figure_spec.named("Flows", [f"{rows.height:,}" for rows in result])
    panels = []
    for column, unit, title in MEANS:
        values = [rows[column].drop_nulls().drop_nans().to_numpy() for rows in result]
        if not any(each.size for each in values):
            continue
        factor, name = numbers.scale(figure_spec.span(values) or 1.0, unit)
        box = Boxes("", range(len(values)), [list(each / factor) for each in values], INK, median=RED)
        linear = Axis(title.format(name), name, from_zero=True)
        axis = figure_spec.by_decades(linear, np.concatenate(values) / factor)
        panels.append(Panel(axis, [figure_spec.on_axis(box, axis)], x=x))
    origin = overlay.origin(results[0], pooled=True)
    return Drawing("boxes", "Means of the flows", "", panels, columns=2, subtitle=origin)


def tracking(data: Dataset) -> Drawing:
    """Return each epoch of CUBIC's window over its W_max: time on the plateau, and mean distance from the curve.

    Belhareth 2014, section 5.5.
    """
    result = cubic_epochs(data)
    if not result.height:
        raise InputError(
            "the result has nothing of CUBIC's inside to draw; expected a run with [record] cubic_state = true"
        )
    every = {group.congestion.parameters.get("c") for group in data.plan.groups if group.congestion}
    c = every.pop() if len(every) == 1 else None
    curve = () if c is None else (Reference(float(theory.time_after_plateau(1.0, c=c)), "curve"),)
    panels = []
    for column, title, references in (
        ("plateau_s", "Time on the plateau (s)", curve),
        ("tracking_error", "Distance from the curve\n(segments)", ()),
    ):
        valid = result.drop_nulls(column)
        points = Points("", valid["w_max"].to_numpy(), valid[column].to_numpy(), BLUE, size=3.0)
        panels.append(Panel(Axis(title, from_zero=True), [points], references))
    heading = f"CUBIC's window and its curve: {result.height} epochs"
    origin = overlay.origin(data, pooled=True)
    return Drawing(
        "tracking",
        heading,
        "",
        panels,
        Axis("W_max, the window before a reduction (segments)"),
        row_in=1.5,
        subtitle=origin,
    )


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
