"""Test whether a setting meets constraints: *met*, *not met* or *undecided*, with a bounded error probability.

A constraint bounds the mean of a metric over all seeds. Of n runs with different seeds the margin to the bound is
tested with Student's t: with t = mean / (s/√n), the constraint holds if a mean of zero would give so large a t with a
probability of at most α, and fails if that is so of −t. Runs that do not differ at all decide by themselves.

- *Sequential test.* A setting that is undecided gets more seeds, as many times as there are `SAMPLE_SIZES`; each look
  has an equal part of α (Bonferroni), so repeated looks do not increase the error.
- *Several constraints.* To hold, each must hold at α (an intersection–union test, Berger 1982: no correction is due);
  one that fails at α divided by their number is enough to fail.
- *Several settings.* A result rests on all the settings that were judged on the way; each of them has an equal part of
  the 5 % by which it may be wrong.

A setting that stays undecided after the last look is reported as undecided.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ackclock.experiments.search.criteria import Constraint, missing_metric
from ackclock.metrics.summary import student_tail

#: The risk that an answer is wrong.
RISK = 0.05

#: Numbers of seeds of a setting at each look (sequential test).
SAMPLE_SIZES = (4, 8, 16, 32)

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"


@dataclass(frozen=True, slots=True)
class Judgement:
    """Verdict on a setting after `n` runs; `unmet` are the constraints that it does not seem to meet."""

    verdict: str
    unmet: frozenset[Constraint]
    n: int

    @property
    def holds(self) -> bool:
        """Return True if all constraints are met."""
        return self.verdict == HOLDS


def verdicts(
    constraints: Sequence[Constraint], values: Mapping[str, Sequence[float | None]], risk: float, *, exact: bool = False
) -> Judgement:
    """Judge a setting by its runs: `values` of each metric, one a seed; `risk` is that of this look.

    A single run decides nothing, unless it is `exact`: of an engine that draws nothing for this setting. Raises
    `InputError` for a metric that a run does not have, unless the constraint is a default.
    """
    constraints = [need for need in constraints if not (need.is_default and None in values[need.metric])]
    margins = {need: [need.margin(value) for value in _measured(need, values[need.metric])] for need in constraints}
    chances = {need: chance(found) for need, found in margins.items()}
    lacking = frozenset(need for need, found in margins.items() if math.fsum(found) < 0)
    n = min((len(found) for found in margins.values()), default=0)
    if constraints and n < 2 and not exact:
        return Judgement(UNDECIDED, frozenset(constraints), n)
    if any(1 - of <= risk / len(constraints) for of in chances.values()):
        return Judgement(FAILS, lacking, n)
    doubted = frozenset(need for need, of in chances.items() if of > risk)
    return Judgement(UNDECIDED if doubted else HOLDS, lacking or doubted, n)


def measured(constraints: Sequence[Constraint], rows: Sequence[Mapping[str, float | None]]) -> list[Constraint]:
    """The needs whose metric every run has: an engine may lack one."""
    return [need for need in constraints if all(row[need.metric] is not None for row in rows)]


def chance(margins: Sequence[float]) -> float:
    """Return the p-value of a positive mean: the largest probability of such a mean if the true mean were zero.

    Margins that are all the same, or a single one of a deterministic engine, have no chance in them.
    """
    n = len(margins)
    mean = math.fsum(margins) / n
    squares = math.fsum((margin - mean) ** 2 for margin in margins)
    if squares <= (1e-12 * mean) ** 2 * n:
        return 0.0 if mean >= 0 else 1.0
    t = mean / math.sqrt(squares / (n - 1) / n)
    beyond = student_tail(abs(t), n - 1)
    return beyond if t >= 0 else 1 - beyond


def _measured(need: Constraint, values: Sequence[float | None]) -> list[float]:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        raise missing_metric(need.metric)
    return known
