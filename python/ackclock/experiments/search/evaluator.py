"""Run settings with the same seeds each (common random numbers), judge them, and keep the runs for other questions.

Used by `search`; `pareto` and `result` read its rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ackclock import engines, metrics
from ackclock.errors import UnsupportedError
from ackclock.experiments import phase_effects, runner
from ackclock.experiments.executors import Executor
from ackclock.experiments.search.criteria import UNDECIDED, Judgement, missing_metric, verdicts
from ackclock.experiments.search.spec import Question
from ackclock.metrics.metric import Value

#: The metrics of one run by name.
Row: TypeAlias = dict[str, float | None]

#: The runs of each setting, in the order of their seeds.
Runs: TypeAlias = dict[int, list[Row]]


class SpentError(Exception):
    """The budget is spent."""


@dataclass
class Evaluator:
    """`runs` are those that there are; `tell` is called after each look.

    Settings with the same plan, as limits that are the same number of packets, have the same runs. However little time
    is left until `until_s`, some runs are made: whoever asks again gets on. To guess, one run of a setting is enough.
    """

    question: Question
    runs: Runs = field(default_factory=dict)
    jobs: int | None = None
    executor: Executor | None = None
    until_s: float | None = None
    guesses: bool = False
    report: Callable[[], object] = lambda: None
    verdicts: dict[int, Judgement] = field(default_factory=dict)
    same: dict[str, int] = field(default_factory=dict)
    done: int = 0

    def evaluate(self, number: int) -> Judgement:
        """Judge a setting, with more seeds as long as it is undecided. Raises `SpentError`."""
        if number not in self.verdicts:
            like = self.same.setdefault(self.question.plan(number).to_json(), number)
            self.verdicts[number] = self._judged(number) if like == number else self.verdicts[like]
            self.runs[number] = self.runs[like]
            self.report()
        return self.verdicts[number]

    def _judged(self, number: int) -> Judgement:
        found, rows = Judgement(UNDECIDED, frozenset(), 0), list[Row]()
        for count in self.question.sample_sizes:
            rows = self.rows(number, count)[:count]  # of other questions there may be more
            values = {name: [row[name] for row in rows] for name in self.question.metrics}
            found = verdicts(self.question.constraints, values, self.question.risk, exact=self._exact(number))
            if found.verdict != UNDECIDED or len(rows) < count:
                break
        self.runs[number] = rows
        return found

    def rows(self, number: int, count: int) -> list[Row]:
        """At least so many runs of a setting; one, of a deterministic engine."""
        rows = self.runs.setdefault(number, [])
        if len(rows) < count and not (rows and self._exact(number)):
            self._check_time()
            rows += self._run(number, range(self.question.seed + len(rows), self.question.seed + count))
        return rows

    def _run(self, number: int, seeds: Iterable[int]) -> Iterable[Row]:
        plan, engine = self.question.plan(number), self.question.engine
        data = runner.run(plan, engine, seeds, jobs=self.jobs, executor=self.executor)
        names = self.question.metrics
        rows = [{name: _number(metrics.value(view, name)) for name in names} for view in metrics.runs(data)]
        self.done += len(rows)
        for goal in self.question.objectives:
            if rows and all(row[goal.metric] is None for row in rows):
                raise missing_metric(goal.metric)
        return rows

    def _exact(self, number: int) -> bool:
        return self.guesses or not engines.engine(self.question.engine).is_stochastic(self.question.plan(number))

    def _check_time(self) -> None:
        if self.done and self.until_s is not None and time.monotonic() > self.until_s:
            raise SpentError


def check(question: Question, engine: str) -> None:
    """Raise `UnsupportedError` for a question that an engine cannot run."""
    for number in question.checked_first:
        if reasons := engines.unsupported(engines.engine(engine), question.plan(number)):
            raise UnsupportedError(reasons)


def check_perturbed(question: Question) -> None:
    """Raise `InputError` or `UnsupportedError` for a question whose settings have no perturbed runs."""
    for number in question.checked_first:
        plan = question.plan(number)
        count = question.repeats if engines.engine(question.engine).is_stochastic(plan) else 1
        phase_effects.check(replace(plan, seeds=tuple(range(count))), question.engine)


def _number(value: Value) -> float | None:
    return value if isinstance(value, float | int) else None
