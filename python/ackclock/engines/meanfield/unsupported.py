"""Parts of a plan that the model supports only partly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ackclock.engines.meanfield.classes import POLICIES, bottleneck
from ackclock.plan import LinkPlan, Plan


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
    for name in ("adaptive", "nodrop", "weighted"):
        yield f"RED with {name}", bool(given[name])
    yield "RED that counts packets", not given["bytes"]
