"""The closed-form engine: the first of its models that fits a plan answers it.

Each model is a file of this folder; `MODELS` is their list. The formulas themselves are in `ackclock.theory`.
"""

from __future__ import annotations

from ackclock.dataset import Dataset, Spool
from ackclock.dataset.tables import EVENT_KINDS
from ackclock.engines.engine import RunOptions, manifest
from ackclock.engines.theory.model import Model
from ackclock.engines.theory.pendulum import Pendulum
from ackclock.engines.theory.random_loss import RandomLoss
from ackclock.engines.theory.single_cubic import SingleCubic
from ackclock.engines.theory.small_packets import SmallPackets
from ackclock.engines.theory.streams import Streams
from ackclock.engines.theory.syn_loss import SynLoss
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


class TheoryEngine:
    """Closed forms and small dynamical models."""

    name = "theory"
    has: frozenset[str] = frozenset()

    def check(self, plan: Plan) -> list[Unsupported]:
        """What the model that comes nearest lacks, in one line; nothing if one fits."""
        misfits = {model.name: model.misfits(plan) for model in _chosen(plan)}
        nearest = min(misfits, key=lambda name: len(misfits[name]))
        if not misfits[nearest]:
            return []
        lacks = ", no ".join(misfits[nearest])
        which = f'"{nearest}"' if len(misfits) == 1 else f'the nearest, "{nearest}",'
        return [Unsupported(f"model of this: {which} has no {lacks}", self.name)]

    def draws(self, plan: Plan) -> bool:
        """Whether the seed matters to the model that answers."""
        model = _fitting(plan)
        return model is not None and model.draws(plan)

    def model(self, plan: Plan) -> str | None:
        """The name of the model that answers; None if none fits."""
        found = _fitting(plan)
        return found.name if found else None

    def run(self, plan: Plan, seed: int, options: RunOptions | None = None) -> Dataset:
        """One run. Raises `UnsupportedError`."""
        around = options or RunOptions()
        model = _fitting(plan)
        if model is None:
            raise UnsupportedError(self.check(plan))
        answer = model.answer(plan, seed)
        spool = Spool(names={"events.kind": EVENT_KINDS}, spool_bytes=around.spool_bytes)
        for table, columns in answer.tables.items():
            spool.append(table, columns)
        around.progress(1.0)
        return spool.dataset(manifest(plan, self.name, seed, around.command, answer.metrics, model=model.name))


def _fitting(plan: Plan) -> Model | None:
    return next((model for model in _chosen(plan) if not model.misfits(plan)), None)


def _chosen(plan: Plan) -> tuple[Model, ...]:
    name = plan.options["theory"]["model"]
    return tuple(model for model in MODELS if name in ("auto", model.name))
