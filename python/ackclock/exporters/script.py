"""What a scenario is written as, and what scripts have in common."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ackclock import _core
from ackclock.engines.external.planned_traffic import draw_traffic
from ackclock.engines.features import features
from ackclock.errors import AckclockError
from ackclock.input.identifiers import one_line
from ackclock.plan import FlowPlan, Plan

#: Most flows of a script that a person would have written.
MAX_FLOWS = 1000


@dataclass(frozen=True, slots=True)
class Script:
    """The text, and what of the scenario is not in it."""

    text: str
    notes: tuple[str, ...] = ()


class UnsaidError(AckclockError):
    """A scenario that a program cannot say; a line for each reason."""

    exit_status = 3

    def __init__(self, target: str, reasons: Iterable[str]) -> None:
        super().__init__("\n".join(f"Unsupported: a script for {target} has no {reason}" for reason in reasons))


def reject_features(plan: Plan, target: str, supported: Collection[str]) -> None:
    """Raise `UnsaidError` if the plan uses features that are not among these."""
    if unsupported := [what for what in features(plan) if what not in supported]:
        raise UnsaidError(target, unsupported)


def unusual(plan: Plan) -> Iterator[str]:
    """What scripts that simulate have not: each sets one TCP, and writes every flow."""
    if len({group.tcp for group in plan.groups if group.tcp}) > 1:
        yield "TCPs of several kinds"
    yield from too_many(plan)


def too_many(plan: Plan, most: int = MAX_FLOWS) -> Iterator[str]:
    """More flows than a person would have written."""
    if len(plan.flows) + len(plan.datagrams) > most:
        yield f"more than {most} flows"


def too_many_drawn(plan: Plan) -> Iterator[str]:
    """So of flows with the transfers that are generated, each of which a simulator's script writes."""
    drawn = draw_traffic(plan, plan.seeds[0]).connections if plan.traffic and not plan.nodes else ()
    if len(drawn) > MAX_FLOWS:
        yield f"more than {MAX_FLOWS} transfers"


def heading(plan: Plan, sentences: Sequence[str], notes: Sequence[str]) -> list[str]:
    """The comment at the top, without its marks: the name, what to do with the file, and what is not in it."""
    lines = [one_line(plan.name), "", *sentences, "", f"Written by `ackclock export` (ackclock {_core.version})."]
    if notes:
        lines += ["", "What the scenario says and this script does not:", *(f"- {note}" for note in notes)]
    return lines


def comments(lines: Iterable[str], mark: str = "#") -> Iterator[str]:
    """Lines as comments."""
    return (f"{mark} {line}".rstrip() for line in lines)


def shell(about: Iterable[str], lines: Iterable[str], notes: Iterable[str]) -> Script:
    """A script for sh, which ends where a command fails."""
    return written(["#!/bin/sh", *comments(about), "set -e", *lines], notes)


def written(lines: Iterable[str], notes: Iterable[str]) -> Script:
    """Of lines."""
    return Script("\n".join(lines) + "\n", tuple(notes))


def label(plan: Plan, flow: FlowPlan) -> str:
    """What a flow is called."""
    return one_line(plan.groups[flow.group].label)


def jitter_notes(plan: Plan) -> Iterator[str]:
    """Starts are drawn from a seed."""
    widest_s = max((flow.start_jitter_s for flow in plan.flows), default=0.0)
    if widest_s > 0:
        yield f"starts that are drawn from up to {widest_s:g} s: each flow begins at the earliest"
