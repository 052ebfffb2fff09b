"""Progress bars on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta

from rich.console import Console

from ackclock.engines.engine import no_progress

#: Shorter work gets no bar, in seconds.
MIN_S = 1.0


class TimeLeft:
    """An estimate of the remaining time from the progress so far. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first: tuple[float, float] | None = None
        self._last = (0.0, 0.0)

    def update(self, share: float) -> None:
        """Record the share that is done now, 0 to 1."""
        if self._first is None or share > self._last[1]:
            self._last = (self._clock(), share)
            self._first = self._first or self._last

    @property
    def left_s(self) -> float | None:
        """Seconds until all is done; None before the second update."""
        if self._first is None or self._last == self._first:
            return None
        (begun_s, first_share), (last_s, share) = self._first, self._last
        end_s = last_s + (last_s - begun_s) * (1 - share) / (share - first_share)
        return max(0.0, end_s - self._clock())

    def __str__(self) -> str:
        return "-:--:--" if self.left_s is None else str(timedelta(seconds=round(self.left_s)))


@contextmanager
def progress(title: str) -> Iterator[Callable[[float], None]]:
    """Show a bar; yield a function that updates it by the share that is done. Hidden without a terminal."""
    console = Console(stderr=True, emoji=False, highlight=False)
    if not console.is_terminal:
        yield no_progress
        return
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
    from rich.text import Text

    left = TimeLeft()

    class Left(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(str(left), style="progress.remaining")

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("elapsed, left"),
        Left(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=1.0)

        def update(share: float) -> None:
            left.update(share)
            bar.update(task, completed=share)

        yield update


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
