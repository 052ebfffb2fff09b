"""A plan as the model reads it: flows that are alike become a class, rates and buffers packets; and what it lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ackclock.engines import red
from ackclock.plan import GroupPlan, LinkPlan, Plan

#: The disciplines that drop early beside RED, with the parameters of their specs that the model has.
POLICIES: Mapping[str, tuple[str, ...]] = {
    "codel": ("target_s", "interval_s", "newton"),
    "pie": ("target_s", "tupdate_s", "alpha", "beta", "max_burst_s", "derandomize"),
}

#: Flows whose starts are drawn begin at so many times.
STARTS = 16

#: Bounds of the rise of the delay at which HyStart ends slow start (Linux's tcp_cubic; RFC 9406 section 4.2).
HYSTART_S = (4e-3, 16e-3)


@dataclass(frozen=True, slots=True)
class Class:
    """Flows of one group and one base RTT, by their numbers in the plan."""

    group: int
    base_rtt_s: float
    flows: tuple[int, ...]


def classes(plan: Plan) -> list[Class]:
    """The flows of a plan by group and base RTT."""
    found: dict[tuple[int, float], list[int]] = {}
    for number, flow in enumerate(plan.flows):
        found.setdefault((flow.group, flow.base_rtt_s), []).append(number)
    return [Class(group, rtt_s, tuple(flows)) for (group, rtt_s), flows in found.items()]


def bottleneck(plan: Plan) -> LinkPlan:
    """The link that all flows cross."""
    return plan.links[plan.flows[0].forward.hops[0].link]


def model_input(plan: Plan) -> dict[str, Any]:
    """Return the model's input, which `crates/ackclock-models/src/meanfield/plan.rs` reads."""
    link, chosen = bottleneck(plan), plan.options["meanfield"]
    return {
        "duration_s": plan.duration_s,
        "warmup_s": plan.warmup_s,
        "interval_s": plan.record.interval_s,
        "step_s": chosen["step_s"],
        "rate_pps": link.rate_bps / (8 * plan.packet_bytes),
        "buffer_p": limit_in_packets(link, plan.packet_bytes),
        "policy": policy(link, plan.packet_bytes),
        "classes": [
            {
                "flows": item.flows,
                "base_rtt_s": item.base_rtt_s,
                "control": _control(plan.groups[item.group], chosen["mode"]),
                "opening": opening(plan, item) if chosen["slow_start"] else None,
            }
            for item in classes(plan)
        ],
        "one_reduction_per_rtt": chosen["one_reduction_per_rtt"],
        "recovery": chosen["recovery"],
        "loss_weight": chosen["loss_weight"],
        "loss_rate_exponent": chosen["loss_rate_exponent"],
        "particles": chosen["particles"],
        "first_loss_p": chosen["first_loss_p"],
        "scale": chosen["scale"],
    }


def limit_in_packets(link: LinkPlan, packet_bytes: int) -> float:
    """The full packets that fit."""
    given = link.queue.parameters
    return float(given["limit_packets"] if "limit_packets" in given else given["limit_bytes"] / packet_bytes)


def policy(link: LinkPlan, packet_bytes: int) -> dict[str, Any]:
    """Return the queue's early drops, beyond those for lack of room."""
    given, kind = link.queue.parameters, link.queue.discipline
    if kind == "red":
        return red.in_packets(given, packet_bytes)
    names = POLICIES.get(kind)
    return {"kind": kind, **{name: given[name] for name in names}} if names else {"kind": "droptail"}


def opening(plan: Plan, item: Class) -> dict[str, Any]:
    """When the flows of a class begin slow start, with what, and the wait in the queue that ends it."""
    flows = [plan.flows[number] for number in item.flows]
    begins = sorted({(flow.start_s, flow.start_jitter_s) for flow in flows})
    alike = len(begins) == 1
    each = begins if alike else sorted((flow.start_s, flow.start_jitter_s) for flow in flows)
    group = plan.groups[item.group]
    return {
        "starts_s": [at_s for start_s, jitter_s in each for at_s in _spread(start_s, jitter_s)],
        "window_p": group.tcp.initial_window if group.tcp else 1,
        "leave_delay_s": _hystart_s(group, item.base_rtt_s),
    }


def _spread(start_s: float, jitter_s: float) -> list[float]:
    """The middles of equal parts of a time that is drawn uniformly."""
    parts = STARTS if jitter_s else 1
    return [start_s + jitter_s * (part + 0.5) / parts if jitter_s else start_s for part in range(parts)]


def _hystart_s(group: GroupPlan, base_rtt_s: float) -> float | None:
    """The rise of the delay that ends slow start: an eighth of the RTT, within bounds."""
    congestion = group.congestion
    if congestion is None or congestion.parameters.get("slow_start") != "hystart":
        return None
    low_s, high_s = HYSTART_S
    return min(max(base_rtt_s / 8, low_s), high_s)


def _control(group: GroupPlan, mode: str) -> dict[str, Any]:
    congestion = group.congestion
    if congestion is None or congestion.kind != "cubic":
        return {"kind": "reno"}
    given = congestion.parameters
    return {
        "kind": "cubic",
        "c": given["c"],
        "beta": given["beta"],
        "fast_convergence": given["fast_convergence"],
        "mode": mode if given["reno_friendly"] else "cubic",
    }


def unsupported(plan: Plan) -> list[str]:
    """List what of the plan the model does not support, each in a few words."""
    return [what for what, there in _candidates(plan) if there]


def _candidates(plan: Plan) -> Iterator[tuple[str, bool]]:
    links = [flow.forward.hops[0].link for flow in plan.flows if flow.forward.hops]
    yield "flows without a queue", len(links) < len(plan.flows)
    yield "flows through different queues", len(set(links)) > 1
    latest_s = max((flow.start_s + flow.start_jitter_s for flow in plan.flows), default=0.0)
    chosen = plan.options["meanfield"]
    yield "flows that start after the warm-up", latest_s > plan.warmup_s and not chosen["slow_start"]
    tcps = [group.tcp for group in plan.groups if group.tcp]
    yield "limited receive windows", any(tcp.receive_window_bytes is not None for tcp in tcps)
    cubics = [
        group.congestion.parameters for group in plan.groups if group.congestion and group.congestion.kind == "cubic"
    ]
    chosen_starts = {group.congestion.parameters.get("slow_start") for group in plan.groups if group.congestion}
    for start in ("hystart++", "search"):
        yield f"slow_start = {start}", chosen["slow_start"] and start in chosen_starts
    yield "growth that counts ACKs", any(not given["delayed_ack_correction"] for given in cubics)
    yield "a Reno estimate that catches up", any(given["reno_catch_up"] for given in cubics)
    yield from _scaled(plan, bool(cubics), [given["reno_friendly"] for given in cubics])
    if links:
        yield from _early(bottleneck(plan))


def _scaled(plan: Plan, cubic: bool, friendly: list[bool]) -> Iterator[tuple[str, bool]]:
    chosen = plan.options["meanfield"]
    scaled = chosen["scale"] != 1
    kinds = {group.congestion.kind for group in plan.groups if group.congestion}
    one_mode = kinds == {"reno"} or (chosen["mode"] == "cubic" and kinds == {"cubic"})
    one_mode = one_mode or (chosen["mode"] == "tcp" and all(friendly))
    yield "scaling of flows in several modes", scaled and not one_mode
    early = ("red", *POLICIES)
    yield "scaling with early drops", scaled and any(link.queue.discipline in early for link in plan.links)
    yield "scaling with slow start", scaled and chosen["slow_start"]
    yield "TCP mode without the Reno-friendly region", cubic and chosen["mode"] == "tcp" and not all(friendly)


def _early(link: LinkPlan) -> Iterator[tuple[str, bool]]:
    given, kind = link.queue.parameters, link.queue.discipline
    if kind == "red":
        yield from _red(given)
    elif kind == "pie":
        yield "PIE that estimates the departure rate", bool(given["dq_rate_estimator"])


def _red(given: Any) -> Iterator[tuple[str, bool]]:
    for name in ("adaptive", "nodrop", "weighted", "wait"):
        yield f"RED with {name}", bool(given[name])
    yield "RED that counts packets", not given["bytes"]
