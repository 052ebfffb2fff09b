"""References to links by name: changes at given times, and vantage points of packet captures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ackclock.errors import Problem, ScenarioError
from ackclock.input.fields import closest, shown
from ackclock.input.source import Source
from ackclock.plan import AT_LINK, RECEIVERS, SENDERS, ChangePlan, MediumPlan
from ackclock.scenario.topology.network import Drawing
from ackclock.scenario.topology.topology import Change
from ackclock.scenario.traces import Traced

#: Largest number of link names that a message lists.
FEW = 8


def change_plans(changes: Sequence[Change], drawing: Drawing, source: Source) -> tuple[ChangePlan, ...]:
    """Return the changes in order of time. Raises `ScenarioError` for links that are not there."""
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
    return tuple(_planned(changes, names, drawing, media))


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
    """A rate that follows a trace does not change besides."""
    for number, change in enumerate(changes):
        traced = any(isinstance(drawing.links[link].rate_bps, Traced) for link in names[change.link])
        if change.rate is not None and traced:
            place = ("network", "changes", number, "rate")
            yield source.problem(place, f"{change.rate:g} bit/s", "no rate: this link's follows a trace")


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
