"""The engines: each in a file or folder of its own, none knows another. This is their table of contents."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

from ackclock.engines.engine import Engine
from ackclock.errors import InputError, Unsupported
from ackclock.plan import Plan

#: Name → module and class; a module is imported when its engine is asked for.
ENGINES = {
    "packet": ("ackclock.engines.packet", "PacketEngine"),
    "theory": ("ackclock.engines.theory", "TheoryEngine"),
    "fluid": ("ackclock.engines.fluid", "FluidEngine"),
    "meanfield": ("ackclock.engines.meanfield", "MeanFieldEngine"),
    "linux": ("ackclock.engines.linux", "LinuxEngine"),
}


def engine(name: str) -> Engine:
    """An engine by name. Raises `InputError` for an unknown one."""
    if name not in ENGINES:
        known = ", ".join(f'"{known}"' for known in ENGINES)
        raise InputError(f'engine: found "{name}"; expected one of {known}')
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
    return [
        replace(reason, available_in=reason.available_in or _with(reason.what, plan)) for reason in chosen.check(plan)
    ]


def _with(what: str, plan: Plan) -> tuple[str, ...]:
    """The engines that have a feature, or can run all of the plan."""
    return tuple(name for name in ENGINES if what in engine(name).has or not engine(name).check(plan))
