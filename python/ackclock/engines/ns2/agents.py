"""A plan's TCP as ns-2's agents: which class, which variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ackclock import algorithms
from ackclock.algorithms.kernel import Knob
from ackclock.plan import CongestionPlan, GroupPlan, Plan, TcpPlan

#: Names of `Agent/TCP/Linux` by ours; algorithms that do without SACK have an agent of their own.
CONTROLS: Mapping[str, str] = {
    "reno": "reno",
    "tahoe": "",
    "cubic": "cubic",
    "bic": "bic",
    "highspeed": "highspeed",
    "htcp": "htcp",
    "scalable": "scalable",
    "westwood": "westwood",
    "vegas": "vegas",
    "illinois": "illinois",
    "compound": "compound",
}

#: Parameters that its controls have as a plan may give them: of others only the spec's defaults are known to be meant.
SETTABLE: Mapping[str, frozenset[str]] = {
    "cubic": frozenset({"beta", "fast_convergence", "reno_friendly"}),
    "bic": frozenset({"beta", "max_increment", "low_window", "smooth_part", "fast_convergence"}),
    "vegas": frozenset({"alpha", "beta", "gamma"}),
}

#: Parameters of ours that describe other kernels than its 2.6.22, and what it has: whatever differs is refused.
PRESET: Mapping[str, Mapping[str, object]] = {
    "cubic": {"slow_start": "standard"},
}

#: Parameters that only say how exactly a control counts.
COUNTING = frozenset({"tick", "whole_segments", "reno_catch_up", "delayed_ack_correction", "ack_ratio"})

#: Bytes of IP and TCP headers, and of timestamps: ns-2 counts 10, without the padding.
HEADER_BYTES, TIMESTAMPS_BYTES = 40, 10

#: Bytes of the timestamps option in an ACK, with its padding (RFC 7323 appendix A).
ACK_TIMESTAMPS_BYTES = 12

#: A window that never holds anything back, in packets.
UNLIMITED_P = 10_000_000


@dataclass(frozen=True, slots=True)
class Agents:
    """The two ends of a group's connections: classes and their variables."""

    sender: str
    sink: str
    control: str
    variables: Mapping[str, str]
    sink_variables: Mapping[str, str]
    parameters: Mapping[str, int] = field(default_factory=dict)


def agents(group: GroupPlan, overhead_bytes: int) -> Agents:
    """Return the agents of a group of a supported plan. Packets have their frames' bytes from the start."""
    tcp, congestion = group.tcp, group.congestion
    assert tcp is not None
    assert congestion is not None
    sender, control = _sender(tcp, congestion.kind)
    sink = "Agent/TCPSink" + ("/Sack1" if tcp.sack else "") + ("/DelAck" if tcp.delayed_ack != "off" else "")
    parameters = _parameters(congestion) if control else {}
    return Agents(sender, sink, control, _variables(tcp, overhead_bytes), _of_sink(tcp, overhead_bytes), parameters)


def mss_bytes(plan: Plan, group: int) -> int:
    """The payload of a full segment of a group's connections."""
    tcp = plan.groups[group].tcp
    return tcp.mss_bytes if tcp else 1


def _sender(tcp: TcpPlan, kind: str) -> tuple[str, str]:
    """The class, and the control that `Agent/TCP/Linux` is told to take."""
    if kind == "tahoe":
        return "Agent/TCP", ""
    if kind == "reno":
        return ("Agent/TCP/Sack1" if tcp.sack else "Agent/TCP/Newreno"), ""
    return "Agent/TCP/Linux", CONTROLS[kind]


def _variables(tcp: TcpPlan, overhead_bytes: int) -> dict[str, str]:
    window = UNLIMITED_P if tcp.receive_window_bytes is None else max(tcp.receive_window_bytes // tcp.mss_bytes, 1)
    return {
        "packetSize_": str(tcp.packet_bytes - HEADER_BYTES - TIMESTAMPS_BYTES * tcp.timestamps + overhead_bytes),
        "timestamps_": "true" if tcp.timestamps else "false",
        "window_": str(window),
        # An agent that is made during the run has already taken the class's window, of 20, for its first threshold.
        "ssthresh_": str(window),
        "windowInit_": str(tcp.initial_window),
        "windowInitOption_": "1",
        "rtxcur_init_": f"{tcp.initial_rto_s:g}",
        "minrto_": f"{tcp.min_rto_s:g}",
        "maxrto_": f"{tcp.max_rto_s:g}",
        "singledup_": str(int(tcp.limited_transmit)),
        "tcpTick_": f"{tcp.rtt_tick_s or FINEST_TICK_S:g}",
        **({"ecn_": "1"} if tcp.ecn == "classic" else {}),
    }


#: The ticks that stand for an exact clock, in seconds.
FINEST_TICK_S = 1e-3


def _of_sink(tcp: TcpPlan, overhead_bytes: int) -> dict[str, str]:
    delayed = {"interval_": f"{tcp.delayed_ack_timeout_s:g}"} if tcp.delayed_ack != "off" else {}
    acks = {"packetSize_": str(HEADER_BYTES + ACK_TIMESTAMPS_BYTES * tcp.timestamps + overhead_bytes)}
    return {"ts_echo_rfc1323_": "true" if tcp.timestamps else "false", **acks, **delayed}


def _parameters(congestion: CongestionPlan) -> dict[str, int]:
    """Return the algorithm's parameters for `Agent/TCP/Linux`, in the units of its module."""
    spec, told = algorithms.spec("congestion", congestion.kind), SETTABLE.get(congestion.kind, frozenset())
    knobs = spec.kernel_parameters(Knob).items() if spec.linux else ()
    return {knob.knob: knob.number(congestion.parameters[spec.key(name)]) for name, knob in knobs if name in told}


def unsupported(plan: Plan) -> Iterator[str]:
    """Yield the features of a plan's TCP and congestion control algorithms that ns-2 lacks."""
    for group in plan.groups:
        if group.tcp is not None and group.congestion is not None and group.congestion.kind in CONTROLS:
            yield from _of_tcp(group.tcp, group.congestion.kind)
            yield from _of_control(group.congestion)


def _of_tcp(tcp: TcpPlan, kind: str) -> Iterator[str]:
    found = {
        "RACK": tcp.loss_detection == "rack",
        "tail loss probes": tcp.tail_loss_probe,
        "undone reductions": tcp.undo_spurious or tcp.frto,
        "proportional rate reduction": tcp.recovery_reduction == "prr",
        "quick ACKs": tcp.delayed_ack == "quick",
        "pacing": tcp.pacing,
        "timers in ticks": tcp.timer_tick_s != 0,
        "batches of segments": tcp.tso_batching,
        "a minimum timeout that applies to the variance": tcp.rto_floor_on_variance,
        "a timeout with something added": tcp.rto_slop_s != 0,
        "congestion window validation": tcp.window_validation,
        "ECN other than RFC 3168's": tcp.ecn not in ("off", "classic"),
        f'"{kind}" without SACK': not tcp.sack and kind not in ("reno", "tahoe"),
        f'"{kind}" with SACK': tcp.sack and kind == "tahoe",
    }
    return (name for name, there in found.items() if there)


def _of_control(congestion: CongestionPlan) -> Iterator[str]:
    kind, spec = congestion.kind, algorithms.spec("congestion", congestion.kind)
    free = COUNTING | SETTABLE.get(kind, frozenset())
    for name, parameter in spec.parameters.items():
        value = congestion.parameters[spec.key(name)]
        usual = PRESET.get(kind, {}).get(name, None if parameter.default is None else parameter.read(parameter.default))
        if name not in free and value != usual:
            shown = str(value).lower() if isinstance(value, bool) else value
            yield f'congestion control "{kind}" with {name} = {shown}'
