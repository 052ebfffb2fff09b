"""The engines: each in a file or folder of its own, none knows another. This is their table of contents."""

from __future__ import annotations

from importlib import import_module

from ackclock.engines.engine import Engine
from ackclock.errors import InputError

#: Name → module and class; a module is imported when its engine is asked for.
ENGINES = {"packet": ("ackclock.engines.packet", "PacketEngine")}


def engine(name: str) -> Engine:
    """An engine by name. Raises `InputError` for an unknown one."""
    if name not in ENGINES:
        known = ", ".join(f'"{known}"' for known in ENGINES)
        raise InputError(f'engine: found "{name}"; expected one of {known}')
    module, kind = ENGINES[name]
    made: Engine = getattr(import_module(module), kind)()
    return made
