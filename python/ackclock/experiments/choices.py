"""Comparison of choices: values of one key with the same seeds, their paired differences, and the harm they do.

The choices are a sweep with one axis. Runs of two choices with the same seed are a pair (common random numbers): they
share starts, transfers and random losses, so the mean of their differences has a narrower interval than the difference
of two means. The first choice is the baseline.

*Harm* is defined by R. Ware, M. Mukerjee, S. Seshan, J. Sherry: Beyond Jain's Fairness Index: Setting the Bar For The
Deployment of Congestion Control Algorithms, HotNets 2019. A flow group has a goodput x by itself and y beside a
competitor, which does it the harm (x − y) / x. A new algorithm is acceptable beside an old one if it harms it no more
than the old one harms itself, with as many flows. Here the choices are those of the first `[[flows]]`; the others are
the groups that may be harmed, and a group by itself has the same network, flows, paths and starts, in which the flows
of the other groups end after one packet. Only goodput is judged, and only of flows without a size.
"""

from __future__ import annotations

import hashlib
import json
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
from ackclock.input.fields import shown
from ackclock.metrics import Summary
from ackclock.metrics.summary import summarise
from ackclock.plan import Plan
from ackclock.scenario.planning import Loaded
from ackclock.scenario.points import short_labels

#: The option that names the choices.
TRY = "--try"

#: The key whose choices may harm other flows, and the size of flows that leave the network to the others.
CONGESTION, ONE_PACKET = candidates.KEYS["congestion"], "1p"

#: The table as JSON, in the folder, and the number of digits in the folder's name.
TABLE, DIGITS = "comparison.json", 6

#: A key before its values: an algorithm with parameters has its equals signs within braces.
_KEY = re.compile(r"[^,={]+=")

#: Why no harm is reported if no other flows compete.
NO_OTHERS = "the scenario has no other [[flows]] without a size"

#: Suffix of the folder with the groups by themselves.
SOLO = "-solo"

#: Goodput in bytes by seed.
BySeed: TypeAlias = Mapping[int, float]


@dataclass(frozen=True)
class Harm:
    """Harm of a choice to a group, of the group's own kind to it, their paired difference, and of the others to it."""

    choice: str
    group: str
    done: Summary
    own_kind: Summary
    excess: Summary
    suffered: Summary


@dataclass(frozen=True)
class Choices:
    """The choices of a key by their labels, and what their runs showed. Differences are to the first choice.

    `harm_unknown` is why congestion control algorithms have no harm.
    """

    key: str
    labels: Sequence[str]
    sweep: Sweep
    harm: Sequence[Harm]
    harm_unknown: str
    limits: str
    warnings: Sequence[str]

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
            "warnings": list(self.warnings),
        }


def _by_seed(group: pl.DataFrame) -> dict[int, dict[str, Any]]:
    return {row["seed"]: row for row in group.iter_rows(named=True)}


def _difference(first: Mapping[int, float | None], other: Mapping[int, float | None]) -> dict[str, Any]:
    """Return the paired difference; `differs` says that its interval excludes 0, None without an interval."""
    if first is other:
        return dict.fromkeys(("difference", "difference_low", "difference_high", "differs"))
    pairs = [(value, first.get(seed)) for seed, value in other.items()]
    found = summarise([None if a is None or b is None else a - b for a, b in pairs])
    keys = ("difference", "difference_low", "difference_high", "differs")
    return dict(zip(keys, (found.mean, found.ci95_low, found.ci95_high, excludes_zero(found)), strict=True))


def excludes_zero(difference: Summary) -> bool | None:
    """Return True if the 95 % interval of a difference excludes 0; None if there is no interval."""
    low, high = difference.ci95_low, difference.ci95_high
    return None if low is None or high is None else low > 0 or high < 0


def choices(text: str, loaded: Loaded) -> Vary:
    """Parse names of algorithms, or a key and its values. Raises `InputError` for fewer than two."""
    is_key = _KEY.match(text)
    found = candidates.vary(text, TRY) if is_key else candidates.tried(text, loaded.source.toml(), TRY)
    if len(found.values) < 2:
        raise InputError(f"{TRY}: found one choice, {shown(text)}; expected two or more, such as cubic,bbr")
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
        done = self.main.perform(lambda part: progress(part * share))
        labels = short_labels(self.choices.values)
        plans = [point.plan for point in self.main.loaded.points()]
        harm: list[Harm] = []
        if self.solo and self.competition:
            solo = self.solo.perform(lambda part: progress(share + part * (1 - share)))
            harm = list(self.competition.harm(labels, plans, done, solo))
        limits = ""
        if self.choices.key == candidates.QUEUE:
            limits = candidates.limit_sentence([*zip(self.choices.values, plans, strict=True)])
        return Choices(self.choices.key, labels, done, harm, self.harm_unknown, limits, self.main.warnings(done))


def folder_name(scenario: str, loaded: Loaded, found: Vary, engine: str, seeds: Sequence[int] | None) -> str:
    """Return the default name of a comparison's folder: each comparison has its own."""
    parts = [loaded.source.text, found.key, found.values, engine, seeds]
    digest = hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()
    return f"{scenario}-compare-{found.axis.last}-{digest[:DIGITS]}"


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
        main = sweeps.prepare(varied, engine, out=out, seeds=chosen, perturb=perturb)
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


@dataclass(frozen=True)
class Competition:
    """The groups that choices of the first one may harm, and the content of `[[flows]]` in each case.

    First the others by themselves, then each choice by itself, then the first group with the algorithm of another:
    `own_kind` has the case of each group by its number.
    """

    cases: Sequence[Any]
    own_kind: Mapping[int, int]

    def harm(self, labels: Sequence[str], plans: Sequence[Plan], main: Sweep, solo: Sweep) -> Iterator[Harm]:
        """Yield the harm of each choice to each group."""
        mixed, by_itself = _goodputs(main), _goodputs(solo)
        for choice, label in enumerate(labels):
            suffered = _harm(by_itself.get((1 + choice, 0), {}), mixed.get((choice, 0), {}))
            for group, case in self.own_kind.items():
                x, own = by_itself.get((0, group), {}), by_itself.get((case, group), {})
                done, own_kind = _harm(x, mixed.get((choice, group), {})), _harm(x, own)
                is_own = plans[choice].groups[0].congestion == plans[choice].groups[group].congestion
                excess = [] if is_own else [done[seed] - own_kind[seed] for seed in done.keys() & own_kind.keys()]
                parts = (done.values(), own_kind.values(), excess, suffered.values())
                if done:
                    yield Harm(label, plans[choice].groups[group].name, *(summarise([*part]) for part in parts))


def _competition(loaded: Loaded, found: Vary, plan: Plan) -> Competition | None:
    """Return the competition of a scenario with several groups of flows without a size; None for any other."""
    flows = loaded.source.toml().get("flows") or []
    groups = [number for number, table in enumerate(flows) if number and "size" not in table]
    if found.key != CONGESTION or not groups or "size" in flows[0]:
        return None
    first, others = flows[0], flows[1:]
    own = {number: [{**first, "congestion": _algorithm(flows[number], plan, number)}, *others] for number in groups}
    cases = [[_idle(first), *others]]
    cases += [[{**first, "congestion": value}, *map(_idle, others)] for value in found.values]
    cases += [case for place, case in enumerate(own.values()) if case not in [*own.values()][:place]]
    return Competition(cases, {number: cases.index(case) for number, case in own.items()})


def _idle(table: Mapping[str, Any]) -> dict[str, Any]:
    return {**table, "size": ONE_PACKET}


def _algorithm(table: Mapping[str, Any], plan: Plan, number: int) -> Any:
    """Return a group's congestion control as written, else that of its stack."""
    congestion = plan.groups[number].congestion
    return table.get("congestion") or (congestion.kind if congestion else None)


def _goodputs(sweep: Sweep) -> Mapping[tuple[int, int], BySeed]:
    """Return the bytes that a group delivered by point, group and seed."""
    table = (
        sweep.scan("flows")
        .group_by("run", "point", "group")
        .agg(pl.col("measured_bytes").sum(), pl.col("measured_bytes").null_count().alias("unknown"))
        .filter(pl.col("unknown") == 0)
        .collect()
        .join(sweep.table.select("run", "seed"), on="run")
        .sort("seed")
    )
    found: dict[tuple[int, int], dict[int, float]] = {}
    for row in table.iter_rows(named=True):
        found.setdefault((row["point"], row["group"]), {})[row["seed"]] = float(row["measured_bytes"])
    return found


def _harm(solo: BySeed, mixed: BySeed) -> dict[int, float]:
    return {seed: (x - mixed[seed]) / x for seed, x in solo.items() if x > 0 and seed in mixed}
