"""A plan's TCP and congestion controls as the kernel has them: settings of hosts, options of sockets, modules.

What the kernel cannot be told, and does otherwise than the plan says, is refused by name. Sources: the kernel's
`ip-sysctl`, ip-route(8), tcp(7).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ackclock import algorithms
from ackclock.algorithms.kernel import Clock, Knob
from ackclock.engines import features
from ackclock.engines.linux.kernel import bundled_modules
from ackclock.plan import TIMESTAMPS_BYTES, CongestionPlan, GroupPlan, Plan, TcpPlan

#: Most that a socket may buffer, as in the recorded runs of Linux: never what holds a flow back.
BUFFER_BYTES = 256 << 20

#: A window clamp below this is not kept: half of the least receive buffer (SOCK_MIN_RCVBUF).
MIN_WINDOW_BYTES = 2304

#: Smallest send buffer, doubled already (SOCK_MIN_SNDBUF).
MIN_BUFFER_BYTES = 4608

#: Clocks that kernels are built with: HZ = 1000, 250, 100. A tick of a plan describes one of them.
TICKS_S = (0.001, 0.004, 0.01)


#: With messages, small writes do not join because the host's device still holds the one before: it queues nothing.
OF_MESSAGES = (("tcp_autocorking", "0"),)


@dataclass(frozen=True, slots=True)
class HostSettings:
    """Settings of a whole host.

    Connections with equal settings share a pair of hosts.
    """

    sysctls: tuple[tuple[str, str], ...] = ()
    metrics: tuple[tuple[str, str], ...] = ()
    batches: bool = True
    processing: tuple[float, float] | None = None


def settings(group: GroupPlan) -> HostSettings:
    """The settings of a group's hosts; UDP needs none."""
    tcp = group.tcp
    if tcp is None:
        return HostSettings()
    sysctls = (*_sysctls(tcp), *(OF_MESSAGES if group.writes else ()))
    return HostSettings(sysctls, _metrics(tcp), tcp.tso_batching, _processing(tcp))


def _processing(tcp: TcpPlan) -> tuple[float, float] | None:
    """The bounds of what a host takes for a packet; other laws than these two are refused."""
    law = tcp.processing or {}
    if law.get("kind") == "fixed":
        return law["s"], law["s"]
    return (law["from_s"], law["to_s"]) if law.get("kind") == "uniform" else None


def as_it_is(plan: Plan) -> Plan:
    """A plan whose hosts take no time for packets but what the scenario gives them."""
    return replace(plan, groups=tuple(map(_given, plan.groups)))


def _given(group: GroupPlan) -> GroupPlan:
    if group.tcp is None or features.takes_other_time(group):
        return group
    return replace(group, tcp=replace(group.tcp, processing=None))


def _sysctls(tcp: TcpPlan) -> tuple[tuple[str, str], ...]:
    """Return the sysctls below `net.ipv4`."""
    return (
        ("tcp_sack", str(int(tcp.sack))),
        ("tcp_timestamps", str(int(tcp.timestamps))),
        ("tcp_window_scaling", "1"),
        ("tcp_ecn", "0" if tcp.ecn == "off" else "1"),
        ("tcp_recovery", str(_recovery(tcp))),
        ("tcp_frto", "2" if tcp.frto else "0"),
        ("tcp_early_retrans", "3" if tcp.tail_loss_probe else "0"),
        ("tcp_no_metrics_save", "1"),
        ("tcp_rmem", f"4096 131072 {BUFFER_BYTES}"),
        ("tcp_wmem", f"4096 16384 {BUFFER_BYTES}"),
        ("tcp_tw_reuse", "1"),
        ("ip_local_port_range", "1024 65535"),
    )


def _recovery(tcp: TcpPlan) -> int:
    """The bits of `tcp_recovery`: 1 is RACK, 2 a reordering window that stays as it is."""
    return (tcp.loss_detection == "rack") * (1 + 2 * (not tcp.adaptive_reordering))


def _metrics(tcp: TcpPlan) -> tuple[tuple[str, str], ...]:
    """Return the metrics of a host's routes. The advertised MSS includes the timestamps' bytes (RFC 6691)."""
    given = {
        "advmss": str(tcp.mss_bytes + TIMESTAMPS_BYTES * tcp.timestamps),
        "initcwnd": str(tcp.initial_window),
        "rto_min": f"{round(tcp.min_rto_s * 1000)}ms",
        "quickack": "1" if tcp.delayed_ack == "off" else "",
    }
    return tuple((name, value) for name, value in given.items() if value)


def socket(group: GroupPlan) -> dict[str, Any] | None:
    """The options of a group's sockets, for the run spec; None for UDP.

    A given receive window is a clamp, beside a buffer that is locked: a buffer that grows would move the clamp. The
    kernel doubles what `SO_SNDBUF` is set to, and counts its own bookkeeping as used.
    """
    if group.tcp is None or group.congestion is None:
        return None
    window_bytes, buffer_bytes = group.tcp.receive_window_bytes, group.tcp.send_buffer_bytes
    return {
        "congestion": group.congestion.kind,
        "mss_bytes": None,
        "send_buffer_bytes": None if buffer_bytes is None else buffer_bytes // 2,
        "receive_buffer_bytes": None if window_bytes is None else 2 * window_bytes,
        "window_clamp_bytes": window_bytes,
    }


def unsupported(plan: Plan) -> Iterator[str]:
    """Yield the features of a plan's TCP and congestion control algorithms that the kernel lacks."""
    for group in plan.groups:
        if group.tcp is not None and group.congestion is not None:
            yield from _of_tcp(group.tcp, group.congestion.kind)
            yield from _of_control(group.congestion)
    yield from _several(plan)


def _of_tcp(tcp: TcpPlan, kind: str) -> Iterator[str]:
    found = {
        "delayed ACKs without quick ACKs": tcp.delayed_ack not in ("off", "quick"),
        f"a delayed-ACK timer of {_ms(tcp.delayed_ack_timeout_s)}": tcp.delayed_ack != "off"
        and tcp.delayed_ack_timeout_s != 0.04,
        f"an initial timeout of {_ms(tcp.initial_rto_s)}": tcp.initial_rto_s != 1.0,
        f"a minimum timeout of {_ms(tcp.min_rto_s)}": _is_broken(tcp.min_rto_s),
        f"a maximum timeout of {_ms(tcp.max_rto_s)}": tcp.max_rto_s != 120.0,
        "a minimum timeout that applies to the whole timeout": not tcp.rto_floor_on_variance,
        f"a timeout with {_ms(tcp.rto_slop_s)} added": tcp.rto_slop_s != 0,
        f"a clock with ticks of {_ms(tcp.timer_tick_s)}": tcp.timer_tick_s not in TICKS_S,
        f"a receive window below {MIN_WINDOW_BYTES} B": tcp.receive_window_bytes is not None
        and tcp.receive_window_bytes < MIN_WINDOW_BYTES,
        f"a send buffer below {MIN_BUFFER_BYTES} B": tcp.send_buffer_bytes is not None
        and tcp.send_buffer_bytes < MIN_BUFFER_BYTES,
        "reductions that are not undone": tcp.sack and not tcp.undo_spurious,
        "fast retransmit without limited transmit": not tcp.limited_transmit,
        "a window that comes down at once": tcp.recovery_reduction != "prr",
        f'pacing with "{kind}"': tcp.pacing and kind != "bbr",
        "a window that grows unused": not tcp.window_validation,
        f"hosts whose time for a packet is {(tcp.processing or {}).get('kind')}": tcp.processing is not None
        and _processing(tcp) is None,
        f'ECN feedback "{tcp.ecn}"': tcp.ecn in ("accurate", "l4s"),
        f'ECN feedback "{tcp.ecn}" with "{kind}"': (tcp.ecn == "dctcp") != (kind == "dctcp")
        and tcp.ecn in ("off", "classic", "dctcp"),
    }
    return (what for what, is_so in found.items() if is_so)


def _is_broken(time_s: float) -> bool:
    """Return True if a time is no whole number of milliseconds, the unit of route metrics."""
    return time_s <= 0 or abs(time_s * 1000 - round(time_s * 1000)) > 1e-9


def _ms(time_s: float) -> str:
    return f"{time_s * 1000:g} ms"


#: The congestion controls that the kernel has or is given, by their specs, and those that are modules of our own.
CONTROLS = algorithms.in_linux("congestion")
OURS = bundled_modules.NAMES


def knobs(plan: Plan) -> dict[str, int]:
    """The parameters of the kernel's modules that a plan's controls have: `{"tcp_cubic.beta": 717, …}`."""
    found: dict[str, int] = {}
    for group in plan.groups:
        if group.congestion is not None:
            found |= _values(group.congestion)
    return dict(sorted(found.items()))


def modules(plan: Plan) -> dict[str, int]:
    """Return the module parameters that differ from the kernel's defaults, for its command line.

    CUBIC computes other numbers from its parameters when it starts, so they cannot be set later.
    """
    kinds = {group.congestion.kind for group in plan.groups if group.congestion}
    defaults = {name: knob.default for kind in kinds for name, (_, knob) in _knobs(kind).items()}
    return {name: value for name, value in knobs(plan).items() if defaults[name] != value}


def loaded(plan: Plan, folder: Path) -> Iterator[str]:
    """The commands that load our own controls, with the plan's parameters, from a guest's folder of modules."""
    found = {group.congestion.kind: group.congestion for group in plan.groups if group.congestion}
    for kind in sorted(found.keys() & set(OURS)):
        yield insmod(folder / f"{kind}.ko", bundled_modules.values(kind, found[kind].parameters))


def insmod(module: Path, values: Mapping[str, int]) -> str:
    """The command that loads a module with its parameters."""
    return " ".join((f"insmod {shlex.quote(str(module))}", *(f"{name}={value}" for name, value in values.items())))


def _values(congestion: CongestionPlan) -> dict[str, int]:
    told = _knobs(congestion.kind)
    return {name: knob.number(congestion.parameters[key]) for name, (key, knob) in told.items()}


def _knobs(kind: str) -> dict[str, tuple[str, Knob]]:
    """The knobs of the kernel's own module, each with its key in a plan: `{"tcp_hybla.rtt0": ("rtt0_s", …)}`."""
    spec = algorithms.spec("congestion", kind)
    if spec.linux is None or not spec.linux.module:
        return {}
    knobs = spec.kernel_parameters(Knob).items()
    return {f"{spec.linux.module}.{knob.knob}": (spec.key(name), knob) for name, knob in knobs}


def _of_control(congestion: CongestionPlan) -> Iterator[str]:
    spec = algorithms.spec("congestion", congestion.kind)
    clocks = {spec.key(name) for name in spec.kernel_parameters(Clock)}
    knobs = {spec.key(name): knob for name, knob in spec.kernel_parameters(Knob).items()}
    for name, value in congestion.parameters.items():
        if (name in spec.fixed and value != spec.fixed[name]) or (name in knobs and not knobs[name].has(value)):
            yield f'congestion control "{congestion.kind}" with {name} = {_toml(value)}'
        if name in clocks and value not in TICKS_S:
            yield f'congestion control "{congestion.kind}" with a tick of {_ms(value)}'


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def _several(plan: Plan) -> Iterator[str]:
    """A module's parameters are one for all its flows."""
    found: dict[str, dict[str, Any]] = {}
    for group in plan.groups:
        if group.congestion is not None and (linux := algorithms.spec("congestion", group.congestion.kind).linux):
            known = linux.module and not any(_of_control(group.congestion))
            knobs = _values(group.congestion) if known else dict(group.congestion.parameters)
            if found.setdefault(group.congestion.kind, knobs) != knobs:
                yield f'congestion control "{group.congestion.kind}" with two sets of parameters'
