"""Figures for print: `ac.plot.cwnd(data)` returns a matplotlib figure.

Each kind is a function of a dataset; `KINDS` is the list of all. Results of several runs show the first, and say so;
distributions show every run. `ac.plot.cwnd(data, over=other)` lays another result over the first, dashed: the same
scenario with another engine, say. What is drawn is made in `ackclock.figures`, for all back ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures import capture_figures, experiment_figures, overlay, result_figures, run_figures
from ackclock.figures.capture_figures import Between
from ackclock.figures.overlay import Over
from ackclock.figures.plots import drawing, style
from ackclock.figures.plots.layout import page
from ackclock.figures.result_figures import Formulas
from ackclock.figures.sweep_axes import Swept
from ackclock.input import arguments
from ackclock.input.arguments import CALL, TEXT, WORD, checked, having, optional, readable_value
from ackclock.metrics import response_times, runs

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
    "searched",
    "sequence",
    "stalls",
    "swept",
    "tracking",
]


@style.public
def cwnd(data: Dataset, over: Over = None) -> Figure:
    """Draw the congestion window (segments) of each flow of the first run; `over`: dashed, those of other results."""
    return drawing.figure(run_figures.cwnd_by_flow(style.first_run(data), overlay.others(data, over)))


@style.public
def cwnd_total(data: Dataset, over: Over = None) -> Figure:
    """Draw the total congestion window (segments) of the first run, with the BDP and BDP + buffer where known.

    `over`: dashed, those of other results.
    """
    return drawing.figure(run_figures.cwnd_total(style.first_run(data), overlay.others(data, over)))


@style.public
def goodput(data: Dataset, over: Over = None) -> Figure:
    """Draw total and per-flow goodput of the first run, averaged over a sliding window that the title names.

    `over`: dashed, those of other results, averaged in the same way.
    """
    return drawing.figure(run_figures.goodput(style.first_run(data), overlay.others(data, over)))


@style.public
def queue(data: Dataset, over: Over = None) -> Figure:
    """Draw backlog (packets) and sojourn time of the bottleneck's queue in the first run.

    `over`: dashed, those of other results.
    """
    return drawing.figure(run_figures.queue(style.first_run(data), overlay.others(data, over)))


@style.public
def delay(data: Dataset) -> Figure:
    """Draw the one-way delay of each flow's data, the mean of each interval, in the first run."""
    return drawing.figure(run_figures.delay(style.first_run(data)))


@style.public
def epochs(data: Dataset) -> Figure:
    """Draw each drop at the bottleneck in the first run's measured part, its epoch, and the share of flows hit."""
    return drawing.figure(run_figures.epochs(style.first_run(data)))


@style.public
def cdf(data: Dataset, over: Over = None) -> Figure:
    """Draw the distribution functions of delays, windows, flows' goodputs and completion times, one line a run.

    `over`: dashed, those of other results, all their runs together.
    """
    others = overlay.others(data, over)
    every = [data, *(other.view.data for other in others)]
    names = [overlay.names(every)[0], *(other.name for other in others)]
    results = {
        name: [(view.name, result_figures.distributions(view)) for view in runs(each)]
        for name, each in zip(names, every, strict=True)
    }
    return drawing.figure(result_figures.cdf(results, overlay.origin(data, pooled=True)))


def _formulas(name: str, value: object) -> object:
    """Take None, or functions by their names."""
    if not isinstance(value, (Mapping, type(None))):
        arguments.wrong_type(name, value, "functions by their names")
    for key, formula in (value or {}).items():
        CALL(f"{name}[{readable_value(key)}]", formula)
    return value


@checked(formulas=_formulas)
@style.public
def response(data: Dataset, formulas: Formulas | None = None) -> Figure:
    """Draw the mean completion time over the size of the transfer, both logarithmic, one line a group.

    The bars are 95 % intervals; a hollow mark is the mean that counts unfinished transfers as far as they were
    watched (Kaplan and Meier), where there are some. `formulas` are laid over, dashed: by their names, functions that
    give seconds for sizes in bytes (arrays).
    """
    style.first_run(data)
    return drawing.figure(result_figures.response(response_times(data), formulas, overlay.origin(data, pooled=True)))


@style.public
def boxes(data: Dataset, over: Over = None) -> Figure:
    """Draw the spread of the flows' means: median and quartiles, whiskers to the extremes, by number of flows.

    Of captures the window is what was under way. `over`: further results, a box each, by their numbers of flows.
    """
    others = [] if over is None else [over] if isinstance(over, Dataset) else over
    return drawing.figure(result_figures.boxes([data, *others]))


@style.public
def tracking(data: Dataset) -> Figure:
    """Draw each epoch of CUBIC's window over its W_max: time on the plateau, and mean distance from the curve."""
    return drawing.figure(result_figures.tracking(data))


@style.public
def gaps(data: Dataset) -> Figure:
    """Draw the gaps of a host's clock over time: their length and kind."""
    return drawing.figure(result_figures.gaps(data))


@style.public
def disk(data: Dataset) -> Figure:
    """Draw the distribution of the disk's speeds over the repeats, a line for each block size."""
    return drawing.figure(result_figures.disk(data))


def _of_capture(kind: str) -> Callable[..., Figure]:
    make = capture_figures.KINDS[kind]

    @style.public
    def figure(data: Dataset, flow: int | None = None, between: Between = None) -> Figure:
        return drawing.figure(make(style.first_run(data), flow, between))

    figure.__name__ = figure.__qualname__ = kind
    figure.__doc__ = make.__doc__
    return figure


#: Kinds of captures: `flow` (its number, else that with the most data) and `between` (seconds) choose a part. Of runs
#: too, where they have the tables.
OF_CAPTURES: Mapping[str, Callable[..., Figure]] = {kind: _of_capture(kind) for kind in capture_figures.KINDS}

sequence, pipe, rtt, limits, stalls, level = OF_CAPTURES.values()


@checked(name=TEXT, table=having(("group_by", "columns"), "a comparison's table, as Comparison.table is"))
@style.public
def compared(name: str, table: pl.DataFrame) -> Figure:
    """Draw the table of a comparison: `metric`, `engine`, `mean`, `ci95_low`, `ci95_high`, a row for each pair."""
    return drawing.figure(experiment_figures.compared(name, table))


@style.styled
def searched(
    about: Mapping[str, Any], points: Sequence[Mapping[str, Any]], frontier: Sequence[Mapping[str, Any]] = ()
) -> Figure:
    """Draw a search: `about` has the keys `varied`, `bounds` and `goals`, `points` are those of `SearchResult`.

    `frontier` has the values of its settings.
    """
    return drawing.figure(experiment_figures.searched(about, points, frontier))


@checked(x=optional(WORD), y=optional(WORD), by=optional(WORD), metric=optional(WORD), kind=optional(WORD))
@style.public
def swept(
    *sweeps: Swept,
    x: str | None = None,
    y: str | None = None,
    by: str | None = None,
    metric: str | None = None,
    kind: str | None = None,
) -> Figure:
    """Draw one sweep, or several over each other (by engine): means over the seeds with 95 % intervals.

    Args:
        sweeps: what `ackclock.sweep` gives.
        x: the swept key along the horizontal axis, or its last name.
        y: a metric, or several with commas between them; of a map the other key.
        by: the keys of which each combination has a line or a colour, with commas between them; by default all others.
        metric: the metrics where `y` is a key.
        kind: "line", "dot", "heatmap", "ecdf" or "box"; by default a heatmap where two keys are swept whose values are
            numbers, else lines along numbers and marks along names.

    Raises:
        InputError: keys, metrics or a kind that the sweep does not have.
    """
    return drawing.figure(experiment_figures.swept(sweeps, x, y, by, metric, kind))


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

#: Kinds of a host.
OF_HOSTS: Mapping[str, Callable[[Dataset], Figure]] = {"gaps": gaps, "disk": disk}

#: Kinds that take other results as an overlay (`over`).
OVERLAID = ("cwnd", "cwnd_total", "goodput", "queue", "cdf")

#: Kinds that draw other results (`over`) side by side.
SIDE_BY_SIDE = ("boxes",)
