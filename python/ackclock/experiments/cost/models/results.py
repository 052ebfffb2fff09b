"""Cost of the tables that a model fills, the same for all models."""

from __future__ import annotations

from ackclock.experiments.cost.amount import Cost
from ackclock.experiments.cost.tables import Rows, kept_bytes, written_bytes
from ackclock.plan import Plan

#: CPU time of a row of samples, and of a run, in microseconds: conversion, metrics, writing.
SAMPLE_US, RUN_US = 0.55, 14_000.0

#: The time of a run that writes its folder, in microseconds: a sweep writes parts of many runs.
FOLDER_US = 10_000.0

#: Memory of a process, in bytes.
CODE_BYTES = 120e6


#: Packets a sample, of which the room follows that it takes on disk: fractions of packets are always new.
NEW_P = 1000


def around(plan: Plan, events: float, cpu_s: float, *, tables: bool = True) -> Cost:
    """Return the cost of a model's steps and CPU time, with samples of all flows and links, or without tables."""
    samples = plan.duration_s / plan.record.interval_s
    used = len({hop.link for flow in plan.flows for hop in flow.forward.hops})
    filled = Rows(
        flows=len(plan.flows),
        flow_samples=len(plan.flows) * samples,
        queue_samples=len(plan.links) * samples,
        links=len(plan.links),
        packets_sampled=NEW_P * len(plan.flows) * samples,
        packets_queued=NEW_P * used * samples,
    )
    rows = filled if tables else Rows()
    both = rows.flow_samples + rows.queue_samples
    return Cost(
        events=events + both,
        cpu_s=cpu_s + 1e-6 * (RUN_US + SAMPLE_US * both),
        bytes=written_bytes(plan, rows),
        kept_bytes=kept_bytes(rows),
        memory_bytes=CODE_BYTES + rows.memory_bytes(),
        folder_s=1e-6 * FOLDER_US,
    )
