"""Common properties of a group's flows: their complete TCP and congestion control parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ackclock import algorithms
from ackclock.algorithms.selection import Given
from ackclock.errors import ScenarioError
from ackclock.input.fields import Loc
from ackclock.input.source import Source
from ackclock.plan import HEADER_BYTES, TIMESTAMPS_BYTES, GroupPlan, TcpPlan
from ackclock.scenario.keys import DEFAULT_STACK
from ackclock.scenario.planning import sizes
from ackclock.scenario.traffic.flows import Sending, Transfers

if TYPE_CHECKING:
    from ackclock.scenario.traffic.datagrams import Datagrams
    from ackclock.scenario.traffic.quic import QuicFlows


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
