"""A plan's TCP and congestion controls as the kernel has them: settings of hosts, options of sockets, modules.

What the kernel cannot be told, and does otherwise than the plan says, is refused by name. Sources: the kernel's
`ip-sysctl`, ip-route(8), tcp(7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackclock.engines.linux.kernel import ours
from ackclock.plan import TIMESTAMPS_BYTES, CongestionPlan, GroupPlan, Plan, TcpPlan

#: Most that a socket may buffer, as in the recorded runs of Linux: never what holds a flow back.
BUFFER_BYTES = 256 << 20

#: A window clamp below this is not kept: half of the least receive buffer (SOCK_MIN_RCVBUF).
LEAST_WINDOW_BYTES = 2304

#: Clocks that kernels are built with: HZ = 1000, 250, 100. A tick of a plan describes one of them.
TICKS_S = (0.001, 0.004, 0.01)


@dataclass(frozen=True, slots=True)
class HostSettings:
    """What is set for a whole host. Connections that agree on it share a pair of hosts."""

    sysctls: tuple[tuple[str, str], ...] = ()
    metrics: tuple[tuple[str, str], ...] = ()
    batches: bool = True


def settings(group: GroupPlan) -> HostSettings:
    """The settings of a group's hosts; UDP needs none."""
    tcp = group.tcp
    return HostSettings() if tcp is None else HostSettings(_sysctls(tcp), _metrics(tcp), tcp.batches)


def _sysctls(tcp: TcpPlan) -> tuple[tuple[str, str], ...]:
    """Of `net.ipv4`."""
    return (
        ("tcp_sack", str(int(tcp.sack))),
        ("tcp_timestamps", str(int(tcp.timestamps))),
        ("tcp_window_scaling", "1"),
        ("tcp_ecn", "0" if tcp.ecn == "off" else "1"),
        ("tcp_recovery", "1" if tcp.loss_detection == "rack" else "0"),
        ("tcp_early_retrans", "3" if tcp.tail_loss_probe else "0"),
        ("tcp_no_metrics_save", "1"),
        ("tcp_rmem", f"4096 131072 {BUFFER_BYTES}"),
        ("tcp_wmem", f"4096 16384 {BUFFER_BYTES}"),
        ("tcp_tw_reuse", "1"),
        ("ip_local_port_range", "1024 65535"),
    )


def _metrics(tcp: TcpPlan) -> tuple[tuple[str, str], ...]:
    """Of a host's routes. The MSS is advertised without the timestamps' bytes taken off (RFC 6691)."""
    given = {
        "advmss": str(tcp.mss_bytes + TIMESTAMPS_BYTES * tcp.timestamps),
        "initcwnd": str(tcp.initial_window),
        "rto_min": f"{round(tcp.min_rto_s * 1000)}ms",
        "quickack": "1" if tcp.delayed_ack == "off" else "",
    }
    return tuple((name, value) for name, value in given.items() if value)


def socket(group: GroupPlan) -> dict[str, Any] | None:
    """The options of a group's sockets, for the order; None for UDP.

    A given receive window is a clamp, beside a buffer that is locked: a buffer that grows would move the clamp.
    """
    if group.tcp is None or group.congestion is None:
        return None
    window_bytes = group.tcp.receive_window_bytes
    return {
        "congestion": group.congestion.kind,
        "mss_bytes": None,
        "send_buffer_bytes": None,
        "receive_buffer_bytes": None if window_bytes is None else 2 * window_bytes,
        "window_clamp_bytes": window_bytes,
    }


def beyond(plan: Plan) -> Iterator[str]:
    """What of a plan's TCP and congestion controls the kernel has not."""
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
        f"a receive window below {LEAST_WINDOW_BYTES} B": tcp.receive_window_bytes is not None
        and tcp.receive_window_bytes < LEAST_WINDOW_BYTES,
        "fast retransmit without limited transmit": not tcp.limited_transmit,
        "a window that comes down at once": tcp.reduction != "prr",
        f'pacing with "{kind}"': tcp.pacing and kind != "bbr",
        "a window that grows unused": not tcp.window_validation,
        f'ECN feedback "{tcp.ecn}"': tcp.ecn in ("accurate", "l4s"),
        f'ECN feedback "{tcp.ecn}" with "{kind}"': (tcp.ecn == "dctcp") != (kind == "dctcp")
        and tcp.ecn in ("off", "classic", "dctcp"),
    }
    return (what for what, is_so in found.items() if is_so)


def _is_broken(time_s: float) -> bool:
    """Whether a time is no whole number of milliseconds, as routes have them."""
    return time_s <= 0 or abs(time_s * 1000 - round(time_s * 1000)) > 1e-9


def _ms(time_s: float) -> str:
    return f"{time_s * 1000:g} ms"


@dataclass(frozen=True, slots=True)
class Knob:
    """A parameter of a kernel module: its name, and how a plan's value becomes a number."""

    name: str
    number: Callable[[Any], int] = int


def _scaled(factor: float) -> Callable[[Any], int]:
    return lambda value: round(value * factor)


@dataclass(frozen=True, slots=True)
class Control:
    """A congestion control of the kernel: its module's knobs, and what is fixed in its code."""

    module: str
    knobs: Mapping[str, Knob]
    fixed: Mapping[str, Any]


def _control(module: str = "", *, fixed: Mapping[str, Any] | None = None, **knobs: Knob) -> Control:
    return Control(module, knobs, fixed or {})


#: Those that are modules of our own; `kernel.ours` has their parameters.
OURS = ours.NAMES

#: Congestion control → what the kernel can be told of it. Ticks describe the kernel's own clock.
CONTROLS: Mapping[str, Control] = {
    "reno": _control(),
    "cubic": _control(
        "tcp_cubic",
        c=Knob("bic_scale", _scaled(102.4)),
        beta=Knob("beta", _scaled(1024)),
        fast_convergence=Knob("fast_convergence"),
        reno_friendly=Knob("tcp_friendliness"),
        hystart=Knob("hystart"),
        fixed={"reno_catch_up": False, "delayed_ack_correction": True, "whole_segments": True},
    ),
    "bic": _control(
        "tcp_bic",
        beta=Knob("beta", _scaled(1024)),
        max_increment=Knob("max_increment"),
        low_window=Knob("low_window"),
        smooth_part=Knob("smooth_part"),
        fast_convergence=Knob("fast_convergence"),
        fixed={"ack_ratio": True},
    ),
    "westwood": _control(),
    "highspeed": _control(fixed={"whole_segments": True}),
    "htcp": _control(
        "tcp_htcp",
        bandwidth_switch=Knob("use_bandwidth_switch"),
        rtt_scaling=Knob("use_rtt_scaling"),
        fixed={"adaptive_backoff": True},
    ),
    "vegas": _control("tcp_vegas", alpha=Knob("alpha"), beta=Knob("beta"), gamma=Knob("gamma")),
    "scalable": _control(fixed={"a": 0.01, "b": 0.125}),
    "illinois": _control(
        "tcp_illinois",
        window_threshold=Knob("win_thresh"),
        theta=Knob("theta"),
        fixed={"alpha_max": 10.0, "alpha_min": 0.3, "beta_min": 0.125, "beta_max": 0.5},
    ),
    "dctcp": _control(
        "tcp_dctcp",
        shift_g=Knob("dctcp_shift_g"),
        initial_alpha=Knob("dctcp_alpha_on_init", _scaled(1024)),
        fixed={"clamp_alpha_on_loss": False},
    ),
    "hybla": _control("tcp_hybla", rtt0_s=Knob("rtt0", _scaled(1000))),
    "veno": _control(),
    "yeah": _control(),
    "lp": _control(),
    "nv": _control(
        "tcp_nv", pad=Knob("nv_pad"), reset_period=Knob("nv_reset_period"), min_cwnd=Knob("nv_min_cwnd")
    ),
    "cdg": _control(
        "tcp_cdg",
        window=Knob("window"),
        backoff_beta=Knob("backoff_beta", _scaled(1024)),
        backoff_factor=Knob("backoff_factor"),
        ineffective=Knob("use_ineff"),
    ),
    "accucubic": _control(fixed={"hystart": False}),
    "lincubic": _control(fixed={"hystart": False}),
    "bbr": _control(
        fixed={
            "startup_gain": 2.885, "probe_gain": 1.25, "cwnd_gain": 2.0, "bandwidth_window": 10,
            "min_rtt_window_s": 10.0, "probe_rtt_duration_s": 0.2, "pacing_margin": 0.01, "policer_detection": True,
        }
    ),
}  # fmt: skip

#: What the kernel's modules start with; only what differs is set.
DEFAULTS: Mapping[str, int] = {
    "tcp_cubic.bic_scale": 41, "tcp_cubic.beta": 717, "tcp_cubic.fast_convergence": 1, "tcp_cubic.tcp_friendliness": 1,
    "tcp_cubic.hystart": 1, "tcp_bic.beta": 819, "tcp_bic.max_increment": 16, "tcp_bic.low_window": 14,
    "tcp_bic.smooth_part": 20, "tcp_bic.fast_convergence": 1, "tcp_htcp.use_bandwidth_switch": 1,
    "tcp_htcp.use_rtt_scaling": 1, "tcp_vegas.alpha": 2, "tcp_vegas.beta": 4, "tcp_vegas.gamma": 1,
    "tcp_illinois.win_thresh": 15, "tcp_illinois.theta": 5, "tcp_dctcp.dctcp_shift_g": 4,
    "tcp_dctcp.dctcp_alpha_on_init": 1024, "tcp_hybla.rtt0": 25, "tcp_nv.nv_pad": 10, "tcp_nv.nv_reset_period": 5,
    "tcp_nv.nv_min_cwnd": 2, "tcp_cdg.window": 8, "tcp_cdg.backoff_beta": 724, "tcp_cdg.backoff_factor": 42,
    "tcp_cdg.use_ineff": 5,
}  # fmt: skip


def knobs(plan: Plan) -> dict[str, int]:
    """The parameters of the kernel's modules that a plan's controls have: `{"tcp_cubic.beta": 717, …}`."""
    found: dict[str, int] = {}
    for group in plan.groups:
        if group.congestion is not None:
            found |= _knobs(group.congestion)
    return dict(sorted(found.items()))


def modules(plan: Plan) -> dict[str, int]:
    """Of these what is not the kernel's default, for its command line.

    CUBIC computes other numbers from its parameters when it starts, so they cannot be set later.
    """
    return {name: value for name, value in knobs(plan).items() if DEFAULTS[name] != value}


def loaded(plan: Plan, folder: Path) -> Iterator[str]:
    """The commands that load our own controls, with the plan's parameters, from a guest's folder of modules."""
    found = {group.congestion.kind: group.congestion for group in plan.groups if group.congestion}
    for kind in sorted(found.keys() & set(OURS)):
        values = ours.values(kind, found[kind].parameters)
        words = "".join(f" {name}={value}" for name, value in values.items())
        yield f"insmod {folder / kind}.ko{words}"


def _knobs(congestion: CongestionPlan) -> dict[str, int]:
    control = CONTROLS[congestion.kind]
    given = congestion.parameters
    return {f"{control.module}.{knob.name}": knob.number(given[key]) for key, knob in control.knobs.items()}


def _of_control(congestion: CongestionPlan) -> Iterator[str]:
    control = CONTROLS.get(congestion.kind)
    if control is None:
        return
    for name, value in congestion.parameters.items():
        if name in control.fixed and value != control.fixed[name]:
            yield f'congestion control "{congestion.kind}" with {name} = {_toml(value)}'
        if name == "tick_s" and value not in TICKS_S and congestion.kind not in OURS:
            yield f'congestion control "{congestion.kind}" with a tick of {_ms(value)}'


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def _several(plan: Plan) -> Iterator[str]:
    """A module's parameters are one for all its flows."""
    found: dict[str, dict[str, Any]] = {}
    for group in plan.groups:
        if group.congestion is not None and group.congestion.kind in CONTROLS:
            own = group.congestion.kind in OURS
            knobs = dict(group.congestion.parameters) if own else _knobs(group.congestion)
            if found.setdefault(group.congestion.kind, knobs) != knobs:
                yield f'congestion control "{group.congestion.kind}" with two sets of parameters'
