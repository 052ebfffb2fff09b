"""Constraints of a search, which bound the mean of a metric over the seeds, their test, and objectives, which rank.

A setting meets constraints, does not, or is *undecided*, with a bounded error probability. Of n runs with different
seeds the margin to the bound is tested with Student's t: with t = mean / (s/√n), the constraint holds if a mean of zero
would give so large a t with a probability of at most α, and fails if that is so of −t. Runs that do not differ at all
decide by themselves.

- *Sequential test.* A setting that is undecided gets more seeds, as many times as there are `SAMPLE_SIZES`; each look
  has an equal part of α (Bonferroni), so repeated looks do not increase the error.
- *Several constraints.* To hold, each must hold at α (an intersection–union test, Berger 1982: no correction is due);
  one that fails at α divided by their number is enough to fail.
- *Several settings.* A result rests on all the settings that were judged on the way; each of them has an equal part of
  the 5 % by which it may be wrong.

A setting that stays undecided after the last look is reported as undecided.

Used by all modules of a search, by `sweep --require`, and by `effects`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ackclock.errors import InputError
from ackclock.input import units
from ackclock.input.fields import nearest, shown
from ackclock.metrics import METRICS, Metric, fairness, full_name, groups
from ackclock.metrics.metric import OF_GROUP
from ackclock.metrics.summary import student_tail
from ackclock.metrics.view import ALL_FLOWS
from ackclock.partial_plan import groups_of
from ackclock.plan import Plan

#: Syntax of a constraint, for messages.
CONSTRAINT_SYNTAX = 'a metric and its bound, such as "utilisation >= 99%" or "queue_delay_p95_s <= 20ms"'

_OBJECTIVE_SYNTAX = "min:METRIC or max:METRIC, such as min:queue_delay_mean_s"

_CONSTRAINT = re.compile(r"\s*([a-z][a-z0-9_]*(?:\[.*\])?)\s*(>=|<=|≥|≤)\s*(\S.*?)\s*", re.DOTALL)
_SIGNS = {">=": ">=", "≥": ">=", "<=": "<=", "≤": "<="}
_NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A bound on the mean of a metric, in the metric's own unit; `text` is how it was written.

    One that nobody wrote (`is_default`) is left where a run does not have the metric.
    """

    metric: str
    is_lower_bound: bool
    bound: float
    text: str
    is_default: bool = False

    def margin(self, value: float) -> float:
        """Return how far a value is on the right side of the bound; negative on the wrong one."""
        return value - self.bound if self.is_lower_bound else self.bound - value


#: No group of flows gets less than a tenth of its max-min fair share.
NO_STARVATION = Constraint(
    "min_group_share", True, groups.STARVED, f"min_group_share >= {groups.STARVED:.0%}", is_default=True
)


def parse_constraint(text: str) -> Constraint:
    """Parse the option `--require`. Raises `InputError`."""
    match = _CONSTRAINT.fullmatch(text)
    if match is None:
        raise InputError(f"--require: found {shown(text)}; expected {CONSTRAINT_SYNTAX}")
    name, sign, bound = named(match[1], "--require"), _SIGNS[match[2]], match[3]
    return Constraint(name, sign == ">=", _bound(METRICS[name], bound), f"{name} {sign} {bound}")


@dataclass(frozen=True, slots=True)
class Objective:
    """The mean of a metric, which shall be small or large."""

    metric: str
    minimise: bool

    def cost(self, value: float) -> float:
        """Return a value of the metric so that smaller is better."""
        return value if self.minimise else -value

    def costs(self, rows: Iterable[Mapping[str, float | None]]) -> list[float]:
        """Return the cost of each run that has the metric."""
        return [self.cost(value) for row in rows if (value := row[self.metric]) is not None]

    def mean_cost(self, rows: Iterable[Mapping[str, float | None]]) -> float:
        """Return the mean cost of the runs that have the metric; infinite if none has it."""
        costs = self.costs(rows)
        return math.fsum(costs) / len(costs) if costs else math.inf

    def __str__(self) -> str:
        return f"{'min' if self.minimise else 'max'}:{self.metric}"


def parse_objective(text: str) -> Objective:
    """Parse the option `--best`. Raises `InputError`."""
    sign, colon, name = text.partition(":")
    if not colon or sign not in ("min", "max"):
        raise InputError(f"--best: found {shown(text)}; expected {_OBJECTIVE_SYNTAX}")
    return Objective(named(name.strip(), "--best"), sign == "min")


def named(name: str, option: str) -> str:
    """Return the full name of a metric with one value a run, such as of `queue_delay_p95`. Raises `InputError`."""
    scalars = [metric.name for metric in METRICS.values() if not metric.per_flow]
    found = full_name(name, scalars)
    if found is None:
        raise InputError(f"{option}: found {shown(name)}; expected {_expected(name, scalars)}")
    return found


def check_groups(metrics: Iterable[str], plans: Sequence[Plan]) -> None:
    """Raise `InputError` for a metric of completed transfers, or of UDP, if no plan has any in the metric's group."""
    for metric in metrics:
        kind = next((kind for kind in GROUPS_WITH if metric.startswith(kind)), None)
        if kind is None:
            continue
        what, groups_with = GROUPS_WITH[kind]
        names = {plan.groups[group].name for plan in plans for group in groups_with(plan)}
        match = OF_GROUP.fullmatch(metric)
        named = names if match is None or match[2] == ALL_FLOWS else groups_of(match[2], sorted(names))
        if not named:
            where = "the scenario" if match is None else f"the group {shown(match[2])}"
            others = f", such as {shown(min(names))}" if names else ""
            raise InputError(f"{metric}: found no {what} in {where}; expected a group that has some{others}")


def _with_transfers(plan: Plan) -> set[int]:
    flows = {flow.group for flow in plan.flows if flow.size_bytes is not None}
    connections = {source.group for source in plan.datagrams if source.source.get("size_bytes") is not None}
    return flows | connections | {each.group for each in plan.traffic}


def _with_datagrams(plan: Plan) -> set[int]:
    return {source.group for source in plan.datagrams if not source.is_quic}


#: Beginning of a metric's name → what its group must have, and the groups of a plan that have it.
GROUPS_WITH: Mapping[str, tuple[str, Callable[[Plan], set[int]]]] = {
    **dict.fromkeys(("fct_", "unfinished", "slowdown_"), ("transfers (flows with a size)", _with_transfers)),
    "udp_": ("datagrams", _with_datagrams),
}


#: Beginning of a metric's name → what records it.
RECORDED: Mapping[str, str] = {
    "one_way_delay_": "delays = true in the table [record]",
    "path_flows_": "paths = true in the table [record]",
}


def missing_metric(metric: str) -> InputError:
    """Return the error of a search by a metric that the runs do not have."""
    if metric in {each.name for each in fairness.METRICS}:
        return InputError(f"{metric}: found no two flows that are alike; expected some, or {metric}[*], of all flows")
    match = OF_GROUP.fullmatch(metric)
    name = match[1] if match else metric
    expected = next((text for start, text in RECORDED.items() if name.startswith(start)), None)
    label = METRICS[metric].label.lower()
    return InputError(f"{metric}: found runs without it; expected {expected or f'a scenario that has a {label}'}")


def _expected(name: str, scalars: list[str]) -> str:
    if match := OF_GROUP.fullmatch(name):
        return nearest(match[1], scalars)
    return "a metric with one value a run" if name in METRICS else nearest(name, scalars)


def _bound(metric: Metric, text: str) -> float:
    read, example = READ.get(metric.unit, (_plain, "a number"))
    try:
        value = read(text)
    except units.UnitError as error:
        example, value = error.expected, math.nan
    if not value <= metric.maximum or math.isinf(value):
        if metric.maximum < math.inf and metric.unit not in READ:
            example = f"a number of at most {metric.maximum:g}"
        raise InputError(f"--require: {metric.name}: found {shown(text)}; expected {example}")
    return value


def _plain(text: str) -> float:
    return float(text) if _NUMBER.fullmatch(text) else math.nan


def _share(text: str) -> float:
    return _plain(text[:-1].strip()) / 100 if text.endswith("%") else _plain(text)


def _counted(word: str, text: str) -> float:
    """`20`, `20p`, `20 packets`."""
    return _plain(re.sub(rf"\s*({word}|{word[0]})$", "", text))


#: Unit of a metric → how a bound in it is read, and an example.
READ: Mapping[str, tuple[Callable[[str], float], str]] = {
    "s": (units.time_s, "a time such as 20ms"),
    "bit/s": (units.rate_bps, "a rate such as 100Mbit"),
    "share": (_share, "a share such as 99% or 0.99"),
    "packets": (partial(_counted, "packets"), "a number of packets such as 20"),
    "segments": (partial(_counted, "segments"), "a number of segments such as 20"),
}


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
