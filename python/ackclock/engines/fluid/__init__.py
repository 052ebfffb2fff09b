"""The fluid engine: each flow's window and each queue as differential equations, by `crates/ackclock-models`.

What it assumes and where it departs from print is in `docs/concepts/fluid.md`.

`replay` feeds the losses of one result into the engine: how many flows each congestion event hit, and which. Kumar,
Azad and Park 2010 call it a black box: the synchronisation controller takes what was measured elsewhere, from a packet
run, a capture or a testbed, in place of a distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from ackclock import _core, metrics
from ackclock.dataset import Dataset
from ackclock.engines import features
from ackclock.engines.engine import RequiredResult, RunOptions, VectorisedEngine, cores, unsupported_features
from ackclock.engines.fluid import plans, tables
from ackclock.engines.fluid.plans import QUEUES
from ackclock.errors import InputError, Unsupported, UnsupportedError
from ackclock.input import arguments
from ackclock.input.arguments import checked, optional
from ackclock.metrics import epoch
from ackclock.plan import Plan


class FluidEngine(VectorisedEngine):
    """N flows through queues with loss synchronisation."""

    name = "fluid"
    supported_features = (
        frozenset({features.STARTS, features.STOPS, features.SEVERAL_LINKS, features.ROUTED})
        | {features.congestion(name) for name in _core.FLUID_LAWS}
        | {features.queue(name) for name in QUEUES}
    )

    def unsupported(self, plan: Plan) -> list[Unsupported]:
        """List what a fluid cannot model: short transfers, equal-cost paths, and parameters of queues."""
        finer = [*plans.unsupported_routes(plan), *plans.unsupported(plans.laid(plan))]
        return [*unsupported_features(plan, self), *(Unsupported(what, self.name) for what in finer)]

    def is_stochastic(self, plan: Plan) -> bool:
        """Return True if starts, the number of flows hit, or which flows are hit, are drawn."""
        return plans.is_stochastic(plan)

    def required_results(self, plan: Plan) -> list[RequiredResult]:
        """The results whose losses it is to follow."""
        return required_results(plan)

    def run(self, plan: Plan, seed: int, options: RunOptions | None = None) -> Dataset:
        """One run. Raises `UnsupportedError`, and `InputError` for paths in a circle or shares still to be measured."""
        around = options or RunOptions()
        (data,) = self.run_many([(plan, seed)], around, jobs=1)
        around.progress(1.0)
        return data

    def run_many(
        self, runs: Sequence[tuple[Plan, int]], options: RunOptions | None = None, *, jobs: int | None = None
    ) -> list[Dataset]:
        """Many plans with their seeds in one call, over the cores; a dataset for each, in their order.

        The results do not depend on `jobs`, the number of runs at a time. Raises as `run` does; whatever
        `options.progress` raises ends the call.
        """
        around = options or RunOptions()
        for plan, _ in runs:
            if reasons := self.unsupported(plan):
                raise UnsupportedError(reasons)

        def report(done: int) -> None:
            around.progress(done / len(runs))

        inputs = [plans.fluid(plans.laid(plan), samples=around.samples) for plan, _ in runs]
        try:
            outcomes = _core.fluid_many(inputs, [seed for _, seed in runs], jobs or cores(), report)
        except ValueError as error:
            raise InputError(str(error)) from error
        return [
            tables.dataset(plan, seed, outcome, around, self.name)
            for (plan, seed), outcome in zip(runs, outcomes, strict=True)
        ]


#: A part of each run, in seconds; None: what the result measured.
Between: TypeAlias = tuple[float, float] | None


@checked(
    plan=arguments.a(Plan, "a plan, as Loaded.plan() gives"),
    data=arguments.RECORDED,
    loss_assignment=arguments.FLAG,
    between=optional(arguments.BETWEEN),
)
def replay(plan: Plan, data: Dataset, *, loss_assignment: bool = False, between: Between = None) -> Plan:
    """The plan with the synchronisation of a result's congestion epochs, run by run, in order.

    Args:
        plan: what the fluid engine is to run.
        data: a result with drops: of another engine, or a capture.
        loss_assignment: whether the same flows are to be hit, too; else the plan's drop policy chooses.
        between: a part of each of its runs, in seconds: a capture knows no warm-up.

    Raises:
        InputError: the result has no congestion epochs, or no such part.
        TypeError: an argument of another type.
    """
    found = _filled("synchronisation", plan, data, between)
    return _filled("loss_assignment", found, data, between) if loss_assignment else found


def required_results(plan: Plan) -> list[RequiredResult]:
    """The results that the plan's `from` keys name."""
    named = {table: plan.options["fluid"][table].get("from") for table in MEASURED}
    return [
        RequiredResult(f"fluid.{table}.from", Path(folder), partial(_filled, table))
        for table, folder in named.items()
        if folder
    ]


def _filled(table: str, plan: Plan, data: Dataset, between: Between = None) -> Plan:
    replayed = {"kind": "replayed", **MEASURED[table](plan, data, between), "from": None}
    options = {**plan.options["fluid"], table: replayed}
    return replace(plan, options={**plan.options, "fluid": options})


def _synchronisation(plan: Plan, data: Dataset, between: Between) -> Mapping[str, Any]:
    found = metrics.epochs(data, between)
    return {"shares": _some(found["share"].to_list() if found.height else [], data)}


def _victims(plan: Plan, data: Dataset, between: Between) -> Mapping[str, Any]:
    flows = [hit for view in metrics.runs(data, between) for hit in _flows_hit(view)]
    return {"flows": _some([[flow for flow in hit if flow < len(plan.flows)] for hit in flows], data)}


#: The engine's tables that may name a result, and what is measured of it.
MEASURED: Mapping[str, Callable[[Plan, Dataset, Between], Mapping[str, Any]]] = {
    "synchronisation": _synchronisation,
    "loss_assignment": _victims,
}


def _flows_hit(view: metrics.RunView) -> list[list[int]]:
    """The flows that lost a packet, epoch by epoch. A capture numbers both directions of its connections."""
    directions = 2 if view.is_capture else 1
    drops = view.cached(epoch.drops_by_epoch).drop_nulls("flow")
    hit = drops.group_by("epoch", maintain_order=True).agg(pl.col("flow").unique().sort())
    return [[int(flow) // directions for flow in flows] for flows in hit["flow"].to_list()]


def _some(found: list[Any], data: Dataset) -> list[Any]:
    if not found:
        engine = data.manifest.get("engine", "captured")
        raise InputError(f"replay: found no congestion epochs in the {engine} result; expected drops at the bottleneck")
    return found
