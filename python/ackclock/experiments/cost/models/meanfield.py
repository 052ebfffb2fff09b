"""The mean-field engine: every step moves the cohorts of each class of flows; or each particle."""

from __future__ import annotations

from ackclock.experiments.cost.amount import Cost
from ackclock.experiments.cost.models import results
from ackclock.plan import Plan

#: CPU time of a class's step, and of a particle's, in microseconds.
CLASS_STEP_US, PARTICLE_STEP_US = 15.0, 0.05

#: A step is at most this part of the shortest RTT (`crates/ackclock-models/src/meanfield/plan.rs`).
STEPS_PER_RTT = 25


def of_run(plan: Plan) -> Cost:
    """One run."""
    chosen = plan.options["meanfield"]
    shortest_s = min((flow.base_rtt_s for flow in plan.flows), default=plan.duration_s) / STEPS_PER_RTT
    step_s = min(chosen["step_s"] or shortest_s, shortest_s, plan.record.interval_s)
    steps = plan.duration_s / step_s / chosen["scale"]
    classes = len({(flow.group, flow.base_rtt_s) for flow in plan.flows})
    carried, each_us = (len(plan.flows), PARTICLE_STEP_US) if chosen["particles"] else (classes, CLASS_STEP_US)
    return results.around(plan, steps * carried, 1e-6 * steps * carried * each_us)
