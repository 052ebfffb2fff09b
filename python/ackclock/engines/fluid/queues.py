"""Queue disciplines as the fluid engine has them: a plan's parameters, in packets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ackclock.engines import red
from ackclock.plan import QueuePlan

#: The bytes of a packet and a discipline's parameters become what `fluid/queue.rs` reads.
Translated = Mapping[str, Any]


def translated(queue: QueuePlan, packet_bytes: int) -> Translated:
    """A queue in packets. Raises `KeyError` for a discipline that is not in `QUEUES`."""
    return QUEUES[queue.discipline](queue.parameters, packet_bytes)


def unsupported(queue: QueuePlan) -> Iterator[str]:
    """Yield the parameters of a queue that the fluid model lacks."""
    if queue.discipline == "red":
        if queue.parameters["adaptive"]:
            yield "adaptive RED"
        if queue.parameters["weighted"]:
            yield "RED that weighs packets by their length"


def _pfifo(parameters: Mapping[str, Any], packet_bytes: int) -> Translated:
    return {"kind": "droptail", "limit_p": float(parameters["limit_packets"])}


def _bfifo(parameters: Mapping[str, Any], packet_bytes: int) -> Translated:
    return {"kind": "droptail", "limit_p": parameters["limit_bytes"] / packet_bytes}


def _red(parameters: Mapping[str, Any], packet_bytes: int) -> Translated:
    return {"limit_p": red.limit_in_packets(parameters, packet_bytes), **red.in_packets(parameters, packet_bytes)}


#: Discipline → how it is translated.
QUEUES: Mapping[str, Callable[[Mapping[str, Any], int], Translated]] = {"pfifo": _pfifo, "bfifo": _bfifo, "red": _red}
