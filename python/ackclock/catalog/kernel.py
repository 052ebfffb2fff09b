"""A card's table `[linux]`: how the real kernel is told of an algorithm that it has.

The table says where the algorithm is in the kernel, and `[linux.parameters]` in which form the kernel has each
parameter. The engine linux makes its commands and its refusals from it.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

Plain: TypeAlias = str | int | float | bool


class Knob(BaseModel):
    """A parameter of a control's module, a whole number: `{ knob = "beta", scale = 1024, default = 717 }`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    knob: str
    #: What a plan's value is multiplied by before it is rounded.
    scale: float = 1.0
    #: What the kernel's own module starts with; one of ours is always told.
    default: int | None = None

    def number(self, value: Any) -> int:
        """A plan's value as the module counts it."""
        number: int = round(value * self.scale)
        return number


class Word(BaseModel):
    """A parameter of a discipline in tc, before its value: `{ word = "limit" }`. What is not given has no word.

    A boolean is a word alone: `{ word = "ecn", otherwise = "noecn" }`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    word: str
    #: A boolean: the word for false, if tc has one.
    otherwise: str = ""
    #: tc takes whole numbers only, without a unit; others are refused.
    whole: bool = False


class Fixed(BaseModel):
    """What the kernel's code has for good, as a scenario would write it: `{ fixed = "150ms" }`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    fixed: Plain


class Absent(BaseModel):
    """What the kernel cannot be told, so that it must not be given: `{ given = false }`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    given: Literal[False]


class Clock(BaseModel):
    """A tick of the kernel's own clock, one of those that kernels are built with: `{ clock = true }`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    clock: Literal[True]


class Linux(BaseModel):
    """That the kernel has an algorithm, and where."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    #: A control: the kernel's module that has the knobs.
    module: str = ""
    #: A control: whether its module is one of our own (`engines/linux/kernel/modules`), loaded with all its knobs.
    ours: bool = False
    #: A discipline that is made of another: that one, whose card has the words.
    discipline: str = ""
    #: The card's parameters, a discipline's in the order of tc's words; the engine computes from what is missing.
    parameters: dict[str, Knob | Word | Fixed | Absent | Clock] = {}
