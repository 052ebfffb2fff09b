"""The runs of a sweep, in the order of points and seeds: millions of them take some bytes each."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Runs are mixed in blocks, at least so many: a tenth of them is a sample of twenty.
BLOCKS = 200

#: Multiples of the golden ratio, without their whole parts, are spread more evenly than those of any other number.
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the sweep; its number is its place in the order of points and seeds."""

    number: int
    point: int
    seed: int


class Runs(Sequence[Run]):
    """Every run, or some of them, made when it is asked for. `seeds` are those of each point."""

    def __init__(self, seeds: Sequence[tuple[int, ...]], chosen: Sequence[int] | None = None) -> None:
        self._seeds = seeds
        self._first = array("Q", accumulate(map(len, seeds), initial=0))
        self._chosen = range(self._first[-1]) if chosen is None else chosen

    def without(self, done: Collection[int]) -> Runs:
        """Return the runs whose numbers are not among those that are done."""
        return Runs(self._seeds, array("Q", (number for number in self._chosen if number not in done)))

    def of_points(self, points: npt.NDArray[np.int64]) -> Runs:
        """Return the runs of some points, with their numbers."""
        import numpy as np

        mine = np.zeros(len(self._seeds), bool)
        mine[points] = True
        chosen = np.fromiter(self._chosen, np.uint64, len(self))
        return Runs(self._seeds, array("Q", chosen[mine[self.point_numbers]].tobytes()))

    def mixed(self) -> Runs:
        """All of them in an order in which each stretch is a fair sample: so what is done tells what is left.

        Neighbours stay together in some hundreds of blocks, since runs of one point share its plan.
        """
        size = max(1, len(self) // BLOCKS)
        firsts = sorted(range(0, len(self), size), key=lambda first: first // size * GOLDEN % 1)
        blocks = (self._chosen[first : first + size] for first in firsts)
        return Runs(self._seeds, array("Q", chain.from_iterable(blocks)))

    @property
    def point_numbers(self) -> npt.NDArray[np.intp]:
        """The point of each run."""
        import numpy as np

        numbers = np.fromiter(self._chosen, np.uint64, len(self))
        return np.searchsorted(np.frombuffer(self._first, np.uint64), numbers, side="right") - 1

    @property
    def points(self) -> Iterator[int]:
        """The points that the runs are of, rising."""
        last = -1
        for number in self._chosen:
            point = bisect_right(self._first, number) - 1
            if point != last:
                yield point
            last = point

    def __len__(self) -> int:
        return len(self._chosen)

    @overload
    def __getitem__(self, which: int) -> Run: ...
    @overload
    def __getitem__(self, which: slice) -> list[Run]: ...
    def __getitem__(self, which: int | slice) -> Run | list[Run]:
        if isinstance(which, slice):
            return [self._run(number) for number in self._chosen[which]]
        return self._run(self._chosen[which])

    def _run(self, number: int) -> Run:
        point = bisect_right(self._first, number) - 1
        return Run(number, point, self._seeds[point][number - self._first[point]])
