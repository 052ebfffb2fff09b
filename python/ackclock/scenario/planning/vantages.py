"""From where packets are captured: what a scenario calls the links becomes their names."""

from __future__ import annotations

from ackclock.errors import ScenarioError
from ackclock.input.fields import shown
from ackclock.input.source import Source
from ackclock.plan import AT_LINK, RECEIVERS, SENDERS
from ackclock.scenario.planning.changes import expected_link, link_names
from ackclock.scenario.topology.network import Drawing


def vantages(written: bool | tuple[str, ...], drawing: Drawing, source: Source) -> bool | tuple[str, ...]:
    """The vantages, each once. Raises `ScenarioError` for links that are not there."""
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
