"""The same verdicts for settings that were all run, with the same seeds: the points of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ackclock.experiments.search.criteria import Constraint, Objective
from ackclock.experiments.search.evaluator import Row
from ackclock.experiments.search.hypothesis_test import HOLDS, RISK, UNDECIDED, Judgement, verdicts
from ackclock.experiments.search.pareto import dominating
from ackclock.experiments.search.result import NONE


@dataclass(frozen=True)
class Grid:
    """A judgement for each setting; `best` are the places of those that hold and no other one beats."""

    judgements: tuple[Judgement, ...]
    best: tuple[int, ...]

    @property
    def holding(self) -> tuple[int, ...]:
        """The places of the settings that meet all needs."""
        return tuple(place for place, found in enumerate(self.judgements) if found.holds)

    @property
    def verdict(self) -> str:
        """Return the verdict, as `SearchResult.verdict`."""
        if self.best:
            return HOLDS
        return UNDECIDED if any(found.verdict == UNDECIDED for found in self.judgements) else NONE

    def as_dict(self) -> dict[str, Any]:
        """For JSON: beside the points, in their order."""
        return {
            "verdict": self.verdict,
            "verdicts": [found.verdict for found in self.judgements],
            "best": list(self.best),
        }


def judge(
    constraints: Sequence[Constraint], objectives: Sequence[Objective], runs: Sequence[Sequence[Row]], *, exact: bool
) -> Grid:
    """Judge settings by their `runs`; `exact` says that a single run is all there is to know.

    Each setting has an equal part of the 5 % by which any of the verdicts may be wrong. Raises `InputError` for a
    metric that a run does not have.
    """
    judgements = tuple(_judged(constraints, rows, RISK / len(runs), exact) for rows in runs)
    holding = [place for place, found in enumerate(judgements) if found.holds]
    costs = {place: tuple(goal.mean_cost(runs[place]) for goal in objectives) for place in holding}
    return Grid(judgements, tuple(dominating(costs)))


def _judged(constraints: Sequence[Constraint], rows: Sequence[Row], risk: float, exact: bool) -> Judgement:
    return verdicts(
        constraints, {need.metric: [row[need.metric] for row in rows] for need in constraints}, risk, exact=exact
    )
