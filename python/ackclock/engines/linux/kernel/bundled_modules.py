"""Our own congestion controls for a real kernel: where their code is, and their parameters as the code counts them.

Used by `stack`, `traces`, `bpf` and `user_module`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ackclock import algorithms
from ackclock.algorithms.kernel import Knob
from ackclock.errors import InputError
from ackclock.input.fields import shown

#: The code: modules of a kernel by its Kbuild, BPF programs by `ackclock.engines.linux.kernel.bpf`.
FOLDER = Path(__file__).parent / "modules"

#: The congestion controls that it has, by their specs.
NAMES = tuple(
    name
    for name in algorithms.in_linux("congestion")
    if (linux := algorithms.spec("congestion", name).linux) and linux.ours
)


def values(name: str, parameters: Mapping[str, Any]) -> dict[str, int]:
    """The module's parameters, in its own units and by its own names: `{"c_micro": 400000, "beta_1024": 819, …}`.

    `parameters` are all of the spec's, with the names and units of a plan (`tick_s`). Raises `InputError` for a value
    that the code has fixed otherwise: it has no HyStart.
    """
    spec = algorithms.spec("congestion", name)
    for key, value in spec.fixed.items():
        if parameters[key] != value:
            found, expected = shown(parameters[key]), shown(value)
            raise InputError(f"{name}: {key}: found {found}; expected {expected}, as its code for a real kernel has it")
    return {knob.knob: knob.number(parameters[spec.key(key)]) for key, knob in spec.kernel_parameters(Knob).items()}
