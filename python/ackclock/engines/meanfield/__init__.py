"""The mean-field engine: the distribution of windows as the number of flows grows, by `crates/ackclock-models`.

The tables are those of every engine. In the limit of infinitely many flows, flow i of n in a group stands for the
i-th n-th part of the group at each instant, least windows first: its sampled window is the mean over that part. So
the mean over the flows is the group's mean, and the distribution over the samples is the model's; one flow's row of
samples is not the path of a flow. What flows deliver is the same for all of a group. A flow's turn to have a `drop`
event comes whenever the share of a whole flow has lost. With `[meanfield] particles = true` flows are flows.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock import _core
from ackclock.dataset import Dataset, Spool
from ackclock.dataset.tables import EVENT_KINDS, Column
from ackclock.engines import features
from ackclock.engines.engine import Engine, RunOptions, manifest, unsupported_features
from ackclock.engines.meanfield.classes import Class, bottleneck, classes, model_input, unsupported
from ackclock.errors import Unsupported, UnsupportedError
from ackclock.plan import Plan

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
