"""Search for the setting that a question asks for."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from statistics import median

from ackclock import engines
from ackclock.errors import AckclockError
from ackclock.experiments.executors import Executor
from ackclock.experiments.search.bisection import Frontier, Minimum, first_feasible
from ackclock.experiments.search.criteria import RISK, UNDECIDED, Judgement, measured, verdicts
from ackclock.experiments.search.evaluator import Evaluator, Row, Runs, SpentError, check
from ackclock.experiments.search.pareto import covered, dominating
from ackclock.experiments.search.result import SearchResult
from ackclock.experiments.search.spec import Question

#: Engines that are much faster than the packet engine and guess where to begin, the better one first.
CHEAP = ("fluid", "theory")

#: Runs of another engine that confirm a result.
CONFIRMING = 4


def find(
    question: Question,
    *,
    runs: Runs | None = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    budget_s: float | None = None,
    tell: Callable[[SearchResult], object] = lambda _: None,
) -> SearchResult:
    """Answer a question: the same one and seed give the same answer, however often it was interrupted.

    Args:
        question: what is asked.
        runs: those that an earlier call made; they are not run again.
        jobs: runs at a time; by default one for each core.
        executor: makes the runs elsewhere; by default they are made in this process.
        budget_s: after this time, and the first runs, none begin any more, and the answer is incomplete.
        tell: called after each setting with what is known so far.

    Raises:
        UnsupportedError: the engine cannot run it.
        ScenarioError: a setting that is no scenario.
        InputError: a metric that the runs do not have.
    """
    check(question, question.engine)
    begun_s = _cpu_s()
    until_s = None if budget_s is None else time.monotonic() + budget_s
    evaluator = Evaluator(question, dict(runs or {}), jobs, executor, until_s)
    ends: dict[int, int | None] = {}

    def current(*, complete: bool = False) -> SearchResult:
        made, spent_s = evaluator.done, _cpu_s() - begun_s
        found = SearchResult(
            question, dict(evaluator.verdicts), evaluator.runs, None, dict(ends), (), complete, made, spent_s
        )
        found = replace(found, frontier=_frontier(found))
        return replace(found, best=_best(found))

    evaluator.report = lambda: tell(current())
    try:
        _search(evaluator, ends)
    except SpentError:
        return current().with_warnings()
    return current(complete=True).with_warnings()


def confirm(
    answer: SearchResult, engine: str, *, jobs: int | None = None, executor: Executor | None = None
) -> SearchResult:
    """Check with another engine whether the best setting meets the constraints it can measure. Raises as `find`."""
    if answer.best is None:
        return answer
    question, begun_s = replace(answer.question, engine=engine, repeats=CONFIRMING), _cpu_s()
    found, rows = _rerun(Evaluator(question, jobs=jobs, executor=executor), answer.best, CONFIRMING)
    return answer.with_confirmation(engine, found, rows, _cpu_s() - begun_s)


def compare_perturbed(
    answer: SearchResult, *, jobs: int | None = None, executor: Executor | None = None
) -> SearchResult:
    """Make perturbed runs of the best setting with the seeds that it had: whether the answer hangs on a coincidence.

    Raises as `find`.
    """
    if answer.best is None:
        return answer
    question, begun_s = replace(answer.question, perturbed=True), _cpu_s()
    found, rows = _rerun(Evaluator(question, jobs=jobs, executor=executor), answer.best, len(answer.runs[answer.best]))
    return answer.with_perturbed(found, rows, _cpu_s() - begun_s)


def _rerun(evaluator: Evaluator, number: int, count: int) -> tuple[Judgement, list[Row]]:
    """A setting that is run otherwise than it was found: what the needs that can be measured there say of it."""
    rows = evaluator.rows(number, count)
    constraints = measured(evaluator.question.constraints, rows)
    values = {need.metric: [row[need.metric] for row in rows] for need in constraints}
    return verdicts(constraints, values, RISK) if constraints else Judgement(UNDECIDED, frozenset(), len(rows)), rows


def _cpu_s() -> float:
    """The CPU time of this process and of those that it has started, as guest kernels are."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _search(evaluator: Evaluator, ends: dict[int, int | None]) -> None:
    question = evaluator.question
    if question.trades:
        Frontier(
            question.rows, question.row, evaluator.evaluate, lambda low, high: covered(evaluator, low, high)
        ).find()
        return
    surrogate = Surrogate(question)
    for row in range(question.rows):
        if question.end is not None:
            ends[row] = _end(evaluator, surrogate, row)
        elif question.refines:
            Minimum(question.row, lambda place, row=row: _cost(evaluator, question.number(row, place))).find()  # type: ignore[misc]
        else:
            for place in range(question.row):
                evaluator.evaluate(question.number(row, place))


def _end(evaluator: Evaluator, surrogate: Surrogate, row: int) -> int | None:
    """The first setting of a row that meets all needs, from the end that is looked for."""
    question = evaluator.question
    first = surrogate.first_place(row)
    place = first_feasible(question.row, lambda at: evaluator.evaluate(question.number(row, at)), first)
    surrogate.learn(row, place)
    return None if place is None else question.number(row, place)


@dataclass
class Surrogate:
    """Surrogate search: a cheap engine predicts where to evaluate first in a row.

    Each prediction is corrected by the median error of those before it.
    """

    question: Question
    errors: list[int] = field(default_factory=list)
    predicted: dict[int, int] = field(default_factory=dict)

    def first_place(self, row: int) -> int | None:
        """Return the index in a row of settings to evaluate first; None if no cheap engine predicts one."""
        found = next((place for name in CHEAP if (place := self._value(name, row)) is not None), None)
        if found is None:
            return None
        self.predicted[row] = found
        return min(max(found + round(median(self.errors or [0])), 1), self.question.row - 2)

    def learn(self, row: int, place: int | None) -> None:
        """Record the error of the prediction."""
        if place is not None and row in self.predicted:
            self.errors.append(place - self.predicted[row])

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


def _cost(evaluator: Evaluator, number: int) -> float:
    """Return the cost of a setting by the first objective; infinite if it does not meet the constraints."""
    if not evaluator.evaluate(number).holds:
        return math.inf
    return evaluator.question.objectives[0].mean_cost(evaluator.runs[number])


def _costs(question: Question, rows: list[Row]) -> tuple[float, ...]:
    return tuple(goal.mean_cost(rows) for goal in question.objectives)


def _frontier(current: SearchResult) -> tuple[int, ...]:
    """With goals, the settings that meet all needs and that no other one beats."""
    question = current.question
    holding = [number for number, found in current.verdicts.items() if found.holds]
    if not question.objectives or (question.end is not None and not current.complete):
        return ()
    candidates = holding if question.end is None else [number for number in holding if number in current.ends.values()]
    costs: Mapping[int, tuple[float, ...]] = {number: _costs(question, current.runs[number]) for number in candidates}
    return tuple(sorted(dominating(costs)))


def _best(current: SearchResult) -> int | None:
    """Return the best setting by the first objective; without objectives the first end, or the first that is met."""
    question = current.question
    if question.objectives:
        return min(current.frontier, key=lambda number: (_costs(question, current.runs[number]), number), default=None)
    if question.end is not None:
        found = [number for number in current.ends.values() if number is not None]
        return min(found, key=lambda number: (_place(question, number), number), default=None)
    return min((number for number, found in current.verdicts.items() if found.holds), default=None)


def _place(question: Question, number: int) -> int:
    """Return the distance from the end of the ladder that is searched for."""
    place = number % question.row
    return question.row - 1 - place if question.end == "largest" else place
