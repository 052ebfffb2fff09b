"""The closed-form engine: the first of its models that fits a plan answers it.

Each model is a file of this folder; `MODELS` is their list. The formulas themselves are in `ackclock.theory`.
"""

from __future__ import annotations

from ackclock.dataset import Dataset, Spool
from ackclock.dataset.tables import EVENT_KINDS
from ackclock.engines.engine import Engine, RunOptions, manifest
from ackclock.engines.theory.drop_tail import SmallPackets, Streams
from ackclock.engines.theory.model import Model
from ackclock.engines.theory.pendulum import Pendulum
from ackclock.engines.theory.random_loss import RandomLoss, SynLoss
from ackclock.engines.theory.single_cubic import SingleCubic
from ackclock.errors import Unsupported, UnsupportedError
from ackclock.plan import Plan

#: In the order in which they are tried where the scenario names none.
MODELS: tuple[Model, ...] = (
    SingleCubic(),
    Pendulum(),
    SynLoss(),
    RandomLoss(),
    SmallPackets(),
    Streams(),
)


class TheoryEngine(Engine):
    """Closed forms and small dynamical models."""

    name = "theory"
    supported_features: frozenset[str] = frozenset()

    def unsupported(self, plan: Plan) -> list[Unsupported]:
        """List what the model that fits best lacks, in one line; empty if one fits."""
        gaps = {model.name: model.unsupported(plan) for model in _chosen(plan)}
        nearest = min(gaps, key=lambda name: len(gaps[name]))
        if not gaps[nearest]:
            return []
        lacks = ", no ".join(gaps[nearest])
        which = f'"{nearest}"' if len(gaps) == 1 else f'the nearest, "{nearest}",'
        return [Unsupported(f"model of this: {which} has no {lacks}", self.name)]

    def is_stochastic(self, plan: Plan) -> bool:
        """Return True if the model that fits depends on the seed."""
        model = _fitting(plan)
        return model is not None and model.is_stochastic(plan)

    def model(self, plan: Plan) -> str | None:
        """The name of the model that answers; None if none fits."""
        found = _fitting(plan)
        return found.name if found else None

    def run(self, plan: Plan, seed: int, options: RunOptions | None = None) -> Dataset:
        """One run. Raises `UnsupportedError`."""
        around = options or RunOptions()
        model = _fitting(plan)
        if model is None:
            raise UnsupportedError(self.unsupported(plan))
        answer = model.evaluate(plan, seed)
        spool = Spool(names={"events.kind": EVENT_KINDS}, spool_bytes=around.spool_bytes)
        for table, columns in answer.tables.items():
            spool.append(table, columns)
        around.progress(1.0)
        return spool.dataset(manifest(plan, self.name, seed, around.command, answer.metrics, model=model.name))


def _fitting(plan: Plan) -> Model | None:
    return next((model for model in _chosen(plan) if not model.unsupported(plan)), None)


def _chosen(plan: Plan) -> tuple[Model, ...]:
    name = plan.options["theory"]["model"]
    return tuple(model for model in MODELS if name in ("auto", model.name))
