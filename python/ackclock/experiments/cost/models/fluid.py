"""The fluid engine: every step moves each flow's window and each queue."""

from __future__ import annotations

from ackclock.experiments.cost.amount import Cost
from ackclock.experiments.cost.models import results
from ackclock.plan import Plan

#: CPU time, in microseconds, of a flow's step and of a step's own.
FLOW_STEP_US, STEP_US = 0.09, 0.45

#: A step is at most this part of the shortest RTT (`crates/ackclock-models/src/fluid/plan.rs`).
STEPS_PER_RTT = 10


def of_run(plan: Plan) -> Cost:
    """One run."""
    shortest_s = min((flow.base_rtt_s for flow in plan.flows), default=plan.duration_s) / STEPS_PER_RTT
    chosen_s = plan.options["fluid"]["step_s"]
    step_s = min(shortest_s if chosen_s is None else chosen_s, shortest_s, plan.duration_s)
    steps = max(plan.duration_s / step_s, plan.duration_s / plan.record.interval_s)
    flow_steps = steps * len(plan.flows)
    return results.around(plan, flow_steps, 1e-6 * (FLOW_STEP_US * flow_steps + STEP_US * steps))
