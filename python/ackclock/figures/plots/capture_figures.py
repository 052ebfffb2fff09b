"""Capture figures for print: the specs of `ackclock.figures.capture_figures`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures import capture_figures
from ackclock.figures.capture_figures.part import Between
from ackclock.figures.figure_spec import Layer, Line, Panel, Points, Stack, Strokes
from ackclock.figures.plots import style

#: Strokes and signs beyond this many become a picture within a vector file.
MAX_VECTORS = 20_000


def _of(kind: str) -> Callable[..., Figure]:
    make = capture_figures.KINDS[kind]

    @style.public
    def figure(data: Dataset, flow: int | None = None, between: Between = None) -> Figure:
        drawing = make(style.first_run(data), flow, between)
        fig = style.figure(1.4 + 2.4 * len(drawing.panels))
        axes = fig.subplots(len(drawing.panels), 1, sharex=True, squeeze=False)[:, 0]
        for ax, panel in zip(axes, drawing.panels, strict=True):
            _panel(ax, panel, drawing.end_s)
            ax.set_xlim(drawing.start_s, drawing.end_s)
        axes[-1].set_xlabel("Time (s)")
        handles = [handle for ax in axes for handle in ax.get_legend_handles_labels()[0]]
        if len(handles) > 1:
            style.legend(fig, handles=handles, ncols=4)
        style.title(fig, drawing.heading, data)
        return fig

    figure.__name__ = figure.__qualname__ = kind
    figure.__doc__ = make.__doc__
    return figure


sequence, pipe, rtt, limits, stalls, level = map(_of, capture_figures.KINDS)


def _panel(ax: Axes, panel: Panel, end_s: float) -> None:
    for layer in panel.layers:
        _layer(ax, layer, end_s)
    for value, name in panel.references:
        style.reference(ax, value, name)
    if panel.from_zero:
        ax.set_ylim(0, max(ax.get_ylim()[1], *(1.06 * value for value, _ in panel.references), 0))
    if panel.names:
        ax.set_yticks(range(len(panel.names)), panel.names)
        ax.set_ylim(-0.8, len(panel.names) - 0.2)
    ax.set_ylabel(panel.axis)


def _layer(ax: Axes, layer: Layer, end_s: float) -> None:
    if isinstance(layer, Line):
        x, y, how = layer.x, layer.y, "default"
        if layer.steps:
            x, y, how = np.append(x, end_s), np.append(y, y[-1:]), "steps-post"
        style.curve(ax, x, y, color=layer.colour, label=layer.name, drawstyle=how)
    elif isinstance(layer, Strokes):
        _strokes(ax, layer)
    elif isinstance(layer, Points):
        size = 3.0 if layer.sign == "." else 4.5
        ax.plot(
            layer.x,
            layer.y,
            layer.sign,
            color=layer.colour,
            markersize=size,
            markerfacecolor="none" if layer.sign != "." else layer.colour,
            markeredgewidth=0.9 if layer.sign != "." else 0,
            label=layer.name,
            zorder=3 if layer.sign != "." else 2,
            rasterized=layer.x.size > MAX_VECTORS,
        )
    else:
        _stack(ax, layer)


def _strokes(ax: Axes, layer: Strokes) -> None:
    ends = np.stack([np.column_stack([layer.x, layer.y]), np.column_stack([layer.x_end, layer.y_end])], axis=1)
    width = 4.0 if layer.wide else 1.0
    many = layer.x.size > MAX_VECTORS
    drawn = LineCollection(list(ends), colors=layer.colour, linewidths=width, label=layer.name, rasterized=many)
    if not layer.name:
        drawn.set_label("_nolegend_")
    ax.add_collection(drawn)
    ax.autoscale_view()


def _stack(ax: Axes, layer: Stack) -> None:
    below = np.zeros(layer.edges.size - 1)
    for name, colour, heights in zip(layer.names, layer.colours, layer.heights, strict=True):
        ax.stairs(below + heights, layer.edges, baseline=below, fill=True, color=colour, label=name)
        below = below + heights


__all__ = ["level", "limits", "pipe", "rtt", "sequence", "stalls"]
