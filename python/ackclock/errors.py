"""Errors and their messages.

Every message is one line with the place, the value that was found there and the one expected. The command line prints
the message of an `AckclockError` and exits with its `exit_status`, without a traceback.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the name of its type if it has none."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


class AckclockError(Exception):
    """An error that the user can understand."""

    exit_status = 1


class InputError(AckclockError):
    """Invalid input: a file, a value, an option."""

    exit_status = 2


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a file: its place, the value found and the one expected."""

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
        """Pickle with the problems."""
        return ScenarioError, (self.problems,)


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A feature of a plan that an engine does not model, the engines that do, and what to write in its place."""

    what: str
    engine: str
    available_in: tuple[str, ...] = ()
    remedy: str = ""

    def __str__(self) -> str:
        others = ", ".join(f'"{name}"' for name in self.available_in)
        hint = f"; available in {others}" if others else ""
        what = self.what.removeprefix("a ").removeprefix("an ")
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f'Unsupported: engine "{self.engine}" has no {what}{hint}{remedy}'


class UnsupportedError(AckclockError):
    """The engine cannot run the plan."""

    exit_status = 3

    def __init__(self, reasons: Iterable[Unsupported]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("\n".join(map(str, self.reasons)))

    def __reduce__(self) -> tuple[type[UnsupportedError], tuple[tuple[Unsupported, ...]]]:
        """Pickle with the reasons."""
        return UnsupportedError, (self.reasons,)
