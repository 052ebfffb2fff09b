"""The plans of groups and of the flows of `[[flows]]`, TCP and QUIC.

A group has the complete TCP and congestion control parameters of its flows. Base RTTs of flows may be not quite alike
(`rtt_spread`). QUIC connections are flows over UDP.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ackclock import algorithms
from ackclock.algorithms.selection import Given
from ackclock.errors import ScenarioError
from ackclock.input.fields import Loc, Spread
from ackclock.input.source import Source
from ackclock.input.units import Size
from ackclock.plan import (
    HEADER_BYTES,
    TIMESTAMPS_BYTES,
    UDP_HEADER_BYTES,
    DatagramPlan,
    FlowPlan,
    GroupPlan,
    PathPlan,
    TcpPlan,
)
from ackclock.scenario.keys import DEFAULT_STACK
from ackclock.scenario.planning import sizes
from ackclock.scenario.topology.network import Drawing, Hosts, Way
from ackclock.scenario.topology.topology import Placed
from ackclock.scenario.traffic.flows import Flows, Sending, Transfers

if TYPE_CHECKING:
    from ackclock.scenario.traffic.datagrams import Datagrams
    from ackclock.scenario.traffic.quic import QuicFlows


#: Decimals of a second that an engine can tell apart.
PICOSECOND_DIGITS = 12


def flow_plans(flows: Flows, group: int, tcp: TcpPlan, ways: Sequence[Way]) -> Iterator[FlowPlan]:
    """The flows of one table: for each source's way, `streams` of them."""
    for number, way in enumerate(ways):
        plan = FlowPlan(
            group=group,
            start_s=round(flows.start.at + number * flows.start.every, PICOSECOND_DIGITS),
            start_jitter_s=flows.start.jitter,
            stop_s=flows.stop,
            size_bytes=transfer_bytes(nth(flows.size, number, len(ways)), tcp),
            request_bytes=None if flows.request is None else int(flows.request),
            application_rate_bps=nth(flows.application_rate, number, len(ways)),
            priority=flows.priority,
            ends=way.ends,
            forward=way.forward,
            reverse=way.reverse,
            base_rtt_s=way.base_rtt_s,
        )
        for _ in range(flows.streams):
            yield plan


def nth(spread: Spread | None, number: int, sources: int) -> Any:
    """Return the value of a source; None without a spread."""
    return spread.at(number, sources) if spread else None


def transfer_bytes(size: Size | None, tcp: TcpPlan) -> int | None:
    """A size in bytes, or in full segments."""
    if size is None:
        return None
    return max(1, round(size.value * (tcp.mss_bytes if size.unit == "p" else 1)))


def spread(drawing: Drawing, tables: Sequence[tuple[Loc, Placed]], seed: int, source: Source) -> Drawing:
    """The drawing in which each way of a group with a spread is longer or shorter by a draw.

    Half of that is on the way there. Raises `ScenarioError` for a spread that is more than a way has.
    """
    if not any(table.rtt_spread for _, table in tables):
        return drawing
    places = zip(drawing.places, tables, strict=True)
    return replace(drawing, places=tuple(_place(where, *listed, seed, source) for where, listed in places))


def _place(
    where: tuple[Way, ...] | Hosts, place: Loc, table: Placed, seed: int, source: Source
) -> tuple[Way, ...] | Hosts:
    if not table.rtt_spread or isinstance(where, Hosts):
        return where
    most_s = min(2 * path.delay_s for way in where for path in (way.forward, way.reverse))
    if table.rtt_spread > most_s:
        found, expected = (
            f"{table.rtt_spread:g} s",
            f"at most {most_s:g} s, what the shortest way leaves",
        )
        raise ScenarioError([source.problem((*place, "rtt_spread"), found, expected)])
    return tuple(_moved(where, table.rtt_spread, random.Random(f"{seed} {place}")))


def _moved(ways: Sequence[Way], spread_s: float, draws: random.Random) -> Iterator[Way]:
    for way in ways:
        by_s = spread_s * (2 * draws.random() - 1)
        forward, reverse = (_longer(path, by_s / 2) for path in (way.forward, way.reverse))
        yield replace(way, forward=forward, reverse=reverse, base_rtt_s=_rounded(way.base_rtt_s + by_s))


def _longer(path: PathPlan, by_s: float) -> PathPlan:
    return replace(path, delay_s=_rounded(path.delay_s + by_s))


def _rounded(time_s: float) -> float:
    return round(time_s, PICOSECOND_DIGITS)


def quic_plans(flows: QuicFlows, group: int, ways: Sequence[Way], *, qlog: bool) -> Iterator[DatagramPlan]:
    """The connections of one table: one for each source's way."""
    for number, way in enumerate(ways):
        yield DatagramPlan(
            group=group,
            start_s=round(flows.start.at + number * flows.start.every, PICOSECOND_DIGITS),
            stop_s=flows.stop,
            priority=flows.priority,
            ends=way.ends,
            forward=way.forward,
            reverse=way.reverse,
            payload_bytes=flows.payload_bytes,
            header_bytes=UDP_HEADER_BYTES,
            source=flows.source(nth(flows.size, number, len(ways)), qlog=qlog),
            base_rtt_s=way.base_rtt_s,
        )


#: Names of the choices of `delayed_ack` in a plan.
DELAYED_ACK: Mapping[object, str] = {False: "off", True: "on", "quick": "quick"}


def group_plan(group: Transfers, common: Given, place: Loc, source: Source) -> GroupPlan:
    """A group of TCP flows. `common` is `[tcp]`; `place` is the group's, for what does not fit together."""
    congestion = _congestion(group, common)
    spec = algorithms.spec("congestion", str(congestion.name))
    values = spec.complete(congestion.values, congestion.variant)
    complete = {spec.key(name): _plain(spec, name, value) for name, value in values.items()}
    control = sizes.congestion_plan(spec.name, complete, (*place, "congestion"), source)
    tcp = _tcp(group, common, spec.ecn or "off", place, source)
    if group.request is not None and group.request > tcp.mss_bytes:
        found, expected = f"{group.request:g} B", f"at most {tcp.mss_bytes} B: a request is one segment"
        raise ScenarioError([source.problem((*place, "request"), found, expected)])
    name = group.name or _default_name(spec.name, group)
    readers, misbehaviour = _slow_reader(group, tcp, place, source), _misbehaviour(group, tcp, place, source)
    return GroupPlan(name, control, tcp, readers, _writes(group, place, source), misbehaviour, group.dscp)


def _writes(group: Transfers, place: Loc, source: Source) -> Mapping[str, Any] | None:
    """The messages of the application at the senders, which then has no rate."""
    if group.writes is not None and getattr(group, "application_rate", None) is not None:
        expected = "either writes or an application_rate"
        raise ScenarioError([source.problem((*place, "writes"), "both", expected)])
    return group.writes.planned() if group.writes else None


def _misbehaviour(group: Transfers, tcp: TcpPlan, place: Loc, source: Source) -> Mapping[str, Any] | None:
    """Return the misbehaviour of the receivers. A sender that gets no sign of loss must have another limit."""
    planned = group.misbehaviour.planned() if group.misbehaviour else None
    is_silent = planned is not None and (planned["conceals_losses"] or planned["optimistic_acks"] > 0)
    if is_silent and tcp.receive_window_bytes is None:
        expected = 'tcp.receive_window = "…" with it: nothing else ends the growth of the window'
        raise ScenarioError([source.problem((*place, "misbehaviour"), "an unlimited receive window", expected)])
    return planned


def _slow_reader(group: Transfers, tcp: TcpPlan, place: Loc, source: Source) -> Mapping[str, Any] | None:
    """The application at the receivers. Its buffer must have a size, and a read must fit into half of it."""
    if group.slow_reader is None:
        return None
    window, chunk = tcp.receive_window_bytes, group.slow_reader.chunk
    if window is None:
        expected = 'tcp.receive_window = "…" with it: a buffer without limit never fills'
        raise ScenarioError([source.problem((*place, "slow_reader"), "an unlimited receive window", expected)])
    if chunk is not None and 2 * chunk > window:
        expected = f"at most half of the receive window ({window} B)"
        raise ScenarioError([source.problem((*place, "slow_reader", "chunk"), f"{chunk:g} B", expected)])
    return group.slow_reader.planned(tcp.mss_bytes)


def datagram_group(group: Datagrams | QuicFlows) -> GroupPlan:
    """A group of flows over UDP, which has neither a congestion control of TCP nor a TCP."""
    return GroupPlan(group.name or _default_name(group.protocol, group), None, None, dscp=group.dscp)


def _default_name(protocol: str, group: Sending) -> str:
    """Its algorithm, or `udp`, and the kind of a workload: bulk flows and web pages are never of one name."""
    return " ".join(dict.fromkeys((protocol, *filter(None, (getattr(group, "kind", None),)))))


def _tcp(group: Transfers, common: Given, ecn: str, place: Loc, source: Source) -> TcpPlan:
    """The stack's spec, then `[tcp]`, then the group's own keys. `ecn` is what the congestion control lives on."""
    own = group.tcp or Given(None, {})
    spec = _stack(group, common)
    values = spec.complete({**common.values, **own.values})
    values["ecn"] = ecn if values["ecn"] == "auto" else values["ecn"]
    values["delayed_ack"] = DELAYED_ACK[values["delayed_ack"]]
    room = int(values.pop("mtu")) - HEADER_BYTES - TIMESTAMPS_BYTES * values["timestamps"]
    values["mss"] = room if values["mss"] is None else values["mss"]
    _check_tcp(values, room, lambda key: (*place, "tcp", key) if key in own.values else ("tcp", key), source)
    return TcpPlan(header_bytes=HEADER_BYTES, **{spec.key(name): _plain(spec, name, values[name]) for name in values})


def _stack(group: Transfers, common: Given) -> algorithms.AlgorithmSpec:
    own = group.tcp.name if group.tcp else None
    return algorithms.spec("stack", own or common.name or DEFAULT_STACK)


def _congestion(group: Transfers, common: Given) -> Given:
    """The group's congestion control, else its stack's."""
    return group.congestion or Given(_stack(group, common).congestion, {})


def _check_tcp(values: Mapping[str, Any], room: int, place: Callable[[str], Loc], source: Source) -> None:
    mss, window, most_s = values["mss"], values["receive_window"], values["max_rto"]
    buffer = values["send_buffer"]
    checks = (
        ("mss", "B", 1 <= mss <= room, f"at most {room} B, what the MTU leaves"),
        ("min_rto", "s", values["min_rto"] <= most_s, f"at most max_rto ({most_s:g} s)"),
        ("initial_rto", "s", values["initial_rto"] <= most_s, f"at most max_rto ({most_s:g} s)"),
        ("receive_window", "B", window is None or window >= mss, f"one segment ({mss:g} B) or more"),
        ("send_buffer", "B", buffer is None or buffer >= mss, f"one segment ({mss:g} B) or more"),
    )
    wrong = [(key, unit, expected) for key, unit, right, expected in checks if not right]
    if wrong:
        raise ScenarioError(source.problem(place(key), f"{values[key]:g} {unit}", told) for key, unit, told in wrong)


def _plain(spec: algorithms.AlgorithmSpec, name: str, value: Any) -> Any:
    """Bytes are whole numbers in a plan, and no time is none."""
    kind = spec.parameters[name].kind
    if kind == "times":
        return value.planned() if value.mean_s > 0 else None
    return int(value) if kind == "bytes" and value is not None else value
