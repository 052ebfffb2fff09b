"""A plan as the model reads it: flows that are alike become a class, rates and buffers become packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ackclock.engines import red
from ackclock.plan import GroupPlan, LinkPlan, Plan


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
    """What `crates/ackclock-models/src/meanfield/plan.rs` reads."""
    link, chosen = bottleneck(plan), plan.options["meanfield"]
    given = link.queue.parameters
    return {
        "duration_s": plan.duration_s,
        "warmup_s": plan.warmup_s,
        "interval_s": plan.record.interval_s,
        "step_s": chosen["step_s"],
        "rate_pps": link.rate_bps / (8 * plan.packet_bytes),
        "buffer_p": given["limit_packets"] if "limit_packets" in given else given["limit_bytes"] / plan.packet_bytes,
        "policy": red.in_packets(given, plan.packet_bytes) if link.queue.discipline == "red" else {"kind": "droptail"},
        "classes": [
            {
                "flows": item.flows,
                "base_rtt_s": item.base_rtt_s,
                "control": _control(plan.groups[item.group], chosen["mode"]),
            }
            for item in classes(plan)
        ],
        "one_reduction_per_rtt": chosen["one_reduction_per_rtt"],
        "per_loss": chosen["per_loss"],
        "by_rate": chosen["by_rate"],
        "particles": chosen["particles"],
        "first_loss_p": chosen["first_loss_p"],
        "scale": chosen["scale"],
    }


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
