"""Changes of links: at given times, and by traces. References to links by name, also in vantage points of captures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from ackclock.errors import Problem, ScenarioError
from ackclock.input.fields import closest, shown
from ackclock.input.source import Source
from ackclock.plan import AT_LINK, RECEIVERS, SENDERS, ChangePlan, MediumPlan
from ackclock.scenario.topology.network import Drawing
from ackclock.scenario.topology.topology import Change
from ackclock.scenario.traces import Conditions, Traced

#: Decimals of a second that an engine can tell apart.
PICOSECOND_DIGITS = 12

#: Largest number of link names that a message lists.
FEW = 8


#: Most changes that the traces of a plan may make: a plan holds them all, in some 500 bytes each.
MAX_CHANGES = 200_000


def change_plans(
    changes: Sequence[Change], drawing: Drawing, duration_s: float, source: Source
) -> tuple[ChangePlan, ...]:
    """Return the changes in order of time, with those of traces.

    Raises `ScenarioError` for links that are not there, and for more changes than a plan holds.
    """
    names = link_names(drawing) if changes else {}
    problems = [
        source.problem(("network", "changes", number, "link"), shown(change.link), expected_link(change.link, [*names]))
        for number, change in enumerate(changes)
        if change.link not in names
    ]
    if problems:
        raise ScenarioError(problems)
    if problems := [*_of_traces(changes, names, drawing, source)]:
        raise ScenarioError(problems)
    media = {number: link.medium for number, link in enumerate(drawing.links)}
    planned = [*_planned(changes, names, drawing, media)]
    of_traces = [*islice(_of_conditions(drawing, duration_s), MAX_CHANGES + 1)]
    if len(of_traces) > MAX_CHANGES:
        found, expected = f"traces with more than {MAX_CHANGES} changes", "a shorter duration, or longer steps"
        raise ScenarioError([source.problem(("duration",), found, expected)])
    if not of_traces:
        return tuple(planned)
    return tuple(sorted([*of_traces, *planned], key=lambda change: change.at_s))


def _of_conditions(drawing: Drawing, duration_s: float) -> Iterator[ChangePlan]:
    """Yield the changes of the delays and losses that follow traces, link by link, until the end of the run."""
    for number, link in enumerate(drawing.links):
        if not isinstance(link.rate_bps, Traced) or not link.rate_bps.conditions.are_given:
            continue
        conditions, period_s = link.rate_bps.conditions, link.rate_bps.trace.period_s
        steps = [*_steps(conditions)]
        before: tuple[float | None, float | None] = (None, None)
        for turn in range(math.ceil(duration_s / period_s)):
            for at_s, delay_s, loss in steps:
                begin_s = round(turn * period_s + at_s, PICOSECOND_DIGITS)
                if begin_s < duration_s and (delay_s, loss) != before:
                    yield _condition(begin_s, number, None if delay_s is None else delay_s + link.borrowed_s, loss)
                before = (delay_s, loss)


def _steps(conditions: Conditions) -> Iterator[tuple[float, float | None, float | None]]:
    for step, at_s in enumerate(conditions.at_s):
        delay_s = conditions.delay_s[step] if conditions.delay_s is not None else None
        yield at_s, delay_s, conditions.loss[step] if conditions.loss is not None else None


def _condition(at_s: float, link: int, delay_s: float | None, loss: float | None) -> ChangePlan:
    law = None if loss is None else {"kind": "bernoulli", "probability": loss}
    return ChangePlan(at_s, link, delay_s=delay_s, loss=law)


def _planned(
    changes: Sequence[Change], names: Mapping[str, list[int]], drawing: Drawing, media: dict[int, MediumPlan | None]
) -> Iterator[ChangePlan]:
    """`media` are those before each change."""
    for change in sorted(changes, key=lambda change: change.at):
        loss = change.loss.planned() if change.loss else None
        for link in names[change.link]:
            delay_s = None if change.delay is None else change.delay + drawing.links[link].borrowed_s
            medium = None
            if change.is_impaired:
                medium = media[link] = change.medium(media[link] or MediumPlan())
            yield ChangePlan(change.at, link, change.rate, delay_s, change.up, loss, medium)


def _of_traces(
    changes: Sequence[Change], names: Mapping[str, list[int]], drawing: Drawing, source: Source
) -> Iterator[Problem]:
    """Yield the changes of quantities that follow a trace."""
    for number, change in enumerate(changes):
        rates = [drawing.links[link].rate_bps for link in names[change.link]]
        traced = [rate_bps for rate_bps in rates if isinstance(rate_bps, Traced)]
        if change.rate is not None and traced:
            place = ("network", "changes", number, "rate")
            yield source.problem(place, f"{change.rate:g} bit/s", "no rate: this link's follows a trace")
        if change.delay is not None and any(rate.conditions.delay_s is not None for rate in traced):
            place = ("network", "changes", number, "delay")
            yield source.problem(place, f"{change.delay:g} s", "no delay: this link's follows a trace")
        if change.loss is not None and any(rate.conditions.loss is not None for rate in traced):
            yield source.problem(("network", "changes", number, "loss"), "a loss", "none: this link's follows a trace")


def link_names(drawing: Drawing) -> dict[str, list[int]]:
    """Return the links by each name: a link's own; `a>b`, from node to node; `a<>b`, both directions."""
    names: dict[str, list[int]] = {}
    for number in range(len(drawing.links)):
        for name in dict.fromkeys(_called(drawing, number)):
            names.setdefault(name, []).append(number)
    return names


def _called(drawing: Drawing, number: int) -> list[str]:
    link = drawing.links[number]
    if link.ends is None:
        return [link.name]
    one, other = (drawing.nodes[node].name for node in (link.ends.source, link.ends.destination))
    return [link.name, f"{one}>{other}", f"{one}<>{other}", f"{other}<>{one}"]


def expected_link(name: str, known: Sequence[str]) -> str:
    """Return the expectation in place of a name that no link has."""
    if len(known) <= FEW:
        return f"one of {', '.join(map(shown, known))}" if len(known) > 1 else shown(known[0])
    return f"a link such as {shown(closest(name, known) or known[0])}"


def vantages(written: bool | tuple[str, ...], drawing: Drawing, source: Source) -> bool | tuple[str, ...]:
    """Return the plan's names of vantage points, each once. Raises `ScenarioError` for links that are not there."""
    if isinstance(written, bool):
        return written
    known = {SENDERS: SENDERS, RECEIVERS: RECEIVERS}
    links = {AT_LINK + name: AT_LINK + drawing.links[first].name for name, (first, *_) in link_names(drawing).items()}
    known |= links
    problems = [
        source.problem(("record", "pcap", number), shown(vantage), expected_link(vantage, [*links]))
        for number, vantage in enumerate(written)
        if vantage not in known
    ]
    if problems:
        raise ScenarioError(problems)
    return tuple(dict.fromkeys(known[vantage] for vantage in written))
