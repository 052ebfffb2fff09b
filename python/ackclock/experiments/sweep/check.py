"""Checks the points of a very large sweep that nobody has looked at, in a process of its own, while the sweep runs.

It takes less time for a point than the runs of it do, so it is ahead of them. The first mistake ends the sweep.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait

from ackclock.engines.engine import Progress
from ackclock.errors import AckclockError
from ackclock.experiments.sweep import spec as orders
from ackclock.experiments.sweep.runs import Runs
from ackclock.experiments.sweep.spec import SweepSpec
from ackclock.scenario import planning
from ackclock.scenario.planning import Loaded

#: It leaves the cores to the runs.
NICENESS = 10


@contextmanager
def checking(loaded: Loaded, order: SweepSpec, left: Runs, progress: Progress) -> Iterator[Progress]:
    """While the block runs, points of the runs that are left are checked, if not all of them have been.

    What it gives is to be called as `progress`, and raises what is wrong.
    """
    if loaded.count <= planning.MAX_CHECKED or not left:
        yield progress
        return
    context = get_context("spawn")
    hears, tells = context.Pipe(duplex=False)
    process = context.Process(target=_check, args=(order, left, tells), daemon=True)
    process.start()
    tells.close()

    def report(share: float) -> None:
        if hears.poll():
            _raise(hears)
        progress(share)

    try:
        yield report
    finally:
        process.kill()
        process.join()


def _raise(hears: Connection) -> None:
    """Raise what the checking process reported; return if it is done."""
    try:
        found: AckclockError | None = hears.recv()
    except EOFError:
        return
    if found is not None:
        raise found


def _check(order: SweepSpec, left: Runs, tells: Connection) -> None:
    """In the process: tells the first error, or None."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.nice(NICENESS)
    loaded = order.scenario()
    known = set(loaded.covering())
    try:
        for point in left.points:
            if point not in known:
                orders.check(loaded, order, point)
    except AckclockError as error:
        tells.send(error)
    else:
        tells.send(None)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
