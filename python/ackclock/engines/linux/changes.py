"""Links that change: the commands at each time.

Another rate is the class's and, for the time of transmission, that of the cables behind; another delay is theirs alone.
A link that fails loses what it is offered, at its entrance, and what its queue still lets out, behind it; what flies
arrives.
"""

from __future__ import annotations

from collections.abc import Iterator
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
        return State(replace(self.link, rate_bps=rate_bps, delay_s=delay_s), up)


def changes(plan: Plan, network: Network, *, live: bool) -> list[dict[str, Any]]:
    """For the order: when, which link, its rate from then on (0 if it is down), and the commands."""
    states = {number: State(link) for number, link in enumerate(plan.links)}
    made = []
    for change in plan.changes:
        state = states[change.link] = states[change.link].after(change)
        made.append(
            {
                "at_s": change.at_s,
                "link": change.link,
                "rate_bps": state.link.rate_bps if state.up else 0.0,
                "commands": [f"tc -n {words}" for words in _words(plan, network, change, state, live)],
            }
        )
    return made


def _words(plan: Plan, network: Network, change: ChangePlan, state: State, live: bool) -> Iterator[str]:
    number = change.link
    if change.up is not None:
        yield from _entrance(network, number, state)
    if change.rate_bps is not None:
        yield f"q{number} class change dev out {htb_class(state.link, network.mtu_bytes, live)}"
    yield from _behind(network, number, plan.links[number], state)


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
            delay_s = max(0.0, cable.delay_s + state.link.delay_s - before.delay_s)
            rate_bps = None if cable.rate_bps is None else state.link.rate_bps
            words = netem(replace(cable, delay_s=delay_s, rate_bps=rate_bps))
            yield f"w{number} qdisc replace dev {network.device(place)} root {words}{lost}"
