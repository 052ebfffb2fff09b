"""What can go wrong, and the message that the user gets.

Every message is one line that names the place, what was found there and what would be right.
The command line turns `AckclockError` into its message and `exit_status`; it never shows a traceback for one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class AckclockError(Exception):
    """Something failed in a way that the user can understand."""

    exit_status = 1


class InputError(AckclockError):
    """What the user gave cannot be used: a file, a value, an option."""

    exit_status = 2


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a file: where it is, what was found and what was expected."""

    file: str
    line: int | None
    key: str
    found: str
    expected: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        subject = f"{self.key}: " if self.key else ""
        return f"{place}: {subject}found {self.found}; expected {self.expected}"


class ScenarioError(InputError):
    """A scenario file with one or more mistakes, one line each."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[type[ScenarioError], tuple[tuple[Problem, ...]]]:
        """It goes from process to process with its problems."""
        return ScenarioError, (self.problems,)


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Something in a plan that an engine cannot model, and the engines that can."""

    what: str
    engine: str
    available_in: tuple[str, ...] = ()

    def __str__(self) -> str:
        others = ", ".join(f'"{name}"' for name in self.available_in)
        hint = f"; available in {others}" if others else ""
        what = self.what.removeprefix("a ").removeprefix("an ")
        return f'Unsupported: engine "{self.engine}" has no {what}{hint}'


class UnsupportedError(AckclockError):
    """The engine cannot run the plan."""

    exit_status = 3

    def __init__(self, reasons: Iterable[Unsupported]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("\n".join(map(str, self.reasons)))

    def __reduce__(self) -> tuple[type[UnsupportedError], tuple[tuple[Unsupported, ...]]]:
        """It goes from process to process with its reasons."""
        return UnsupportedError, (self.reasons,)
