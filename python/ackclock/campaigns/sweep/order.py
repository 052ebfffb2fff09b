"""What a sweep is to run, as plain values: they go to the worker processes and into the folder's manifest."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ackclock import _core, engines
from ackclock.errors import InputError, Unsupported, UnsupportedError
from ackclock.input.fields import nearest, shown
from ackclock.metrics import METRICS
from ackclock.scenario.planning import Loaded

#: Tables that are kept of every run; the others are samples.
KEPT = ("flows", "links")
SAMPLES = ("flow_samples", "queue_samples", "events", "packets")

#: Most runs of a sweep.
MOST_RUNS = 10_000_000

#: … which are mixed in blocks, at least so many: a tenth of them is a sample of twenty.
BLOCKS = 200

#: Multiples of the golden ratio, without their whole parts, are spread more evenly than those of any other number.
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, slots=True)
class Order:
    """What is run and what is kept of it: the file's text and name, the engine, metrics by name, samples or not.

    `seeds` stand in place of the scenario's own, which may differ from point to point; `where` leaves only the points
    with these values at these keys; `kernel` stands in place of the scenario's, for the engine linux.
    """

    text: str
    name: str
    engine: str
    seeds: tuple[int, ...] | None
    metrics: tuple[str, ...]
    samples: bool
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kernel: str | None = None

    @property
    def title(self) -> str:
        """What tables and figures call it: the scenario's `name`, else the file's."""
        return str(tomllib.loads(self.text).get("name") or Path(self.name).stem)

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that are kept."""
        return KEPT + SAMPLES if self.samples else KEPT

    def identity(self) -> dict[str, Any]:
        """What must be the same for a sweep to go on where it was; the keys say it in a user's words."""
        return {
            "scenario": self.text,
            "engine": self.engine,
            "ackclock version": _core.version,
            "seeds": list(self.seeds) if self.seeds is not None else None,
            "metrics": list(self.metrics),
            "samples": self.samples,
            "where": {key: list(texts) for key, texts in self.where.items()},
            "kernel": self.kernel,
        }


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the sweep; its number is its place in the order of points and seeds."""

    number: int
    point: int
    seed: int


def chosen_metrics(names: Iterable[str] | None) -> tuple[str, ...]:
    """Metrics by name, all of them for None. Raises `InputError` for one that there is not."""
    found = tuple(dict.fromkeys(METRICS if names is None else names))
    for name in found:
        if name not in METRICS:
            raise InputError(f"metrics: found {shown(name)}; expected {nearest(name, tuple(METRICS))}")
    return found


def runs(loaded: Loaded, order: Order) -> list[Run]:
    """Every run; one a point where the engine draws nothing.

    Raises `ScenarioError` with the mistakes of all points, `UnsupportedError`, `InputError`.
    """
    engine = engines.engine(order.engine)
    reasons: list[Unsupported] = []
    pairs: list[tuple[int, int]] = []
    for point in loaded.points():
        reasons += engines.refusals(engine, point.plan)
        engines.check_needs(engine, point.plan)
        seeds = point.plan.seeds if order.seeds is None else order.seeds
        pairs += [(point.number, seed) for seed in (seeds if engine.draws(point.plan) else seeds[:1])]
        if len(pairs) > MOST_RUNS:
            raise InputError(f"{order.name}: found more than {MOST_RUNS:,} runs; expected fewer points or seeds")
    if reasons:
        raise UnsupportedError(dict.fromkeys(reasons))
    return [Run(number, point, seed) for number, (point, seed) in enumerate(pairs)]


def mixed(runs: Sequence[Run]) -> list[Run]:
    """The runs in an order in which each stretch is a fair sample of all: so what is done tells what is left.

    Neighbours stay together in some hundreds of blocks, since runs of one point share its plan.
    """
    size = max(1, len(runs) // BLOCKS)
    blocks = [runs[first : first + size] for first in range(0, len(runs), size)]
    numbers = sorted(range(len(blocks)), key=lambda number: number * GOLDEN % 1)
    return [run for number in numbers for run in blocks[number]]


def different(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> Sequence[str]:
    """In which of the values of `Order.identity` two sweeps differ."""
    return [key for key, value in wanted.items() if found.get(key) != value]
