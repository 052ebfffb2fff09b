"""Links of ns-2: queue disciplines, random losses before them, and changes of rates and delays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ackclock.engines import red
from ackclock.engines.external import planned_traffic
from ackclock.plan import ChangePlan, LinkPlan, Parameters, Plan

#: Queues that ns-2 2.35 and plans both have.
DISCIPLINES = ("pfifo", "bfifo", "red", "ared")

#: Options of RED that are fixed in ns-2.
RED_FIXED = {"nodrop": False, "adaptive": False}

LOSS = """
# Packets that a link loses by chance, before its queue: written as those that are dropped.
set losses [open losses w]
proc lose {link probability} {
    global ns losses in$link out$link
    set from [set in$link]
    set to [set out$link]
    set model [new ErrorModel]
    $model unit pkt
    $model set rate_ $probability
    $model ranvar [new RandomVariable/Uniform]
    [$ns link $from $to] errormodule $model
    set trace [$ns create-trace Drop $losses $from $to]
    $trace target [new Agent/Null]
    $model drop-target $trace
    puts $losses "link $link [$from id] [$to id]"
}"""


def is_stochastic(link: LinkPlan) -> bool:
    """Return True if the queue draws random numbers."""
    return link.queue.discipline in ("red", "ared")


def kind(link: LinkPlan) -> str:
    """The class, as `simplex-link` takes it."""
    return "RED" if is_stochastic(link) else "DropTail"


def settings(link: LinkPlan, packet_bytes: int) -> dict[str, str]:
    """The queue's variables. `limit_` is one more than may wait: a packet that would make it so long is dropped."""
    parameters = link.queue.parameters
    if link.queue.discipline == "pfifo":
        return {"limit_": str(parameters["limit_packets"] + 1)}
    if link.queue.discipline == "bfifo":
        return {"queue_in_bytes_": "true", "mean_pktsize_": "1", "limit_": str(parameters["limit_bytes"] + 1)}
    if link.queue.discipline == "ared":
        return _ared(parameters, link.rate_bps)
    return _red(parameters, packet_bytes)


def _ared(parameters: Parameters, rate_bps: float) -> dict[str, str]:
    """Adaptive RED, by Floyd, Gummadi and Shenker 2001, sections 4.1 and 4.3; ns-2's own bounds are wider."""
    packets_per_s = rate_bps / (8 * parameters["avpkt_bytes"])
    low_p = max(packets_per_s * parameters["target_s"] / 2, parameters["floor_packets"])
    in_bytes = parameters["bytes"]
    size_bytes = parameters["avpkt_bytes"]
    limit_bytes = parameters["limit_packets"] * size_bytes
    inner = {"min_p": low_p, "max_p": 3 * low_p, "weight": -math.expm1(-1 / packets_per_s), "limit_bytes": limit_bytes}
    adaptation = {"adaptive_": "1", "interval_": f"{parameters['interval_s']:g}", "bottom_": "0.01", "top_": "0.5"}
    return _early({**parameters, **inner}, inner, size_bytes, in_bytes=in_bytes, weighted=False) | adaptation


def _red(parameters: Parameters, packet_bytes: int) -> dict[str, str]:
    inner, in_bytes = red.in_packets(parameters, packet_bytes), parameters["bytes"]
    size_bytes = packet_bytes if in_bytes else parameters["avpkt_bytes"]
    return _early(parameters, inner, size_bytes, in_bytes=in_bytes, weighted=parameters["weighted"])


def _early(
    parameters: Parameters, inner: Parameters, size_bytes: int, *, in_bytes: bool, weighted: bool
) -> dict[str, str]:
    """Thresholds in packets of the mean size, which ns-2 turns into bytes itself where it counts them."""
    return {
        "queue_in_bytes_": "true" if in_bytes else "false",
        "bytes_": "true" if weighted else "false",
        "mean_pktsize_": str(size_bytes),
        "limit_": str(parameters["limit_bytes"] // size_bytes),
        "thresh_": f"{inner['min_p']:.6g}",
        "maxthresh_": f"{inner['max_p']:.6g}",
        "q_weight_": f"{inner['weight']:.9g}",
        "linterm_": f"{1 / parameters['probability']:.9g}",
        "gentle_": "true" if parameters["gentle"] else "false",
        "setbit_": "true" if parameters["ecn"] else "false",
        "use_mark_p_": "false",
        "adaptive_": "0",
        "wait_": "true" if parameters["wait"] else "false",
        "drop_tail_": "true",
    }


def impairments(plan: Plan, used: Sequence[int]) -> Iterator[str]:
    """Yield the lines of the script for random losses of the links with these numbers, and for all changes."""
    lossy = [(number, loss["probability"]) for number in used if (loss := plan.links[number].loss)]
    if lossy:
        yield LOSS
    yield from (f"lose {number} {probability:.12g}" for number, probability in lossy)
    if plan.changes:
        yield "\n# Links that change."
    for change in plan.changes:
        yield from _change(change)


def _change(change: ChangePlan) -> Iterator[str]:
    settings = {"bandwidth_": change.rate_bps, "delay_": change.delay_s}
    for name, value in settings.items():
        if value is not None:
            link = f"[[$ns link $in{change.link} $out{change.link}] link]"
            yield f'$ns at {change.at_s:.12g} "{link} set {name} {value:.12g}"'


def unsupported(plan: Plan) -> Iterator[str]:
    """Yield the features of a plan's queues and links that ns-2 lacks."""
    yield from planned_traffic.unsupported_losses(plan)
    if any(change.up is not None for change in plan.changes):
        yield "links that fail"
    if len({link.frame_overhead_bytes for link in plan.links}) > 1:
        yield "links with frames of different overheads"
    for link in plan.links:
        if link.queue.discipline == "red":
            yield from _unsupported_red(link.queue.parameters, link.rate_bps)
        if link.queue.discipline == "ared" and link.queue.parameters["ecn"]:
            yield 'queue discipline "ared" with ecn'


def _unsupported_red(parameters: Parameters, rate_bps: float) -> Iterator[str]:
    other = [name for name, value in RED_FIXED.items() if parameters[name] != value]
    yield from (f'queue discipline "red" with {name} = {str(parameters[name]).lower()}' for name in other)
    if parameters["ecn"] != parameters["harddrop"]:
        yield 'queue discipline "red" with ecn that marks beyond max, too: its ecn has harddrop'
    if parameters["bandwidth_bps"] not in (None, rate_bps):
        yield 'queue discipline "red" with a bandwidth other than the link\'s'
