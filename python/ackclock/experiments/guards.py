"""Guards: warnings about set-ups and results that may mislead, as sentences under a result and as `warnings` in JSON.

A guard of a plan needs no run, a guard of a result its runs or their metrics.

- *Models of many flows* were compared with packets in a range of plans (`docs/make_fitted.py`, with a queue of a tenth
  of a bandwidth-delay product in `docs/concepts/fluid.md`). The number of flows, the queue and a flow's share of the
  path determine how much one round trip loses, and which flows; the rate and the RTT matter through them.
- *Leaps* of the hybrid engine were compared with packets in two drawn samples (`docs/concepts/hybrid.md`): what was
  outside the tolerances had a buffer below half a bandwidth-delay product.
- *Token buckets* overflow if their FIFO has room for one or two packets, which arrive faster than they leave. A
  sender's packets leave together where its pacing or its ACKs let several go. A policer that is made of tbf with so
  little room then loses most of each batch, although the bucket has tokens for all of it.
- *Phase effects*: see `phase_effects`.
- *Unmarked DCTCP*: it controls its window by the share of marked packets. Without marks it reacts to loss only, as a
  conventional TCP does (RFC 8257 section 3.5).
- *Unused ECN*: hosts that negotiate ECN gain by it where the bottleneck marks (RFC 3168), which in Linux's AQMs is a
  parameter.
- *Short queues*: a limit below ten packets has no room for one initial window (RFC 6928).
- *AQMs with a FIFO's limit*: an AQM lets a burst pass and acts on the delay that persists, for CoDel over an interval
  of 100 ms (RFC 8289 section 4.2). Behind a smaller limit the queue overflows before the AQM acts.
- *L4S steps*: DualPI2 marks L4S packets that waited longer than its step. Where one packet is in transmission for
  longer than that, all that wait behind another are marked; RFC 9332 appendix A spares them while few wait (Th_len).
- *Starvation*: a group or a flow gets less than a tenth of its max-min fair share (`metrics.groups`).
- *Equal seeds*: where nothing is random all seeds give one run, and intervals over them mean nothing.

Used after a plan is made and after its runs, by run, compare, sweep, find and explore.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ackclock import algorithms, repr_format
from ackclock.experiments import phase_effects
from ackclock.figures import numbers, summary_text
from ackclock.metrics import groups, runs
from ackclock.metrics.protocols import Recorded
from ackclock.plan import FlowPlan, LinkPlan, Plan, QueuePlan

#: The metrics of one run, by name.
Row: TypeAlias = Mapping[str, Any]

#: A guard of a plan with an engine, and one of the metrics of its runs: a sentence; None where nothing is wrong.
PlanGuard: TypeAlias = Callable[[Plan, str], str | None]
ResultGuard: TypeAlias = Callable[[Plan, Sequence[Row]], str | None]

#: Engines that assume, or are told, who loses.
MODELS = ("fluid", "meanfield")

#: Range of the comparison: numbers of flows; queues in bandwidth-delay products, by engine; packets of one for each
#: flow.
FLOWS = (10, 30)
QUEUE_BDP = {"fluid": (0.3, 0.7), "meanfield": (0.3, 0.8)}
SHARE_P = (15.0, 200.0)

#: Smallest buffer, in bandwidth-delay products, above which leaps were within their tolerances.
LEAP_BDP = 0.5

#: Limits are whole packets.
ROUNDING = 0.02

#: Their disciplines and controls.
DISCIPLINES = frozenset({"pfifo", "bfifo"})
CONTROLS = frozenset({"cubic", "reno"})

#: Active queue management that an engine's delay and utilisation were compared with (`tests/agreement`).
QUEUES_COMPARED = {"meanfield": frozenset({"codel", "pie"})}

#: Kinds of synchronisation that are fitted or measured, not assumed.
MEASURED_KINDS = frozenset({"losses", "replayed"})

#: Smallest limit without a warning, in packets: the initial window of RFC 6928.
MIN_LIMIT_P = 10

#: Time within which an AQM without an own parameter for it reacts to a burst, in seconds: CoDel's interval.
REACTION_S = 0.1

#: Within the band utilisation and queue are the packets'; of who loses this is said.
ASSUMED = (
    "Utilisation and mean queue of this model agreed with those of packets in plans like this one, but its "
    "synchronisation may be off by more than 0.1."
)

#: Behind active queue management delay and losses were compared, and who loses was not.
NOT_COMPARED = (
    "Delay and utilisation of this model agreed with those of packets in plans like this one; its synchronisation was "
    "not compared."
)


class Setting(NamedTuple):
    """A plan with an engine and its runs, and what distinguishes it from the other settings of an experiment.

    `rows` are the metrics of its runs, `data` the runs themselves, if they are there: their guards name the flows.
    """

    name: str
    plan: Plan
    engine: str
    rows: Sequence[Row] = ()
    data: Recorded | None = None


def warnings(settings: Iterable[Setting], *, perturbed: bool = False) -> list[str]:
    """Return the warnings about an experiment, each once, with the setting if it is not all of them.

    Perturbed runs, if they were made, find phase effects.
    """
    every = list(settings)
    named = [{find: find(runs(each.data)) if each.data else {} for find in DATA_GUARDS} for each in every]
    merged: list[str] = []
    for find in DATA_GUARDS:
        for group in dict.fromkeys(group for sentences in named for group in sentences[find]):
            texts = (sentences[find].get(group) for sentences in named)
            merged += _merged(every, texts)
    for guard in PLAN_GUARDS:
        if not (perturbed and guard is phase_doubt):
            merged += _merged(every, (guard(each.plan, each.engine) for each in every))
    for check in RESULT_GUARDS:
        is_named = [check is starvation and bool(found[summary_text.starvation]) for found in named]
        pairs = zip(every, is_named, strict=True)
        merged += _merged(every, (None if known else check(each.plan, each.rows) for each, known in pairs))
    return merged


def _merged(settings: Sequence[Setting], texts: Iterable[str | None]) -> Iterator[str]:
    """Yield one sentence for all settings that have the same thing wrong with them."""
    wrong = [(each.name, text) for each, text in zip(settings, texts, strict=True) if text]
    if not wrong:
        return
    name, text = wrong[0]
    if len({text for _, text in wrong}) == 1 and len(wrong) == len(settings):
        yield text
        return
    others = len(wrong) - 1
    more = f" The same at {others:,} more of {repr_format.counted(len(settings), 'setting')}." if others else ""
    yield f"{name}: {text}{more}"


def phase_doubt(plan: Plan, engine: str) -> str | None:
    """Return why the flows of a plan may stay in step."""
    why = phase_effects.prone(plan) if engine in phase_effects.ENGINES else None
    return f"{why}." if why else None


def unmarked_doubt(plan: Plan, engine: str) -> str | None:
    """Return a warning about flows that rely on ECN marks and cross a bottleneck that makes none."""
    for number, group in enumerate(plan.groups):
        kind = group.congestion.kind if group.congestion else ""
        if not kind or not algorithms.spec("congestion", kind).ecn:
            continue
        found = next((link for link in _bottlenecks(plan, number) if not _marks(link.queue)), None)
        if found is not None:
            name = found.queue.discipline
            can_mark = "ecn" in algorithms.spec("queue", name).parameters
            remedy = "ecn = true makes it mark" if can_mark else "an AQM with ecn = true marks, such as codel or red"
            return (
                f"The flows with {kind} rely on ECN marks, and the {name} of {found.name} makes none, so they react "
                f"to losses only, as Reno does; {remedy}."
            )
    return None


def unused_ecn_doubt(plan: Plan, engine: str) -> str | None:
    """Return a warning about hosts with ECN whose bottleneck could mark, and drops instead."""
    for number, group in enumerate(plan.groups):
        if group.tcp is None or group.tcp.ecn != "classic":
            continue
        for link in _bottlenecks(plan, number):
            name = link.queue.discipline
            if not _marks(link.queue) and "ecn" in algorithms.spec("queue", name).parameters:
                return (
                    f"The hosts have ECN, and the {name} of {link.name} drops where it could mark: ecn = true in its "
                    "table makes it mark."
                )
    return None


def _bottlenecks(plan: Plan, group: int) -> Iterator[LinkPlan]:
    """The bottlenecks on the ways of a group's data; all of them where hosts choose the ways."""
    ways = [flow.forward for flow in plan.flows if flow.group == group]
    for traffic in plan.traffic:
        if traffic.group == group:
            ways += [pair.forward for pair in getattr(traffic.population, "paths", ())]
    crossed = {hop.link for way in ways for hop in way.hops}
    return (link for number, link in enumerate(plan.links) if link.bottleneck and (number in crossed or not crossed))


def _marks(queue: QueuePlan) -> bool:
    """Return True if a qdisc sets CE: DualPI2 always does, and CoDel above `ce_threshold`."""
    given = queue.parameters
    return bool(queue.discipline in ("cake", "dualpi2") or given.get("ecn") or given.get("ce_threshold_s") is not None)


def step_doubt(plan: Plan, engine: str) -> str | None:
    """Return a warning about a step of DualPI2 that is shorter than the transmission of a packet."""
    packet_bits = 8 * plan.packet_bytes
    for number, group in enumerate(plan.groups):
        kind = group.congestion.kind if group.congestion else ""
        if not kind or algorithms.spec("congestion", kind).ecn != "l4s":
            continue
        for link in _bottlenecks(plan, number):
            given = link.queue.parameters
            if link.queue.discipline == "dualpi2" and _is_step_short(given, packet_bits / link.rate_bps):
                step, packet = (
                    numbers.value(value_s, "s") for value_s in (given["step_thresh_s"], packet_bits / link.rate_bps)
                )
                return (
                    f"The dualpi2 of {link.name} marks L4S packets that waited for {step}, less than a packet's "
                    f'transmission of {packet}, so the flows with {kind} get little: min_qlen_step = "2p" or a longer '
                    "step_thresh mends it."
                )
    return None


def _is_step_short(given: Mapping[str, Any], packet_s: float) -> bool:
    """Return True if every packet that waits for another is marked."""
    return bool(given["step_thresh_s"] < packet_s and given["min_qlen_step_packets"] < 2)


def short_queue_doubt(plan: Plan, engine: str) -> str | None:
    """Return a warning about limits below ten packets. Token buckets have a guard of their own."""
    short = [link for link in plan.links if link.queue.discipline != "tbf" and _limit_p(link, plan) < MIN_LIMIT_P]
    if not short:
        return None
    more = f" (and of {repr_format.counted(len(short) - 1, 'more link')})" if len(short) > 1 else ""
    size = repr_format.counted(int(_limit_p(short[0], plan)), "packet")
    return (
        f"The queue of {short[0].name}{more} has room for {size}, fewer than the ten of one initial window (RFC 6928): "
        "how senders space their packets decides the result."
    )


def small_limit_doubt(plan: Plan, engine: str) -> str | None:
    """Return a warning about an AQM that has less room than its default, and than a burst that it lets pass."""
    found = next((link for link in plan.links if _has_small_limit(link, plan)), None)
    if found is None:
        return None
    name, limit_p = found.queue.discipline, _limit_p(found, plan)
    hold = numbers.value(limit_p * 8 * plan.packet_bytes / found.rate_bps, "s")
    default = algorithms.spec("queue", name).complete({})["limit"].value
    return (
        f"The {name} of {found.name} has a limit of {limit_p:,.0f} packets ({hold} at the link's rate), as a FIFO may; "
        f"it overflows before {name} reacts to a burst. Without limit it has its default, {default:,.0f} packets."
    )


def _has_small_limit(link: LinkPlan, plan: Plan) -> bool:
    spec = algorithms.spec("queue", link.queue.discipline)
    if "target" not in spec.parameters or spec.parameters["limit"].default is None:
        return False
    limit_p, given = _limit_p(link, plan), link.queue.parameters
    reaction_s = given.get("interval_s") or given.get("max_burst_s") or REACTION_S
    is_below = MIN_LIMIT_P <= limit_p < spec.complete({})["limit"].value
    return bool(is_below and limit_p * 8 * plan.packet_bytes / link.rate_bps < reaction_s)


def equal_seeds(plan: Plan, rows: Sequence[Row]) -> str | None:
    """Return a warning if all seeds gave the same result.

    Flows with random starts are not in one state: only the metrics asked for, such as a full utilisation, are equal.
    """
    is_drawn = any(flow.start_jitter_s for flow in plan.flows)
    if len(rows) < 2 or is_drawn or any(row != rows[0] for row in rows):
        return None
    return (
        f"All {len(rows):,} seeds gave the same result: nothing in this scenario is random, so they are one run and "
        'their intervals mean nothing. start = { jitter = "100ms" } makes them differ.'
    )


def model_doubt(plan: Plan, engine: str) -> str | None:
    """Return, in one line, the features of a plan outside the range, or those assumed inside.

    None if all is measured, if the path has several queues, which were not compared, or for another engine.
    """
    if engine not in MODELS:
        return None
    links = {hop.link for flow in plan.flows for hop in flow.forward.hops}
    if len(links) != 1:
        return None
    link = plan.links[links.pop()]
    found = list(_outside(plan, link, engine))
    if not found and link.queue.discipline not in DISCIPLINES:
        return NOT_COMPARED
    if not found:
        return None if _is_measured(plan, engine) else ASSUMED
    (fewest, most), (least_p, most_p), (shortest, longest) = FLOWS, SHARE_P, QUEUE_BDP[engine]
    and_aqm = ", CoDel and PIE" if engine in QUEUES_COMPARED else ""
    return (
        f"This model was compared with packets for {fewest} to {most} CUBIC and Reno flows of {least_p:g} to "
        f"{most_p:g} packets each, and drop-tail queues of {shortest:g} to {longest:g} bdp{and_aqm}; this has "
        f"{', '.join(found)}: --engine packet checks it."
    )


def leap_doubt(plan: Plan, engine: str) -> str | None:
    """Return a warning about the hybrid engine over a buffer in which it differed from packets."""
    if engine != "hybrid" or len(plan.links) != 1 or not plan.flows:
        return None
    bdps = _limit_p(plan.links[0], plan) / _bdp_p(plan, plan.links[0])
    if bdps >= LEAP_BDP * (1 - ROUNDING):
        return None
    return (
        f"The buffer has {bdps:.2g} bdp; below {LEAP_BDP:g} bdp this engine's delay, loss rate and loss epochs "
        "differed from those of packets in some of the plans compared: --engine packet checks it."
    )


def _is_measured(plan: Plan, engine: str) -> bool:
    """Return True if the number of flows that lose is fitted or measured, not assumed."""
    return engine == "fluid" and plan.options[engine]["synchronisation"]["kind"] in MEASURED_KINDS


def _outside(plan: Plan, link: LinkPlan, engine: str) -> Iterator[str]:
    flows = len(plan.flows)
    bdp_p = _bdp_p(plan, link)
    if not FLOWS[0] <= flows <= FLOWS[1]:
        yield f"{flows} flow" + ("" if flows == 1 else "s")
    if not SHARE_P[0] <= bdp_p / flows <= SHARE_P[1]:
        yield f"a bdp of {bdp_p / flows:.3g} packets for each"
    controls = {group.congestion.kind for group in plan.groups if group.congestion}
    yield from sorted(controls - CONTROLS)
    if link.queue.discipline in DISCIPLINES:
        bdps = _limit_p(link, plan) / bdp_p
        shortest, longest = QUEUE_BDP[engine]
        if not shortest * (1 - ROUNDING) <= bdps <= longest * (1 + ROUNDING):
            yield f"a queue of {bdps:.2g} bdp"
    elif link.queue.discipline not in QUEUES_COMPARED.get(engine, ()):
        yield link.queue.discipline


def _bdp_p(plan: Plan, link: LinkPlan) -> float:
    """Return the bandwidth-delay product of a link, over the mean base RTT of the flows, in full packets."""
    mean_rtt_s = sum(flow.base_rtt_s for flow in plan.flows) / len(plan.flows)
    return link.rate_bps / (8 * plan.packet_bytes) * mean_rtt_s


def _limit_p(link: LinkPlan, plan: Plan) -> float:
    """Return the limit of a queue in full packets; infinite if it has none."""
    given = link.queue.parameters
    if given.get("limit_packets") is not None:
        return float(given["limit_packets"])
    return given["limit_bytes"] / plan.packet_bytes if given.get("limit_bytes") is not None else math.inf


def token_bucket_doubt(plan: Plan, engine: str = "packet") -> str | None:
    """Return a warning about a plan's token buckets, naming the keys that mend it; None if there is none."""
    if engine != "packet" or not any(link.queue.discipline == "tbf" for link in plan.links):
        return None
    found = next((link for flow in plan.flows for link in _overflown(flow, plan)), None)
    if found is None:
        return None
    return (
        f"The tbf of {found.name} has room for fewer than three packets, which arrive faster than its "
        f"{found.rate_bps / 1e6:g} Mbit/s, so most of each batch is lost: "
        "set access_rate to at most that rate, or the limit to four packets."
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


def starvation(plan: Plan, rows: Sequence[Row]) -> str | None:
    """Return a warning if on average a group, or a flow, gets less than a tenth of its max-min fair share."""
    for metric, worst in (("min_group_share", "group of flows"), ("min_share", "flow")):
        known = [row[metric] for row in rows if row.get(metric) is not None]
        mean = math.fsum(known) / len(known) if known else math.inf
        if mean < groups.STARVED:
            return (
                f"Starved: the {worst} that is worst off gets {numbers.value(mean, 'share')} of its max-min fair "
                f"share, less than {numbers.value(groups.STARVED, 'share', 2)}."
            )
    return None


#: Guards of plans.
PLAN_GUARDS: tuple[PlanGuard, ...] = (
    token_bucket_doubt,
    model_doubt,
    leap_doubt,
    phase_doubt,
    unmarked_doubt,
    unused_ecn_doubt,
    step_doubt,
    short_queue_doubt,
    small_limit_doubt,
)

#: Guards of runs: from views of them to a sentence for each group of flows.
DATA_GUARDS = (summary_text.ended_flows, summary_text.starvation)

#: Guards of the metrics of runs.
RESULT_GUARDS: tuple[ResultGuard, ...] = (equal_seeds, starvation)
