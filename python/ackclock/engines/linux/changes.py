"""Links that change: the commands at each time.

Another rate is the class's and, for the time of transmission, that of the cables behind; another delay is theirs alone.
A link that fails loses what it is offered, at its entrance, and what its queue still lets out, behind it; what flies
arrives.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ackclock.engines.linux.network import Loss, Network, loss_of
from ackclock.engines.linux.script import bands, htb_class, netem
from ackclock.plan import ChangePlan, LinkPlan, Plan

ALL_LOST = Loss(1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class State:
    """A link as it is at a time."""

    link: LinkPlan
    up: bool = True

    def after(self, change: ChangePlan) -> State:
        """From a change on."""
        rate_bps = self.link.rate_bps if change.rate_bps is None else change.rate_bps
        delay_s = self.link.delay_s if change.delay_s is None else change.delay_s
        up = self.up if change.up is None else change.up
        loss, medium = change.loss or self.link.loss, change.medium or self.link.medium
        return State(replace(self.link, rate_bps=rate_bps, delay_s=delay_s, loss=loss, medium=medium), up)


def changes(plan: Plan, network: Network, *, live: bool, silent: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return the changes for the run spec: when, which link, its rate from then on (0 if it is down), and the commands.

    Of rates that follow a trace, those of the links `silent`, no event tells.
    """
    states = {number: State(link) for number, link in enumerate(plan.links)}
    made = []
    for change in plan.changes:
        state = states[change.link] = states[change.link].after(change)
        made.append(
            {
                "at_s": change.at_s,
                "link": change.link,
                "rate_bps": state.link.rate_bps if state.up else 0.0,
                "told": change.rate_bps is None or plan.links[change.link].name not in silent,
                "commands": [f"tc -n {words}" for words in _commands_of(plan, network, change, state, live)],
            }
        )
    return made


def _commands_of(plan: Plan, network: Network, change: ChangePlan, state: State, live: bool) -> Iterator[str]:
    number = change.link
    if change.up is not None or change.loss is not None:
        yield from _entrance(network, number, state)
    if change.rate_bps is not None:
        yield f"q{number} class change dev out {htb_class(state.link, network.mtu_bytes, live)}"
    if any(value is not None for value in (change.up, change.rate_bps, change.delay_s)):
        yield from _behind(network, number, plan.links[number], state)
    if change.delay_s is not None or change.medium is not None:
        yield from _through(network, number, state)


def _entrance(network: Network, number: int, state: State) -> Iterator[str]:
    loss = loss_of(state.link.loss) if state.up else ALL_LOST
    for place, cable in enumerate(network.cables):
        if cable.source == f"e{number}":
            yield from (f"e{number} qdisc change dev {network.device(place)} {words}" for words in bands(loss))


def _behind(network: Network, number: int, before: LinkPlan, state: State) -> Iterator[str]:
    """Delays of cables include the link's own."""
    lost = "" if state.up else " loss 100%"
    for place, cable in enumerate(network.cables):
        if cable.source == f"w{number}":
            own_s = 0.0 if cable.target == f"i{number}" else state.link.delay_s - before.delay_s
            delay_s = max(0.0, cable.delay_s + own_s)
            rate_bps = None if cable.rate_bps is None else state.link.rate_bps
            words = netem(replace(cable, delay_s=delay_s, rate_bps=rate_bps))
            yield f"w{number} qdisc replace dev {network.device(place)} root {words}{lost}"


def _through(network: Network, number: int, state: State) -> Iterator[str]:
    """The medium has the link's delay, where it does more than that."""
    for place, cable in enumerate(network.cables):
        if cable.source == f"i{number}":
            words = netem(replace(cable, delay_s=state.link.delay_s, medium=state.link.medium or cable.medium))
            yield f"i{number} qdisc replace dev {network.device(place)} root {words}"
