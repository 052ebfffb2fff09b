"""Token buckets that batches overflow: their FIFO has room for one or two packets, which come faster than they leave.

A sender's packets leave together where its pacing or its acknowledgements let several go. A policer that is made of tbf
with so little room then loses most of each batch, although the bucket has tokens for all of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ackclock.plan import FlowPlan, LinkPlan, Plan

#: Engines whose senders are known to do so.
ENGINES = ("packet",)


def doubt(plan: Plan) -> str | None:
    """Return a warning about a plan's token buckets, naming the keys that mend it; None if there is none."""
    if not any(link.queue.discipline == "tbf" for link in plan.links):
        return None
    found = next((link for flow in plan.flows for link in _overflown(flow, plan)), None)
    if found is None:
        return None
    return (
        f"the tbf of {found.name} has room for fewer than three packets, which arrive faster than its "
        f"{found.rate_bps / 1e6:g} Mbit/s, so most of each batch is lost: "
        "set access_rate to at most that rate, or the limit to four packets"
    )


def _overflown(flow: FlowPlan, plan: Plan) -> Iterator[LinkPlan]:
    """The buckets on a flow's way with room for less than three of its packets, and nothing as slow before them."""
    slowest_bps = float("inf")
    for link in (plan.links[hop.link] for hop in flow.forward.hops):
        if _is_small(link, flow, plan) and slowest_bps > link.rate_bps:
            yield link
        slowest_bps = min(slowest_bps, link.rate_bps)


def _is_small(link: LinkPlan, flow: FlowPlan, plan: Plan) -> bool:
    tcp = plan.groups[flow.group].tcp
    if tcp is None or link.queue.discipline != "tbf":
        return False
    packet_bytes = tcp.mss_bytes + tcp.header_bytes + link.frame_overhead_bytes
    return bool(link.queue.parameters["limit_bytes"] < 3 * packet_bytes)
