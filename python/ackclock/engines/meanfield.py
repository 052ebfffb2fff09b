"""The mean-field engine: the distribution of windows as the number of flows grows, by `crates/ackclock-models`.

Flows of a plan that are alike become a class; rates and buffers are in packets. The tables are those of every engine.
In the limit of infinitely many flows, flow i of n in a group stands for the i-th n-th part of the group at each
instant, least windows first: its sampled window is the mean over that part. So the mean over the flows is the group's
mean, and the distribution over the samples is the model's; one flow's row of samples is not the path of a flow. What
flows deliver is the same for all of a group. A flow's turn to have a `drop` event comes whenever the share of a whole
flow has lost. With `[meanfield] particles = true` flows are flows.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock import _core
from ackclock.dataset import Dataset, Spool
from ackclock.dataset.tables import EVENT_KINDS, Column
from ackclock.engines import features, red
from ackclock.engines.engine import Engine, RunOptions, manifest, unsupported_features
from ackclock.errors import Unsupported, UnsupportedError
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


#: A run goes in so many steps; after each, progress is told and an interrupt is heard.
STEPS = 100

#: Said where a run is scaled in cubic mode.
SCALED = (
    "[meanfield] scale: in cubic mode the scaling property does not hold: it hides synchronisation. "
    "The model runs at full scale at no more cost"
)


class MeanFieldEngine(Engine):
    """Infinitely many flows through one queue, or a finite number of particles under the same laws."""

    name = "meanfield"
    supported_features = frozenset(
        {features.congestion(name) for name in ("cubic", "reno")}
        | {features.queue(name) for name in ("pfifo", "bfifo", "red", "codel", "pie")}
        | {features.STARTS}
    )

    def unsupported(self, plan: Plan) -> list[Unsupported]:
        """Algorithms and features that the model has not, and what it has in part only."""
        lacking = unsupported_features(plan, self)
        return lacking or [Unsupported(what, self.name) for what in unsupported(plan)]

    def is_stochastic(self, plan: Plan) -> bool:
        """Return True if the model has particles, which are drawn."""
        return bool(plan.options["meanfield"]["particles"])

    def run(self, plan: Plan, seed: int, options: RunOptions | None = None) -> Dataset:
        """One run. Raises `UnsupportedError`; whatever `options.progress` raises ends the run."""
        around = options or RunOptions()
        if reasons := self.unsupported(plan):
            raise UnsupportedError(reasons)
        chosen = plan.options["meanfield"]
        if chosen["scale"] != 1 and chosen["mode"] == "cubic":
            warnings.warn(SCALED, stacklevel=2)
        spool = Spool(names={"events.kind": EVENT_KINDS}, spool_bytes=around.spool_bytes)
        model = _core.MeanField(json.dumps(model_input(plan)), seed)
        tables = Tables(plan, classes(plan), spool)
        for step in range(1, STEPS + 1):
            model.advance(plan.duration_s * step / STEPS)
            tables.take(model.drain())
            around.progress(step / STEPS)
        tables.finish(model.finish())
        kind = "particles" if chosen["particles"] else "limit"
        return spool.dataset(manifest(plan, self.name, seed, around.command, tables.metrics(), model=kind))


#: Output of the model: table → column → values.
Series = Mapping[str, Mapping[str, npt.NDArray[Any]]]

#: Totals of the link that are whole packets in the dataset.
PACKETS = ("arrived_p", "dropped_p", "departed_p", "arrived_total_p", "dropped_total_p", "departed_total_p")


class Tables:
    """Fills a spool with the tables of one run."""

    def __init__(self, plan: Plan, classes: Sequence[Class], spool: Spool) -> None:
        self._plan = plan
        self._classes = classes
        self._spool = spool
        self._link = plan.flows[0].forward.hops[0].link
        self._episodes: list[pl.DataFrame] = []
        self._reductions = np.zeros(len(plan.flows), dtype=np.uint64)

    def take(self, found: Series) -> None:
        """Rows since the last call."""
        self._spool.append("flow_samples", self._flow_samples(found["flow_samples"]))
        self._spool.append("queue_samples", self._queue_samples(found["queue_samples"]))
        self._spool.append("events", self._events(found["hits"]))
        self._episodes.append(pl.DataFrame(dict(found["episodes"])))

    def finish(self, found: Mapping[str, Mapping[str, Any]]) -> None:
        """The last rows, and the totals."""
        self.take(found)
        self._spool.append("flows", self._flows(found["flows"]))
        self._spool.append("links", self._links({name: values[0] for name, values in found["links"].items()}))

    def metrics(self) -> dict[str, float]:
        """Return the share of flows hit and the losses of an episode, which the model knows better than events show.

        Empty for particles: they are flows, and their events are complete.
        """
        if self._plan.options["meanfield"]["particles"]:
            return {}
        weights = np.array([len(item.flows) for item in self._classes], dtype=np.float64)
        episodes = pl.concat(self._episodes).filter(pl.col("start_s") >= self._plan.warmup_s)
        if not episodes.height:
            return {}
        share = np.average(episodes["share"].to_numpy(), weights=weights[episodes["class"].to_numpy()])
        return {"synchronisation": float(share), "losses_per_epoch": float(np.mean(episodes["dropped_p"].to_numpy()))}

    def _flow_samples(self, found: Mapping[str, npt.NDArray[Any]]) -> dict[str, Column]:
        kept = {name: found[name] for name in ("time_s", "flow", "cwnd", "srtt_s")}
        return {**kept, "delivered_bytes": self._payload(found["delivered_p"])}

    def _queue_samples(self, found: Mapping[str, npt.NDArray[Any]]) -> dict[str, Column]:
        backlog_bytes = found["backlog_p"] * self._plan.packet_bytes
        link = np.full(backlog_bytes.size, self._link, dtype=np.uint32)
        return {**found, "link": link, "backlog_bytes": backlog_bytes}

    def _events(self, found: Mapping[str, npt.NDArray[Any]]) -> dict[str, Column]:
        """A drop at the queue, and a round trip later the flow's recovery."""
        count = found["flow"].size
        self._reductions += np.bincount(found["flow"], minlength=self._reductions.size).astype(np.uint64)
        nowhere = np.full(count, np.iinfo(np.uint32).max, dtype=np.uint32)
        return {
            "time_s": np.concatenate([found["dropped_s"], found["reduced_s"]]),
            "flow": np.tile(found["flow"], 2),
            "link": np.concatenate([np.full(count, self._link, dtype=np.uint32), nowhere]),
            "kind": np.repeat(np.array([EVENT_KINDS.index("drop"), EVENT_KINDS.index("recovery")]), count),
        }

    def _flows(self, found: Mapping[str, npt.NDArray[Any]]) -> dict[str, Column]:
        order = np.argsort(found["flow"])
        numbers = found["flow"][order]
        flows = [self._plan.flows[number] for number in numbers]
        congestions = [self._plan.groups[flow.group].congestion for flow in flows]
        return {
            "flow": numbers,
            "group": [flow.group for flow in flows],
            "source": [f"sender-{number}" for number in numbers],
            "destination": [f"receiver-{number}" for number in numbers],
            "congestion": [congestion.kind if congestion else "udp" for congestion in congestions],
            "base_rtt_s": [flow.base_rtt_s for flow in flows],
            "start_s": np.zeros(numbers.size),
            "delivered_bytes": self._payload(found["delivered_p"][order]),
            "measured_bytes": self._payload(found["measured_p"][order]),
            "recoveries": self._reductions[numbers],
        }

    def _links(self, found: Mapping[str, Any]) -> dict[str, Column]:
        link = bottleneck(self._plan)
        means = ("empty_s", "backlog_mean_p", "sojourn_mean_s", "sojourn_edges_s", "sojourn_counts")
        bytes_out = round(found["departed_p"] * self._plan.packet_bytes)
        one: dict[str, Any] = {
            "link": self._link,
            "name": link.name,
            "bottleneck": link.bottleneck,
            "rate_bps": link.rate_bps,
            "departed_bytes": bytes_out,
            "lost_p": 0,
            "lost_total_p": 0,
            "busy_s": 8 * bytes_out / link.rate_bps,
            "backlog_mean_bytes": found["backlog_mean_p"] * self._plan.packet_bytes,
            **{name: round(found[name]) for name in PACKETS},
            **{name: found[name] for name in means},
        }
        return {name: [value] for name, value in one.items()}

    def _payload(self, packets: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
        mss_bytes = next(group.tcp.mss_bytes for group in self._plan.groups if group.tcp)
        return np.asarray(np.rint(packets * mss_bytes), dtype=np.uint64)
