"""Figures for print: `ac.plot.cwnd(data)` returns a matplotlib figure.

Each kind is one file with one function of a dataset; `KINDS` is the list of all. Results of several runs show the
first, and say so; distributions show every run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.plots.cdf import cdf
from ackclock.plots.cwnd import cwnd
from ackclock.plots.cwnd_total import cwnd_total
from ackclock.plots.epochs import epochs
from ackclock.plots.goodput import goodput
from ackclock.plots.queue import queue
from ackclock.plots.response import response

__all__ = ["KINDS", "cdf", "cwnd", "cwnd_total", "epochs", "goodput", "queue", "response"]

#: Every kind of figure by its name.
KINDS: Mapping[str, Callable[[Dataset], Figure]] = {
    "cwnd": cwnd,
    "cwnd_total": cwnd_total,
    "goodput": goodput,
    "queue": queue,
    "cdf": cdf,
    "epochs": epochs,
    "response": response,
}
