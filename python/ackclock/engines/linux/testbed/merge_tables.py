"""The tables of several hosts, put together: each knows its own end of a connection, the router its queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from ackclock.engines.linux.testbed.layout import ROUTER, Host

#: Table → column → values, as `_core.linux_result` gives them.
Tables: TypeAlias = dict[str, dict[str, Any]]

#: Columns of a flow that its receiver counts, or its client measures. The others are the sender's.
OF_RECEIVER = ("delivered_bytes", "measured_bytes", "received_packets", "delay_mean_s")
OF_CLIENT = ("start_s", "established_s", "end_s", "fct_s")

#: Columns that are times of a host's clock, or durations by it.
TIMES = ("time_s", *OF_CLIENT, "delay_mean_s")


def merge(hosts: Mapping[str, Host], found: Mapping[str, Tables], stretches: Mapping[str, float]) -> Tables:
    """One result of the hosts' own; durations of each clock are multiplied by its stretch."""
    every = {name: _stretched(tables, stretches[name]) for name, tables in found.items()}
    router = next((every[name] for name, host in hosts.items() if host.role == ROUTER), None) or _unseen(every)
    made: Tables = {name: router[name] for name in ("links", "queue_samples") if name in router}
    made["flow_samples"] = _joined([tables.get("flow_samples", {}) for tables in every.values()], ("time_s", "flow"))
    made["events"] = _joined([tables.get("events", {}) for tables in every.values()], ("time_s", "flow"))
    ends = [tables for tables in every.values() if tables.get("ends")]
    made["flows"] = _flows(ends)
    made["limits"] = _joined([_of_senders(tables) for tables in ends], ("flow",))
    return {name: columns for name, columns in made.items() if columns}


def _unseen(every: Mapping[str, Tables]) -> Tables:
    """Return the tables of links that nothing can be measured on: links without counters."""
    return {"links": next(iter(every.values()))["links"]}


def _stretched(tables: Tables, stretch: float) -> Tables:
    if stretch == 1.0:
        return tables
    return {
        name: {key: np.asarray(values) * stretch if key in TIMES else values for key, values in columns.items()}
        for name, columns in tables.items()
    }


def _joined(parts: list[dict[str, Any]], by: tuple[str, ...]) -> dict[str, Any]:
    """Rows of several hosts in one order."""
    filled = [part for part in parts if part and len(next(iter(part.values())))]
    if not filled:
        return {}
    whole = {key: np.concatenate([np.asarray(part[key]) for part in filled]) for key in filled[0]}
    order = np.lexsort([whole[key] for key in reversed(by)])
    return {key: values[order] for key, values in whole.items()}


def _of_senders(tables: Tables) -> dict[str, Any]:
    """Return what limited the senders of a host, which only they measure."""
    ends, limits = tables["ends"], tables.get("limits")
    if not limits:
        return {}
    senders = np.asarray(ends["flow"])[np.asarray(ends["sender"], dtype=bool)]
    rows = np.isin(np.asarray(limits["flow"]), senders)
    return {key: np.asarray(values)[rows] for key, values in limits.items()}


def _flows(parts: list[Tables]) -> dict[str, Any]:
    """A row for each flow that any host knows: each column from the host that can say it, else from any."""
    rows: dict[int, dict[str, Any]] = {}
    for tables in parts:
        flows, ends = tables["flows"], tables["ends"]
        keys = list(flows)
        for number, flow in enumerate(np.asarray(ends["flow"]).tolist()):
            sends, receives, opens = (bool(ends[key][number]) for key in ("sender", "receiver", "client"))
            row = rows.setdefault(int(flow), {})
            for key in keys:
                is_its = receives if key in OF_RECEIVER else opens if key in OF_CLIENT else sends
                if is_its or key not in row:
                    row[key] = flows[key][number]
    if not rows:
        return {}
    every = [rows[flow] for flow in sorted(rows)]
    return {key: np.array([row[key] for row in every], dtype=_kind(parts, key)) for key in every[0]}


def _kind(parts: list[Tables], key: str) -> Any:
    return np.asarray(parts[0]["flows"][key]).dtype
