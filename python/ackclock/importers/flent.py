"""Import data files of flent ("The Data File Format"): a TCP series is a flow, a ping one of datagrams.

A series has its values at the common `x_values`, in Mbit/s or ms; what is drawn of others (sums, means, totals) is left
out, since the metrics take it themselves. `NAME::tcp_cwnd` and `NAME::tcp_rtt`, which flent samples with ss, are the
window (segments) and the smoothed RTT (ms) of the flow NAME. Our reading: a rate holds from one instant to the next, so
the bytes are its integral; the RTTs that pings measured are the samples of their own flow, of no TCP's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise

from ackclock.errors import InputError
from ackclock.importers.measurements import DATAGRAMS, UNKNOWN, Flow, FlowSample, Run, seconds
from ackclock.importers.text import Text, Value
from ackclock.partial_plan import LONGEST_S
from ackclock.system.files import printable, readable

#: Names of series: those of TCP flows, those of pings, and what is computed of others.
_TCP, _PING = re.compile(r"(TCP|HTTP) (upload|download)\b.*"), re.compile(r"Ping \(ms\).*")
_COMPUTED = re.compile(r".*\b(sum|avg|totals?|mean|max|min|fairness)$")

#: Suffixes of a flow's further series.
_CWND, _RTT = "::tcp_cwnd", "::tcp_rtt"

#: Versions of the format that are known: 1 had no number.
VERSIONS = (None, 1, 2, 3, 4)


def recognises(given: Text) -> bool:
    """Return True if the text looks like a flent data file."""
    return given.is_json and given.json.value.keys() >= {"x_values", "results", "metadata"}


def read(files: Sequence[Text]) -> Iterator[Run]:
    """Return a run for each file. Raises `InputError`."""
    return map(_run, files)


def _run(given: Text) -> Run:
    document = given.json
    if document["version"].value not in VERSIONS:
        document["version"].wrong(f"a version up to {VERSIONS[-1]}")
    about, series = document["metadata"], document["results"].table
    times_s = _times_s(given, document["x_values"])
    flows = [flow for name, values in series.items() if (flow := _flow(name, values, series, times_s, about))]
    if not flows:
        raise _no_flows(given, about, series)
    return Run(flows, name=" ".join(filter(None, (about["NAME"].text(), about["TITLE"].text()))) or None)


def _times_s(given: Text, values: Value) -> list[float]:
    times_s = [value.time_s() for value in values.items]
    if any(later <= earlier for earlier, later in pairwise(times_s)):
        raise InputError(f"{readable(given.path)}: x_values: found times that do not grow; expected growing ones")
    return times_s


def _no_flows(given: Text, about: Value, series: Mapping[str, Value]) -> InputError:
    empty = " without a value" if any(map(_is_flow, series)) else ""
    result = f"the test {about['NAME'].text()!r} with {', '.join(sorted(series)[:4]) or 'no series'}{empty}"
    expected = 'series of TCP ("TCP upload…", "TCP download…") or of pings ("Ping (ms)…")'
    return InputError(f"{readable(given.path)}: results: found {printable(result)}; expected {expected}")


def _flow(name: str, values: Value, series: Mapping[str, Value], times_s: Sequence[float], about: Value) -> Flow | None:
    """Return the flow of a series; None for a series that is no flow."""
    if not _is_flow(name) or not (valid := _valued(values, times_s)):
        return None
    if _is_ping(name):
        samples = [FlowSample(at_s, srtt_s=seconds(ms)) for at_s, ms in valid]
    else:
        samples = _tcp_samples(valid, _of_socket(name, series, times_s))
    near, far = about["LOCAL_HOST"].text(), about["HOST"].text()
    source, destination = (far, near) if "download" in name else (near, far)
    return Flow(
        group=printable(name),
        samples=samples,
        congestion=DATAGRAMS if _is_ping(name) else _congestion(about, name),
        source=source,
        destination=destination,
        start_s=samples[0].time_s,
        end_s=samples[-1].time_s,
    )


def _is_ping(name: str) -> bool:
    return _PING.fullmatch(name) is not None


def _is_flow(name: str) -> bool:
    is_own = _TCP.fullmatch(name) is not None or _is_ping(name)
    return is_own and not _COMPUTED.fullmatch(name) and "::tcp_" not in name


def _of_socket(name: str, series: Mapping[str, Value], times_s: Sequence[float]) -> dict[str, dict[float, float]]:
    """Return window and RTT that ss reported for a flow, by time."""
    return {key: dict(_valued(series[name + key], times_s)) for key in (_CWND, _RTT) if name + key in series}


def _valued(values: Value, times_s: Sequence[float]) -> list[tuple[float, float]]:
    """Return the instants that have a value."""
    if len(values.items) != len(times_s):
        values.wrong(f"{len(times_s)} values, as x_values has")
    result = [(at_s, item.number()) for at_s, item in zip(times_s, values.items, strict=True)]
    return [(at_s, value) for at_s, value in result if value is not None]


def _tcp_samples(
    rates_mbps: Sequence[tuple[float, float]], more: Mapping[str, Mapping[float, float]]
) -> list[FlowSample]:
    cwnd, rtt_ms = more.get(_CWND, {}), more.get(_RTT, {})
    return [
        FlowSample(at_s, cwnd=cwnd.get(at_s), srtt_s=seconds(rtt_ms.get(at_s)), delivered_bytes=total)
        for (at_s, _), total in zip(rates_mbps, _delivered_bytes(rates_mbps), strict=True)
    ]


def _delivered_bytes(rates_mbps: Sequence[tuple[float, float]]) -> Iterator[float]:
    """Integrate a rate, which is unknown before its first instant."""
    steps = pairwise([rates_mbps[0], *rates_mbps])
    return accumulate(mbps * 1e6 / 8 * min(at_s - before_s, LONGEST_S) for (before_s, _), (at_s, mbps) in steps)


def _congestion(about: Value, name: str) -> str:
    """Return the CCA of a series' own metadata; the host's default need not be what a flow used."""
    series_metadata = about["SERIES_META"]
    return (
        series_metadata[name]["CONGESTION_CONTROL"].text() if series_metadata and series_metadata[name] else None
    ) or UNKNOWN
