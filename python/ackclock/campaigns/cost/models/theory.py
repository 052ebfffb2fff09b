"""The closed-form engine: what it takes is little, and mostly for the rows."""

from __future__ import annotations

from ackclock.campaigns.cost.amount import Cost
from ackclock.campaigns.cost.models import results
from ackclock.plan import Plan


def of_run(plan: Plan) -> Cost:
    """One run."""
    return results.around(plan, 0.0, 0.0)
