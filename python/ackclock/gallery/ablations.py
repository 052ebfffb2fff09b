"""Mechanisms: what is said to make a result what it is, each shown by runs in which it is switched off, or on.

`mechanisms.toml` in an entry's folder is a list of tables, a mechanism each, in the order in which they are shown:

    [[mechanism]]
    name = "without fast convergence"
    says = "Fast convergence makes long and short cycles alternate."
    moves = ["period"]                         # the claims whose rows it should move
    changes.flows = [{ congestion = { fast_convergence = false } }]
    cases = ["100 Mb/s"]                       # those that are run; absent: all
    engines = ["packet"]                       # absent: all of the entry's
    reading = "as printed"                     # the reading that is changed; absent: the scenario

`changes` and `at` are those of an interpretation (`interpretations`), and are merged after it; of an entry about the
machine itself `changes` are arguments of its `examine`. Rows of the switched runs stand beside the entry's own. They
never count for its verdict: a switched run is not what the paper did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ackclock.errors import InputError
from ackclock.gallery.interpretations import NONE, Interpretation, Interpretations, tables_of
from ackclock.input.fields import shown

#: The file's name in an entry's folder, and the table of what the last switched runs at full scale gave.
FILE, TABLE = "mechanisms.toml", "switched.csv"

_KEYS = {
    "name": str, "says": str, "moves": list, "changes": dict, "at": dict, "engines": list, "cases": list, "reading": str
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ablation:
    """One change of the scenario, what it is said to show, and the claims whose rows it moves."""

    name: str
    description: str
    moves: Sequence[str]
    changes: Mapping[str, Any] = field(default_factory=dict)
    at: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    engines: Sequence[str] | None = None
    cases: Sequence[str] | None = None
    reading: str = ""

    def runs(self, engine: str, case: str) -> bool:
        """Return True if an engine runs a case of it."""
        return (self.engines is None or engine in self.engines) and (self.cases is None or case in self.cases)

    def layers(self, readings: Interpretations) -> tuple[Interpretation, Interpretation]:
        """The interpretation that it changes, and its own changes."""
        base = next((reading for reading in readings.every if reading.name == self.reading), NONE)
        return base, Interpretation(self.name, self.description, self.changes, self.at)


def read(folder: Path, readings: Interpretations) -> Sequence[Ablation]:
    """The mechanisms of an entry's folder, none without the file. Raises `InputError` for what is wrong in it."""
    path = folder / FILE
    if not path.is_file():
        return ()
    found = [
        Ablation(description=table.pop("says"), **table)
        for table in tables_of(path, "mechanism", _KEYS, ("name", "says", "moves"))
    ]
    known = [reading.name for reading in readings.every]
    for number, each in enumerate(found, 1):
        if each.reading and each.reading not in known:
            raise InputError(
                f"{path}: mechanism {number}: reading: found {shown(each.reading)}; expected one of {known}"
            )
    return found
