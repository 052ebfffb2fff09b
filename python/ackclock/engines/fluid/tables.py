"""Output of the fluid solver as a dataset's tables: packets become bytes and whole numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ackclock.dataset import Dataset, Spool
from ackclock.dataset.tables import EVENT_KINDS, Column
from ackclock.engines.engine import RunOptions, manifest
from ackclock.plan import Plan

Outcome: TypeAlias = Mapping[str, Mapping[str, Any]]
Array: TypeAlias = npt.NDArray[np.float64]


def dataset(plan: Plan, seed: int, outcome: Outcome, around: RunOptions, engine: str) -> Dataset:
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
