"""Terminal output that all commands share: the console, tables, and progress bars on standard error."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ackclock.engines.engine import no_progress
from ackclock.figures import numbers

if TYPE_CHECKING:
    from rich.progress import Progress

#: Shorter work gets no progress bar, in seconds.
MIN_S = 1.0

T = TypeVar("T")


def console(*, err: bool = False) -> Console:
    """Return a console on standard output, or standard error, that prints text as it is, such as [fe80::1]."""
    return Console(emoji=False, highlight=False, markup=False, stderr=err)


def table(*headings: Any, left: int = 1, no_wrap: bool = False, **options: Any) -> Table:
    """Return a table without borders. The first columns, `left` of them, are left-aligned, the others right-aligned."""
    made = Table(**{"box": None, "pad_edge": False, "header_style": "bold", **options})
    for number, heading in enumerate(headings):
        made.add_column(heading, justify="left" if number < left else "right", no_wrap=no_wrap)
    return made


def estimate(summary: Mapping[str, Any], unit: str) -> str:
    """Return the mean of a metric with half its interval, if there is one: `94.1 ± 0.2 Mb/s`."""
    return numbers.estimate(summary["mean"], summary["ci95_low"], summary["ci95_high"], unit)


def print_warnings(warnings: Iterable[str]) -> None:
    """Print what may be misleading about a result, under it (`experiments.guards`)."""
    for sentence in warnings:
        console().print(Text(f"Warning: {sentence}"))


def fitting(console: Console, columns: Sequence[T], table: Callable[[Sequence[T]], Table]) -> Sequence[T]:
    """Return the first columns of a table, as many as fit the width, and at least one."""
    unlimited = console.options.update(width=10 * console.width)
    for count in range(len(columns), 1, -1):
        if console.measure(table(columns[:count]), options=unlimited).maximum <= console.width:
            return columns[:count]
    return columns[:1]


@contextmanager
def progress(title: str) -> Iterator[Callable[[float], None]]:
    """Show a bar; yield a function that updates it by the share that is done. Hidden without a terminal."""
    terminal = console(err=True)
    if not terminal.is_terminal:
        yield no_progress
        return
    with bar(terminal) as shown:
        task = shown.add_task(title, total=1.0)
        yield lambda share: shown.update(task, completed=share)


def bar(console: Console, clock: Callable[[], float] | None = None) -> Progress:
    """Return a bar whose remaining time follows from the whole time so far."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("elapsed, left"),
        TimeRemainingColumn(),
    )
    period_s = math.inf
    return Progress(*columns, console=console, transient=True, speed_estimate_period=period_s, get_time=clock)


@contextmanager
def delayed_progress(title: str) -> Iterator[Callable[[float], None]]:
    """Show a bar as `progress` does, if the work takes longer than `MIN_S`."""
    begun_s = time.monotonic()
    shown: list[Callable[[float], None]] = []
    with ExitStack() as stack:

        def update(share: float) -> None:
            if not shown and time.monotonic() - begun_s > MIN_S:
                shown.append(stack.enter_context(progress(title)))
            for bar in shown:
                bar(share)

        yield update
