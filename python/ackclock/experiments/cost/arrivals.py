"""Numbers and sizes of a workload's transfers, and the number of a UDP source's datagrams."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ackclock.experiments.cost.tcp import Connection

Parameters: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of transfers, their total wire bytes, and the duration of each on an idle network."""

    number: float
    wire_bytes: float
    each_s: float


def transfers(workload: Parameters, pairs: float, span_s: float, connection: Connection, rate_bps: float) -> Amount:
    """Estimate a workload's transfers in a time; `rate_bps` is the rate of a transfer that has the path to itself."""
    size_bytes = _mean_bytes(workload["size"], rate_bps * span_s / 8)
    arrivals = workload["arrivals"]
    if arrivals["kind"] == "web":
        return _web(arrivals, pairs, span_s, connection, rate_bps, size_bytes)
    each_s = connection.transfer_s(size_bytes, rate_bps)
    number = _NUMBERS[arrivals["kind"]](arrivals, pairs, span_s, each_s)
    return Amount(number, number * connection.on_wire(size_bytes), each_s)


def datagrams_per_s(source: Parameters) -> float:
    """The mean rate of a UDP source."""
    kind = source["kind"]
    if kind == "adaptive":
        return float(source["min_per_s"] + source["max_per_s"]) / 2
    if kind == "bursts":
        return float(source["packets"] / source["every_s"])
    if kind == "on_off":
        on_s, off_s = mean_s(source["on"]), mean_s(source["off"])
        share = 1.0 if not math.isfinite(on_s) else on_s / (on_s + off_s) if math.isfinite(off_s) else 0.5
        return float(source["per_s"] * share)
    return float(source["per_s"])


def mean_s(time: Parameters) -> float:
    """The mean of a time, as a plan has it."""
    match time["kind"]:
        case "fixed":
            return float(time["s"])
        case "exponential":
            return float(time["mean_s"])
        case "uniform":
            return float(time["from_s"] + time["to_s"]) / 2
        case _:
            shape = time["shape"]
            return float(shape * time["least_s"] / (shape - 1)) if shape > 1 else math.inf


def _mean_bytes(size: Parameters | None, most_bytes: float) -> float:
    """The mean size of a transfer, of what can be sent in the run; without a law it has no end."""
    most_bytes = max(1.0, most_bytes)
    if size is None:
        return most_bytes
    from ackclock.scenario.traffic import moments

    return min(moments.planned(size).mean_bytes, most_bytes)


def _web(
    arrivals: Parameters, users: float, span_s: float, connection: Connection, rate_bps: float, size_bytes: float
) -> Amount:
    """Pages: a main object, then the others over lanes."""
    main = arrivals["size_main"]
    main_bytes = size_bytes if main is None else _mean_bytes(main, rate_bps * span_s / 8)
    objects = _mean_count(arrivals["objects"])
    turns = math.ceil(objects / arrivals["parallel"])
    each_s = connection.transfer_s(size_bytes, rate_bps)
    page_s = connection.transfer_s(main_bytes, rate_bps) + turns * each_s
    pages = users * _rounds(arrivals["think"], arrivals["pages"], span_s, page_s)
    wire_bytes = connection.on_wire(main_bytes) + objects * connection.on_wire(size_bytes)
    return Amount(pages * (1 + objects), pages * wire_bytes, each_s)


def _mean_count(count: Parameters) -> float:
    match count["kind"]:
        case "fixed":
            return float(count["n"])
        case "geometric":
            return float(count["mean"])
        case _:
            return float(count["from"] + count["to"]) / 2


def _rounds(think: Parameters, limit: int | None, span_s: float, each_s: float) -> float:
    """Return the number of repetitions of a loop."""
    return min(1 + span_s / (each_s + mean_s(think)), math.inf if limit is None else limit)


def _poisson(arrivals: Parameters, pairs: float, span_s: float, each_s: float) -> float:
    return float(arrivals["per_s"]) * span_s


def _periodic(arrivals: Parameters, pairs: float, span_s: float, each_s: float) -> float:
    return 1 + span_s / float(arrivals["every_s"])


def _single(arrivals: Parameters, pairs: float, span_s: float, each_s: float) -> float:
    return pairs


def _sources(arrivals: Parameters, pairs: float, span_s: float, each_s: float) -> float:
    return pairs * _rounds(arrivals["think"], arrivals["transfers"], span_s, each_s)


def _incast(arrivals: Parameters, pairs: float, span_s: float, each_s: float) -> float:
    """A round has the receiver's link for all of its senders."""
    senders, limit = arrivals["senders"], arrivals["rounds"]
    every_s = arrivals["every_s"] or senders * each_s
    return float(senders * min(1 + span_s / every_s, math.inf if limit is None else limit))


_NUMBERS: Mapping[str, Callable[[Parameters, float, float, float], float]] = {
    "poisson": _poisson,
    "periodic": _periodic,
    "once": _single,
    "sources": _sources,
    "incast": _incast,
}
