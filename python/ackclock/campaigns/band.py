"""Where the models of many flows were compared with packets: outside, what they say of losses was not checked.

The comparison is that of `docs/make_fitted.py`, with a queue of a tenth of a bandwidth-delay product in
`docs/concepts/fluid.md`. The number of flows, the queue and a flow's share of the path say how much one round trip
loses, and whom; the rate and the RTT matter through them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ackclock.plan import LinkPlan, Plan

#: Engines that assume, or are told, who loses.
ENGINES = ("fluid", "meanfield")

#: What was compared: numbers of flows, queues in bandwidth-delay products, packets of that for a flow.
FLOWS = (10, 30)
QUEUE_BDP = (0.3, 1.0)
SHARE_P = (15.0, 200.0)

#: Limits are whole packets.
ROUNDING = 0.02

#: Their disciplines and controls.
DISCIPLINES = frozenset({"pfifo", "bfifo"})
CONTROLS = frozenset({"cubic", "reno"})


def doubt(plan: Plan, engine: str) -> str | None:
    """What of a plan lies outside, in one line; None if nothing does, or if the path has several queues."""
    links = {hop.link for flow in plan.flows for hop in flow.forward.hops}
    if len(links) != 1:
        return None
    found = list(_outside(plan, plan.links[links.pop()], engine))
    if not found:
        return None
    return (
        f"engine {engine} was compared with packets for {FLOWS[0]} to {FLOWS[1]} CUBIC and Reno flows and drop-tail "
        f"queues of {QUEUE_BDP[0]:g} to {QUEUE_BDP[1]:g} bdp; this has {', '.join(found)}: --engine packet checks it"
    )


def _outside(plan: Plan, link: LinkPlan, engine: str) -> Iterator[str]:
    flows = len(plan.flows)
    bdp_p = link.rate_bps / (8 * plan.packet_bytes) * sum(flow.base_rtt_s for flow in plan.flows) / flows
    if not FLOWS[0] <= flows <= FLOWS[1]:
        yield f"{flows} flow" + ("" if flows == 1 else "s")
    if not SHARE_P[0] <= bdp_p / flows <= SHARE_P[1]:
        yield f"a bdp of {bdp_p / flows:.3g} packets for each"
    controls = {group.congestion.kind for group in plan.groups if group.congestion}
    yield from sorted(controls - CONTROLS)
    if link.queue.discipline in DISCIPLINES:
        bdps = _limit_p(link, plan.packet_bytes) / bdp_p
        if not QUEUE_BDP[0] * (1 - ROUNDING) <= bdps <= QUEUE_BDP[1] * (1 + ROUNDING):
            yield f"a queue of {bdps:.2g} bdp"
    elif engine == "fluid":
        yield link.queue.discipline


def _limit_p(link: LinkPlan, packet_bytes: int) -> float:
    given = link.queue.parameters
    return float(given["limit_packets"] if "limit_packets" in given else given["limit_bytes"] / packet_bytes)
