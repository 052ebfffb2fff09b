"""Progress bars on standard error."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

from ackclock.cli.terminal import tables
from ackclock.engines.engine import no_progress

if TYPE_CHECKING:
    from rich.progress import Progress

#: Shorter work gets no bar, in seconds.
MIN_S = 1.0


@contextmanager
def progress(title: str) -> Iterator[Callable[[float], None]]:
    """Show a bar; yield a function that updates it by the share that is done. Hidden without a terminal."""
    console = tables.console(err=True)
    if not console.is_terminal:
        yield no_progress
        return
    with bar(console) as shown:
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
