"""The fluid engine: each flow's window and each queue as differential equations, by `crates/ackclock-models`.

What it assumes and where it departs from print is in `docs/concepts/fluid.md`.

`replay` feeds the losses of one result into the engine: how many flows each congestion event hit, and which. Kumar,
Azad and Park 2010 call it a black box: the synchronisation controller takes what was measured elsewhere, from a packet
run, a capture or a testbed, in place of a distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock import _core, metrics
from ackclock.dataset import Dataset, Spool
from ackclock.dataset.tables import EVENT_KINDS, Column
from ackclock.engines import features
from ackclock.engines.engine import RequiredResult, RunOptions, VectorisedEngine, cores, manifest, unsupported_features
from ackclock.engines.fluid import plans
from ackclock.engines.fluid.plans import QUEUES
from ackclock.errors import InputError, Unsupported, UnsupportedError
from ackclock.input import arguments
from ackclock.input.arguments import checked, optional
from ackclock.metrics import epoch
from ackclock.plan import Plan


class FluidEngine(VectorisedEngine):
    """N flows through queues with loss synchronisation."""

    name = "fluid"
    supported_features = (
        frozenset({features.STARTS, features.STOPS, features.SEVERAL_LINKS, features.ROUTED})
        | {features.congestion(name) for name in _core.FLUID_LAWS}
        | {features.queue(name) for name in QUEUES}
    )

    def unsupported(self, plan: Plan) -> list[Unsupported]:
        """List what a fluid cannot model: short transfers, equal-cost paths, and parameters of queues."""
        finer = [*plans.unsupported_routes(plan), *plans.unsupported(plans.laid(plan))]
        return [*unsupported_features(plan, self), *(Unsupported(what, self.name) for what in finer)]

    def is_stochastic(self, plan: Plan) -> bool:
        """Return True if starts, the number of flows hit, or which flows are hit, are drawn."""
        return plans.is_stochastic(plan)

    def required_results(self, plan: Plan) -> list[RequiredResult]:
        """The results whose losses it is to follow."""
        return required_results(plan)

    def run(self, plan: Plan, seed: int, options: RunOptions | None = None) -> Dataset:
        """One run. Raises `UnsupportedError`, and `InputError` for paths in a circle or shares still to be measured."""
        around = options or RunOptions()
        (data,) = self.run_many([(plan, seed)], around, jobs=1)
        around.progress(1.0)
        return data

    def run_many(
        self, runs: Sequence[tuple[Plan, int]], options: RunOptions | None = None, *, jobs: int | None = None
    ) -> list[Dataset]:
        """Many plans with their seeds in one call, over the cores; a dataset for each, in their order.

        The results do not depend on `jobs`, the number of runs at a time. Raises as `run` does; whatever
        `options.progress` raises ends the call.
        """
        around = options or RunOptions()
        for plan, _ in runs:
            if reasons := self.unsupported(plan):
                raise UnsupportedError(reasons)

        def report(done: int) -> None:
            around.progress(done / len(runs))

        inputs = [plans.fluid(plans.laid(plan), samples=around.samples) for plan, _ in runs]
        try:
            outcomes = _core.fluid_many(inputs, [seed for _, seed in runs], jobs or cores(), report)
        except ValueError as error:
            raise InputError(str(error)) from error
        return [
            _dataset(plan, seed, outcome, around, self.name)
            for (plan, seed), outcome in zip(runs, outcomes, strict=True)
        ]


#: A part of each run, in seconds; None: what the result measured.
Between: TypeAlias = tuple[float, float] | None


@checked(
    plan=arguments.a(Plan, "a plan, as Loaded.plan() gives"),
    data=arguments.RECORDED,
    loss_assignment=arguments.FLAG,
    between=optional(arguments.BETWEEN),
)
def replay(plan: Plan, data: Dataset, *, loss_assignment: bool = False, between: Between = None) -> Plan:
    """The plan with the synchronisation of a result's congestion epochs, run by run, in order.

    Args:
        plan: what the fluid engine is to run.
        data: a result with drops: of another engine, or a capture.
        loss_assignment: whether the same flows are to be hit, too; else the plan's drop policy chooses.
        between: a part of each of its runs, in seconds: a capture knows no warm-up.

    Raises:
        InputError: the result has no congestion epochs, or no such part.
        TypeError: an argument of another type.
    """
    found = _filled("synchronisation", plan, data, between)
    return _filled("loss_assignment", found, data, between) if loss_assignment else found


def required_results(plan: Plan) -> list[RequiredResult]:
    """The results that the plan's `from` keys name."""
    named = {table: plan.options["fluid"][table].get("from") for table in MEASURED}
    return [
        RequiredResult(f"fluid.{table}.from", Path(folder), partial(_filled, table))
        for table, folder in named.items()
        if folder
    ]


def _filled(table: str, plan: Plan, data: Dataset, between: Between = None) -> Plan:
    replayed = {"kind": "replayed", **MEASURED[table](plan, data, between), "from": None}
    options = {**plan.options["fluid"], table: replayed}
    return replace(plan, options={**plan.options, "fluid": options})


def _synchronisation(plan: Plan, data: Dataset, between: Between) -> Mapping[str, Any]:
    found = metrics.epochs(data, between)
    return {"shares": _some(found["share"].to_list() if found.height else [], data)}


def _victims(plan: Plan, data: Dataset, between: Between) -> Mapping[str, Any]:
    flows = [hit for view in metrics.runs(data, between) for hit in _flows_hit(view)]
    return {"flows": _some([[flow for flow in hit if flow < len(plan.flows)] for hit in flows], data)}


#: The engine's tables that may name a result, and what is measured of it.
MEASURED: Mapping[str, Callable[[Plan, Dataset, Between], Mapping[str, Any]]] = {
    "synchronisation": _synchronisation,
    "loss_assignment": _victims,
}


def _flows_hit(view: metrics.RunView) -> list[list[int]]:
    """The flows that lost a packet, epoch by epoch. A capture numbers both directions of its connections."""
    directions = 2 if view.is_capture else 1
    drops = view.cached(epoch.drops_by_epoch).drop_nulls("flow")
    hit = drops.group_by("epoch", maintain_order=True).agg(pl.col("flow").unique().sort())
    return [[int(flow) // directions for flow in flows] for flows in hit["flow"].to_list()]


def _some(found: list[Any], data: Dataset) -> list[Any]:
    if not found:
        engine = data.manifest.get("engine", "captured")
        raise InputError(f"replay: found no congestion epochs in the {engine} result; expected drops at the bottleneck")
    return found


Outcome: TypeAlias = Mapping[str, Mapping[str, Any]]
Array: TypeAlias = npt.NDArray[np.float64]


def _dataset(plan: Plan, seed: int, outcome: Outcome, around: RunOptions, engine: str) -> Dataset:
    """One run's dataset."""
    spool = Spool(names={"events.kind": EVENT_KINDS}, spool_bytes=around.spool_bytes)
    spool.append("flows", _flows(plan, outcome["flows"]))
    spool.append("links", _links(plan, outcome["links"]))
    spool.append("events", outcome["events"])
    if around.samples:
        spool.append("flow_samples", _flow_samples(plan, outcome["flow_samples"]))
        spool.append("queue_samples", _queue_samples(plan, outcome["queue_samples"]))
    given = _losses(plan, outcome["epochs"]) | ({} if around.samples else _without_samples(outcome["flows"]))
    return spool.dataset(manifest(plan, engine, seed, around.command, given))


def _flows(plan: Plan, flows: Mapping[str, Any]) -> dict[str, Column]:
    groups = [plan.groups[flow.group] for flow in plan.flows]
    payload = np.array([group.tcp.mss_bytes if group.tcp else 0 for group in groups], dtype=np.float64)
    return {
        "flow": np.arange(len(plan.flows), dtype=np.uint32),
        "group": np.array([flow.group for flow in plan.flows], dtype=np.uint32),
        "source": _ends(plan, "source", "sender"),
        "destination": _ends(plan, "destination", "receiver"),
        "congestion": [group.congestion.kind if group.congestion else "" for group in groups],
        "base_rtt_s": np.array([flow.base_rtt_s for flow in plan.flows]),
        "start_s": flows["start_s"],
        "end_s": flows["end_s"],
        "delivered_bytes": _to_uint64(flows["delivered_p"] * payload),
        "measured_bytes": _to_uint64(flows["measured_delivered_p"] * payload),
        "sent_packets": _to_uint64(flows["sent_p"]),
        "received_packets": _to_uint64(flows["delivered_p"]),
        "dropped_packets": _to_uint64(flows["dropped_p"]),
        "recoveries": flows["recoveries"],
        "measured_sent_packets": _to_uint64(flows["measured_sent_p"]),
    }


def _ends(plan: Plan, end: str, otherwise: str) -> list[str]:
    """Names of nodes; the ends of a path that the plan gives are numbered."""
    return [
        plan.nodes[getattr(flow.ends, end)].name if flow.ends else f"{otherwise}-{number}"
        for number, flow in enumerate(plan.flows)
    ]


def _links(plan: Plan, links: Mapping[str, Any]) -> dict[str, Column]:
    return {
        "link": np.arange(len(plan.links), dtype=np.uint32),
        "name": [link.name for link in plan.links],
        "bottleneck": [link.bottleneck for link in plan.links],
        "rate_bps": np.array([link.rate_bps for link in plan.links]),
        "departed_bytes": _to_uint64(links["departed_p"] * plan.packet_bytes),
        "backlog_mean_bytes": links["backlog_mean_p"] * plan.packet_bytes,
        **{name: _to_uint64(links[name]) for name in _PACKETS},
        **{name: np.zeros(len(plan.links), dtype=np.uint64) for name in _NEVER},
        **{name: links[name] for name in _TIMES},
    }


_PACKETS = ("arrived_p", "dropped_p", "departed_p", "arrived_total_p", "dropped_total_p", "departed_total_p")
#: Random losses on a link are not modelled; a plan that has them is refused.
_NEVER = ("lost_p", "lost_total_p")
_TIMES = (
    "busy_s", "empty_s", "backlog_mean_p", "sojourn_mean_s", "sojourn_max_s", "sojourn_edges_s", "sojourn_counts",
)  # fmt: skip


def _flow_samples(plan: Plan, samples: Mapping[str, Any]) -> dict[str, Column]:
    tcps = [plan.groups[flow.group].tcp for flow in plan.flows]
    payload = np.array([tcp.mss_bytes if tcp else 0 for tcp in tcps], dtype=np.float64)[samples["flow"]]
    return {
        "time_s": samples["time_s"],
        "flow": samples["flow"],
        "cwnd": samples["cwnd"],
        "srtt_s": samples["srtt_s"],
        "in_flight": samples["cwnd"],
        "delivered_bytes": _to_uint64(samples["delivered_p"] * payload),
    }


def _queue_samples(plan: Plan, samples: Mapping[str, Any]) -> dict[str, Column]:
    """All links' rows, or the bottlenecks' alone; counts since the sample before."""
    kept = np.array([plan.record.all_links or link.bottleneck for link in plan.links], dtype=np.bool_)[samples["link"]]
    link = samples["link"][kept]
    rate_bps = np.array([link.rate_bps for link in plan.links])[link]
    backlog_p = samples["backlog_p"][kept]
    departed_p, dropped_p = (_since_last(samples[name], len(plan.links))[kept] for name in ("departed_p", "dropped_p"))
    bits = 8.0 * plan.packet_bytes
    return {
        "time_s": samples["time_s"][kept],
        "link": link,
        "backlog_p": backlog_p,
        "backlog_bytes": backlog_p * plan.packet_bytes,
        "sojourn_s": backlog_p * bits / rate_bps,
        "departures_p": _to_uint64(departed_p),
        "drops_p": _to_uint64(dropped_p),
        "utilisation": departed_p * bits / (rate_bps * plan.record.interval_s),
    }


def _since_last(counts_p: Array, links: int) -> Array:
    """Differences of whole counts; rows go round the links."""
    table = np.rint(counts_p).reshape(-1, links)
    return np.asarray(np.diff(table, axis=0, prepend=0.0).ravel())


def _losses(plan: Plan, epochs: Mapping[str, Any]) -> dict[str, float]:
    """Packets lost in an event: the table of events has a row for each flow hit, not for each packet."""
    bottlenecks = [number for number, link in enumerate(plan.links) if link.bottleneck]
    measured = np.isin(epochs["link"], bottlenecks) & (epochs["time_s"] >= plan.warmup_s)
    lost_p = epochs["dropped_p"][measured]
    if not lost_p.size:
        return {}
    return {
        "losses_per_epoch": float(lost_p.mean()),
        "losses_per_epoch_sd": float(lost_p.std()),
        "losses_per_epoch_max": float(lost_p.max()),
    }


def _without_samples(flows: Mapping[str, Any]) -> dict[str, Any]:
    """Means over time that else come from samples; of flows that were there in the measured part."""
    there = np.isfinite(flows["window_mean_p"])
    if not there.any():
        return {}
    return {
        "cwnd_mean": float(flows["window_mean_p"][there].mean()),
        "cwnd_flow": flows["window_mean_p"][there].tolist(),
        "rtt_mean_s": float(flows["rtt_mean_s"][there].mean()),
    }


def _to_uint64(values: Array) -> npt.NDArray[np.uint64]:
    return np.rint(np.maximum(values, 0.0)).astype(np.uint64)
