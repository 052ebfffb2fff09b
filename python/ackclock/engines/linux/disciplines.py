"""Queue disciplines as words for `tc`, and what of their parameters the kernel has not.

A spec has its discipline's words; what needs arithmetic or several commands is here. A link's discipline is the leaf
`10:` of the class `1:1`, where the link's rate is. Sources: tc-pfifo(8), tc-red(8), tc-codel(8), tc-fq_codel(8),
tc-sfq(8), tc-pie(8), tc-fq_pie(8), tc-tbf(8), tc-prio(8), tc-cake(8),
tc-u32(8).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from ackclock import algorithms
from ackclock.algorithms.kernel import Word
from ackclock.plan import LinkPlan, QueuePlan

#: The disciplines that the kernel has, by their specs.
NAMES = frozenset(algorithms.in_linux("queue"))

#: Disciplines that distinguish hosts: each group of flows then has separate hosts.
HOST_AWARE = frozenset({"cake"})

#: The handle of a link's discipline.
HANDLE = "10:"

#: The flags of TCP, in the 14th byte behind an IPv4 header without options, and the two that open and close.
FLAGS_AT = 20 + 13
SYN, FIN = 0x02, 0x01

#: Match of TCP in tc's u32 filters.
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
    """Yield the arguments of `tc -n NODE` that put the link's qdisc into a device's class `1:1`.

    `priorities` are those that flows have; a filter finds them in the addresses.
    """
    name, parameters = link.queue.discipline, link.queue.parameters
    words = _tc_arguments(name, COMPUTED[name](parameters, link) if name in COMPUTED else parameters)
    if name == "prio":
        yield from _prio(words, parameters, device, priorities)
    elif name in OPENING:
        yield from _opening_first(words, OPENING[name], device)
    else:
        yield f"qdisc add dev {device} parent 1:1 handle {HANDLE} {words}"


def unsupported(queue: QueuePlan) -> Iterator[str]:
    """Yield what of a qdisc's parameters the kernel lacks."""
    spec, given = algorithms.spec("queue", queue.discipline), queue.parameters
    words = spec.kernel_parameters(Word)
    whole = [spec.key(name) for name in spec.parameters if name in words and words[name].is_integer]
    finer = [key for key, value in spec.fixed.items() if given[key] != value]
    finer += [key for key in whole if given[key] != int(given[key])]
    yield from (f'queue discipline "{queue.discipline}" with {key} = {_shown(given[key])}' for key in finer)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else f"{value}"


def _tc_arguments(name: str, parameters: Parameters) -> str:
    """A discipline and its parameters, by its spec or that of the one that it is made of."""
    linux = algorithms.spec("queue", name).linux
    spec = algorithms.spec("queue", (linux and linux.discipline) or name)
    words = [spec.name]
    for key, word in spec.kernel_parameters(Word).items():
        words += _word(word, spec.parameters[key].kind, parameters.get(spec.key(key)))
    return " ".join(words)


def _word(word: Word, kind: str, value: Any) -> list[str]:
    """The words of one parameter: none where it is not given, or false, and tc has no word for that."""
    if value is None or kind == "boolean":
        words = [word.word if value else word.otherwise]
    elif kind == "choice":
        words = [word.word, word.values.get(value, value)]
    else:
        words = [word.word, str(int(value)) if word.is_integer else FORMS.get(kind, str)(value)]
    return [found for found in words if found]


#: Formats of tc's arguments by the kind of the parameter; others are written as they are.
FORMS: Mapping[str, Callable[[Any], str]] = {"time": time, "rate": rate, "number": number}


def _red(parameters: Parameters, link: LinkPlan) -> Parameters:
    """Thresholds and burst have the same defaults in tc; idle times are counted at the link's rate, as on the spec."""
    return {**parameters, "bandwidth_bps": parameters["bandwidth_bps"] or link.rate_bps}


def _ared(parameters: Parameters, link: LinkPlan) -> Parameters:
    """Thresholds as Floyd, Gummadi and Shenker 2001 set them; the weight is the one that tc finds for its own burst."""
    avpkt_bytes = parameters["avpkt_bytes"]
    target_bytes = link.rate_bps / 8 * parameters["target_s"]
    low_bytes = round(max(target_bytes / 2, parameters["floor_packets"] * avpkt_bytes))
    return {
        **parameters,
        "limit_bytes": parameters["limit_packets"] * avpkt_bytes,
        "min_bytes": low_bytes,
        "max_bytes": 3 * low_bytes,
        "bandwidth_bps": link.rate_bps,
        "adaptive": True,
    }


def _tbf(parameters: Parameters, link: LinkPlan) -> Parameters:
    """A latency is a limit, too: what comes in that time, and the burst."""
    limit_bytes, latency_s = parameters["limit_bytes"], parameters["latency_s"]
    if latency_s is not None:
        limit_bytes = min(limit_bytes, int(parameters["rate_bps"] / 8 * latency_s + parameters["burst_bytes"]))
    return {**parameters, "limit_bytes": limit_bytes}


#: Disciplines of which tc is told other values than a plan has → these, from the plan's and the link.
COMPUTED: Mapping[str, Callable[[Parameters, LinkPlan], Parameters]] = {"red": _red, "ared": _ared, "tbf": _tbf}


def _prio(words: str, parameters: Parameters, device: str, priorities: Collection[int]) -> Iterator[str]:
    """Each band is a FIFO. Priorities do not survive a router, so a filter finds them in the addresses."""
    count, priomap, limit_p = parameters["bands"], parameters["priomap"], parameters["limit_packets"]
    yield f"qdisc add dev {device} parent 1:1 handle {HANDLE} {words}"
    for band in range(1, count + 1):
        yield f"qdisc add dev {device} parent {HANDLE}{band:x} handle {0x10 + band:x}: pfifo limit {limit_p}"
    for priority in sorted(set(priorities) - {0}):
        match = f"match ip src 10.{16 * priority}.0.0/12"
        yield _filter(device, match, int(priomap.split()[priority]) + 1)


#: Disciplines that let what opens a connection, or closes it, go first → the flags of these packets.
OPENING: Mapping[str, tuple[int, ...]] = {"synprio": (SYN,), "synfinprio": (SYN, FIN), "spa": (SYN, FIN)}


def _opening_first(leaf: str, flags: Iterable[int], device: str) -> Iterator[str]:
    """Two bands, each a FIFO or under CoDel; a filter for each flag leads to the first."""
    yield f"qdisc add dev {device} parent 1:1 handle {HANDLE} prio bands 2 priomap {' '.join('1' * 16)}"
    for band in (1, 2):
        yield f"qdisc add dev {device} parent 10:{band} handle 1{band}: {leaf}"
    for flag in flags:
        yield _filter(device, flagged(flag), 1)


def flagged(flag: int) -> str:
    """A match for TCP packets with a flag."""
    return f"{TCP} match u8 0x{flag:02x} 0x{flag:02x} at {FLAGS_AT}"


def _filter(device: str, match: str, band: int) -> str:
    return f"filter add dev {device} parent {HANDLE} protocol ip prio 1 u32 {match} flowid {HANDLE}{band:x}"
