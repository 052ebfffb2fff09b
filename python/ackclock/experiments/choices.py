"""Comparison of choices: values of one key with the same seeds, their paired differences, and the harm they do.

The choices are a sweep with one axis. Runs of two choices with the same seed are a pair (common random numbers): they
share starts, transfers and random losses, so the mean of their differences has a narrower interval than the difference
of two means. The first choice is the baseline.

*Harm* is defined by R. Ware, M. Mukerjee, S. Seshan, J. Sherry: Beyond Jain's Fairness Index: Setting the Bar For The
Deployment of Congestion Control Algorithms, HotNets 2019. A flow group has a goodput x by itself and y beside a
competitor, which does it the harm (x − y) / x. A new algorithm is acceptable beside an old one if it harms it no more
than the old one harms itself, with as many flows. Here the choices are those of the first `[[flows]]`; the others are
the groups that may be harmed, and a group by itself has the same network, flows, paths and starts, in which the flows
of the other groups end after one packet. Flows without a size are judged, by their goodput; and by what is better if
it is less, where the harm is (y − x) / y: their retransmission rate, and their one-way delay if the scenario records it
(`delays = true`).
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from ackclock.dataset import folders
from ackclock.engines.engine import Progress, no_progress
from ackclock.errors import InputError, ScenarioError, UnsupportedError
from ackclock.experiments.pilot import Forecast
from ackclock.experiments.search import candidates
from ackclock.experiments.search.candidates import Vary
from ackclock.experiments.sweep import run as sweeps
from ackclock.experiments.sweep.result import Sweep
from ackclock.input.cli_values import KEYS
from ackclock.input.fields import shown
from ackclock.metrics import JAIN_OF_ALL, METRICS, Summary
from ackclock.metrics.summary import subtract, summarise
from ackclock.partial_plan import groups_of
from ackclock.plan import Plan
from ackclock.scenario.planning import Loaded
from ackclock.scenario.points import short_labels
from ackclock.scenario.traffic.flows import Flows
from ackclock.scenario.traffic.quic import QuicFlows

#: The option that names the choices.
TRY = "--try"

#: Keys of the seeds, which all choices share.
SEEDS = ("seeds", "repeats")

#: The key whose choices may harm other flows.
CONGESTION = KEYS["congestion"]

#: The size of flows that leave the network to the others: in QUIC, whose sizes are in bytes, one packet has one.
ONE_PACKET, ONE_BYTE = "1p", "1B"

#: The table as JSON, in the folder.
TABLE = "comparison.json"

#: A key before its values: an algorithm with parameters has its equals signs within braces.
_KEY = re.compile(r"[^,={]+=")

#: Why no harm is reported if no other flows compete.
NO_OTHERS = "the scenario has no other [[flows]] without a size"

#: Suffix of the folder with the groups by themselves.
SOLO = "-solo"

#: Metrics of each of several groups, and the most groups that a comparison has them of.
BY_GROUP, MAX_GROUPS = ("goodput_bps", "udp_goodput_bps"), 8

#: A quantity of a group by seed.
BySeed: TypeAlias = Mapping[int, float]

#: Quantity → whether more of it is better. The names are those of metrics.
JUDGED = {"goodput_bps": True, "retransmission_rate": False, "delay_mean_s": False}


@dataclass(frozen=True)
class Harm:
    """Harm of a choice to a group in a quantity of `JUDGED`, of the group's own kind to it, their paired difference,
    and of the others to the choice.
    """  # noqa: D205

    choice: str
    group: str
    metric: str
    done: Summary
    own_kind: Summary
    excess: Summary
    suffered: Summary


@dataclass(frozen=True)
class Choices:
    """The choices of a key by their labels, and what their runs showed. Differences are to the first choice.

    `harm_unknown` is why congestion control algorithms have no harm; `is_single` says that all runs have one flow.
    """

    key: str
    labels: Sequence[str]
    sweep: Sweep
    harm: Sequence[Harm]
    harm_unknown: str
    limits: str
    is_single: bool

    @cached_property
    def metrics(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Return, by metric and choice, the mean over the seeds and the paired difference with their intervals."""
        values = [_by_seed(group) for _, group in self.sweep.table.group_by("point", maintain_order=True)]
        found = {}
        for name in self.sweep.points[0]["summary"]:
            if any(point["summary"][name]["n"] for point in self.sweep.points):
                columns = [{seed: row[name] for seed, row in rows.items()} for rows in values]
                found[name] = {
                    label: {**point["summary"][name], **_difference(columns[0], column)}
                    for label, point, column in zip(self.labels, self.sweep.points, columns, strict=True)
                }
        return found

    def as_dict(self) -> dict[str, Any]:
        """For JSON: what `ackclock compare --try --json` prints."""
        return {
            "scenario": self.sweep.name,
            "engine": self.sweep.engine,
            "key": self.key,
            "choices": dict(zip(self.labels, (point["values"][self.key] for point in self.sweep.points), strict=True)),
            "metrics": self.metrics,
            "harm": [asdict(each) for each in self.harm],
            "warnings": list(self.sweep.warnings),
        }


def _by_seed(group: pl.DataFrame) -> dict[int, dict[str, Any]]:
    return {row["seed"]: row for row in group.iter_rows(named=True)}


def _difference(first: Mapping[int, float | None], other: Mapping[int, float | None]) -> dict[str, Any]:
    """Return the paired difference; `differs` says that its interval excludes 0, None without an interval."""
    if first is other:
        return dict.fromkeys(("difference", "difference_low", "difference_high", "differs"))
    pairs = [(value, first.get(seed)) for seed, value in other.items()]
    found = summarise([None if a is None or b is None else subtract(a, b) for a, b in pairs])
    keys = ("difference", "difference_low", "difference_high", "differs")
    return dict(zip(keys, (found.mean, found.ci95_low, found.ci95_high, excludes_zero(found)), strict=True))


def excludes_zero(difference: Summary) -> bool | None:
    """Return True if the 95 % interval of a difference excludes 0; None if there is no interval."""
    low, high = difference.ci95_low, difference.ci95_high
    return None if low is None or high is None else low > 0 or high < 0


def choices(text: str, loaded: Loaded) -> Vary:
    """Parse names of algorithms, or a key and its values. Raises `InputError` for fewer than two."""
    is_key = _KEY.match(text)
    content = loaded.source.toml()
    found = candidates.vary(text, TRY) if is_key else candidates.tried(text, content, TRY)
    found = candidates.queues_by_name(found, content)
    candidates.check_place(found, content)
    if len(found.values) < 2:
        raise InputError(f"{TRY}: found one choice, {shown(text)}; expected two or more, such as cubic,bbr")
    if found.key in SEEDS:
        raise InputError(f"{TRY}: found {found.key}; expected another key: all choices run with the same seeds")
    return found


@dataclass(frozen=True)
class Job:
    """A checked comparison: the sweep of the choices, and that of the groups by themselves, if they can be harmed."""

    choices: Vary
    main: sweeps.Job
    solo: sweeps.Job | None
    competition: Competition | None
    harm_unknown: str

    def with_options(self, **options: Any) -> Job:
        """Return the comparison with options of its sweeps, such as `jobs`, `command` and `restart`."""
        solo = replace(self.solo, **options) if self.solo else None
        return replace(self, main=replace(self.main, **options), solo=solo)

    def forecast(self) -> Forecast:
        """Estimate all runs from pilots."""
        expected = self.main.forecast()
        return expected.plus(self.solo.forecast()) if self.solo else expected

    def perform(self, progress: Progress = no_progress) -> Choices:
        """Run what is not there yet."""
        share = len(self.main.runs) / (len(self.main.runs) + (len(self.solo.runs) if self.solo else 0))
        done = self.main.with_warnings(self.main.perform(lambda part: progress(part * share)))
        labels = short_labels(self.choices.values)
        plans = [point.plan for point in self.main.loaded.points()]
        harm: list[Harm] = []
        if self.solo and self.competition:
            solo = self.solo.perform(lambda part: progress(share + part * (1 - share)))
            harm = list(self.competition.harm(labels, plans, done, solo))
        limits = ""
        if self.choices.key == candidates.QUEUE:
            limits = candidates.limit_sentence([*zip(self.choices.values, plans, strict=True)])
        is_single = all(len(plan.flows) == 1 for plan in plans)
        return Choices(self.choices.key, labels, done, harm, self.harm_unknown, limits, is_single)


def folder_name(scenario: str, loaded: Loaded, found: Vary, engine: str, seeds: Sequence[int] | None) -> str:
    """Return the default name of a comparison's folder: each comparison has its own."""
    parts = [loaded.source.text, found.key, found.values, engine, seeds]
    return f"{scenario}-compare-{folders.key_suffix([found.axis.last], parts)}"


def write(result: Choices, folder: Path) -> None:
    """Write what `ackclock compare --try --json` prints into the folder of the sweep."""
    text = json.dumps(result.as_dict(), indent=2, ensure_ascii=False, allow_nan=False)
    folders.atomic_write(folder / TABLE, lambda new: new.write_text(f"{text}\n", encoding="utf-8"))


def prepare(
    loaded: Loaded,
    found: Vary,
    engine: str = "packet",
    *,
    out: Path | None = None,
    seeds: Iterable[int] | None = None,
    perturb: bool = False,
) -> Job:
    """Check a comparison of values of a key; run nothing. Raises as `sweeps.prepare`."""
    chosen = None if seeds is None else tuple(seeds)
    try:
        varied = loaded.varied(found.key, found.values, TRY)
        metrics = _metrics([point.plan for point in varied.points()])
        main = sweeps.prepare(varied, engine, out=out, seeds=chosen, metrics=metrics, perturb=perturb)
    except ScenarioError as error:
        problems = (candidates.relocated(problem, [found]) for problem in error.problems)
        raise ScenarioError(dict.fromkeys(problems)) from None
    competition = _competition(loaded, found, next(varied.points([0])).plan)
    if competition is None:
        return Job(found, main, None, None, NO_OTHERS if found.key == CONGESTION else "")
    place = None if out is None else out.with_name(f"{out.name}{SOLO}")
    cases = loaded.varied("flows", competition.cases, TRY)
    try:
        solo = sweeps.prepare(cases, engine, out=place, seeds=chosen, metrics=["goodput_bps"])
    except UnsupportedError as error:
        return Job(found, main, None, None, str(error.reasons[0]))
    return Job(found, main, solo, competition, "")


def _metrics(plans: Sequence[Plan]) -> list[str] | None:
    """Return all metrics, and those of `BY_GROUP` of each of several groups; None, for all metrics, if there is one.

    A group without a `name` has that of its algorithm. A name that means other flows with another choice is left out.
    """
    listed = [[group.name for group in plan.groups] for plan in plans]
    found: dict[str, set[tuple[int, ...]]] = {}
    for name in itertools.chain(*listed):
        found[name] = {tuple(numbers) for names in listed if (numbers := groups_of(name, names))}
    groups = sorted((name for name, meanings in found.items() if len(meanings) == 1), key=lambda name: min(found[name]))
    if max(map(len, listed)) < 2 or len(groups) > MAX_GROUPS:
        return None
    return [*METRICS, JAIN_OF_ALL, *(f"{metric}[{group}]" for metric in BY_GROUP for group in groups)]


@dataclass(frozen=True)
class Competition:
    """The groups that choices of the first one may harm, and the content of `[[flows]]` in each case.

    First the others by themselves, then each choice by itself, then the first group with the algorithm of another:
    `own_kind` has the case of each group by its number.
    """

    cases: Sequence[Any]
    own_kind: Mapping[int, int]

    def harm(self, labels: Sequence[str], plans: Sequence[Plan], main: Sweep, solo: Sweep) -> Iterator[Harm]:
        """Yield the harm of each choice to each group, in each quantity that is known."""
        all_mixed, all_by_itself = _judged(main), _judged(solo)
        for choice, label in enumerate(labels):
            for group, case in self.own_kind.items():
                is_own = _same_algorithm(plans[choice], group)
                for metric, more in JUDGED.items():
                    mixed, by_itself = all_mixed[metric], all_by_itself[metric]
                    suffered = _harm(by_itself.get((1 + choice, 0), {}), mixed.get((choice, 0), {}), more=more)
                    x, own = by_itself.get((0, group), {}), by_itself.get((case, group), {})
                    done, own_kind = (_harm(x, y, more=more) for y in (mixed.get((choice, group), {}), own))
                    excess = [] if is_own else [done[seed] - own_kind[seed] for seed in done.keys() & own_kind.keys()]
                    parts = (done.values(), own_kind.values(), excess, suffered.values())
                    if done:
                        name = plans[choice].groups[group].name
                        yield Harm(label, name, metric, *(summarise([*part]) for part in parts))


def _competition(loaded: Loaded, found: Vary, plan: Plan) -> Competition | None:
    """Return the competition of a scenario with several groups of flows without a size; None for any other."""
    flows = loaded.source.toml().get("flows") or []
    groups = [number for number, table in enumerate(flows) if number and "size" not in table]
    if found.key != CONGESTION or not groups or "size" in flows[0]:
        return None
    first, others = flows[0], flows[1:]
    own = {number: [_as_own_kind(first, flows[number], plan, number), *others] for number in groups}
    cases = [[_idle(first), *others]]
    cases += [[{**first, "congestion": value}, *map(_idle, others)] for value in found.values]
    cases += [case for place, case in enumerate(own.values()) if case not in [*own.values()][:place]]
    return Competition(cases, {number: cases.index(case) for number, case in own.items()})


def _idle(table: Mapping[str, Any]) -> dict[str, Any]:
    return {**table, "size": ONE_BYTE if _is_quic(table) else ONE_PACKET}


def _is_quic(table: Mapping[str, Any]) -> bool:
    return table.get("transport") == "quic"


def _as_own_kind(first: Mapping[str, Any], other: Mapping[str, Any], plan: Plan, number: int) -> dict[str, Any]:
    """Return the first group with another's algorithm, and with its transport if that differs."""
    if _is_quic(first) == _is_quic(other):
        return {**first, "congestion": _algorithm(other, plan, number)}
    of_any = (Flows.model_fields.keys() & QuicFlows.model_fields.keys()) - {"transport", "congestion"}
    placed = {key: value for key, value in first.items() if key in of_any}
    return placed | {key: value for key, value in other.items() if key not in of_any}


def _algorithm(table: Mapping[str, Any], plan: Plan, number: int) -> Any:
    """Return a group's congestion control as written, else the name of its stack's default."""
    return table.get("congestion") or _kind(plan, number)


def _kind(plan: Plan, group: int) -> str | None:
    """Return the name of a group's congestion control."""
    congestion = plan.groups[group].congestion
    quic = (flow.congestion for flow in plan.datagrams if flow.group == group and flow.is_quic)
    return congestion.kind if congestion else next(quic, None)


def _same_algorithm(plan: Plan, group: int) -> bool:
    """Return True if a group has the congestion control and the transport of the first one."""
    one, other = plan.groups[0].congestion, plan.groups[group].congestion
    return one == other and (one is not None or _kind(plan, 0) == _kind(plan, group))


def _judged(sweep: Sweep) -> Mapping[str, Mapping[tuple[int, int], BySeed]]:
    """Return each quantity of `JUDGED` by point, group and seed, where it is known of all flows of the group.

    Goodput is in bytes: what is compared was measured for as long.
    """
    sent, delay_s = pl.col("measured_sent_packets"), pl.col("measured_delay_mean_s")
    table = (
        sweep.scan("flows")
        .group_by("run", "point", "group")
        .agg(
            goodput_bps=_of_all("measured_bytes"),
            retransmission_rate=_of_all("measured_retransmissions") / _of_all("measured_sent_packets"),
            delay_mean_s=pl.when(delay_s.null_count() == 0).then((delay_s * sent).sum() / sent.sum()),
        )
        .collect()
        .join(sweep.table.select("run", "seed"), on="run")
        .sort("seed")
    )
    found: dict[str, dict[tuple[int, int], dict[int, float]]] = {metric: {} for metric in JUDGED}
    for row in table.iter_rows(named=True):
        for metric, values in found.items():
            if (value := row[metric]) is not None and math.isfinite(value):
                values.setdefault((row["point"], row["group"]), {})[row["seed"]] = float(value)
    return found


def _of_all(column: str) -> pl.Expr:
    """Return the sum of a column, null where a value is unknown."""
    return pl.when(pl.col(column).null_count() == 0).then(pl.col(column).sum())


def _harm(solo: BySeed, mixed: BySeed, *, more: bool) -> dict[int, float]:
    """Return the harm by seed; 0 where there is nothing of what is better if it is less, by itself and with others."""
    pairs = {seed: (x, mixed[seed]) for seed, x in solo.items() if seed in mixed}
    if more:
        return {seed: (x - y) / x for seed, (x, y) in pairs.items() if x > 0}
    return {seed: (y - x) / y if y > 0 else 0.0 for seed, (x, y) in pairs.items() if y > 0 or x == 0}
