"""Figures for print: `ac.plot.cwnd(data)` returns a matplotlib figure.

Each kind is one file with one function of a dataset; `KINDS` is the list of all. Results of several runs show the
first, and say so; distributions show every run. `ac.plot.cwnd(data, over=other)` lays another result over the first:
the same scenario with another engine, say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots.boxes import boxes
from ackclock.figures.plots.capture_figures import level, limits, pipe, rtt, sequence, stalls
from ackclock.figures.plots.cdf import cdf
from ackclock.figures.plots.comparison import compared
from ackclock.figures.plots.cwnd import cwnd
from ackclock.figures.plots.host import disk, gaps
from ackclock.figures.plots.layout import page
from ackclock.figures.plots.response import response
from ackclock.figures.plots.run_figures import cwnd_total, delay, epochs, goodput, queue
from ackclock.figures.plots.sweep import swept
from ackclock.figures.plots.tracking import tracking

__all__ = [
    "KINDS",
    "OF_CAPTURES",
    "OF_HOSTS",
    "ON_REQUEST",
    "OVERLAID",
    "SIDE_BY_SIDE",
    "boxes",
    "cdf",
    "compared",
    "cwnd",
    "cwnd_total",
    "delay",
    "disk",
    "epochs",
    "gaps",
    "goodput",
    "level",
    "limits",
    "page",
    "pipe",
    "queue",
    "response",
    "rtt",
    "sequence",
    "stalls",
    "swept",
    "tracking",
]

#: Every kind of figure by its name.
KINDS: Mapping[str, Callable[..., Figure]] = {
    "cwnd": cwnd,
    "cwnd_total": cwnd_total,
    "goodput": goodput,
    "queue": queue,
    "cdf": cdf,
    "epochs": epochs,
    "response": response,
    "boxes": boxes,
}

#: Kinds whose data are recorded only if a scenario requests them.
ON_REQUEST: Mapping[str, Callable[[Dataset], Figure]] = {"delay": delay, "tracking": tracking}

#: Kinds of captures: `flow` (its number, else that with the most data) and `between` (seconds) choose a part. Of runs
#: too, where they have the tables.
OF_CAPTURES: Mapping[str, Callable[..., Figure]] = {
    "sequence": sequence,
    "pipe": pipe,
    "rtt": rtt,
    "limits": limits,
    "stalls": stalls,
    "level": level,
}

#: Kinds of a host.
OF_HOSTS: Mapping[str, Callable[[Dataset], Figure]] = {"gaps": gaps, "disk": disk}

#: Kinds that take other results as an overlay (`over`).
OVERLAID = ("cwnd", "cwnd_total", "goodput", "queue", "cdf")

#: Kinds that draw other results (`over`) side by side.
SIDE_BY_SIDE = ("boxes",)
