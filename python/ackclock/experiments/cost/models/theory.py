"""The closed-form engine: what it takes is little, and mostly for the rows."""

from __future__ import annotations

from ackclock.engines.theory import TheoryEngine
from ackclock.experiments.cost.amount import Cost
from ackclock.experiments.cost.models import results
from ackclock.plan import Plan

#: Models that follow windows and queues through time; the others give averages, and fill no tables.
FOLLOWING = frozenset({"single-cubic", "pendulum"})

#: CPU time of a flow, and of following two of them, in seconds.
FLOW_S, FOLLOWING_S = 60e-6, 0.03


def of_run(plan: Plan) -> Cost:
    """One run."""
    follows = TheoryEngine().model(plan) in FOLLOWING
    cpu_s = FLOW_S * len(plan.flows) + FOLLOWING_S * follows
    return results.around(plan, 0.0, cpu_s, tables=follows)
