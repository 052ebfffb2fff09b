"""RED's parameters in packets, for models: what is not given is filled in as the packet engine does, and `tc`.

Used by the fluid and the mean-field engine, and by the settings of ns-2 and ns-3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ackclock.errors import InputError

#: The largest weight, and how often it is halved at most.
LARGEST_WEIGHT = 0.5
MAX_HALVINGS = 30


def in_packets(parameters: Mapping[str, Any], packet_bytes: int) -> dict[str, Any]:
    """Return RED's parameters as `crates/ackclock-models/src/red.rs` reads them; `limit_p` is `limit_in_packets`.

    Raises `InputError` for thresholds out of order, and for a burst below the lower one, which no weight lets pass.
    """
    low_bytes, high_bytes = _thresholds(parameters)
    if not 0 < low_bytes < high_bytes:
        raise InputError(f"thresholds must be 0 < min < max, found {low_bytes:g} and {high_bytes:g}")
    size = _counted_bytes(parameters, packet_bytes)
    return {
        "kind": "red",
        "min_p": low_bytes / size,
        "max_p": high_bytes / size,
        "probability": parameters["probability"],
        "weight": parameters["weight"] or _weight_or_burst(parameters, low_bytes, high_bytes),
        "gentle": parameters["gentle"],
    }


def limit_in_packets(parameters: Mapping[str, Any], packet_bytes: int) -> float:
    """The packets that fit."""
    if parameters["bytes"]:
        return float(parameters["limit_bytes"] / packet_bytes)
    return float(parameters["limit_bytes"] // parameters["avpkt_bytes"])


def _counted_bytes(parameters: Mapping[str, Any], packet_bytes: int) -> int:
    """Return the bytes that a packet counts for: its own, or an average packet's where packets are counted."""
    return packet_bytes if parameters["bytes"] else int(parameters["avpkt_bytes"])


def _thresholds(parameters: Mapping[str, Any]) -> tuple[float, float]:
    low_bytes, high_bytes = parameters["min_bytes"], parameters["max_bytes"]
    if high_bytes is None:
        high_bytes = parameters["limit_bytes"] / 4 if low_bytes is None else 3 * low_bytes
    return (high_bytes / 3 if low_bytes is None else low_bytes), high_bytes


def _weight_or_burst(parameters: Mapping[str, Any], low_bytes: float, high_bytes: float) -> float:
    """The weight of the burst; `tc` takes a burst of (2 min + max) / (3 avpkt) packets.

    Where that leaves `tc` without a weight, below a threshold of a packet, the average moves as fast as may be.
    """
    avpkt_bytes, burst_p = parameters["avpkt_bytes"], parameters["burst_packets"]
    if burst_p is None and low_bytes <= avpkt_bytes:
        return LARGEST_WEIGHT
    if burst_p is None:
        burst_p = max(math.floor((2 * low_bytes + high_bytes) / (3 * avpkt_bytes)), 1)
        low_bytes = min(low_bytes, burst_p * avpkt_bytes)
    weight = _weight(low_bytes / avpkt_bytes, burst_p)
    if weight is None:
        least = math.ceil(low_bytes / avpkt_bytes)
        raise InputError(f"burst must be at least min/avpkt = {least} packets, found {burst_p:g}")
    return weight


def _weight(low_p: float, burst_p: float) -> float | None:
    """The largest of 1/2, 1/4 … with which a burst into an empty queue does not lift the average over the threshold.

    Floyd and Jacobson 1993, section 6.1, as `tc` evaluates it. None if even the smallest is too large.
    """
    excess = burst_p + 1 - low_p
    if excess < 1:
        return None
    weights = (LARGEST_WEIGHT * 0.5**halvings for halvings in range(MAX_HALVINGS + 1))
    return next((weight for weight in weights if (1 - (1 - weight) ** burst_p) / weight >= excess), None)
