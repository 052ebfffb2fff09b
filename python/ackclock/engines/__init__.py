"""The list of engines. Each is a file or folder of this package, and none imports another."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ackclock.engines.engine import Engine
from ackclock.errors import InputError, Unsupported
from ackclock.input import arguments
from ackclock.system.files import check_name, readable

if TYPE_CHECKING:
    from ackclock.plan import Plan

#: Name in plans of the congestion control that an agent sets (`crates/ackclock-congestion/src/agent.rs`).
AGENT = "agent"
AGENT_REASON = "an episode of ackclock.rl is repeated by its agent"

#: Name → module and class; a module is imported when its engine is first used.
ENGINES = {
    "packet": ("ackclock.engines.packet", "PacketEngine"),
    "hybrid": ("ackclock.engines.packet", "HybridEngine"),
    "theory": ("ackclock.engines.theory", "TheoryEngine"),
    "fluid": ("ackclock.engines.fluid", "FluidEngine"),
    "meanfield": ("ackclock.engines.meanfield", "MeanFieldEngine"),
    "linux": ("ackclock.engines.linux", "LinuxEngine"),
    "ns2": ("ackclock.engines.ns2", "Ns2Engine"),
    "ns3": ("ackclock.engines.ns3", "Ns3Engine"),
}


def engine(name: str) -> Engine:
    """Return an engine by name. Raises `InputError` for an unknown one."""
    if name not in ENGINES:
        from ackclock.input.fields import nearest

        arguments.wrong_value("engine", name, nearest(name, ENGINES))
    module, kind = ENGINES[name]
    made: Engine = getattr(import_module(module), kind)()
    return made


def unavailable(name: str) -> str | None:
    """Return why this machine cannot run an engine at all, and how to change that; None if it can."""
    return engine(name).unavailable()


def unsupported(chosen: Engine, plan: Plan) -> list[Unsupported]:
    """List what of the plan the engine cannot model, each with the engines that can."""
    from ackclock.engines import features

    if without_spec := _without_spec(plan):
        return [Unsupported(f"{features.congestion(kind)}: {why}", chosen.name) for kind, why in without_spec.items()]
    can_run = cache(lambda name: not engine(name).unsupported(plan))

    def available(feature: str) -> tuple[str, ...]:
        return tuple(name for name in ENGINES if feature in engine(name).supported_features or can_run(name))

    return [
        replace(reason, available_in=reason.available_in or available(reason.what))
        for reason in chosen.unsupported(plan)
    ]


def _without_spec(plan: Plan) -> dict[str, str]:
    """Return the CCAs of a result's plan that no run here can have, with the reason."""
    from ackclock import algorithms

    kinds = {group.congestion.kind for group in plan.groups if group.congestion}
    unknown = sorted(kinds.difference(algorithms.names("congestion")))
    return {kind: AGENT_REASON if kind == AGENT else "it has no spec here" for kind in unknown}


def check_inputs(chosen: Engine, plan: Plan, coming: Collection[Path] = ()) -> None:
    """Reject a plan that names an input that is neither a result folder nor one of those still to be written."""
    from ackclock.dataset.result_kind import DATASETS, kind

    for required in chosen.required_results(plan):
        place = os.path.realpath(check_name(required.folder))
        if kind(required.folder) not in DATASETS and place not in map(os.path.realpath, coming):
            raise InputError(
                f'{required.key}: found "{readable(required.folder)}", which is no result; expected a result folder'
            )


def resolve_inputs(chosen: Engine, plan: Plan) -> Plan:
    """Return the plan with what is measured of the results that it names, and of real hosts.

    Raises `InputError` for results that lack it, and the errors of the measurement.
    """
    from ackclock.dataset import Dataset

    check_inputs(chosen, plan)
    for required in chosen.required_results(plan):
        plan = required.filled(plan, Dataset.read(required.folder))
    return chosen.with_measurements(plan)
