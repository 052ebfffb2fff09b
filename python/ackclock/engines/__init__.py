"""The engines: each in a file or folder of its own, none knows another. This is their table of contents."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ackclock.engines.engine import Engine, Need
from ackclock.errors import InputError, Unsupported
from ackclock.input import arguments
from ackclock.system.files import check_name, readable

if TYPE_CHECKING:
    from ackclock.plan import Plan

#: Of other machines: a line on each by name, what is missing there, what weakens a run.
Seen: TypeAlias = tuple[dict[str, str], tuple[str, ...], tuple[str, ...]]

#: Name → module and class; a module is imported when its engine is asked for.
ENGINES = {
    "packet": ("ackclock.engines.packet", "PacketEngine"),
    "theory": ("ackclock.engines.theory", "TheoryEngine"),
    "fluid": ("ackclock.engines.fluid", "FluidEngine"),
    "meanfield": ("ackclock.engines.meanfield", "MeanFieldEngine"),
    "linux": ("ackclock.engines.linux", "LinuxEngine"),
    "ns2": ("ackclock.engines.ns2", "Ns2Engine"),
    "ns3": ("ackclock.engines.ns3", "Ns3Engine"),
}


def engine(name: str) -> Engine:
    """An engine by name. Raises `InputError` for an unknown one."""
    if name not in ENGINES:
        known = ", ".join(f'"{known}"' for known in ENGINES)
        arguments.wrong_value("engine", name, f"one of {known}")
    module, kind = ENGINES[name]
    made: Engine = getattr(import_module(module), kind)()
    return made


def lacking(name: str) -> str | None:
    """What this machine lacks to run an engine at all, and how to get it; None if nothing."""
    asked = getattr(engine(name), "lacking", None)
    found: str | None = asked() if asked else None
    return found


def refusals(chosen: Engine, plan: Plan) -> list[Unsupported]:
    """What of the plan the engine cannot model, and which engines can."""
    able = cache(lambda name: not engine(name).check(plan))
    return [
        replace(reason, available_in=reason.available_in or _with(reason.what, able)) for reason in chosen.check(plan)
    ]


def check_needs(chosen: Engine, plan: Plan, coming: Collection[Path] = ()) -> None:
    """Refuses a plan that needs what is no result, nor one of the folders that are still to come."""
    from ackclock.dataset.result_kind import DATASETS, kind

    for need in _needs(chosen, plan):
        place = os.path.realpath(check_name(need.folder))
        if kind(need.folder) not in DATASETS and place not in map(os.path.realpath, coming):
            raise InputError(
                f'{need.key}: found "{readable(need.folder)}", which is no result; expected a result folder'
            )


def fed(chosen: Engine, plan: Plan) -> Plan:
    """The plan with what it needs of other results, and of the world, measured.

    Raises `InputError` for results that do not have it, and what the measurement raises.
    """
    from ackclock.dataset import Dataset

    check_needs(chosen, plan)
    for need in _needs(chosen, plan):
        plan = need.filled(plan, Dataset.read(need.folder))
    asked = getattr(chosen, "measured", None)
    measured: Plan = asked(plan) if asked else plan
    return measured


def alone(chosen: Engine, plan: Plan) -> bool:
    """Whether no two runs of a plan may go on at a time."""
    asked = getattr(chosen, "alone", None)
    return bool(asked and asked(plan))


def look(chosen: Engine, plan: Plan) -> Seen | None:
    """Other machines that a run would need: see `Engine`."""
    asked = getattr(chosen, "look", None)
    found: Seen | None = asked(plan) if asked else None
    return found


def _needs(chosen: Engine, plan: Plan) -> Sequence[Need]:
    asked = getattr(chosen, "needs", None)
    return asked(plan) if asked else ()


def _with(what: str, able: Callable[[str], bool]) -> tuple[str, ...]:
    """The engines that have a feature, or are able to run all of the plan."""
    return tuple(name for name in ENGINES if what in engine(name).has or able(name))
