"""Progress on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from ackclock.engines.engine import no_progress


@contextmanager
def progress(title: str, runs: int | None = None) -> Iterator[Callable[[float], None]]:
    """A bar with the time that is left; call it with the share that is done. Hidden if nobody watches.

    It shows per cent, or how many of so many `runs`.
    """
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield no_progress
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *((TextColumn("{task.percentage:>3.0f} %"),) if runs is None else (MofNCompleteColumn(), TextColumn("runs,"))),
        TimeElapsedColumn(),
        TextColumn("elapsed, left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=1.0 if runs is None else runs)
        yield lambda share: bar.update(task, completed=share if runs is None else round(share * runs))
