"""Pareto frontier of several objectives, of a search or of the points of a sweep.

A search has bounds that show which settings need no run. The points of a sweep were all run, with the same seeds.

A setting between two others is taken to have metrics between theirs. Then it can at most be as good in each goal as the
better of the two; and if one that is known to meet all needs is not worse than that by more than 1 %, running what is
between would add nothing that is called a difference. So what is run stands for all settings, to within 1 % in each
goal: an ε-approximate frontier (Papadimitriou & Yannakakis 2000, Laumanns et al. 2002) with ε = 1 %. *Not worse* is
tested on pairs of the same seeds, as constraints are (`criteria`).

Used by `search`, and by `ackclock sweep` with several objectives.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ackclock.experiments.search.criteria import (
    HOLDS,
    RISK,
    UNDECIDED,
    Constraint,
    Judgement,
    Objective,
    chance,
    verdicts,
)
from ackclock.experiments.search.evaluator import Evaluator, Row
from ackclock.experiments.search.result import NONE
from ackclock.figures.summary_text import MIN_DIFFERENCE

#: For each goal what it says of each run, the smaller the better; None if it does not know it.
Costs: TypeAlias = list[list[float] | None]


def covered(evaluator: Evaluator, low: int, high: int) -> bool:
    """Return True if no setting between two can be more than 1 % better in an objective than a feasible one."""
    question = evaluator.question
    ends = [_costs(question.objectives, evaluator.runs[number]) for number in (low, high)]
    best = [_better(*found) for found in zip(*ends, strict=True)]
    holding = (number for number, found in evaluator.verdicts.items() if found.holds)
    return any(_as_good(_costs(question.objectives, evaluator.runs[number]), best, question.risk) for number in holding)


def dominating(costs: Mapping[int, Sequence[float]]) -> Iterator[int]:
    """Yield the undominated (Pareto-optimal) settings."""
    for number, own in costs.items():
        if not any(_beats(other, own) for other in costs.values()):
            yield number


def _beats(other: Sequence[float], own: Sequence[float]) -> bool:
    return all(a <= b for a, b in zip(other, own, strict=True)) and tuple(other) != tuple(own)


def _costs(objectives: Sequence[Objective], rows: Sequence[Row]) -> Costs:
    known = [goal.costs(rows) for goal in objectives]
    return [costs if len(costs) == len(rows) else None for costs in known]


def _better(one: list[float] | None, other: list[float] | None) -> list[float] | None:
    return None if one is None or other is None else min(one, other, key=_mean)


def _as_good(own: Costs, best: Costs, risk: float) -> bool:
    """Return True if costs are in no objective more than 1 % above the lowest possible."""
    return all(a is not None and b is not None and _no_worse(a, b, risk) for a, b in zip(own, best, strict=True))


def _no_worse(own: Sequence[float], best: Sequence[float], risk: float) -> bool:
    pairs = [*zip(own, best, strict=False)]
    allowed = MIN_DIFFERENCE * abs(_mean([b for _, b in pairs]))
    return chance([b + allowed - a for a, b in pairs]) <= risk


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


@dataclass(frozen=True)
class Grid:
    """A judgement for each setting; `best` are the places of those that hold and no other one beats."""

    judgements: tuple[Judgement, ...]
    best: tuple[int, ...]

    @property
    def holding(self) -> tuple[int, ...]:
        """Return the places of the settings that meet all needs."""
        return tuple(place for place, found in enumerate(self.judgements) if found.holds)

    @property
    def verdict(self) -> str:
        """Return the verdict, as `SearchResult.verdict`."""
        if self.best:
            return HOLDS
        return UNDECIDED if any(found.verdict == UNDECIDED for found in self.judgements) else NONE

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object, which has its place with the points and follows their order."""
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
    judgements = tuple(_judgement(constraints, rows, RISK / len(runs), exact) for rows in runs)
    holding = [place for place, found in enumerate(judgements) if found.holds]
    costs = {place: tuple(goal.mean_cost(runs[place]) for goal in objectives) for place in holding}
    return Grid(judgements, tuple(dominating(costs)))


def _judgement(constraints: Sequence[Constraint], rows: Sequence[Row], risk: float, exact: bool) -> Judgement:
    return verdicts(
        constraints, {need.metric: [row[need.metric] for row in rows] for need in constraints}, risk, exact=exact
    )
