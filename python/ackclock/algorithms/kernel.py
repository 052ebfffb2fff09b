"""A spec's table `[linux]`: how the real kernel is told of an algorithm that it has.

The table says where the algorithm is in the kernel, and `[linux.parameters]` in which form the kernel has each
parameter. The engine linux makes its commands and its refusals from it.

Used by the catalog for each spec, by the engine `linux`, and by the settings of ns-2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Plain: TypeAlias = str | int | float | bool


@dataclass(frozen=True, kw_only=True)
class Knob:
    """A parameter of a control's module, a whole number: `{ knob = "beta", scale = 1024, default = 717 }`.

    A choice has a number for each value that the module knows: `{ knob = "hystart", values = { standard = 0, … } }`.
    """

    knob: str
    #: Factor of a plan's value before it is rounded.
    scale: float = 1.0
    #: Numbers of a choice's values; other values are refused.
    values: Mapping[str, int] = field(default_factory=dict)
    #: Default of the kernel's own module; a module of ours always gets its parameters.
    default: int | None = None

    def number(self, value: Any) -> int:
        """A plan's value as the module counts it."""
        number: int = self.values[value] if self.values else round(value * self.scale)
        return number

    def has(self, value: Any) -> bool:
        """Return True if the module knows a plan's value."""
        return not self.values or value in self.values


@dataclass(frozen=True, kw_only=True)
class Word:
    """A parameter of a discipline in tc, before its value: `{ word = "limit" }`. What is not given has no word.

    A boolean is a word alone: `{ word = "ecn", otherwise = "noecn" }`. So is a choice that tc has no word for:
    `{ word = "" }` if its values are tc's words, else `{ values = { off = "no-ack-filter", … } }`.
    """

    word: str = ""
    #: The word for false, or for what is not given, if tc has one.
    otherwise: str = ""
    #: The word for each value of a choice.
    values: Mapping[str, str] = field(default_factory=dict)
    #: tc takes whole numbers only, without a unit; others are refused.
    is_integer: bool = False


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """A value fixed in the kernel's code, as a scenario would write it: `{ fixed = "150ms" }`."""

    fixed: Plain | Mapping[str, Plain]


@dataclass(frozen=True, kw_only=True)
class Absent:
    """A parameter that cannot be passed to the kernel and must not be set: `{ given = false }`."""

    given: Literal[False]


@dataclass(frozen=True, kw_only=True)
class Clock:
    """A tick of the kernel's own clock, one of those that kernels are built with: `{ clock = true }`."""

    clock: Literal[True]


#: The forms of an algorithm's parameter in the kernel.
KernelParameter: TypeAlias = Knob | Word | Fixed | Absent | Clock


@dataclass(frozen=True, kw_only=True)
class Linux:
    """Support of an algorithm in the kernel: its module and its parameters."""

    #: A control: the kernel's module that has the knobs.
    module: str = ""
    #: A control: whether its module is one of our own (`engines/linux/kernel/modules`), loaded with all its knobs.
    ours: bool = False
    #: A control: whether its module is one that the user brings (`--module FILE`), loaded with all its knobs.
    user_supplied: bool = False
    #: A discipline that is made of another: that one, whose spec has the words.
    discipline: str = ""
    #: The spec's parameters, a discipline's in the order of tc's words; the engine computes from what is missing.
    parameters: Mapping[str, KernelParameter] = field(default_factory=dict)


def linux(table: Mapping[str, Any]) -> Linux:
    """A spec's table `[linux]`. Raises `TypeError` for keys that it cannot have."""
    parameters = {name: _kernel_parameter(form) for name, form in table.get("parameters", {}).items()}
    return Linux(**{**table, "parameters": parameters})


#: Keys of a form whose fields have other names.
_FIELDS = {"whole": "is_integer"}


def _kernel_parameter(table: Mapping[str, Any]) -> KernelParameter:
    """A parameter in its form, which the key that is its own tells."""
    forms: dict[str, type[KernelParameter]] = {
        "knob": Knob, "word": Word, "fixed": Fixed, "given": Absent, "clock": Clock,
        "values": Word,
    }  # fmt: skip
    for key, form in forms.items():
        if key in table:
            return form(**{_FIELDS.get(name, name): value for name, value in table.items()})
    raise TypeError(f"found {dict(table)}; expected one of the keys {', '.join(forms)}")
