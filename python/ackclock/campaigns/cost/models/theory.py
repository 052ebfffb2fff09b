"""The closed-form engine: what it takes is little, and mostly for the rows."""

from __future__ import annotations

from ackclock.campaigns.cost.amount import Cost
from ackclock.campaigns.cost.models import results
from ackclock.engines.theory import TheoryEngine
from ackclock.plan import Plan

#: Models that follow windows and queues through time; the others give averages.
SAMPLED = frozenset({"single-cubic", "pendulum"})


def of_run(plan: Plan) -> Cost:
    """One run."""
    return results.around(plan, 0.0, 0.0, sampled=TheoryEngine().model(plan) in SAMPLED)
