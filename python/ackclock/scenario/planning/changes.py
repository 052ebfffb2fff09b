"""Changes of links at given times."""

from __future__ import annotations

from collections.abc import Sequence

from ackclock.errors import ScenarioError
from ackclock.input.fields import closest, shown
from ackclock.input.source import Source
from ackclock.plan import ChangePlan
from ackclock.scenario.topology.drawing import Drawing
from ackclock.scenario.topology.topology import Change

#: So many names of links are listed in a message.
FEW = 8


def change_plans(changes: Sequence[Change], drawing: Drawing, source: Source) -> tuple[ChangePlan, ...]:
    """In order of time. Raises `ScenarioError` for links that are not there."""
    names = link_names(drawing) if changes else {}
    problems = [
        source.problem(("network", "changes", number, "link"), shown(change.link), expected_link(change.link, [*names]))
        for number, change in enumerate(changes)
        if change.link not in names
    ]
    if problems:
        raise ScenarioError(problems)
    made = [
        ChangePlan(change.at, link, change.rate, change.delay, change.up)
        for change in changes
        for link in names[change.link]
    ]
    return tuple(sorted(made, key=lambda change: change.at_s))


def link_names(drawing: Drawing) -> dict[str, list[int]]:
    """What a link may be called: its name; `a>b`, from node to node; `a<>b`, both ways."""
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
    """What is expected in place of a name that no link has."""
    if len(known) <= FEW:
        return f"one of {', '.join(map(shown, known))}" if len(known) > 1 else shown(known[0])
    return f"a link such as {shown(closest(name, known) or known[0])}"
