"""Warnings about plans whose result may be doubtful, before they run.

- *Models of many flows* were compared with packets in a range of plans (`docs/make_fitted.py`, with a queue of a tenth
  of a bandwidth-delay product in `docs/concepts/fluid.md`). The number of flows, the queue and a flow's share of the
  path determine how much one round trip loses, and which flows; the rate and the RTT matter through them.
- *Token buckets* overflow if their FIFO has room for one or two packets, which arrive faster than they leave. A
  sender's packets leave together where its pacing or its ACKs let several go. A policer that is made of tbf with so
  little room then loses most of each batch, although the bucket has tokens for all of it.
- *Phase effects*: see `phase_effects`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ackclock.experiments import phase_effects
from ackclock.plan import FlowPlan, LinkPlan, Plan

#: Engines that assume, or are told, who loses.
MODELS = ("fluid", "meanfield")

#: Range of the comparison: numbers of flows; queues in bandwidth-delay products, by engine; packets of one for each
#: flow.
FLOWS = (10, 30)
QUEUE_BDP = {"fluid": (0.3, 0.7), "meanfield": (0.3, 0.8)}
SHARE_P = (15.0, 200.0)

#: Limits are whole packets.
ROUNDING = 0.02

#: Their disciplines and controls.
DISCIPLINES = frozenset({"pfifo", "bfifo"})
CONTROLS = frozenset({"cubic", "reno"})

#: Active queue management that an engine's delay and utilisation were compared with (`tests/agreement`).
QUEUES_COMPARED = {"meanfield": frozenset({"codel", "pie"})}

#: Kinds of synchronisation that are fitted or measured, not assumed.
MEASURED_KINDS = frozenset({"losses", "replayed"})

#: Within the band utilisation and queue are the packets'; of who loses this is said.
ASSUMED = (
    "utilisation and mean queue agreed with packets in plans like this one, but the synchronisation may be off by more "
    "than 0.1"
)

#: Behind active queue management delay and losses were compared, and who loses was not.
NOT_COMPARED = "delay and utilisation agreed with packets in plans like this one; the synchronisation was not compared"


def warnings(plan: Plan, engine: str, *, is_perturbed: bool) -> Iterator[str]:
    """Yield why an engine's result may be doubtful, a line each. Perturbed runs, if they follow, find phase effects."""
    if engine == "packet" and (why := token_bucket_doubt(plan)):
        yield why
    if engine in MODELS and (why := model_doubt(plan, engine)):
        yield why
    if engine in phase_effects.ENGINES and not is_perturbed and (why := phase_effects.prone(plan)):
        yield why


def model_doubt(plan: Plan, engine: str) -> str | None:
    """Return, in one line, the features of a plan outside the range, or those assumed inside.

    None if all is told, or if the path has several queues: those were not looked at.
    """
    links = {hop.link for flow in plan.flows for hop in flow.forward.hops}
    if len(links) != 1:
        return None
    link = plan.links[links.pop()]
    found = list(_outside(plan, link, engine))
    if not found and link.queue.discipline not in DISCIPLINES:
        return f"engine {engine}: {NOT_COMPARED}"
    if not found:
        return None if _is_measured(plan, engine) else f"engine {engine}: {ASSUMED}"
    (fewest, most), (least_p, most_p), (shortest, longest) = FLOWS, SHARE_P, QUEUE_BDP[engine]
    and_aqm = ", CoDel and PIE" if engine in QUEUES_COMPARED else ""
    return (
        f"engine {engine} was compared with packets for {fewest} to {most} CUBIC and Reno flows of {least_p:g} to "
        f"{most_p:g} packets each, and drop-tail queues of {shortest:g} to {longest:g} bdp{and_aqm}; this has "
        f"{', '.join(found)}: --engine packet checks it"
    )


def _is_measured(plan: Plan, engine: str) -> bool:
    """Return True if the number of flows that lose is fitted or measured, not assumed."""
    return engine == "fluid" and plan.options[engine]["synchronisation"]["kind"] in MEASURED_KINDS


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
        shortest, longest = QUEUE_BDP[engine]
        if not shortest * (1 - ROUNDING) <= bdps <= longest * (1 + ROUNDING):
            yield f"a queue of {bdps:.2g} bdp"
    elif link.queue.discipline not in QUEUES_COMPARED.get(engine, ()):
        yield link.queue.discipline


def _limit_p(link: LinkPlan, packet_bytes: int) -> float:
    given = link.queue.parameters
    return float(given["limit_packets"] if "limit_packets" in given else given["limit_bytes"] / packet_bytes)


def token_bucket_doubt(plan: Plan) -> str | None:
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
