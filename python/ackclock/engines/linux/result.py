"""The result of the process inside, as a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from ackclock.dataset import Dataset, Spool
from ackclock.dataset.tables import EVENT_KINDS, TABLES, Column
from ackclock.engines.engine import RunOptions, manifest
from ackclock.engines.linux.trace_steps import capacity_bps
from ackclock.plan import DatagramPlan, FlowPlan, GroupPlan, Plan

Tables: TypeAlias = Mapping[str, Mapping[str, Column]]


def dataset(
    plan: Plan,
    seed: int,
    found: Tables,
    around: RunOptions,
    about: Mapping[str, Any],
    of_run: Mapping[str, Any] | None = None,
) -> Dataset:
    """One run's dataset.

    Into the manifest go `about`, what kernel it was and how the network was made, and `of_run`, what is this run's own.
    """
    spool = Spool(names={"events.kind": EVENT_KINDS}, spool_bytes=around.spool_bytes)
    for table, columns in found.items():
        if table in TABLES and any(map(len, columns.values())):
            known = {name: column for name, column in columns.items() if name in TABLES[table]}
            spool.append(table, known | _described(table, columns, plan))
    made = manifest(plan, "linux", seed, around.command)
    (run,) = made["runs"]
    return spool.dataset(made | {"runs": [run | dict(of_run or {})], "linux": dict(about)})


def _described(table: str, columns: Mapping[str, Column], plan: Plan) -> dict[str, Column]:
    """Add the names of flows and links, which the process inside does not report."""
    if table == "flows":
        return _flows(columns, plan)
    return _links(columns, plan) if table == "links" else {}


def _flows(columns: Mapping[str, Column], plan: Plan) -> dict[str, Column]:
    """The plan's flows and UDP sources come first, then the generated transfers."""
    given: list[FlowPlan | DatagramPlan] = [*plan.flows, *plan.datagrams]
    count = len(columns["flow"])
    protocols = np.array([_protocol(group) for group in plan.groups], dtype=object)
    base_rtt_s = np.array(columns.get("base_rtt_s", np.full(count, np.nan)), dtype=np.float64)
    flow = np.asarray(columns["flow"], dtype=np.int64)
    planned = flow < len(given)
    base_rtt_s[planned] = np.array([item.base_rtt_s for item in given])[flow[planned]]
    return {
        "source": _ends(columns, "source", "sender", plan, len(given)),
        "destination": _ends(columns, "destination", "receiver", plan, len(given)),
        "congestion": protocols[np.asarray(columns["group"])].tolist(),
        "base_rtt_s": base_rtt_s,
    }


def _ends(columns: Mapping[str, Column], end: str, otherwise: str, plan: Plan, given: int) -> list[str | None]:
    """Names of nodes; the ends of a path that the plan gives are numbered, a generated transfer's have no name."""
    names = np.array([*(node.name for node in plan.nodes), None], dtype=object)
    nodes = np.asarray(columns.get(f"{end}_node", np.full(len(columns["flow"]), len(plan.nodes))))
    found: list[str | None] = names[np.minimum(nodes, len(plan.nodes))].tolist()
    for row, number in enumerate(np.asarray(columns["flow"]).tolist()):
        if number < given:
            found[row] = found[row] or f"{otherwise}-{number}"
    return found


def _links(columns: Mapping[str, Column], plan: Plan) -> dict[str, Column]:
    links = [plan.links[number] for number in np.asarray(columns["link"])]
    return {
        "name": [link.name for link in links],
        "bottleneck": np.array([link.bottleneck for link in links], dtype=np.bool_),
        "rate_bps": np.array([capacity_bps(plan, link) for link in links], dtype=np.float64),
    }


def _protocol(group: GroupPlan) -> str:
    return group.congestion.kind if group.congestion else "udp"
