"""Data files of flent (its documentation: "The Data File Format"): a TCP series is a flow, a ping is one of datagrams.

A series has its values at the common `x_values`, in Mbit/s or ms; what is drawn of others (sums, means, totals) is left
out, since the metrics take it themselves. `NAME::tcp_cwnd` and `NAME::tcp_rtt`, which flent samples with ss, are the
window (segments) and the smoothed RTT (ms) of the flow NAME. Our reading: a rate holds from one instant to the next, so
the bytes are its integral; the RTTs that pings measured are the samples of their own flow, of no TCP's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from ackclock.errors import InputError
from ackclock.importing.measured import DATAGRAMS, UNKNOWN, Flow, FlowSample, Run
from ackclock.importing.text import Text, Value
from ackclock.known import LONGEST_S
from ackclock.system.files import printable, readable

#: Names of series: those of TCP flows, those of pings, and what is computed of others.
_TCP, _PING = re.compile(r"(TCP|HTTP) (upload|download)\b.*"), re.compile(r"Ping \(ms\).*")
_COMPUTED = re.compile(r".*\b(sum|avg|totals?|mean|max|min|fairness)$")

#: What follows the name of a flow in the name of a series of its own.
_CWND, _RTT = "::tcp_cwnd", "::tcp_rtt"

#: Versions of the format that are known: 1 had no number.
VERSIONS = (None, 1, 2, 3, 4)


def recognises(given: Text) -> bool:
    """Whether it looks like one."""
    return given.is_json and given.json.value.keys() >= {"x_values", "results", "metadata"}


def read(files: Sequence[Text]) -> Iterator[Run]:
    """A run for each file. Raises `InputError`."""
    return map(_run, files)


def _run(given: Text) -> Run:
    whole = given.json
    if whole["version"].value not in VERSIONS:
        whole["version"].wrong(f"a version up to {VERSIONS[-1]}")
    about, series = whole["metadata"], whole["results"].table
    times_s = [value.time_s() for value in whole["x_values"].items]
    if any(later <= earlier for earlier, later in pairwise(times_s)):
        raise InputError(f"{readable(given.path)}: x_values: found times that do not grow; expected growing ones")
    flows = [flow for name, values in series.items() if (flow := _flow(name, values, series, times_s, about))]
    if not flows:
        found = f"the test {about['NAME'].text()!r} with {', '.join(sorted(series)[:4]) or 'no series'}"
        expected = 'series of TCP ("TCP upload…", "TCP download…") or of pings ("Ping (ms)…")'
        raise InputError(f"{readable(given.path)}: results: found {printable(found)}; expected {expected}")
    title = " ".join(filter(None, (about["NAME"].text(), about["TITLE"].text())))
    return Run(flows, name=title or None)


def _flow(name: str, values: Value, series: Mapping[str, Value], times_s: Sequence[float], about: Value) -> Flow | None:
    """The flow of a series; None for a series that is no flow."""
    is_tcp, is_ping = _TCP.fullmatch(name) is not None, _PING.fullmatch(name) is not None
    if not (is_tcp or is_ping) or _COMPUTED.fullmatch(name) or "::tcp_" in name:
        return None
    known = _known(values, times_s)
    if not known:
        return None
    near, far = about["LOCAL_HOST"].text(), about["HOST"].text()
    up = "download" not in name
    if is_ping:
        samples = [FlowSample(at_s, srtt_s=1e-3 * ms) for at_s, ms in known]
    else:
        samples = _tcp_samples(
            known, {key: dict(_known(series[name + key], times_s)) for key in (_CWND, _RTT) if name + key in series}
        )
    return Flow(
        group=printable(name),
        samples=samples,
        congestion=DATAGRAMS if is_ping else _congestion(about, name),
        source=near if up else far,
        destination=far if up else near,
        start_s=samples[0].time_s,
        end_s=samples[-1].time_s,
    )


def _known(values: Value, times_s: Sequence[float]) -> list[tuple[float, float]]:
    """Instants that have a value."""
    if len(values.items) != len(times_s):
        values.wrong(f"{len(times_s)} values, as x_values has")
    found = [(at_s, item.number()) for at_s, item in zip(times_s, values.items, strict=True)]
    return [(at_s, value) for at_s, value in found if value is not None]


def _tcp_samples(
    rates_mbps: Sequence[tuple[float, float]], more: Mapping[str, Mapping[float, float]]
) -> list[FlowSample]:
    total = 0.0
    samples = []
    for number, (at_s, mbps) in enumerate(rates_mbps):
        before_s = rates_mbps[number - 1][0] if number else at_s
        total += mbps * 1e6 / 8 * min(at_s - before_s, LONGEST_S)
        rtt_ms = more.get(_RTT, {}).get(at_s)
        samples.append(
            FlowSample(
                at_s,
                cwnd=more.get(_CWND, {}).get(at_s),
                srtt_s=None if rtt_ms is None else 1e-3 * rtt_ms,
                delivered_bytes=total,
            )
        )
    return samples


def _congestion(about: Value, name: str) -> str:
    """What a series' own metadata says; what the host has set is not what a flow must have used."""
    told = about["SERIES_META"]
    return (told[name]["CONGESTION_CONTROL"].text() if told and told[name] else None) or UNKNOWN
