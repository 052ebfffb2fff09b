"""Parts that exported scripts share: headings, comments, and checks of what a target supports."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ackclock import _core
from ackclock.engines.external.planned_traffic import draw_traffic
from ackclock.engines.features import features
from ackclock.errors import AckclockError
from ackclock.input.fields import one_line
from ackclock.plan import FlowPlan, Plan

#: Most flows of a script that a person would have written.
MAX_FLOWS = 1000


@dataclass(frozen=True, slots=True)
class Script:
    """The text, and the parts of the scenario that it lacks."""

    text: str
    notes: tuple[str, ...] = ()


class ExportError(AckclockError):
    """A scenario that a target cannot express; one line a reason."""

    exit_status = 3

    def __init__(self, target: str, reasons: Iterable[str]) -> None:
        super().__init__("\n".join(f"Unsupported: a script for {target} has no {reason}" for reason in reasons))


def reject_features(plan: Plan, target: str, has: Collection[str]) -> None:
    """Raise `ExportError` for features of the plan that the target lacks."""
    if missing := [what for what in features(plan) if what not in has]:
        raise ExportError(target, missing)


def too_many(plan: Plan) -> Iterator[str]:
    """Yield a reason if there are more flows than a person would write."""
    if len(plan.flows) + len(plan.datagrams) > MAX_FLOWS:
        yield f"more than {MAX_FLOWS} flows"


def too_many_drawn(plan: Plan) -> Iterator[str]:
    """Yield a reason if the generated transfers, each of which is written out, are too many."""
    drawn = draw_traffic(plan, plan.seeds[0]).connections if plan.traffic and not plan.nodes else ()
    if len(drawn) > MAX_FLOWS:
        yield f"more than {MAX_FLOWS} transfers"


def script(
    plan: Plan,
    sentences: Sequence[str],
    lines: Iterable[str],
    notes: Sequence[str],
    *,
    first: Sequence[str] = (),
    mark: str = "#",
) -> Script:
    """Return a script: its first lines, a comment with the name, usage and what it lacks, and its lines."""
    about = [one_line(plan.name), "", *sentences, "", f"Written by `ackclock export` (ackclock {_core.version})."]
    if notes:
        about += ["", "What the scenario gives and this script does not:", *(f"- {note}" for note in notes)]
    return Script("\n".join([*first, *comments(about, mark), *lines]).rstrip("\n") + "\n", tuple(notes))


def comments(lines: Iterable[str], mark: str = "#") -> Iterator[str]:
    """Return lines as comments."""
    return (f"{mark} {line}".rstrip() for line in lines)


def shell(plan: Plan, sentences: Sequence[str], lines: Iterable[str], notes: Sequence[str]) -> Script:
    """Return a script for sh that ends where a command fails."""
    return script(plan, sentences, ["set -e", *lines], notes, first=["#!/bin/sh"])


def label(plan: Plan, flow: FlowPlan) -> str:
    """Return the label of a flow."""
    return one_line(plan.groups[flow.group].name)


def jitter_notes(plan: Plan) -> Iterator[str]:
    """Yield a note if starts are drawn at random."""
    widest_s = max((flow.start_jitter_s for flow in plan.flows), default=0.0)
    if widest_s > 0:
        yield f"starts that are drawn from up to {widest_s:g} s: each flow begins at the earliest"
