"""The report's figures as plotly.js figures: plain dictionaries of data and layout.

Numbers travel as base64 of 32-bit floats, which plotly.js reads directly; long curves are thinned by minimum and
maximum (see `curves`), so that peaks survive and a report stays small.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ackclock import curves, shown
from ackclock.curves import Lines
from ackclock.errors import InputError
from ackclock.metrics import delay
from ackclock.metrics.view import Array, RunView

#: Okabe and Ito's palette, as in the printed figures.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
INK, QUIET, FAINT, SHADE = "#222222", "#6b6b6b", "#e3e3e3", "#f4f4f4"

#: More flows than this are a cloud with its mean, not lines with a legend.
MOST_LINES = 12

#: Lines of a cloud that are drawn, evenly chosen.
MOST_CLOUD_LINES = 60

#: Flow-and-epoch pairs that the epoch figure shows.
MOST_HITS = 20_000

Trace = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """A plotly figure with its heading, what it shows in words, and a note under it."""

    key: str
    heading: str
    caption: str
    data: list[Trace]
    layout: dict[str, Any]
    narrow: dict[str, Any] = field(default_factory=dict)

    def spec(self) -> dict[str, Any]:
        """What the page's script draws; `narrow` is merged into the layout on a narrow page."""
        return {"data": self.data, "layout": self.layout, "narrow": self.narrow}


def of_run(view: RunView, views: Sequence[RunView], points: int) -> list[Figure]:
    """All the figures of one result: `view` is the run that is drawn, `views` are all; about `points` a figure."""
    made = (
        lambda: cwnd(view, points),
        lambda: cwnd_total(view, points),
        lambda: goodput(view, points),
        lambda: queue(view, points),
        lambda: distributions(views, points),
        lambda: epochs(view),
    )
    return [figure for figure in map(_or_none, made) if figure is not None]


def _or_none(make: Callable[[], Figure]) -> Figure | None:
    """A figure whose data the engine did not give is left out."""
    try:
        return make()
    except InputError:
        return None


def cwnd(view: RunView, points: int) -> Figure:
    """Congestion windows."""
    lines = curves.windows(view)
    data = _lines(lines, points, "%{y:.0f} segments at %{x:.2f} s")
    layout = _layout(view, {"yaxis": _axis("Congestion window (segments)", rangemode="tozero")})
    layout["showlegend"] = len(data) > 1
    return Figure("cwnd", "Congestion windows", _lines_caption(lines, "Each flow’s congestion window"), data, layout)


def cwnd_total(view: RunView, points: int) -> Figure:
    """The sum of the windows."""
    lines = curves.windows(view)
    data = [_line(lines.times_s, lines.total(), points, _look(0), "all flows", "%{y:.0f} segments at %{x:.2f} s")]
    layout = _layout(view, {"yaxis": _axis(f"Sum of {lines.count} windows (segments)", rangemode="tozero")})
    pipe, limit = curves.pipe_segments(view), curves.queue_limit(view)
    caption = (
        "The sum of all windows. A sum that swings as a single flow’s window would is a sign of synchronised losses."
    )
    if pipe is not None:
        _reference(layout, "y", pipe, "BDP")
        if limit is not None:
            _reference(layout, "y", pipe + limit, "BDP +<br>buffer")
        caption += " The lines mark what the path holds: the bandwidth-delay product (BDP), and with the buffer full."
    return Figure("cwnd_total", "Total congestion window", caption, data, layout)


def goodput(view: RunView, points: int) -> Figure:
    """Goodput in total and of each flow."""
    window_s = curves.goodput_window(view)
    lines = curves.goodputs(view, window_s)
    rate_bps, total = curves.link_rate(view), lines.total()
    factor, unit = shown.scale(max(float(total.max(initial=0)), rate_bps or 0.0), "bit/s")
    each_factor, each_unit = shown.scale(float(lines.values.max(initial=0)), "bit/s")
    scaled = Lines(lines.times_s, lines.values / each_factor, lines.labels, lines.groups)
    above = _line(
        lines.times_s, total / factor, points, {"color": INK}, "all flows", f"%{{y:.4g}} {unit} at %{{x:.1f}} s"
    )
    below = _lines(scaled, points, f"%{{y:.3g}} {each_unit} at %{{x:.1f}} s")
    data = [above | {"showlegend": False}, *[trace | {"yaxis": "y2"} for trace in below]]
    layout = _stacked(view, f"All flows ({unit})", f"Each flow ({each_unit})")
    layout["showlegend"] = len(below) > 1
    if rate_bps:
        _reference(layout, "y", rate_bps / factor, "link<br>rate")
    caption = _lines_caption(
        lines,
        f"Goodput seen at the senders, averaged over the last {window_s:.2g} s: of all flows together, and of each",
    )
    return Figure("goodput", "Goodput", caption, data, layout)


def queue(view: RunView, points: int) -> Figure:
    """Backlog and sojourn time."""
    samples = curves.queue(view)
    factor, unit = shown.scale(float(np.nanmax(samples.sojourn_s, initial=0)), "s")
    above = _line(samples.times_s, samples.backlog_p, points, _look(0), "backlog", "%{y:.0f} packets at %{x:.2f} s")
    below = _line(
        samples.times_s,
        samples.sojourn_s / factor,
        points,
        _look(1),
        "sojourn time",
        f"%{{y:.3g}} {unit} at %{{x:.2f}} s",
    )
    layout = _stacked(view, "Backlog (packets)", f"Sojourn time ({unit})")
    if samples.limit_p is not None:
        _reference(layout, "y", samples.limit_p, "limit")
    mean_s = delay.queue_delay_mean_s(view)
    if mean_s is not None:
        _reference(layout, "y2", mean_s / factor, f"mean<br>{shown.value(mean_s, 's')}")
    caption = (
        "Packets waiting at the bottleneck, and how long those that left in each interval had waited (their mean)."
    )
    return Figure(
        "queue", "Queue at the bottleneck", caption, [above, below | {"yaxis": "y2"}], layout | {"showlegend": False}
    )


def distributions(views: Sequence[RunView], points: int, names: Sequence[str] | None = None) -> Figure:
    """Distribution functions, one line a run (or a result, with its name)."""
    sources = (
        (curves.sojourn_cdf, "s", "Sojourn time"),
        (curves.rtt_cdf, "s", "Smoothed RTT"),
        (curves.goodput_cdf, "bit/s", "Goodput of a flow"),
    )
    labels = names or [f"seed {view.seed}" for view in views]
    data: list[Trace] = []
    layout, narrow = _base_layout(), {"height": 900}
    for panel, (source, unit, title) in enumerate(sources, start=1):
        known = [source(view) for view in views]
        factor, name = shown.scale(max((float(x[-1]) for x, _ in known if x.size), default=1.0), unit)
        each = max(100, points // 3 // len(views))
        for run, (x, share) in enumerate(known):
            data += _distribution(x / factor, share, each, labels[run], _look(run), panel, name)
        _panel(layout, narrow, panel, f"{title} ({name})")
    if not data:
        raise InputError("nothing to show the distribution of")
    layout["showlegend"] = len(views) > 1
    what = "of the first run of each result" if names else "of the measured part, one line a run"
    caption = f"Distribution functions of packets, RTT samples and flows {what}: the share of the values at or below."
    return Figure("cdf", "Distributions", caption, data, layout, narrow)


def _panel(layout: dict[str, Any], narrow: dict[str, Any], panel: int, title: str) -> None:
    """The axes of one of three panels: side by side, or one below the other on a narrow page."""
    left, top = (panel - 1) * 0.345, 1 - (panel - 1) * 0.36
    ticks = {"range": [0, 1.02], "tickvals": [0, 0.25, 0.5, 0.75, 1], "showticklabels": panel == 1}
    name = "" if panel == 1 else str(panel)
    layout[f"xaxis{name}"] = _axis(title, domain=[left, left + 0.31], anchor=f"y{name}", nticks=5)
    layout[f"yaxis{name}"] = _axis("Share at or below" if panel == 1 else "", anchor=f"x{name}", **ticks)
    narrow[f"xaxis{name}"] = {"domain": [0, 1]}
    narrow[f"yaxis{name}"] = {"domain": [top - 0.28, top], "showticklabels": True}


def _distribution(
    x: Array, share: Array, points: int, name: str, look: dict[str, Any], panel: int, unit: str
) -> list[Trace]:
    if not x.size:
        return []
    rows = np.unique(np.linspace(0, x.size - 1, min(x.size, points)).astype(int))
    axis = "" if panel == 1 else str(panel)
    trace = {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "legendgroup": name,
        "showlegend": panel == 1,
        "x": _numbers(np.append(x[0], x[rows])),
        "y": _numbers(np.append(0.0, share[rows])),
        "xaxis": f"x{axis}",
        "yaxis": f"y{axis}",
        "line": {"shape": "hv", "width": 1.4, **look},
        "hovertemplate": f"%{{y:.1%}} at most %{{x:.3g}} {unit}",
    }
    return [trace]


def epochs(view: RunView) -> Figure:
    """Which flows lost in which congestion epoch."""
    drops, found = curves.loss_epochs(view)
    if not found.height:
        raise InputError("no packet was dropped at the bottleneck")
    import polars as pl

    hits = drops.group_by("epoch", "flow", maintain_order=True).agg(pl.col("time_s").first(), pl.len().alias("lost"))
    hits = hits.drop_nulls().head(MOST_HITS)
    middle = (found["start_s"] + found["end_s"]).to_numpy() / 2
    data: list[Trace] = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "lost packets",
            "x": _numbers(hits["time_s"].to_numpy()),
            "y": _numbers(hits["flow"].to_numpy()),
            "customdata": hits["lost"].to_list(),
            "marker": {"color": COLOURS[0], "size": _marker_size(view.flows.height)},
            "hovertemplate": "flow %{y:.0f} lost %{customdata} in the epoch at %{x:.2f} s",
        },
        {
            "type": "bar",
            "name": "share of flows hit",
            "x": _numbers(middle),
            "y": _numbers(100 * found["share"].to_numpy()),
            "yaxis": "y2",
            "width": view.duration_s / 250,
            "marker": {"color": COLOURS[1]},
            "customdata": found["drops"].to_list(),
            "hovertemplate": "%{y:.0f} % of the flows, %{customdata} packets, at %{x:.2f} s",
        },
    ]
    layout = _stacked(view, "Flow that lost", "Flows hit (%)") | {"showlegend": False}
    layout["yaxis"] |= {"range": [-0.8, view.flows.height - 0.2], "rangemode": "normal"}
    layout["yaxis2"] |= {"range": [0, 108], "tickvals": [0, 50, 100]}
    mean = float(np.mean(found["share"].to_numpy()))
    _reference(layout, "y2", 100 * mean, f"mean<br>{100 * mean:.0f} %")
    packets = float(np.mean(found["drops"].to_numpy()))
    caption = (
        f"{found.height} congestion epochs in the measured part, with {packets:.3g} packets lost in each on average. "
        "A dot is a flow that lost in an epoch (placed at its first loss); a bar is the share of the active flows that did. "
        "Drops less than one round-trip time apart belong to one epoch."
    )
    return Figure("epochs", "Loss epochs", caption, data, layout)


def together(names: Sequence[str], views: Sequence[RunView], points: int) -> list[Figure]:
    """Several results in the same axes: the first run of each."""
    made = (
        lambda: _totals(names, views, points),
        lambda: _backlogs(names, views, points),
        lambda: distributions(views, points, names),
    )
    return [figure for figure in map(_or_none, made) if figure is not None]


def _totals(names: Sequence[str], views: Sequence[RunView], points: int) -> Figure:
    found = [curves.goodputs(view) for view in views]
    factor, unit = shown.scale(max(float(lines.total().max(initial=0)) for lines in found), "bit/s")
    data = [
        _line(
            lines.times_s,
            lines.total() / factor,
            points // len(views),
            _look(n),
            name,
            f"%{{y:.4g}} {unit} at %{{x:.1f}} s",
        )
        for n, (name, lines) in enumerate(zip(names, found, strict=True))
    ]
    layout = _layout(_longest(views), {"yaxis": _axis(f"Goodput of all flows ({unit})", rangemode="tozero")})
    return Figure(
        "goodput",
        "Total goodput",
        "Goodput of all flows together, first run of each result.",
        data,
        layout | {"showlegend": True},
    )


def _backlogs(names: Sequence[str], views: Sequence[RunView], points: int) -> Figure:
    found = [curves.queue(view) for view in views]
    data = [
        _line(
            samples.times_s, samples.backlog_p, points // len(views), _look(n), name, "%{y:.0f} packets at %{x:.2f} s"
        )
        for n, (name, samples) in enumerate(zip(names, found, strict=True))
    ]
    layout = _layout(_longest(views), {"yaxis": _axis("Backlog (packets)", rangemode="tozero")})
    return Figure(
        "queue",
        "Queue at the bottleneck",
        "Packets waiting, first run of each result.",
        data,
        layout | {"showlegend": True},
    )


def _longest(views: Sequence[RunView]) -> RunView:
    return max(views, key=lambda view: view.duration_s)


def _lines(lines: Lines, points: int, hover: str) -> list[Trace]:
    if lines.count > MOST_LINES:
        return _cloud(lines, points, hover)
    each = points // lines.count
    return [
        _line(lines.times_s, lines.values[:, n], each, _look(n), label, hover) for n, label in enumerate(lines.labels)
    ]


def _cloud(lines: Lines, points: int, hover: str) -> list[Trace]:
    """Thin lines of some flows, the band of 80 % of all, and the mean, for each group."""
    traces: list[Trace] = []
    for number, name in enumerate(dict.fromkeys(lines.groups)):
        chosen = [column for column, group in enumerate(lines.groups) if group == name]
        group = Lines(lines.times_s, lines.values[:, chosen], tuple(lines.labels[c] for c in chosen), ())
        traces += _cloud_of(group, name, COLOURS[number % len(COLOURS)], points, hover)
    return traces


def _cloud_of(lines: Lines, name: str, colour: str, points: int, hover: str) -> list[Trace]:
    drawn = np.unique(np.linspace(0, lines.count - 1, min(lines.count, MOST_CLOUD_LINES)).astype(int))
    thin = [
        _line(lines.times_s, lines.values[:, c], points // drawn.size, {"color": colour}, lines.labels[c], hover)
        | {"opacity": 0.25, "showlegend": bool(c == drawn[0]), "legendgroup": f"{name} flows"}
        for c in drawn
    ]
    thin[0]["name"] = f"{name}: {drawn.size} of {lines.count} flows"
    for trace in thin:
        trace["line"] = {"color": colour, "width": 0.8}
    times_s, low, high = lines.quantiles(0.1, 0.9)
    band = {
        "type": "scatter",
        "mode": "lines",
        "name": f"{name}: the middle 80 %",
        "fill": "toself",
        "line": {"width": 0},
        "fillcolor": _translucent(colour),
        "hoverinfo": "skip",
        "x": _numbers(np.concatenate([times_s, times_s[::-1]])),
        "y": _numbers(np.concatenate([low, high[::-1]])),
    }
    mean = _line(lines.times_s, lines.mean(), points // 4, {"color": INK}, f"{name}: mean", hover)
    return [*thin, band, mean | {"line": {"color": INK, "width": 2}}]


def _line(x: Array, y: Array, points: int, look: dict[str, str], name: str, hover: str) -> Trace:
    x, y = curves.thinned(x, y, max(points, 200))
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": _numbers(x),
        "y": _numbers(y),
        "line": {"width": 1.3, **look},
        "hovertemplate": hover,
    }


def _numbers(values: Array) -> dict[str, str]:
    """A typed array as plotly.js takes it."""
    return {"dtype": "f4", "bdata": base64.b64encode(np.asarray(values, dtype="<f4").tobytes()).decode()}


def _base_layout() -> dict[str, Any]:
    return {
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "hovermode": "closest",
        "margin": {"l": 64, "r": 16, "t": 12, "b": 56},
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 1.02,
            "yanchor": "bottom",
            "itemclick": "toggle",
            "itemdoubleclick": "toggleothers",
        },
        "shapes": [],
        "annotations": [],
    }


def _layout(view: RunView, axes: dict[str, Any]) -> dict[str, Any]:
    layout = _base_layout() | {"xaxis": _axis("Time (s)", range=[0, view.duration_s])} | axes
    if view.warmup_s > 0:
        layout["shapes"] += [_warmup(view, axis.replace("axis", "")) for axis in axes if axis.startswith("yaxis")]
        layout["annotations"].append(
            _note("warm-up", QUIET)
            | {"xref": "x", "yref": "paper", "x": 0, "y": 1, "xanchor": "left", "yanchor": "top"}
        )
    return layout


def _warmup(view: RunView, axis: str) -> dict[str, Any]:
    place = {"xref": "x", "yref": f"{axis} domain", "x0": 0, "x1": view.warmup_s, "y0": 0, "y1": 1}
    return {"type": "rect", **place, "fillcolor": SHADE, "line": {"width": 0}, "layer": "below"}


def _note(text: str, colour: str) -> dict[str, Any]:
    return {"text": text, "showarrow": False, "font": {"size": 11, "color": colour}}


def _stacked(view: RunView, above: str, below: str) -> dict[str, Any]:
    """Two panels over one time axis."""
    layout = _layout(
        view,
        {
            "yaxis": _axis(above, domain=[0.54, 1], rangemode="tozero"),
            "yaxis2": _axis(below, domain=[0, 0.46], rangemode="tozero", anchor="x"),
        },
    )
    layout["xaxis"]["anchor"] = "y2"
    return layout | {"height": 520}


def _axis(title: str, **more: Any) -> dict[str, Any]:
    common = {
        "title": {"text": title, "standoff": 8},
        "gridcolor": FAINT,
        "zeroline": False,
        "linecolor": QUIET,
        "ticks": "outside",
        "tickcolor": QUIET,
        "nticks": 7,
    }
    return {**common, **more}


def _reference(layout: dict[str, Any], axis: str, value: float, text: str) -> None:
    """A horizontal line with its name in the right margin."""
    line = {"color": INK, "width": 1, "dash": "dash"}
    place = {"xref": "paper", "x0": 0, "x1": 1, "yref": axis, "y0": value, "y1": value}
    layout["shapes"].append({"type": "line", **place, "line": line})
    beside = {
        "xref": "paper",
        "x": 1,
        "xanchor": "left",
        "yref": axis,
        "y": value,
        "yanchor": "middle",
        "align": "left",
    }
    layout["annotations"].append(_note(text, INK) | beside)
    layout["margin"] = {**layout["margin"], "r": 68}


def _lines_caption(lines: Lines, what: str) -> str:
    if lines.count > MOST_LINES:
        return f"{what}: some of the {lines.count:,} flows as thin lines, the mean as a thick one, and the band that holds 80 % of all flows."
    return f"{what}. Click a name in the legend to hide it, double-click to see it alone."


def _look(number: int) -> dict[str, str]:
    """Colour and dash of line `number`: each colour solid, then dashed, then dotted."""
    return {"color": COLOURS[number % len(COLOURS)], "dash": ("solid", "dash", "dot")[number // len(COLOURS) % 3]}


def _marker_size(flows: int) -> float:
    return float(np.clip(120 / max(flows, 1), 2, 8))


def _translucent(colour: str) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"
