"""A question: a scenario, its candidate settings, the constraints, and the objectives that rank settings."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import Any

from ackclock.dataset import folders
from ackclock.errors import InputError, ScenarioError
from ackclock.experiments import phase_effects
from ackclock.experiments.search.bisection import COARSE, max_evaluations, max_refined_evaluations
from ackclock.experiments.search.candidates import MOST_CANDIDATES, Vary, relocated
from ackclock.experiments.search.criteria import (
    NO_STARVATION,
    RISK,
    SAMPLE_SIZES,
    Constraint,
    Objective,
    check_groups,
    parse_constraint,
    parse_objective,
)
from ackclock.input import cli_values
from ackclock.metrics import check_names, main
from ackclock.plan import Plan
from ackclock.scenario.planning import Loaded, Point
from ackclock.scenario.points import Sweep, label, short_labels

#: Ends of a ladder.
SMALLEST, LARGEST = "smallest", "largest"


@dataclass(frozen=True)
class Question:
    """`loaded` has a point for each setting. `end` says which end of the first ladder is looked for, if one is; the
    keys before it have a search each. Without it settings are judged by the goals, along a ladder coarsely at first.
    With `perturbed`, each setting's perturbed run (`experiments.phase_effects`) takes its place.
    """  # noqa: D205

    loaded: Loaded
    varied: tuple[Vary, ...]
    constraints: tuple[Constraint, ...]
    objectives: tuple[Objective, ...] = ()
    end: str | None = None
    engine: str = "packet"
    seed: int = 1
    repeats: int = SAMPLE_SIZES[-1]
    perturbed: bool = False

    @property
    def row(self) -> int:
        """Return the number of values of the last key, along which is searched."""
        return len(self.varied[-1].values)

    @property
    def rows(self) -> int:
        """Return the number of combinations of the other keys."""
        return math.prod(len(vary.values) for vary in self.varied[:-1])

    @property
    def refines(self) -> bool:
        """Return True if one objective is followed along a ladder."""
        return self.end is None and len(self.objectives) == 1 and self.varied[-1].ordered and self.row > COARSE

    @property
    def trades(self) -> bool:
        """Return True if several objectives are followed along a ladder."""
        return self.end is None and len(self.objectives) > 1 and self.varied[-1].ordered

    def number(self, row: int, place: int) -> int:
        """The setting at a place of a row; places count from the end that is looked for."""
        return row * self.row + (self.row - 1 - place if self.end == LARGEST else place)

    def point(self, number: int) -> Point:
        """A setting's values and its plan. Raises `ScenarioError` if it is none."""
        try:
            return self.loaded.point(number)
        except ScenarioError as error:
            raise ScenarioError([relocated(problem, self.varied) for problem in error.problems]) from None

    def plan(self, number: int) -> Plan:
        """Return the plan of a setting. Raises as `point`."""
        plan = self.point(number).plan
        return phase_effects.perturbed(plan) if self.perturbed else plan

    @property
    def checked_first(self) -> list[int]:
        """Settings that are looked at before anything runs: both ends of the first row, and where the others begin."""
        return sorted({0, self.row - 1, *range(0, self.rows * self.row, self.row)})

    def values(self, number: int) -> Mapping[str, Any]:
        """Return the value of each key at a setting."""
        sweep = self.loaded.sweep
        assert sweep is not None
        return sweep.values(number)

    def described(self, number: int) -> str:
        """Return a setting in words, with short labels: `network.queue = fq_codel, flows[0].count = 4`."""
        return ", ".join(f"{key} = {text}" for key, text in self.short_values(number).items())

    def short_values(self, number: int) -> dict[str, str]:
        """Return the short label of each key's value at a setting."""
        sweep = self.loaded.sweep
        assert sweep is not None
        places = zip(self.varied, sweep.places(number), strict=True)
        return {vary.key: short_labels(vary.values)[place] for vary, place in places}

    @property
    def metrics(self) -> list[str]:
        """Return the metrics of each run: those of constraints and objectives, and the main metrics."""
        asked = [need.metric for need in self.constraints] + [goal.metric for goal in self.objectives]
        return list(dict.fromkeys([*asked, *main("table")]))

    @property
    def sample_sizes(self) -> tuple[int, ...]:
        """Return the number of seeds at each look."""
        return (*(count for count in SAMPLE_SIZES if count < self.repeats), self.repeats)

    @property
    def risk(self) -> float:
        """Return the error probability of one look at one setting."""
        each = (
            max_evaluations(self.row) if self.end else max_refined_evaluations(self.row) if self.refines else self.row
        )
        return RISK / (self.rows * each) / len(self.sample_sizes)

    @property
    def about(self) -> dict[str, Any]:
        """All that an answer depends on, for the manifest."""
        return {
            "scenario": self.loaded.source.text,
            "scenario_name": self.loaded.source.name,
            "varied": {vary.key: [label(value) for value in vary.values] for vary in self.varied},
            "ladder": self.varied[-1].key if self.varied[-1].ordered else None,
            "needs": [need.text for need in self.constraints],
            "bounds": [(need.metric, need.bound) for need in self.constraints],
            "goals": [self.end] * bool(self.end) + [str(goal) for goal in self.objectives],
            "engine": self.engine,
            "seed": self.seed,
            "repeats": self.repeats,
            **self._given,
        }

    @property
    def _given(self) -> dict[str, Any]:
        """The kernel, the module and the stacks that were given beside the scenario, if they were."""
        module = self.loaded.module and {key: self.loaded.module[key] for key in ("name", "sha256")}
        stacks = [{key: stack[key] for key in ("name", "sha256")} for stack in self.loaded.stacks]
        given = {"kernel": self.loaded.kernel, "module": module, "stacks": stacks}
        return {key: value for key, value in given.items() if value}

    @property
    def name(self) -> str:
        """Return a name that identifies the question: its keys, and the beginning of a hash of all it contains."""
        keys = [vary.axis.last for vary in self.varied]
        asked = {key: value for key, value in self.about.items() if key not in ("scenario_name", "ladder")}
        return folders.key_suffix(keys, asked)

    @property
    def sum(self) -> str:
        """The SHA-256 of what runs depend on: with the same one, what was run need not be run again."""
        runs = {
            key: value
            for key, value in self.about.items()
            if key not in ("ladder", "needs", "bounds", "goals", "repeats")
        }
        return hashlib.sha256(json.dumps([runs, sorted(self.metrics)]).encode()).hexdigest()


def question(  # noqa: PLR0913 (what is asked, and how it is answered)
    loaded: Loaded,
    varied: Sequence[Vary],
    constraints: Sequence[Constraint],
    objectives: Sequence[Objective] = (),
    *,
    end: str | None = None,
    engine: str = "packet",
    seed: int = 1,
    repeats: int = SAMPLE_SIZES[-1],
    allow_starvation: bool = False,
) -> Question:
    """Build a question. Raises `InputError` for one that has no answer.

    Where several groups of flows compete, none may starve (`criteria.NO_STARVATION`) unless that is allowed, or what
    is needed says something else of it. Of a group that is named, the first settings must have flows.
    """
    if loaded.sweep is not None:
        raise InputError(f"{loaded.source.name}: found a sweep; expected one scenario, and what to vary by --vary")
    if not constraints and not objectives:
        raise InputError('--require: found none; expected what is needed, such as --require "utilisation >= 99%"')
    goal_metrics = [goal.metric for goal in objectives]
    if twice := next((name for name in goal_metrics if goal_metrics.count(name) > 1), None):
        raise InputError(f"--best: found {twice} twice; expected each metric once")
    ordered = [vary for vary in varied if vary.ordered]
    if end and not ordered:
        raise InputError(f"--{end}: found no range; expected one, such as --vary limit=0.01bdp..2bdp")
    if end is None and ordered and not objectives:
        end = SMALLEST
    kept = sorted(varied, key=lambda vary: bool(ordered) and vary is ordered[0])
    made = Question(
        replace(loaded, scenario=None, sweep=_sweep(loaded, kept)), tuple(kept), tuple(constraints), tuple(objectives)
    )
    made = replace(made, end=end, engine=engine, seed=seed, repeats=repeats)
    plans = [made.point(number).plan for number in made.checked_first]
    links = [link.name for plan in plans for link in plan.links if link.bottleneck]
    check_names(made.metrics, dict.fromkeys(group.name for plan in plans for group in plan.groups), links)
    check_groups([*(need.metric for need in constraints), *goal_metrics], plans)
    is_judged = any(need.metric == NO_STARVATION.metric for need in constraints)
    if not (allow_starvation or is_judged) and _competing(plans[0]) > 1:
        made = replace(made, constraints=(*constraints, NO_STARVATION))
    return made


def restored(about: Mapping[str, Any], loaded: Loaded) -> Question:
    """Return the question of a manifest (`Question.about`) for its scenario.

    Raises `InputError` for what is no question, `TypeError` and `ValueError` for impossible numbers.
    """
    seed, repeats = index(about["seed"]), index(about["repeats"])
    if seed < 0 or repeats < 1:
        raise ValueError(f"seed {seed}, repeats {repeats}")
    varied = [
        Vary(key, tuple(map(cli_values.value, values)), key == about["ladder"])
        for key, values in about["varied"].items()
    ]
    known = {NO_STARVATION.text: NO_STARVATION}
    constraints = [known.get(text) or parse_constraint(text) for text in about["needs"]]
    ends = [goal for goal in about["goals"] if goal in (SMALLEST, LARGEST)]
    return question(
        loaded,
        varied,
        constraints,
        [parse_objective(goal) for goal in about["goals"] if goal not in ends],
        end=ends[0] if ends else None,
        engine=about["engine"],
        seed=seed,
        repeats=repeats,
        allow_starvation=True,
    )


def _competing(plan: Plan) -> int:
    """Return how many groups have long-lived flows, of TCP or of media."""
    places = [flow.group for flow in plan.flows if flow.size_bytes is None]
    places += [each.group for each in plan.datagrams if each.source["kind"] == "media"]
    return len({plan.groups[place].name for place in places})


def _sweep(loaded: Loaded, varied: Sequence[Vary]) -> Sweep:
    """The settings as a sweep has its points."""
    if not varied:
        raise InputError("--vary: found nothing; expected a key and its values, such as --vary limit=0.01bdp..2bdp")
    keys = [vary.key for vary in varied]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise InputError(f"--vary: found {twice} twice; expected each key once")
    count = math.prod(len(vary.values) for vary in varied)
    if count > MOST_CANDIDATES:
        raise InputError(f"--vary: found {count:,} settings; expected at most {MOST_CANDIDATES:,}")
    return Sweep(tuple(vary.axis for vary in varied), loaded.source.toml(), loaded.source)
