"""A plan's TCP and queue in ns-3's words: classes and attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ackclock import algorithms
from ackclock.engines import red
from ackclock.plan import CongestionPlan, LinkPlan, Plan, QueuePlan, TcpPlan

#: Congestion controls, and the classes of ns-3.
CONTROLS: Mapping[str, str] = {
    "reno": "TcpLinuxReno", "cubic": "TcpCubic", "bic": "TcpBic", "htcp": "TcpHtcp", "highspeed": "TcpHighSpeed",
    "scalable": "TcpScalable", "vegas": "TcpVegas", "westwood": "TcpWestwood", "illinois": "TcpIllinois",
    "bbr": "TcpBbr",
}  # fmt: skip

#: Attributes of a control that a plan sets, by its parameter: those of the other parameters are the spec's default.
ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    "cubic": {"c": "C", "beta": "Beta", "fast_convergence": "FastConvergence", "slow_start": "HyStart"},
}

#: Values of a choice that an attribute has, and their values there.
CHOICES: Mapping[str, Mapping[object, bool]] = {"slow_start": {"standard": False, "hystart": True}}

#: Parameters of ours of which ns-3 has one value.
PRESET: Mapping[str, Mapping[str, object]] = {"cubic": {"reno_friendly": False}}

#: Parameters that only say how exactly a control counts.
COUNTING = frozenset({"tick", "whole_segments", "reno_catch_up", "delayed_ack_correction", "ack_ratio"})

#: Disciplines, and the classes of ns-3.
QUEUES = {"pfifo": "FifoQueueDisc", "bfifo": "FifoQueueDisc", "red": "RedQueueDisc", "codel": "CoDelQueueDisc"}

#: Parameters of theirs that have one value here.
FIXED: Mapping[str, Mapping[str, object]] = {
    "red": {"nodrop": False, "adaptive": False, "weighted": False},
    "codel": {"ce_threshold_s": None},
}

#: The room of a receiver that holds nothing back, in bytes.
UNLIMITED_BYTES = 64 << 20


def is_stochastic(queue: QueuePlan) -> bool:
    """Return True if the queue draws random numbers."""
    return queue.discipline == "red"


def of_tcp(tcp: TcpPlan) -> dict[str, str]:
    """Attributes, which are set as defaults before anything is made."""
    recovery = "TcpPrrRecovery" if tcp.recovery_reduction == "prr" else "TcpClassicRecovery"
    return {
        "TcpL4Protocol::RecoveryType": f"TypeIdValue({recovery}::GetTypeId())",
        "TcpSocketBase::Sack": f"BooleanValue({_word(tcp.sack)})",
        **({"TcpSocketBase::UseEcn": 'StringValue("On")'} if tcp.ecn == "classic" else {}),
        "TcpSocketBase::Timestamp": f"BooleanValue({_word(tcp.timestamps)})",
        "TcpSocketBase::LimitedTransmit": f"BooleanValue({_word(tcp.limited_transmit)})",
        "TcpSocketBase::MinRto": _seconds(tcp.min_rto_s),
        "TcpSocketState::EnablePacing": f"BooleanValue({_word(tcp.pacing)})",
        "RttEstimator::InitialEstimation": _seconds(tcp.initial_rto_s),
        "TcpSocket::ConnTimeout": _seconds(tcp.initial_rto_s),
        "TcpSocket::DelAckCount": f"UintegerValue({1 if tcp.delayed_ack == 'off' else 2})",
        "TcpSocket::DelAckTimeout": _seconds(tcp.delayed_ack_timeout_s),
        "TcpSocket::InitialCwnd": f"UintegerValue({tcp.initial_window})",
        "TcpSocket::SegmentSize": f"UintegerValue({tcp.mss_bytes})",
        "TcpSocket::SndBufSize": f"UintegerValue({UNLIMITED_BYTES})",
        "TcpSocket::RcvBufSize": f"UintegerValue({min(tcp.receive_window_bytes or UNLIMITED_BYTES, UNLIMITED_BYTES)})",
    }


def _seconds(time_s: float) -> str:
    return f"TimeValue(Seconds({time_s:.12g}))"


def _word(value: object) -> str:
    return str(bool(value)).lower()


def of_control(congestion: CongestionPlan) -> dict[str, str]:
    """Attributes of a control's class."""
    spec = algorithms.spec("congestion", congestion.kind)
    told = ATTRIBUTES.get(congestion.kind, {})
    given = {name: congestion.parameters[spec.key(name)] for name in told}
    values = {told[name]: CHOICES.get(name, {}).get(value, value) for name, value in given.items()}
    name = CONTROLS[congestion.kind]
    return {f"{name}::{attribute}": _value(value) for attribute, value in values.items()}


def _value(value: object) -> str:
    return f"BooleanValue({_word(value)})" if isinstance(value, bool) else f"DoubleValue({value:.12g})"


def of_queue(link: LinkPlan, packet_bytes: int) -> dict[str, str]:
    """Attributes of the discipline. The device holds one of the packets that may wait."""
    parameters = link.queue.parameters
    if link.queue.discipline == "pfifo":
        return {"MaxSize": f'"{max(parameters["limit_packets"] - 1, 1)}p"'}
    if link.queue.discipline == "bfifo":
        return {"MaxSize": f'"{max(parameters["limit_bytes"] - packet_bytes, packet_bytes)}B"'}
    return _red(link, packet_bytes) if link.queue.discipline == "red" else _codel(link)


def _codel(link: LinkPlan) -> dict[str, str]:
    parameters = link.queue.parameters
    times = {"Target": parameters["target_s"], "Interval": parameters["interval_s"]}
    return {
        "MaxSize": f'"{parameters["limit_packets"]}p"',
        "UseEcn": f'"{_word(parameters["ecn"])}"',
        **{name: f'"{time_s:.12g}s"' for name, time_s in times.items()},
    }


def _red(link: LinkPlan, packet_bytes: int) -> dict[str, str]:
    parameters = link.queue.parameters
    inner = red.in_packets(parameters, packet_bytes)
    limit = red.limit_in_packets(parameters, packet_bytes)
    return {
        "MaxSize": f'"{limit:.0f}p"',
        "MeanPktSize": f'"{packet_bytes}"',
        "MinTh": f'"{inner["min_p"]:.6g}"',
        "MaxTh": f'"{inner["max_p"]:.6g}"',
        "QW": f'"{inner["weight"]:.9g}"',
        "LInterm": f'"{1 / parameters["probability"]:.9g}"',
        "Gentle": f'"{_word(parameters["gentle"])}"',
        "Wait": f'"{_word(parameters["wait"])}"',
        "LinkBandwidth": f'"{link.rate_bps:.0f}bps"',
        "UseEcn": f'"{_word(parameters["ecn"])}"',
        "UseHardDrop": f'"{_word(parameters["harddrop"])}"',
    }


def unsupported(plan: Plan) -> Iterator[str]:
    """Yield what of a plan's TCP, congestion control algorithms and queue ns-3 lacks."""
    for group in plan.groups:
        if group.tcp is not None and group.congestion is not None and group.congestion.kind in CONTROLS:
            yield from _of_tcp(group.tcp)
            yield from _of_control(group.congestion)
    yield from _of_queue(plan.bottleneck_link.queue)


def _of_tcp(tcp: TcpPlan) -> Iterator[str]:
    found = {
        "RACK": tcp.loss_detection == "rack",
        "tail loss probes": tcp.tail_loss_probe,
        "undone reductions": tcp.undo_spurious or tcp.frto,
        "quick ACKs": tcp.delayed_ack == "quick",
        "batches of segments": tcp.tso_batching,
        "a minimum timeout that applies to the variance": tcp.rto_floor_on_variance,
        "a timeout with something added": tcp.rto_slop_s != 0,
        "congestion window validation": tcp.window_validation,
        "ECN other than RFC 3168's": tcp.ecn not in ("off", "classic"),
    }
    return (name for name, there in found.items() if there)


def _of_control(congestion: CongestionPlan) -> Iterator[str]:
    spec, kind = algorithms.spec("congestion", congestion.kind), congestion.kind
    free = COUNTING | ATTRIBUTES.get(kind, {}).keys()
    for name, parameter in spec.parameters.items():
        value = congestion.parameters[spec.key(name)]
        usual = None if parameter.default is None else parameter.read(parameter.default)
        lacking = name in CHOICES and value not in CHOICES[name]
        if lacking or (name not in free and value != PRESET.get(kind, {}).get(name, usual)):
            yield f'congestion control "{kind}" with {name} = {_word(value) if isinstance(value, bool) else value}'


def _of_queue(queue: QueuePlan) -> Iterator[str]:
    for name, value in FIXED.get(queue.discipline, {}).items():
        if queue.parameters.get(name, value) != value:
            yield f'queue discipline "{queue.discipline}" with {name}'
