"""Closed-form models: their base class, their requirements, and quantities that several of them read from a plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ackclock.dataset.tables import Column
from ackclock.engines.features import congestion, features
from ackclock.plan import LinkPlan, Plan, TcpPlan


@dataclass(frozen=True, slots=True)
class ModelResult:
    """Result of a model: metrics by name, and rows of the tables that it computes.

    A model of averages fills `metrics` alone. One that follows windows over time fills `flow_samples` and the others,
    from which the metrics are computed.
    """

    metrics: Mapping[str, float | list[float]] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, Column]] = field(default_factory=dict)


class Model(Protocol):
    """A closed form, or a small dynamical model."""

    #: Its name in `[theory] model`.
    name: str

    def unsupported(self, plan: Plan) -> list[str]:
        """List what of the plan it does not support, in a few words each; empty if it fits."""

    def is_stochastic(self, plan: Plan) -> bool:
        """Return True if the result depends on the seed; that of a closed form does not."""
        return False

    def evaluate(self, plan: Plan, seed: int) -> ModelResult:
        """Its answer to a plan that fits."""


def unsupported_features(plan: Plan, supported: Collection[str], *, any_queue: bool = False) -> list[str]:
    """List the features of a plan that a model does not support; with `any_queue`, qdiscs do not matter."""
    disciplines = {f'queue discipline "{link.queue.discipline}"' for link in plan.links} if any_queue else set()
    return [what for what in features(plan) if what not in supported and what not in disciplines]


def controls(*names: str) -> frozenset[str]:
    """The features of some congestion controls."""
    return frozenset(map(congestion, names))


def endless(plan: Plan) -> bool:
    """Return True if there are flows and nothing else, all without an end."""
    return bool(plan.flows) and all(flow.size_bytes is None and flow.stop_s is None for flow in plan.flows)


def loss_probability(link: LinkPlan) -> float | None:
    """The share of data packets that a link loses at random; None if it loses none."""
    loss = link.loss
    if loss is None:
        return None
    return 1 / loss["packets"] if loss["kind"] == "every" else float(loss.get("probability", 0.0))


def wire_bytes(tcp: TcpPlan, link: LinkPlan) -> int:
    """A full data packet on a link."""
    return tcp.packet_bytes + link.frame_overhead_bytes


def timeout_s(tcp: TcpPlan, rtt_s: float) -> float:
    """The retransmission timeout at an RTT that does not vary (RFC 6298; Linux has its floor on the variance)."""
    shortest_s = rtt_s + tcp.min_rto_s if tcp.rto_floor_on_variance else max(rtt_s, tcp.min_rto_s)
    return shortest_s + tcp.rto_slop_s
