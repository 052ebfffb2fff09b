"""The mean-field engine: the distribution of windows as the number of flows grows, by `crates/ackclock-models`.

The tables are those of every engine. In the limit of infinitely many flows, flow i of n in a group stands for the
i-th n-th part of the group at each instant, least windows first: its sampled window is the mean over that part. So
the mean over the flows is the group's mean, and the distribution over the samples is the model's; one flow's row of
samples is not the path of a flow. What flows deliver is the same for all of a group. A flow's turn to have a `drop`
event comes whenever the share of a whole flow has lost. With `[meanfield] particles = true` flows are flows.
"""

from __future__ import annotations

import json
import warnings

from ackclock import _core
from ackclock.dataset import Dataset, Spool
from ackclock.dataset.tables import EVENT_KINDS
from ackclock.engines import features
from ackclock.engines.engine import Engine, RunOptions, manifest, unsupported_features
from ackclock.engines.meanfield.classes import classes, model_input, unsupported
from ackclock.engines.meanfield.rows import Tables
from ackclock.errors import Unsupported, UnsupportedError
from ackclock.plan import Plan

#: A run goes in so many steps; after each, progress is told and an interrupt is heard.
STEPS = 100

#: Said where a run is scaled in cubic mode.
SCALED = (
    "[meanfield] scale: in cubic mode the scaling property does not hold: it hides synchronisation. "
    "The model runs at full scale at no more cost"
)


class MeanFieldEngine(Engine):
    """Infinitely many flows through one queue, or a finite number of particles under the same laws."""

    name = "meanfield"
    supported_features = frozenset(
        {features.congestion(name) for name in ("cubic", "reno")}
        | {features.queue(name) for name in ("pfifo", "bfifo", "red", "codel", "pie")}
        | {features.STARTS}
    )

    def unsupported(self, plan: Plan) -> list[Unsupported]:
        """Algorithms and features that the model has not, and what it has in part only."""
        lacking = unsupported_features(plan, self)
        return lacking or [Unsupported(what, self.name) for what in unsupported(plan)]

    def is_stochastic(self, plan: Plan) -> bool:
        """Return True if the model has particles, which are drawn."""
        return bool(plan.options["meanfield"]["particles"])

    def run(self, plan: Plan, seed: int, options: RunOptions | None = None) -> Dataset:
        """One run. Raises `UnsupportedError`; whatever `options.progress` raises ends the run."""
        around = options or RunOptions()
        if reasons := self.unsupported(plan):
            raise UnsupportedError(reasons)
        chosen = plan.options["meanfield"]
        if chosen["scale"] != 1 and chosen["mode"] == "cubic":
            warnings.warn(SCALED, stacklevel=2)
        spool = Spool(names={"events.kind": EVENT_KINDS}, spool_bytes=around.spool_bytes)
        model = _core.MeanField(json.dumps(model_input(plan)), seed)
        tables = Tables(plan, classes(plan), spool)
        for step in range(1, STEPS + 1):
            model.advance(plan.duration_s * step / STEPS)
            tables.take(model.drain())
            around.progress(step / STEPS)
        tables.finish(model.finish())
        kind = "particles" if chosen["particles"] else "limit"
        return spool.dataset(manifest(plan, self.name, seed, around.command, tables.metrics(), model=kind))
