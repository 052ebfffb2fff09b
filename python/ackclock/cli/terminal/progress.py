"""Progress on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console

#: What takes less is not worth a bar, in seconds.
LATE_S = 1.0


@contextmanager
def progress(title: str, runs: int | None = None) -> Iterator[Callable[[float], None]]:
    """A bar with the time that is left; call it with the share that is done. Hidden if nobody watches.

    It shows per cent, or how many of so many `runs`.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True, highlight=False)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *((TextColumn("{task.percentage:>3.0f} %"),) if runs is None else (MofNCompleteColumn(), TextColumn("runs,"))),
        TimeElapsedColumn(),
        TextColumn("elapsed, left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=1.0 if runs is None else runs)
        yield lambda share: bar.update(task, completed=share if runs is None else round(share * runs))


@contextmanager
def late(title: str) -> Iterator[Callable[[float], None]]:
    """A bar that appears only if it takes longer than `LATE_S`."""
    begun_s = time.monotonic()
    shown: list[Callable[[float], None]] = []
    with ExitStack() as stack:

        def tell(share: float) -> None:
            if not shown and time.monotonic() - begun_s > LATE_S:
                shown.append(stack.enter_context(progress(title)))
            for bar in shown:
                bar(share)

        yield tell
