"""The router of a testbed: the commands that give it a rate, a queue, a delay and losses, and change them in a run.

Rate and queue are on the interface towards the receivers, the delay on that towards the senders. What is lost at random
is lost before the queue: data that arrives from the senders is led through a device of its own (ifb), whose queue
discipline loses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ackclock.engines.linux import disciplines
from ackclock.engines.linux.network import loss_of, mtu_bytes
from ackclock.engines.linux.script import FLYING_P, State, bands, htb_class, losing, shaper
from ackclock.engines.linux.testbed.layout import RECEIVER, Testbed
from ackclock.plan import ChangePlan, Plan

#: The device through which data goes that may be lost.
LOSING = "ackclock-loss"


def commands(plan: Plan, testbed: Testbed) -> list[dict[str, Any]]:
    """Return the commands for rate and queue towards the receivers and delay towards the senders, with their undo."""
    there, back = _interfaces(testbed)
    link = plan.links[0]
    lines = [*shaper(link, there, mtu_bytes(plan), live=True), *disciplines.commands(link, there, _priorities(plan))]
    made = [_tc(line, there if number == 0 else None) for number, line in enumerate(lines)]
    if delays(plan, testbed):
        made.append(_tc(f"qdisc add dev {back} {_netem(testbed, 0.0)}", back))
    return made + (_losing(plan, testbed, back) if loses(plan) else [])


def _losing(plan: Plan, testbed: Testbed, entrance: str) -> list[dict[str, Any]]:
    """Return the commands that drop incoming data: the packets of each receiver go through a lossy device."""
    to = [f"match ip dst {host.data}/32" for host in testbed.role(RECEIVER)]
    here = f"filter add dev {entrance} parent ffff: protocol ip"
    redirected = f"action mirred egress redirect dev {LOSING}"
    return [
        {"run": f"ip link add {LOSING} type ifb".split(), "undo": f"ip link del {LOSING}".split()},
        {"run": f"ip link set {LOSING} up".split(), "undo": None},
        *(_tc(line, None) for line in losing(loss_of(plan.links[0].loss), LOSING)),
        {"run": f"tc qdisc add dev {entrance} ingress".split(), "undo": f"tc qdisc del dev {entrance} ingress".split()},
        *(_tc(f"{here} u32 {match} {redirected}", None) for match in to),
    ]


def changes(plan: Plan, testbed: Testbed) -> list[dict[str, Any]]:
    """Return the changes for the run spec: when, which link, its rate from then on, and the commands."""
    state, made = State(plan.links[0]), []
    for change in plan.changes:
        state = state.after(change)
        lines = [f"tc {words}" for words in _changed(plan, testbed, change, state)]
        rate_bps = state.link.rate_bps
        made.append({"at_s": change.at_s, "link": 0, "rate_bps": rate_bps, "told": True, "commands": lines})
    return made


def _changed(plan: Plan, testbed: Testbed, change: ChangePlan, state: State) -> Iterator[str]:
    there, back = _interfaces(testbed)
    if change.rate_bps is not None:
        yield f"class change dev {there} {htb_class(state.link, mtu_bytes(plan), live=True)}"
    if change.delay_s is not None:
        yield f"qdisc change dev {back} {_netem(testbed, state.link.delay_s)}"
    if change.loss is not None:
        yield from (f"qdisc change dev {LOSING} {words}" for words in bands(loss_of(state.link.loss)))


def _interfaces(testbed: Testbed) -> tuple[str, str]:
    router = testbed.router
    return str(router.to_receivers), str(router.to_senders)


def delays(plan: Plan, testbed: Testbed) -> bool:
    """Return True if the router delays packets, now or later."""
    return bool(testbed.rtt_s) or any(change.delay_s is not None for change in plan.changes)


def loses(plan: Plan) -> bool:
    """Return True if the router drops packets at random, now or later."""
    return bool(plan.links[0].loss) or any(change.loss is not None for change in plan.changes)


def _netem(testbed: Testbed, more_s: float) -> str:
    """All delay is on one interface: that of the link, too."""
    delay_s = (testbed.rtt_s or 0.0) + more_s
    return f"root handle 1: netem limit {FLYING_P} delay {disciplines.time(delay_s)}"


def _tc(line: str, of: str | None) -> dict[str, Any]:
    """A command of tc's; what undoes all that stands at the root of the interface `of`."""
    undo = ["tc", "qdisc", "del", "dev", of, "root"] if of else None
    return {"run": ["tc", *line.split()], "undo": undo}


def _priorities(plan: Plan) -> set[int]:
    return {flow.priority for flow in plan.flows} | {traffic.priority for traffic in plan.traffic}
