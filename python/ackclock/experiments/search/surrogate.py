"""Surrogate search: a cheap engine guesses where to evaluate first, and its bias is learnt on the way."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from statistics import median

from ackclock import engines
from ackclock.errors import AckclockError
from ackclock.experiments.search.bisection import first_feasible
from ackclock.experiments.search.evaluator import Evaluator
from ackclock.experiments.search.spec import Question

#: Engines that answer in a small part of the packets' time, the better one first.
CHEAP = ("fluid", "theory")


@dataclass
class Proposer:
    """Guesses for the rows of a question, each corrected by how far the guesses before it were off."""

    question: Question
    off: list[int] = field(default_factory=list)
    proposed: dict[int, int] = field(default_factory=dict)

    def guess(self, row: int) -> int | None:
        """Return the index in a row of settings to evaluate first; None if no cheap engine has a guess."""
        found = next((place for name in CHEAP if (place := self._value(name, row)) is not None), None)
        if found is None:
            return None
        self.proposed[row] = found
        return min(max(found + round(median(self.off or [0])), 1), self.question.row - 2)

    def learn(self, row: int, place: int | None) -> None:
        """Record how far the guess was from the result."""
        if place is not None and row in self.proposed:
            self.off.append(place - self.proposed[row])

    def _value(self, engine: str, row: int) -> int | None:
        if engine == self.question.engine or self._is_unsupported(engine, row):
            return None
        cheap = Evaluator(replace(self.question, engine=engine, repeats=1), guesses=True)
        try:
            return first_feasible(self.question.row, lambda place: cheap.evaluate(self.question.number(row, place)))
        except AckclockError:  # a metric that the engine does not model, or a setting beyond it
            return None

    def _is_unsupported(self, engine: str, row: int) -> bool:
        plan = self.question.point(self.question.number(row, 0)).plan
        return bool(engines.engine(engine).unsupported(plan))
