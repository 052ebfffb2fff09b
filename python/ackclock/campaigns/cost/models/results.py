"""What the tables cost that a model fills, whichever it is."""

from __future__ import annotations

from ackclock.campaigns.cost.amount import Cost
from ackclock.campaigns.cost.tables import Rows, written_bytes
from ackclock.plan import Plan

#: CPU time of a row of samples, and of a run, in microseconds: conversion, metrics, writing.
SAMPLE_US, RUN_US = 0.5, 10_000.0

#: Memory of a process, in bytes.
CODE_BYTES = 120e6


def around(plan: Plan, events: float, cpu_s: float) -> Cost:
    """So many steps and so much CPU time of a model, with samples of all flows and sampled links."""
    samples = plan.duration_s / plan.record.interval_s
    rows = Rows(
        flows=len(plan.flows),
        flow_samples=len(plan.flows) * samples,
        queue_samples=len(plan.links) * samples,
        links=len(plan.links),
    )
    sampled = rows.flow_samples + rows.queue_samples
    return Cost(
        events=events + sampled,
        cpu_s=cpu_s + 1e-6 * (RUN_US + SAMPLE_US * sampled),
        bytes=written_bytes(plan, rows),
        memory_bytes=CODE_BYTES + rows.memory_bytes(),
    )
