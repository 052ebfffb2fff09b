"""The fluid engine: each flow's window and each queue as differential equations, by `crates/ackclock-models`.

What it assumes and where it departs from print is in `docs/concepts/fluid.md`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ackclock import _core
from ackclock.dataset import Dataset
from ackclock.engines import features
from ackclock.engines.engine import RequiredResult, RunOptions, VectorisedEngine, cores, unsupported_features
from ackclock.engines.fluid import plans, replay, routing, tables
from ackclock.engines.fluid.plans import QUEUES
from ackclock.errors import InputError, Unsupported, UnsupportedError
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
        finer = [*routing.unsupported(plan), *plans.unsupported(routing.laid(plan))]
        return [*unsupported_features(plan, self), *(Unsupported(what, self.name) for what in finer)]

    def is_stochastic(self, plan: Plan) -> bool:
        """Return True if starts, the number of flows hit, or which flows are hit, are drawn."""
        return plans.is_stochastic(plan)

    def required_results(self, plan: Plan) -> list[RequiredResult]:
        """The results whose losses it is to follow."""
        return replay.required_results(plan)

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

        inputs = [plans.fluid(routing.laid(plan), samples=around.samples) for plan, _ in runs]
        try:
            outcomes = _core.fluid_many(inputs, [seed for _, seed in runs], jobs or cores(), report)
        except ValueError as error:
            raise InputError(str(error)) from error
        return [
            tables.dataset(plan, seed, outcome, around, self.name)
            for (plan, seed), outcome in zip(runs, outcomes, strict=True)
        ]
