"""Cost of a run before it runs: events, CPU time, bytes on disk, memory.

`cost(plan, engine)` is worked out from the plan alone: `loads` says how many packets its sources will send, `ways`
over which links; `packet`, `models`, `linux`, `ns2` and `ns3` what an engine makes of it, with the costs of its steps
as they were measured; `speed` how fast this machine is beside the one where that was. What a plan will do is only known
when it is done, so an estimate is good to a factor of 2, not more. `python benchmarks/estimates.py` sets estimates
beside what was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TypeAlias

from ackclock.experiments.cost.amount import Cost
from ackclock.plan import Plan

__all__ = ["Cost", "cost"]

Rule: TypeAlias = Callable[[Plan], Cost]

#: Engine → the module with its rule, `of_run`.
RULES: Mapping[str, str] = {
    "packet": "ackclock.experiments.cost.packet",
    "fluid": "ackclock.experiments.cost.models.fluid",
    "meanfield": "ackclock.experiments.cost.models.meanfield",
    "theory": "ackclock.experiments.cost.models.theory",
    "linux": "ackclock.experiments.cost.linux",
    "ns2": "ackclock.experiments.cost.ns2",
    "ns3": "ackclock.experiments.cost.ns3",
}


def cost(plan: Plan, engine: str) -> Cost:
    """Estimate the cost of one run of a plan with one seed on the reference machine of the rules (see `Cost.at`).

    Of an engine without a rule nothing is known, and it counts as free.
    """
    if engine not in RULES:
        return Cost()
    rule: Rule = import_module(RULES[engine]).of_run
    return rule(plan)
