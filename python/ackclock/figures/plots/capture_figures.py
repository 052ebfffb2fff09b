"""Capture figures for print: the specs of `ackclock.figures.capture_figures`."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures import capture_figures
from ackclock.figures.capture_figures.part import Between
from ackclock.figures.plots import drawing, style


def _of(kind: str) -> Callable[..., Figure]:
    make = capture_figures.KINDS[kind]

    @style.public
    def figure(data: Dataset, flow: int | None = None, between: Between = None) -> Figure:
        return drawing.figure(make(style.first_run(data), flow, between), data)

    figure.__name__ = figure.__qualname__ = kind
    figure.__doc__ = make.__doc__
    return figure


sequence, pipe, rtt, limits, stalls, level = map(_of, capture_figures.KINDS)

__all__ = ["level", "limits", "pipe", "rtt", "sequence", "stalls"]
