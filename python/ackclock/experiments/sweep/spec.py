"""Specification of a sweep, and its runs in order: plain values for the worker processes and the folder's manifest."""

from __future__ import annotations

import tomllib
from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ackclock import _core, algorithms, engines, stacks
from ackclock.engines.engine import Engine, Progress, no_progress
from ackclock.errors import InputError, Unsupported, UnsupportedError
from ackclock.experiments import phase_effects
from ackclock.experiments.sweep import designs
from ackclock.experiments.sweep.designs import Shard
from ackclock.input.fields import nearest, shown
from ackclock.metrics import JAIN_OF_ALL, METRICS, check_names, full_name, main
from ackclock.plan import Plan
from ackclock.scenario import planning
from ackclock.scenario.planning import Loaded, Point

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


#: Runs are mixed in blocks, at least so many: a tenth of them is a sample of twenty.
BLOCKS = 200

#: Multiples of the golden ratio, without their whole parts, are spread more evenly than those of any other number.
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the sweep; its number is its place in the order of points and seeds."""

    number: int
    point: int
    seed: int


class Runs(Sequence[Run]):
    """Every run, or some of them, made when it is asked for. `seeds` are those of each point."""

    def __init__(self, seeds: Sequence[tuple[int, ...]], chosen: Sequence[int] | None = None) -> None:
        self._seeds = seeds
        self._first = array("Q", accumulate(map(len, seeds), initial=0))
        self._chosen = range(self._first[-1]) if chosen is None else chosen

    def without(self, done: Collection[int]) -> Runs:
        """Return the runs whose numbers are not among those that are done."""
        return Runs(self._seeds, array("Q", (number for number in self._chosen if number not in done)))

    def of_points(self, points: npt.NDArray[np.int64]) -> Runs:
        """Return the runs of some points, with their numbers."""
        import numpy as np

        mine = np.zeros(len(self._seeds), bool)
        mine[points] = True
        chosen = np.fromiter(self._chosen, np.uint64, len(self))
        return Runs(self._seeds, array("Q", chosen[mine[self.point_numbers]].tobytes()))

    def mixed(self) -> Runs:
        """All of them in an order in which each stretch is a fair sample: so what is done tells what is left.

        Neighbours stay together in some hundreds of blocks, since runs of one point share its plan.
        """
        size = max(1, len(self) // BLOCKS)
        firsts = sorted(range(0, len(self), size), key=lambda first: first // size * GOLDEN % 1)
        blocks = (self._chosen[first : first + size] for first in firsts)
        return Runs(self._seeds, array("Q", chain.from_iterable(blocks)))

    @property
    def point_numbers(self) -> npt.NDArray[np.intp]:
        """The point of each run."""
        import numpy as np

        numbers = np.fromiter(self._chosen, np.uint64, len(self))
        return np.searchsorted(np.frombuffer(self._first, np.uint64), numbers, side="right") - 1

    @property
    def points(self) -> Iterator[int]:
        """The points that the runs are of, rising."""
        last = -1
        for number in self._chosen:
            point = bisect_right(self._first, number) - 1
            if point != last:
                yield point
            last = point

    def __len__(self) -> int:
        return len(self._chosen)

    @overload
    def __getitem__(self, which: int) -> Run: ...
    @overload
    def __getitem__(self, which: slice) -> list[Run]: ...
    def __getitem__(self, which: int | slice) -> Run | list[Run]:
        if isinstance(which, slice):
            return [self._run(number) for number in self._chosen[which]]
        return self._run(self._chosen[which])

    def _run(self, number: int) -> Run:
        point = bisect_right(self._first, number) - 1
        return Run(number, point, self._seeds[point][number - self._first[point]])


#: Tables that are kept of every run; the others are samples.
KEPT = ("flows", "links")
SAMPLES = ("flow_samples", "queue_samples", "events", "packets", "transmissions")

#: Names of keys of `SweepSpec.identity` in messages.
NAMES = {"twin": "--perturb"}

#: Most runs of a sweep.
MAX_RUNS = 10_000_000

#: Number of points between two reports of progress.
POINTS_PER_CHECK = 100


@dataclass(frozen=True, slots=True)
class SweepSpec:
    """Specification of a sweep: the file's text and name, the engine, metrics by name, samples or not.

    `seeds` stand in place of the scenario's own, which may differ from point to point; `where` leaves only the points
    with these values at these keys; `kernel` stands in place of the scenario's, for the engine linux, and `ssh_config`
    in place of the user's own, for a testbed; `module` is a congestion control for the kernel. `shard` leaves one part
    of the points, `design` those of a fractional design (`designs`). With `perturbed`, each point's perturbed run
    (`experiments.phase_effects`) takes its place.
    """

    text: str
    name: str
    engine: str
    seeds: tuple[int, ...] | None
    metrics: tuple[str, ...]
    samples: bool
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kernel: str | None = None
    ssh_config: str | None = None
    shard: Shard | None = None
    design: str | None = None
    module: Mapping[str, str] | None = None
    stacks: Sequence[Mapping[str, str]] = ()
    perturbed: bool = False

    @property
    def title(self) -> str:
        """Return the title for tables and figures: the scenario's `name`, else the file's."""
        return str(tomllib.loads(self.text).get("name") or Path(self.name).stem)

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that are kept."""
        return KEPT + SAMPLES if self.samples else KEPT

    def identity(self) -> dict[str, Any]:
        """Return what must be equal for a sweep to be resumed; the keys are a user's words."""
        return {
            "scenario": self.text,
            "engine": self.engine,
            "ackclock version": _core.version,
            "seeds": list(self.seeds) if self.seeds is not None else None,
            "metrics": list(self.metrics),
            "samples": self.samples,
            "where": {key: list(texts) for key, texts in self.where.items()},
            "kernel": self.kernel,
            "shard": None if self.shard is None else str(self.shard),
            "design": self.design,
            "module": None if self.module is None else {key: self.module[key] for key in ("name", "sha256")},
            "stacks": [{key: stack[key] for key in ("name", "sha256")} for stack in self.stacks] or None,
            "twin": self.perturbed or None,
        }

    def scenario(self) -> Loaded:
        """The scenario with what stands in place of its own, in a process that knows the order alone."""
        if self.module is not None:
            from ackclock.experiments import user_control

            user_control.restore(self.module)
        for stack in self.stacks:
            stacks.restore(stack)
        loaded = planning.loads(self.text, self.name).only(self.where).on(self.kernel, self.ssh_config)
        return replace(loaded, module=self.module, stacks=self.stacks)


def perturbed(order: SweepSpec) -> SweepSpec:
    """Return the spec of the perturbed runs. Raises `InputError` for a part of a sweep, or unsuitable metrics."""
    if order.shard is not None:
        raise InputError("--perturb: found --shard beside it; expected the whole sweep")
    if not set(order.metrics) & set(main("table")):
        raise InputError(f"--perturb: found none of the main metrics; expected one of {', '.join(main('table'))}")
    return replace(order, perturbed=True)


def chosen_metrics(names: Iterable[str] | None) -> tuple[str, ...]:
    """Metrics by name, all of them for None. Raises `InputError` for one that there is not, and for none at all."""
    found = {name: full_name(name) for name in ((*METRICS, JAIN_OF_ALL) if names is None else names)}
    if not found:
        raise InputError("metrics: found none; expected one or more, or nothing for all of them")
    if unknown := [name for name, known in found.items() if known is None]:
        raise InputError(f"metrics: found {shown(unknown[0])}; expected {nearest(unknown[0], tuple(METRICS))}")
    return tuple(dict.fromkeys(filter(None, found.values())))


def runs(loaded: Loaded, order: SweepSpec, progress: Progress = no_progress) -> Runs:
    """Return every run of the order's shard; one per point where the engine is deterministic.

    Of more than `planning.MAX_CHECKED` points a sample is checked; if its points have one set of seeds, so have all.
    The other points are checked when they are dealt out (`worker`). `progress` is called with the share of the checks
    that is done. Raises `ScenarioError` with the mistakes of these points, `UnsupportedError`, `InputError`.
    """
    count = loaded.count
    seeds = _seeds(loaded, order, loaded.sample(), progress)
    if len(seeds) < count:
        different = set(seeds)
        seeds = [*different] * count if len(different) == 1 else _seeds(loaded, order, range(count), progress)
    if sum(map(len, seeds)) > MAX_RUNS:
        raise InputError(f"{order.name}: found more than {MAX_RUNS:,} runs; expected fewer points or seeds")
    return _chosen(Runs(seeds), loaded, order)


def _chosen(every: Runs, loaded: Loaded, order: SweepSpec) -> Runs:
    """The runs of the design's points, and of those the ones of the shard. Raises `InputError` if there are no such."""
    if order.design is None and order.shard is None:
        return every
    axes = loaded.sweep.axes if loaded.sweep else ()
    resolution = designs.resolution(order.design or designs.FULL)
    points = np.arange(loaded.count) if resolution is None else designs.points(axes, resolution)
    if order.shard is not None:
        order.shard.check(len(points))
        points = points[designs.shard_of_points(len(points), order.shard.count) == order.shard.number - 1]
    return every.of_points(points)


def _seeds(loaded: Loaded, order: SweepSpec, numbers: Sequence[int], progress: Progress) -> list[tuple[int, ...]]:
    """Return the seeds of these points, each set once in memory. Raises as `runs` does."""
    engine = engines.engine(order.engine)
    reasons: dict[Unsupported, None] = {}
    known: dict[tuple[int, ...], tuple[int, ...]] = {}
    found = []
    names: dict[str, None] = {}
    links: dict[str, None] = {}
    for done, point in enumerate(loaded.points(numbers)):
        names.update(dict.fromkeys(group.name for group in point.plan.groups))
        links.update(dict.fromkeys(link.name for link in point.plan.links if link.bottleneck))
        try:
            checked_plan(engine, order, point)
        except UnsupportedError as error:
            reasons.update(dict.fromkeys(error.reasons))
        own = _seeds_of(engine, order, point)
        found.append(known.setdefault(own, own))
        if done % POINTS_PER_CHECK == 0:
            progress(done / len(numbers))
    if reasons:
        raise UnsupportedError(reasons)
    check_names(order.metrics, names, links)
    return found


def _seeds_of(engine: Engine, order: SweepSpec, point: Point) -> tuple[int, ...]:
    seeds = point.plan.seeds if order.seeds is None else order.seeds
    return seeds if engine.is_stochastic(point.plan) else seeds[:1]


def checked_plan(engine: Engine, order: SweepSpec, point: Point) -> Plan:
    """Return the plan of a point, or of its perturbed run, that the engine can run.

    Raises `UnsupportedError` with what it cannot model, `InputError` for missing results that the plan needs.
    """
    if reasons := engines.unsupported(engine, point.plan):
        raise UnsupportedError(reasons)
    engines.check_inputs(engine, point.plan)
    _check_prototypes(order, point.plan)
    if not order.perturbed:
        return point.plan
    phase_effects.check(replace(point.plan, seeds=_seeds_of(engine, order, point)), order.engine)
    return phase_effects.perturbed(point.plan)


def _check_prototypes(order: SweepSpec, plan: Plan) -> None:
    """Raise `InputError` for an algorithm in Python that the processes of the sweep cannot load from a file."""
    kinds = {group.congestion.kind for group in plan.groups if group.congestion}
    brought = {order.module["name"]} if order.module else set()
    if missing := sorted(kinds.intersection(algorithms.in_python()) - brought):
        found = f"found congestion = {shown(missing[0])}, a class of this process"
        raise InputError(f"{order.name}: {found}; expected a class in a file, and `ackclock sweep --module FILE.py`")


def different(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> Sequence[str]:
    """Return the keys of `SweepSpec.identity` in which two sweeps differ, as messages name them."""
    return [NAMES.get(key, key) for key, value in wanted.items() if found.get(key) != value]
