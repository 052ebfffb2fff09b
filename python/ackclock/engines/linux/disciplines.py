"""Queue disciplines as words for `tc`, and what of their parameters the kernel has not.

A link's discipline is the leaf `10:` of the class `1:1`, where the link's rate is. Sources: tc-pfifo(8), tc-red(8),
tc-codel(8), tc-fq_codel(8), tc-sfq(8), tc-pie(8), tc-fq_pie(8), tc-tbf(8), tc-prio(8), tc-u32(8).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeAlias

from ackclock.plan import LinkPlan, QueuePlan

#: The handle of a link's discipline.
HANDLE = "10:"

#: The flags of TCP, in the 14th byte behind an IPv4 header without options, and the two that open and close.
FLAGS_AT = 20 + 13
SYN, FIN = 0x02, 0x01

#: How tc's filters look for TCP.
TCP = "match ip protocol 6 0xff"

Parameters: TypeAlias = Mapping[str, Any]


def time(seconds: float) -> str:
    """A time for tc, to the nanosecond: 2s, 50ms, 12500us, 33333.333us. It takes no ns."""
    nanoseconds = round(seconds * 1e9)
    for unit, size in (("s", 10**9), ("ms", 10**6)):
        if nanoseconds % size == 0:
            return f"{nanoseconds // size}{unit}"
    return f"{number(nanoseconds / 1000)}us"


def rate(bits_per_second: float) -> str:
    """A rate for tc, in whole bits per second."""
    return f"{round(bits_per_second)}bit"


def number(value: float) -> str:
    """A number for tc: never 1e-05, which it does not read."""
    return f"{value:.10f}".rstrip("0").rstrip(".")


def commands(link: LinkPlan, device: str, priorities: Collection[int]) -> Iterator[str]:
    """What follows `tc -n NODE` to give a device's class `1:1` the link's discipline.

    `priorities` are those that flows have; a filter finds them in the addresses.
    """
    queue = link.queue
    if queue.discipline == "prio":
        yield from _prio(queue.parameters, device, priorities)
    elif queue.discipline in OPENING:
        yield from _opening_first(link, device)
    else:
        yield f"qdisc add dev {device} parent 1:1 handle {HANDLE} {WORDS[queue.discipline](queue.parameters, link)}"


def beyond(queue: QueuePlan) -> Iterator[str]:
    """What of a discipline's parameters the kernel has not."""
    for name, value in FIXED.get(queue.discipline, {}).items():
        if queue.parameters[name] != value:
            yield f'queue discipline "{queue.discipline}" with {name} = {_shown(queue.parameters[name])}'
    for name in WHOLE.get(queue.discipline, ()):
        if queue.parameters[name] != int(queue.parameters[name]):
            yield f'queue discipline "{queue.discipline}" with {name} = {_shown(queue.parameters[name])}'


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else f"{value}"


def _given(words: str, value: object) -> str:
    return f" {words} {value}" if value is not None else ""


def _flag(parameters: Parameters, *names: str) -> str:
    return "".join(f" {name}" for name in names if parameters[name])


def _pfifo(parameters: Parameters, link: LinkPlan) -> str:
    return f"pfifo limit {parameters['limit_packets']}"


def _bfifo(parameters: Parameters, link: LinkPlan) -> str:
    return f"bfifo limit {parameters['limit_bytes']}"


def _red(parameters: Parameters, link: LinkPlan) -> str:
    """Thresholds and burst have the same defaults in tc; idle times are counted at the link's rate, as on the card."""
    return (
        f"red limit {parameters['limit_bytes']}"
        + _given("min", parameters["min_bytes"])
        + _given("max", parameters["max_bytes"])
        + f" avpkt {parameters['avpkt_bytes']}"
        + _given("burst", parameters["burst_packets"])
        + f" probability {number(parameters['probability'])}"
        + f" bandwidth {rate(parameters['bandwidth_bps'] or link.rate_bps)}"
        + _flag(parameters, "ecn", "harddrop", "nodrop", "adaptive")
    )


def _ared(parameters: Parameters, link: LinkPlan) -> str:
    """Thresholds as Floyd, Gummadi and Shenker 2001 set them; the weight is the one that tc finds for its own burst."""
    avpkt_bytes = parameters["avpkt_bytes"]
    target_bytes = link.rate_bps / 8 * parameters["target_s"]
    low_bytes = round(max(target_bytes / 2, parameters["floor_packets"] * avpkt_bytes))
    return (
        f"red limit {parameters['limit_packets'] * avpkt_bytes} min {low_bytes} max {3 * low_bytes} avpkt {avpkt_bytes}"
        f" probability {number(parameters['probability'])} bandwidth {rate(link.rate_bps)}"
        + _flag(parameters, "ecn")
        + " adaptive"
    )


def _codel(parameters: Parameters, link: LinkPlan) -> str:
    return (
        f"codel limit {parameters['limit_packets']} target {time(parameters['target_s'])}"
        f" interval {time(parameters['interval_s'])} {'ecn' if parameters['ecn'] else 'noecn'}"
        + _given("ce_threshold", _time(parameters.get("ce_threshold_s")))
    )


def _fq_codel(parameters: Parameters, link: LinkPlan) -> str:
    return (
        f"fq_codel limit {parameters['limit_packets']} memory_limit {parameters['memory_limit_bytes']}"
        f" flows {parameters['flows']} quantum {parameters['quantum_bytes']} target {time(parameters['target_s'])}"
        f" interval {time(parameters['interval_s'])} drop_batch {parameters['drop_batch']}"
        f" {'ecn' if parameters['ecn'] else 'noecn'}" + _given("ce_threshold", _time(parameters["ce_threshold_s"]))
    )


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else time(seconds)


def _sfq(parameters: Parameters, link: LinkPlan) -> str:
    return (
        f"sfq limit {parameters['limit_packets']} depth {parameters['depth_packets']} flows {parameters['flows']}"
        f" divisor {parameters['divisor']} quantum {parameters['quantum_bytes']}"
        f" perturb {int(parameters['perturb_s'])}" + _flag(parameters, "headdrop")
    )


def _controlled(parameters: Parameters) -> str:
    """What pie and fq_pie have in common."""
    return (
        f" target {time(parameters['target_s'])} tupdate {time(parameters['tupdate_s'])}"
        f" alpha {int(parameters['alpha'])} beta {int(parameters['beta'])}"
        f" {'ecn' if parameters['ecn'] else 'noecn'} {'bytemode' if parameters['bytemode'] else 'nobytemode'}"
        f" {'dq_rate_estimator' if parameters['dq_rate_estimator'] else 'no_dq_rate_estimator'}"
    )


def _pie(parameters: Parameters, link: LinkPlan) -> str:
    return f"pie limit {parameters['limit_packets']}" + _controlled(parameters)


def _fq_pie(parameters: Parameters, link: LinkPlan) -> str:
    return (
        f"fq_pie limit {parameters['limit_packets']} flows {parameters['flows']} quantum {parameters['quantum_bytes']}"
        f" ecn_prob {int(parameters['ecn_prob'])}" + _controlled(parameters)
    )


def _tbf(parameters: Parameters, link: LinkPlan) -> str:
    limit_bytes, latency_s = parameters["limit_bytes"], parameters["latency_s"]
    if latency_s is not None:
        limit_bytes = min(limit_bytes, int(parameters["rate_bps"] / 8 * latency_s + parameters["burst_bytes"]))
    return f"tbf rate {rate(parameters['rate_bps'])} burst {parameters['burst_bytes']} limit {limit_bytes}"


def _prio(parameters: Parameters, device: str, priorities: Collection[int]) -> Iterator[str]:
    """Each band is a FIFO. Priorities do not survive a router, so a filter finds them in the addresses."""
    count, priomap, limit_p = parameters["bands"], parameters["priomap"], parameters["limit_packets"]
    yield f"qdisc add dev {device} parent 1:1 handle {HANDLE} prio bands {count} priomap {priomap}"
    for band in range(1, count + 1):
        yield f"qdisc add dev {device} parent {HANDLE}{band:x} handle {0x10 + band:x}: pfifo limit {limit_p}"
    for priority in sorted(set(priorities) - {0}):
        match = f"match ip src 10.{16 * priority}.0.0/12"
        yield _filter(device, match, int(priomap.split()[priority]) + 1)


#: Disciplines that let what opens a connection, or closes it, go first → the flags of these packets.
OPENING: Mapping[str, tuple[int, ...]] = {"synprio": (SYN,), "synfinprio": (SYN, FIN), "spa": (SYN, FIN)}


def _opening_first(link: LinkPlan, device: str) -> Iterator[str]:
    """Two bands, each a FIFO or under CoDel; a filter for each flag leads to the first."""
    queue, parameters = link.queue, link.queue.parameters
    leaf = _codel(parameters, link) if queue.discipline == "spa" else _pfifo(parameters, link)
    yield f"qdisc add dev {device} parent 1:1 handle {HANDLE} prio bands 2 priomap {' '.join('1' * 16)}"
    for band in (1, 2):
        yield f"qdisc add dev {device} parent 10:{band} handle 1{band}: {leaf}"
    for flag in OPENING[queue.discipline]:
        yield _filter(device, flagged(flag), 1)


def flagged(flag: int) -> str:
    """A match for TCP packets with a flag."""
    return f"{TCP} match u8 0x{flag:02x} 0x{flag:02x} at {FLAGS_AT}"


def _filter(device: str, match: str, band: int) -> str:
    return f"filter add dev {device} parent {HANDLE} protocol ip prio 1 u32 {match} flowid {HANDLE}{band:x}"


#: Discipline → its words, from its parameters and link.
WORDS: Mapping[str, Callable[[Parameters, LinkPlan], str]] = {
    "pfifo": _pfifo,
    "bfifo": _bfifo,
    "red": _red,
    "ared": _ared,
    "codel": _codel,
    "fq_codel": _fq_codel,
    "sfq": _sfq,
    "pie": _pie,
    "fq_pie": _fq_pie,
    "tbf": _tbf,
}

NAMES = frozenset({*WORDS, *OPENING, "prio"})

#: What is fixed in the kernel, by discipline; another value is refused.
FIXED: Mapping[str, Parameters] = {
    "red": {"weight": None, "gentle": False, "bytes": True, "weighted": False},
    "ared": {"interval_s": 0.5, "gentle": False, "bytes": True},
    "codel": {"newton": True},
    "fq_codel": {"newton": True},
    "spa": {"newton": True},
    "pie": {"ecn_threshold": 0.1, "max_burst_s": 0.15, "derandomize": True, "mtu_bytes": 1514},
    "fq_pie": {"max_burst_s": 0.15, "derandomize": True, "mtu_bytes": 1514},
    "tbf": {"per_flow": False},
}

#: What tc takes whole numbers of.
WHOLE: Mapping[str, tuple[str, ...]] = {
    "pie": ("alpha", "beta"),
    "fq_pie": ("alpha", "beta", "ecn_prob"),
    "sfq": ("perturb_s",),
}
