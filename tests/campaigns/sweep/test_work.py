"""What the waiting process of a sweep makes of the tasks that end."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from ackclock.campaigns.sweep import work
from ackclock.campaigns.sweep.worker import Done


class Ended:
    """A pool whose tasks have all ended by the time anyone looks: the second one with an error."""

    def __init__(self) -> None:
        self.submitted = 0

    def submit(self, _work, runs) -> Future[Done]:
        self.submitted += 1
        future: Future[Done] = Future()
        if self.submitted == 2:
            future.set_exception(ZeroDivisionError("oh"))
        else:
            future.set_result(Done({"runs": tuple(runs)}, len(runs), 1.0))
        return future


class Kept:
    def __init__(self) -> None:
        self.rows = []

    def add(self, rows) -> None:
        self.rows.extend(rows["runs"])


def test_runs_that_end_together_with_a_failed_one_are_kept():
    kept, shares = Kept(), []
    with pytest.raises(ZeroDivisionError, match="oh"):
        work._drain(Ended(), work._Tasks([*range(12)], jobs=3), kept, shares.append, lambda: False)
    assert sorted(kept.rows) == [0, 2, 3, 4, 5]
    assert shares == [5 / 12]
