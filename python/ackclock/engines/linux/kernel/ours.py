"""Our own congestion controls for a real kernel: where their code is, and their parameters as the code counts them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ackclock.errors import InputError

#: The code: modules of a kernel by its Kbuild, BPF programs by `ackclock.engines.linux.kernel.bpf`.
FOLDER = Path(__file__).parent / "modules"

#: The congestion controls that it has, named like their cards.
NAMES = ("accucubic", "lincubic")


def values(name: str, parameters: Mapping[str, Any]) -> dict[str, int]:
    """The module's parameters, in its own units and by its own names: `{"c_micro": 400000, "beta_1024": 819, …}`.

    `parameters` are all of the card's, with the names and units of a plan (`tick_s`). Raises `InputError` for HyStart,
    which the code does not have.
    """
    if parameters["hystart"]:
        raise InputError(f"{name}: hystart: found true; expected false: in a real kernel {name} has no HyStart")
    counted = {
        "c_micro": round(parameters["c"] * 1e6),
        "beta_1024": round(parameters["beta"] * 1024),
        **{key: int(parameters[key]) for key in SWITCHES},
    }
    if name == "lincubic":
        counted |= {"tick_us": round(parameters["tick_s"] * 1e6), "distance": int(parameters["distance"])}
    return counted


#: The card's booleans that the code has by the same names.
SWITCHES = ("fast_convergence", "reno_friendly", "reno_catch_up", "delayed_ack_correction")
