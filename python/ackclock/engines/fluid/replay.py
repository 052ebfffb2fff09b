"""Feeds the losses of one result into the fluid engine: how many flows each congestion event hit, and which.

Kumar, Azad and Park 2010 call it a black box: the synchronisation controller takes what was measured elsewhere, from a
packet run, a capture or a testbed, in place of a distribution.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from ackclock import metrics
from ackclock.dataset import Dataset, is_result
from ackclock.errors import InputError
from ackclock.metrics import epoch
from ackclock.plan import Plan

#: The engine that replays.
ENGINE = "fluid"

#: The fluid engine's tables that may name a result, and what is measured of it.
TABLES = ("synchronisation", "victims")


def replay(plan: Plan, data: Dataset, *, victims: bool = False) -> Plan:
    """The plan with the synchronisation of a result's congestion epochs, run by run, in order.

    Args:
        plan: what the fluid engine is to run.
        data: a result with drops: of another engine, or a capture.
        victims: whether the same flows are to be hit, too; else the plan's drop policy chooses.

    Raises:
        InputError: the result has no congestion epochs.
    """
    options = dict(plan.options["fluid"]) | {"synchronisation": _synchronisation(data)}
    if victims:
        options["victims"] = _victims(plan, data)
    return _with(plan, options)


def resolved(plan: Plan) -> Plan:
    """The plan with what its `from` keys name, measured. Raises `InputError` for what is no result or has no epochs."""
    options = dict(plan.options["fluid"])
    for table, folder in _named(plan):
        data = Dataset.read(folder)
        options[table] = _synchronisation(data) if table == "synchronisation" else _victims(plan, data)
    return _with(plan, options)


def check(plan: Plan, coming: Collection[Path] = ()) -> None:
    """Refuses a `from` key that names no result, nor one of the folders that are still to come."""
    for table, folder in _named(plan):
        if not is_result(folder) and folder.resolve() not in {path.resolve() for path in coming}:
            raise InputError(f'fluid.{table}.from: found "{folder}", which is no result; expected a result folder')


def _named(plan: Plan) -> Iterator[tuple[str, Path]]:
    for table in TABLES:
        if folder := plan.options["fluid"][table].get("from"):
            yield table, Path(folder)


def _synchronisation(data: Dataset) -> Mapping[str, Any]:
    found = metrics.epochs(data)
    shares = found["share"].to_list() if found.height else []
    return {"kind": "replayed", "shares": _some(shares, data), "from": None}


def _victims(plan: Plan, data: Dataset) -> Mapping[str, Any]:
    flows = [hit for view in metrics.runs(data) for hit in _flows_hit(view)]
    known = [[flow for flow in hit if flow < len(plan.flows)] for hit in flows]
    return {"kind": "replayed", "flows": _some(known, data), "from": None}


def _flows_hit(view: metrics.RunView) -> list[list[int]]:
    """The flows that lost a packet, epoch by epoch."""
    drops = view.once(epoch.drops_by_epoch).drop_nulls("flow")
    hit = drops.group_by("epoch", maintain_order=True).agg(pl.col("flow").unique().sort())
    return [list(map(int, flows)) for flows in hit["flow"].to_list()]


def _some(found: list[Any], data: Dataset) -> list[Any]:
    if not found:
        engine = data.manifest.get("engine")
        raise InputError(f"replay: found no congestion epochs in the {engine} result; expected drops at the bottleneck")
    return found


def _with(plan: Plan, options: Mapping[str, Any]) -> Plan:
    return replace(plan, options={**plan.options, "fluid": options})
