"""Queue disciplines in ns-2's words."""

from __future__ import annotations

from collections.abc import Iterator

from ackclock.engines import red
from ackclock.plan import LinkPlan, Parameters, Plan

#: Queues that ns-2 2.35 and plans both have.
DISCIPLINES = ("pfifo", "bfifo", "red")

#: Options of RED that are fixed in ns-2.
RED_FIXED = {"nodrop": False, "adaptive": False}


def is_stochastic(link: LinkPlan) -> bool:
    """Return True if the queue draws random numbers."""
    return link.queue.discipline == "red"


def kind(link: LinkPlan) -> str:
    """The class, as `simplex-link` takes it."""
    return "RED" if link.queue.discipline == "red" else "DropTail"


def settings(link: LinkPlan, packet_bytes: int) -> dict[str, str]:
    """The queue's variables. `limit_` is one more than may wait: a packet that would make it so long is dropped."""
    parameters = link.queue.parameters
    if link.queue.discipline == "pfifo":
        return {"limit_": str(parameters["limit_packets"] + 1)}
    if link.queue.discipline == "bfifo":
        return {"queue_in_bytes_": "true", "mean_pktsize_": "1", "limit_": str(parameters["limit_bytes"] + 1)}
    return _red(parameters, packet_bytes)


def _red(parameters: Parameters, packet_bytes: int) -> dict[str, str]:
    """Thresholds in packets of the mean size, which ns-2 turns into bytes itself where it counts them."""
    inner = red.in_packets(parameters, packet_bytes)
    in_bytes = parameters["bytes"]
    return {
        "queue_in_bytes_": "true" if in_bytes else "false",
        "bytes_": "true" if parameters["weighted"] else "false",
        "mean_pktsize_": str(packet_bytes if in_bytes else parameters["avpkt_bytes"]),
        "limit_": f"{red.limit_in_packets(parameters, packet_bytes):.0f}",
        "thresh_": f"{inner['min_p']:.6g}",
        "maxthresh_": f"{inner['max_p']:.6g}",
        "q_weight_": f"{inner['weight']:.9g}",
        "linterm_": f"{1 / parameters['probability']:.9g}",
        "gentle_": "true" if parameters["gentle"] else "false",
        "setbit_": "true" if parameters["ecn"] else "false",
        "use_mark_p_": "false",
        "adaptive_": "0",
        "wait_": "false",
        "drop_tail_": "true",
    }


def unsupported(plan: Plan) -> Iterator[str]:
    """Yield the features of a plan's queues and links that ns-2 lacks."""
    if len({link.frame_overhead_bytes for link in plan.links}) > 1:
        yield "links with frames of different overheads"
    for link in plan.links:
        if link.queue.discipline == "red":
            yield from _unsupported_red(link.queue.parameters, link.rate_bps)


def _unsupported_red(parameters: Parameters, rate_bps: float) -> Iterator[str]:
    other = [name for name, value in RED_FIXED.items() if parameters[name] != value]
    yield from (f'queue discipline "red" with {name} = {str(parameters[name]).lower()}' for name in other)
    if parameters["ecn"] != parameters["harddrop"]:
        yield 'queue discipline "red" with ecn that marks beyond max, too: its ecn has harddrop'
    if parameters["bandwidth_bps"] not in (None, rate_bps):
        yield 'queue discipline "red" with a bandwidth other than the link\'s'
