"""Import data files of flent ("The Data File Format"): a TCP series is a flow; a ping, UDP or VoIP one of datagrams.

A series has its values at the common `x_values`, in Mbit/s, kbit/s (VoIP) or ms; what is drawn of others (sums, means,
totals) is left out, since the metrics take it themselves. `NAME::tcp_cwnd` and `NAME::tcp_rtt`, which flent samples
with ss, are the window (segments) and the smoothed RTT (ms) of the flow NAME. Our reading:

- A rate holds from the instant before to its own, so the bytes are its integral.
- The goodput of a flow is flent's own mean, that of its statistics (`flent -f stats`): over the values of its series
  that are neither null nor 0. What is measured is the time in which TCP series have values, as in flent's plots
  (`cutoff`): pings go on for some seconds before and after.
- The RTTs that pings measured are samples of their own flow. VoIP's delay is one-way, by two clocks, and left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise

from ackclock.errors import InputError
from ackclock.importers.measurements import DATAGRAMS, UNKNOWN, Flow, FlowSample, Run, seconds
from ackclock.importers.text import Text, Value
from ackclock.partial_plan import LONGEST_S
from ackclock.system.files import printable, readable

#: Names of series: those of TCP flows, of pings, of other datagrams with their rates, and what is computed of others.
_TCP, _PING = re.compile(r"(TCP|HTTP) (upload|download)\b.*"), re.compile(r"Ping \(ms\).*")
_UDP, _VOIP = re.compile(r"UDP (upload|download|flood)\b.*"), re.compile(r"VoIP\b.*")
_COMPUTED = re.compile(r".*\b(sum|avg|totals?|mean|max|min|fairness)$")

#: Suffixes of a flow's further series.
_CWND, _RTT = "::tcp_cwnd", "::tcp_rtt"
_BITRATE, _LOSS = "::bitrate", "::loss"

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
    names = dict.fromkeys(_owner(name) for name in series)
    flows = {name: flow for name in names if (flow := _flow(name, series, times_s, about))}
    if not flows:
        raise _no_flows(given, about, series)
    tcp = [flow for name, flow in flows.items() if _is_tcp(name)]
    return Run(
        list(flows.values()),
        name=" ".join(filter(None, (about["NAME"].text(), about["TITLE"].text()))) or None,
        loaded_s=(min(map(_start_s, tcp)), max(map(_end_s, tcp))) if tcp else None,
        metrics=_metrics(flows, {name: _own_mean_bps(name, series, times_s) for name in flows if not _is_ping(name)}),
    )


def _start_s(flow: Flow) -> float:
    return flow.start_s or 0.0


def _end_s(flow: Flow) -> float:
    return flow.end_s or 0.0


def _owner(name: str) -> str:
    """Return the series to which a further series of a VoIP flow belongs; other names are their own."""
    return name.partition("::")[0] if _VOIP.fullmatch(name) else name


def _own_mean_bps(name: str, series: Mapping[str, Value], times_s: Sequence[float]) -> float:
    """Return flent's mean of a series of rates: over its values that are neither null nor 0."""
    values = [rate for _, rate in _rates_bps(name, series, times_s) if rate]
    return math.fsum(values) / len(values) if values else 0.0


def _metrics(flows: Mapping[str, Flow], rates_bps: Mapping[str, float]) -> dict[str, float | list[float]]:
    """Return the goodputs: of all TCP flows, of each, of each direction if there are both, and of UDP."""
    tcp = {name: rate for name, rate in rates_bps.items() if _is_tcp(name)}
    udp = [rate for name, rate in rates_bps.items() if name not in tcp]
    result: dict[str, float | list[float]] = {"udp_goodput_bps": math.fsum(udp)} if udp else {}
    if tcp:
        result |= {"goodput_bps": math.fsum(tcp.values()), "goodput_flow_bps": list(tcp.values())}
    directions = {flows[name].direction for name in tcp}
    for direction in ("up", "down") if len(directions) > 1 else ():
        own = [rate for name, rate in tcp.items() if flows[name].direction == direction]
        result[f"goodput_{direction}_bps"] = math.fsum(own)
    return result


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


def _flow(name: str, series: Mapping[str, Value], times_s: Sequence[float], about: Value) -> Flow | None:
    """Return the flow of a series; None for a series that is no flow, or has no values."""
    if not _is_flow(name) or not (samples := _samples(name, series, times_s)):
        return None
    is_down = "download" in name
    near, far = about["LOCAL_HOST"].text(), about["HOST"].text()
    return Flow(
        group=printable(name),
        direction=None if _is_ping(name) else "down" if is_down else "up",
        samples=samples,
        congestion=_congestion(about, name) if _is_tcp(name) else DATAGRAMS,
        source=far if is_down else near,
        destination=near if is_down else far,
        start_s=samples[0].time_s,
        end_s=samples[-1].time_s,
        counts={} if _is_tcp(name) or _is_ping(name) else _counts(name, samples, series, times_s),
    )


def _samples(name: str, series: Mapping[str, Value], times_s: Sequence[float]) -> list[FlowSample]:
    if _is_ping(name):
        return [FlowSample(at_s, srtt_s=seconds(ms)) for at_s, ms in _valued(series[name], times_s)]
    return _rate_samples(_rates_bps(name, series, times_s), times_s, _of_socket(name, series, times_s))


def _rates_bps(name: str, series: Mapping[str, Value], times_s: Sequence[float]) -> list[tuple[float, float]]:
    """Return the rates of a series, which is in Mbit/s, of VoIP in kbit/s and perhaps a further series."""
    is_voip = _VOIP.fullmatch(name) is not None
    values = series.get(name + _BITRATE if is_voip else name) or series.get(name)
    scale = 1e3 if is_voip else 1e6
    return [(at_s, scale * rate) for at_s, rate in _valued(values, times_s)] if values else []


def _is_ping(name: str) -> bool:
    return _PING.fullmatch(name) is not None


def _is_tcp(name: str) -> bool:
    return _TCP.fullmatch(name) is not None and not _COMPUTED.fullmatch(name) and "::tcp_" not in name


def _is_flow(name: str) -> bool:
    is_datagrams = any(kind.fullmatch(name) for kind in (_PING, _UDP, _VOIP)) and not _COMPUTED.fullmatch(name)
    return _is_tcp(name) or is_datagrams


def _counts(
    name: str, samples: Sequence[FlowSample], series: Mapping[str, Value], times_s: Sequence[float]
) -> dict[str, float | None]:
    """Return what arrived of datagrams with a rate, and of VoIP what was lost."""
    lost = _valued(series[name + _LOSS], times_s) if name + _LOSS in series else None
    return {
        "delivered_bytes": samples[-1].delivered_bytes,
        "dropped_packets": None if lost is None else math.fsum(count for _, count in lost),
    }


def _of_socket(name: str, series: Mapping[str, Value], times_s: Sequence[float]) -> dict[str, dict[float, float]]:
    """Return window and RTT that ss reported for a flow, by time."""
    return {key: dict(_valued(series[name + key], times_s)) for key in (_CWND, _RTT) if name + key in series}


def _valued(values: Value, times_s: Sequence[float]) -> list[tuple[float, float]]:
    """Return the instants that have a value."""
    if len(values.items) != len(times_s):
        values.wrong(f"{len(times_s)} values, as x_values has")
    result = [(at_s, item.number()) for at_s, item in zip(times_s, values.items, strict=True)]
    return [(at_s, value) for at_s, value in result if value is not None]


def _rate_samples(
    rates_bps: Sequence[tuple[float, float]], times_s: Sequence[float], more: Mapping[str, Mapping[float, float]]
) -> list[FlowSample]:
    """Return samples of the bytes delivered, from the instant before the first rate, and of what ss reported."""
    if not rates_bps:
        return []
    first = times_s.index(rates_bps[0][0])
    rates_bps = [*([(times_s[first - 1], 0.0)] if first > 0 else []), *rates_bps]
    cwnd, rtt_ms = more.get(_CWND, {}), more.get(_RTT, {})
    return [
        FlowSample(at_s, cwnd=cwnd.get(at_s), srtt_s=seconds(rtt_ms.get(at_s)), delivered_bytes=total)
        for (at_s, _), total in zip(rates_bps, _delivered_bytes(rates_bps), strict=True)
    ]


def _delivered_bytes(rates_bps: Sequence[tuple[float, float]]) -> Iterator[float]:
    """Integrate a rate, which is unknown before its first instant."""
    steps = pairwise([rates_bps[0], *rates_bps])
    return accumulate(bps / 8 * min(at_s - before_s, LONGEST_S) for (before_s, _), (at_s, bps) in steps)


def _congestion(about: Value, name: str) -> str:
    """Return the CCA of a series' own metadata; the host's default need not be what a flow used."""
    series_metadata = about["SERIES_META"]
    return (
        series_metadata[name]["CONGESTION_CONTROL"].text() if series_metadata and series_metadata[name] else None
    ) or UNKNOWN
