"""Selection of the next setting to evaluate. It depends on neither metrics nor engines.

Used by `search`, where a key has an ordered ladder of values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Protocol, TypeAlias

#: Values of a ladder that are evaluated before the search continues around the best of them.
COARSE = 9


class Evaluation(Protocol):
    """Verdict on a setting."""

    @property
    def holds(self) -> bool:
        """Return True if it meets all requirements."""

    @property
    def unmet(self) -> frozenset[object]:
        """Return the requirements that it does not meet."""


Evaluate: TypeAlias = Callable[[int], Evaluation]


def first_feasible(count: int, evaluate: Evaluate, guess: int | None = None) -> int | None:
    """The first of `count` settings in a row that meets all needs, or None.

    Each need alone is taken to turn once at most along the row, from unmet to met or back; so between two settings
    that lack the same none is looked for. A `guess` is looked at first, and what is beside it, further and further.
    """
    if evaluate(0).holds:
        return 0
    return _Search(evaluate).between(0, count - 1, guess) if count > 1 else None


@dataclass(slots=True)
class _Search:
    evaluate: Evaluate
    #: Distance of the next guess from the last, and its direction.
    stride: int = 1
    way: int = 0

    def between(self, low: int, high: int, guess: int | None) -> int | None:
        """The first that holds above `low`, which does not, up to `high`."""
        while high - low > 1 and (self.evaluate(high).holds or not self._in_common(low, high)):
            middle = guess if guess is not None and low < guess < high else (low + high) // 2
            if self._belongs_below(middle, low, high):
                high, guess = middle, self._next(middle, guess, -1)
            else:
                low, guess = middle, self._next(middle, guess, 1)
        return high if self.evaluate(high).holds else None

    def _in_common(self, one: int, other: int) -> bool:
        return bool(self.evaluate(one).unmet & self.evaluate(other).unmet)

    def _belongs_below(self, middle: int, low: int, high: int) -> bool:
        """Return True if the first setting that meets all requirements is at the middle or below it."""
        if self.evaluate(middle).holds:
            return True
        return not self.evaluate(high).holds and not self._in_common(low, middle)

    def _next(self, at: int, guess: int | None, way: int) -> int | None:
        """Further on from a guess, as long as the way is the same."""
        if guess is None or self.way == -way:
            return None
        self.way, step = way, self.stride
        self.stride *= 2
        return at + way * step


def max_evaluations(count: int) -> int:
    """About as many settings as `first_feasible` looks at in a row of so many."""
    return 2 + math.ceil(math.log2(max(2, count)))


def coarse(count: int) -> list[int]:
    """Return some settings of a row, evenly spread, both ends among them."""
    if count <= COARSE:
        return [*range(count)]
    return sorted({round(place * (count - 1) / (COARSE - 1)) for place in range(COARSE)})


def max_refined_evaluations(count: int) -> int:
    """About as many settings as `Minimum` looks at in a row of so many."""
    return len(coarse(count)) + 2 * math.ceil(math.log2(max(1.0, (count - 1) / (COARSE - 1))))


@dataclass(slots=True)
class Minimum:
    """The cheapest of a row: coarsely first, then ever closer around the best so far."""

    count: int
    cost: Callable[[int], float]
    evaluated: dict[int, float] = field(default_factory=dict)

    def find(self) -> int:
        """The number of the cheapest; its neighbours have been looked at."""
        for number in coarse(self.count):
            self.evaluated[number] = self.cost(number)
        while closer := list(self._closer()):
            for number in closer:
                self.evaluated[number] = self.cost(number)
        return self._best()

    def _best(self) -> int:
        return min(self.evaluated, key=lambda number: (self.evaluated[number], number))

    def _closer(self) -> Iterator[int]:
        """The middles between the best and those next to it."""
        at, known = self._best(), sorted(self.evaluated)
        place = known.index(at)
        for other in known[max(place - 1, 0) : place] + known[place + 1 : place + 2]:
            if abs(other - at) > 1:
                yield (other + at) // 2


@dataclass(slots=True)
class Frontier:
    """Selection with several objectives: rows coarsely first, then the middles of the widest gaps.

    A gap is left alone if both its ends lack the same, or if it is `covered`: what lies between the two settings adds
    nothing to what is known.
    """

    rows: int
    count: int
    evaluate: Evaluate
    covered: Callable[[int, int], bool]

    def find(self) -> None:
        """Evaluate at settings until no gap is left that may add something."""
        gaps = [gap for row in range(self.rows) for gap in self._coarsely(row * self.count)]
        heapify(gaps)
        while gaps:
            _, low, high = heappop(gaps)
            if high - low > 1 and not self._is_decided(low, high):
                middle = (low + high) // 2
                self.evaluate(middle)
                for gap in ((low, middle), (middle, high)):
                    heappush(gaps, _by_width(*gap))

    def _coarsely(self, first: int) -> list[tuple[int, int, int]]:
        places = [first + place for place in coarse(self.count)]
        for place in places:
            self.evaluate(place)
        return [_by_width(low, high) for low, high in pairwise(places)]

    def _is_decided(self, low: int, high: int) -> bool:
        return bool(self.evaluate(low).unmet & self.evaluate(high).unmet) or self.covered(low, high)


def _by_width(low: int, high: int) -> tuple[int, int, int]:
    """A gap as it is sorted: the widest is the first."""
    return low - high, low, high
