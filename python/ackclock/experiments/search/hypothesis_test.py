"""Test whether a setting meets constraints: *met*, *not met* or *undecided*, with a bounded error probability.

A need bounds the mean of a metric over all seeds. Of n runs with different seeds the margin to the bound is tested as
Student did: with t = mean / (s/√n), the need holds if a mean of zero would give so large a t with a probability of at
most α, and fails if that is so of −t. Runs that do not differ at all decide by themselves.

- *Looking again.* A setting that is not decided gets more seeds, at most as many times as there are `LOOKS`; each look
  has an equal part of α (Bonferroni), so that looking often is no way to be right.
- *Several needs.* To hold, each must hold at α (an intersection–union test, Berger 1982: no correction is due); one
  that fails at α divided by their number is enough to fail.
- *Several settings.* An answer rests on all the settings that were judged on the way; each of them has an equal part
  of the 5 % by which an answer may be wrong.

What stays undecided after the last look is no answer, and is said to be undecided.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ackclock.errors import InputError
from ackclock.experiments.search.constraints import Need
from ackclock.metrics import METRICS
from ackclock.metrics.summary import student_tail

#: The risk that an answer is wrong.
RISK = 0.05

#: Numbers of seeds of a setting at each look (sequential test).
LOOKS = (4, 8, 16, 32)

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"


@dataclass(frozen=True, slots=True)
class Judgement:
    """Verdict on a setting after `n` runs; `lacking` are the constraints that it does not seem to meet."""

    verdict: str
    lacking: frozenset[Need]
    n: int

    @property
    def holds(self) -> bool:
        """Return True if all constraints are met."""
        return self.verdict == HOLDS


def judged(
    needs: Sequence[Need], values: Mapping[str, Sequence[float | None]], risk: float, *, exact: bool = False
) -> Judgement:
    """Judges a setting by its runs: `values` of each metric, one a seed; `risk` is that of this look.

    A single run decides nothing, unless it is `exact`: of an engine that draws nothing for this setting. Raises
    `InputError` for a metric that a run does not have.
    """
    margins = {need: [need.margin(value) for value in _known(need, values[need.metric])] for need in needs}
    chances = {need: chance(found) for need, found in margins.items()}
    lacking = frozenset(need for need, found in margins.items() if math.fsum(found) < 0)
    n = min((len(found) for found in margins.values()), default=0)
    if needs and n < 2 and not exact:
        return Judgement(UNDECIDED, frozenset(needs), n)
    if any(1 - of <= risk / len(needs) for of in chances.values()):
        return Judgement(FAILS, lacking, n)
    doubted = frozenset(need for need, of in chances.items() if of > risk)
    return Judgement(UNDECIDED if doubted else HOLDS, lacking or doubted, n)


def measured(needs: Sequence[Need], rows: Sequence[Mapping[str, float | None]]) -> list[Need]:
    """The needs whose metric every run has: an engine may lack one."""
    return [need for need in needs if all(row[need.metric] is not None for row in rows)]


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


def _known(need: Need, values: Sequence[float | None]) -> list[float]:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        label = METRICS[need.metric].label.lower()
        raise InputError(f"{need.metric}: found runs without it; expected a scenario that has a {label}")
    return known
