"""A plan's TCP and links in ns-2: the classes of agents and queues, their variables, losses, and changes of links."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ackclock import algorithms
from ackclock.algorithms.kernel import Knob
from ackclock.engines import red
from ackclock.engines.external import planned_traffic
from ackclock.plan import ChangePlan, CongestionPlan, GroupPlan, LinkPlan, Parameters, Plan, TcpPlan

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


def _unsupported_tcp(plan: Plan) -> Iterator[str]:
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


def unsupported(plan: Plan) -> Iterator[str]:
    """Yield the features of a plan's TCP, queues and links that ns-2 lacks."""
    yield from _unsupported_tcp(plan)
    yield from _unsupported_links(plan)


#: Queues that ns-2 2.35 and plans both have.
DISCIPLINES = ("pfifo", "bfifo", "red", "ared")

#: Options of RED that are fixed in ns-2.
RED_FIXED = {"nodrop": False, "adaptive": False}

LOSS = """
# Packets that a link loses by chance, before its queue: written as those that are dropped.
set losses [open losses w]
proc lose {link probability} {
    global ns losses in$link out$link
    set from [set in$link]
    set to [set out$link]
    set model [new ErrorModel]
    $model unit pkt
    $model set rate_ $probability
    $model ranvar [new RandomVariable/Uniform]
    [$ns link $from $to] errormodule $model
    set trace [$ns create-trace Drop $losses $from $to]
    $trace target [new Agent/Null]
    $model drop-target $trace
    puts $losses "link $link [$from id] [$to id]"
}"""


def is_stochastic(link: LinkPlan) -> bool:
    """Return True if the queue draws random numbers."""
    return link.queue.discipline in ("red", "ared")


def kind(link: LinkPlan) -> str:
    """The class, as `simplex-link` takes it."""
    return "RED" if is_stochastic(link) else "DropTail"


def settings(link: LinkPlan, packet_bytes: int) -> dict[str, str]:
    """The queue's variables. `limit_` is one more than may wait: a packet that would make it so long is dropped."""
    parameters = link.queue.parameters
    if link.queue.discipline == "pfifo":
        return {"limit_": str(parameters["limit_packets"] + 1)}
    if link.queue.discipline == "bfifo":
        return {"queue_in_bytes_": "true", "mean_pktsize_": "1", "limit_": str(parameters["limit_bytes"] + 1)}
    if link.queue.discipline == "ared":
        return _ared(parameters, link.rate_bps)
    return _red(parameters, packet_bytes)


def _ared(parameters: Parameters, rate_bps: float) -> dict[str, str]:
    """Adaptive RED, by Floyd, Gummadi and Shenker 2001, sections 4.1 and 4.3; ns-2's own bounds are wider."""
    packets_per_s = rate_bps / (8 * parameters["avpkt_bytes"])
    low_p = max(packets_per_s * parameters["target_s"] / 2, parameters["floor_packets"])
    in_bytes = parameters["bytes"]
    size_bytes = parameters["avpkt_bytes"]
    limit_bytes = parameters["limit_packets"] * size_bytes
    inner = {"min_p": low_p, "max_p": 3 * low_p, "weight": -math.expm1(-1 / packets_per_s), "limit_bytes": limit_bytes}
    adaptation = {"adaptive_": "1", "interval_": f"{parameters['interval_s']:g}", "bottom_": "0.01", "top_": "0.5"}
    return _early({**parameters, **inner}, inner, size_bytes, in_bytes=in_bytes, weighted=False) | adaptation


def _red(parameters: Parameters, packet_bytes: int) -> dict[str, str]:
    inner, in_bytes = red.in_packets(parameters, packet_bytes), parameters["bytes"]
    size_bytes = packet_bytes if in_bytes else parameters["avpkt_bytes"]
    return _early(parameters, inner, size_bytes, in_bytes=in_bytes, weighted=parameters["weighted"])


def _early(
    parameters: Parameters, inner: Parameters, size_bytes: int, *, in_bytes: bool, weighted: bool
) -> dict[str, str]:
    """Thresholds in packets of the mean size, which ns-2 turns into bytes itself where it counts them."""
    return {
        "queue_in_bytes_": "true" if in_bytes else "false",
        "bytes_": "true" if weighted else "false",
        "mean_pktsize_": str(size_bytes),
        "limit_": str(parameters["limit_bytes"] // size_bytes),
        "thresh_": f"{inner['min_p']:.6g}",
        "maxthresh_": f"{inner['max_p']:.6g}",
        "q_weight_": f"{inner['weight']:.9g}",
        "linterm_": f"{1 / parameters['probability']:.9g}",
        "gentle_": "true" if parameters["gentle"] else "false",
        "setbit_": "true" if parameters["ecn"] else "false",
        "use_mark_p_": "false",
        "adaptive_": "0",
        "wait_": "true" if parameters["wait"] else "false",
        "drop_tail_": "true",
    }


def impairments(plan: Plan, used: Sequence[int]) -> Iterator[str]:
    """Yield the lines of the script for random losses of the links with these numbers, and for all changes."""
    lossy = [(number, loss["probability"]) for number in used if (loss := plan.links[number].loss)]
    if lossy:
        yield LOSS
    yield from (f"lose {number} {probability:.12g}" for number, probability in lossy)
    if plan.changes:
        yield "\n# Links that change."
    for change in plan.changes:
        yield from _change(change)


def _change(change: ChangePlan) -> Iterator[str]:
    settings = {"bandwidth_": change.rate_bps, "delay_": change.delay_s}
    for name, value in settings.items():
        if value is not None:
            link = f"[[$ns link $in{change.link} $out{change.link}] link]"
            yield f'$ns at {change.at_s:.12g} "{link} set {name} {value:.12g}"'


def _unsupported_links(plan: Plan) -> Iterator[str]:
    """Yield the features of a plan's queues and links that ns-2 lacks."""
    yield from planned_traffic.unsupported_losses(plan)
    if any(change.up is not None for change in plan.changes):
        yield "links that fail"
    if len({link.frame_overhead_bytes for link in plan.links}) > 1:
        yield "links with frames of different overheads"
    for link in plan.links:
        if link.queue.discipline == "red":
            yield from _unsupported_red(link.queue.parameters, link.rate_bps)
        if link.queue.discipline == "ared" and link.queue.parameters["ecn"]:
            yield 'queue discipline "ared" with ecn'


def _unsupported_red(parameters: Parameters, rate_bps: float) -> Iterator[str]:
    other = [name for name, value in RED_FIXED.items() if parameters[name] != value]
    yield from (f'queue discipline "red" with {name} = {str(parameters[name]).lower()}' for name in other)
    if parameters["ecn"] != parameters["harddrop"]:
        yield 'queue discipline "red" with ecn that marks beyond max, too: its ecn has harddrop'
    if parameters["bandwidth_bps"] not in (None, rate_bps):
        yield 'queue discipline "red" with a bandwidth other than the link\'s'
