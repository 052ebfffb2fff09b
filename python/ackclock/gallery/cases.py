"""The cases of an entry: `scenario.toml` with what `cases.toml` changes in it.

`cases.toml` names dimensions, and in each the values with the keys that they change; every combination is a case:

    [congestion]
    cubic.flows = [{ congestion = "cubic" }]
    reno.flows = [{ congestion = "reno" }]

    [buffer]
    small.network.queue.limit = "0.1bdp"
    large.network.queue.limit = "1bdp"

gives `cubic small`, `cubic large`, `reno small` and `reno large`. Tables are merged key by key, lists of tables
table by table; anything else is replaced. What an engine is given otherwise than the others stands in a file of its
name, such as `linux.toml`, and is merged into every case; its table `at` has changes for some cases, such as a
parameter that is fixed in the kernel. `quick.toml` comes last. What a reading of the paper changes comes between the
case and the engine.

Readings: the ways in which a paper's words can be understood, each with runs and a verdict of its own.

`readings.toml` in an entry's folder is a list of tables, a reading each, in the order in which they are shown:

    engines = ["packet"]                       # whose set-up they change; absent: every engine's

    [[reading]]
    name = "base"
    says = "“RTT of 1 s” is the RTT of an empty path."

    [[reading]]
    name = "total"
    says = "“RTT of 1 s” is path and queue together, as section 5.5.1 counts it."
    changes.network = { rate = "960kbit", rtt = "500ms" }
    at.cubic.flows = [{ congestion = { kind = "cubic", beta = 0.7 } }]

A reading without `changes` is the scenario as it stands. `at` has changes for the cases that one of the values in
`cases.toml` names, or for one case by its whole name. Engines that no reading changes are run once; what they give
counts in every reading. `engines` in a reading are those that can run it, where not all can.

Ablations: what is said to make a result what it is, each shown by runs in which it is switched off, or on.

`mechanisms.toml` in an entry's folder is a list of tables, a mechanism each, in the order in which they are shown:

    [[mechanism]]
    name = "without fast convergence"
    says = "Fast convergence makes long and short cycles alternate."
    moves = ["period"]                         # the claims whose rows it should move
    changes.flows = [{ congestion = { fast_convergence = false } }]
    cases = ["100 Mb/s"]                       # those that are run; absent: all
    engines = ["packet"]                       # absent: all of the entry's
    reading = "as printed"                     # the reading that is changed; absent: the scenario
    varies = "noise"                           # or "scale": conditions under which a claim should hold, no mechanism

`changes` and `at` are those of a reading, and are merged after it; of an entry about the
machine itself `changes` are arguments of its `examine`. Rows of the switched runs stand beside the entry's own. They
never count for its verdict: a switched run is not what the paper did.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ackclock.errors import InputError, Problem
from ackclock.input.fields import Loc, dotted, shown
from ackclock.input.source import Source, read_toml, source_text
from ackclock.plan import Plan
from ackclock.scenario.planning import Loaded
from ackclock.scenario.scenario import checked

#: Files in an entry's folder: of readings, of ablations, and the table of what ablations gave at full scale.
FILE, MECHANISMS, SWITCHED = "readings.toml", "mechanisms.toml", "switched.csv"

_KEYS = {"name": str, "says": str, "changes": dict, "at": dict, "engines": list}
_ABLATION_KEYS = {**_KEYS, "moves": list, "cases": list, "reading": str, "varies": str}

#: Conditions that an ablation may vary, which are no mechanisms: the time that hosts take for packets, and the scale.
NOISE, SCALE = "noise", "scale"


@dataclass(frozen=True, slots=True)
class Interpretation:
    """One way to read a paper: what it says in a sentence, and what changes in the scenario."""

    name: str
    description: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    at: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    engines: Sequence[str] | None = None

    def runs_in(self, engine: str) -> bool:
        """Return True if an engine can run it."""
        return self.engines is None or engine in self.engines


#: Interpretation where the paper leaves no choice.
NONE = Interpretation("", "")


@dataclass(frozen=True, slots=True)
class Interpretations:
    """All interpretations of an entry; `engines` are those whose set-up they change, None for every one."""

    every: Sequence[Interpretation] = ()
    engines: Sequence[str] | None = None

    def concern(self, engine: str) -> bool:
        """Return True if an engine runs once for each interpretation, not once for all."""
        return bool(self.every) and (self.engines is None or engine in self.engines)


def read(folder: Path) -> Interpretations:
    """Return the interpretations in an entry's folder, none without the file. Raises `InputError` for mistakes."""
    path = folder / FILE
    if not path.is_file():
        return Interpretations()
    every = [
        Interpretation(description=table.pop("says"), **table)
        for table in tables_of(path, "reading", _KEYS, ("name", "says"), {"engines": list})
    ]
    return Interpretations(every, read_toml(path).get("engines"))


def tables_of(
    path: Path, key: str, keys: Mapping[str, type], needed: Sequence[str], beside: Mapping[str, type] | None = None
) -> list[dict[str, Any]]:
    """The tables of `[[key]]` in a file, each with what is `needed` and a name of its own that a folder may have.

    `beside` are the keys that may stand beside them. Raises `InputError` for what is wrong.
    """
    found = read_toml(path)
    _check_keys(path, "", found, {**(beside or {}), key: list})
    tables = found.get(key, ())
    for number, table in enumerate(tables, 1):
        _check(path, f"{key} {number}", table, keys, needed)
    names = [table["name"] for table in tables]
    if not names or len(set(names)) < len(names):
        raise InputError(f"{path}: {key}: found {shown(names)}; expected one table or more, of different names")
    return list(tables)


def _check(path: Path, place: str, table: Any, keys: Mapping[str, type], needed: Sequence[str]) -> None:
    if not isinstance(table, dict):
        raise InputError(f"{path}: {place}: found {shown(table)}; expected a table")
    _check_keys(path, f"{place}: ", table, keys)
    for key in needed:
        if not table.get(key):
            raise InputError(f"{path}: {place}: {key}: found nothing; expected words")
    if not re.fullmatch(r"\w[\w .,%+-]*", table["name"]):
        raise InputError(
            f"{path}: {place}: name: found {shown(table['name'])}; expected words that a folder may be named"
        )


def _check_keys(path: Path, place: str, table: Mapping[str, Any], keys: Mapping[str, type]) -> None:
    for key, value in table.items():
        if key not in keys:
            raise InputError(f"{path}: {place}found the key {shown(key)}; expected of {', '.join(keys)}")
        if not isinstance(value, keys[key]):
            raise InputError(f"{path}: {place}{key}: found {shown(value)}; expected a {_NAMES[keys[key]]}")


_NAMES: Mapping[type, str] = {str: "string", dict: "table", list: "list"}


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
    varies: str = ""

    def runs(self, engine: str, case: str) -> bool:
        """Return True if an engine runs a case of it."""
        return (self.engines is None or engine in self.engines) and (self.cases is None or case in self.cases)

    def layers(self, readings: Interpretations) -> tuple[Interpretation, Interpretation]:
        """The interpretation that it changes, and its own changes."""
        base = next((reading for reading in readings.every if reading.name == self.reading), NONE)
        return base, Interpretation(self.name, self.description, self.changes, self.at)


def read_ablations(folder: Path, readings: Interpretations) -> Sequence[Ablation]:
    """The mechanisms of an entry's folder, none without the file. Raises `InputError` for what is wrong in it."""
    path = folder / MECHANISMS
    if not path.is_file():
        return ()
    found = [
        Ablation(description=table.pop("says"), **table)
        for table in tables_of(path, "mechanism", _ABLATION_KEYS, ("name", "says", "moves"))
    ]
    known = [reading.name for reading in readings.every]
    for number, each in enumerate(found, 1):
        if each.reading and each.reading not in known:
            raise InputError(
                f"{path}: mechanism {number}: reading: found {shown(each.reading)}; expected one of {known}"
            )
        if each.varies not in ("", NOISE, SCALE):
            raise InputError(
                f"{path}: mechanism {number}: varies: found {shown(each.varies)}; expected {NOISE} or {SCALE}"
            )
    return found


#: The only case of an entry without `cases.toml`.
ONLY = "all"

_NOTHING: Mapping[str, Any] = {}


def plans(
    folder: Path,
    *,
    engine: str | None = None,
    quick: bool = False,
    reading: Interpretation = NONE,
    switched: Interpretation = NONE,
) -> dict[str, Plan]:
    """The plan of each case, for an engine. Raises `ScenarioError` or `InputError` for what is wrong in the files."""
    found = contents(folder, engine=engine, quick=quick, reading=reading, switched=switched)
    return {name: plan(folder, name, content) for name, content in found.items()}


def contents(
    folder: Path,
    *,
    engine: str | None = None,
    quick: bool = False,
    reading: Interpretation = NONE,
    switched: Interpretation = NONE,
) -> dict[str, Mapping[str, Any]]:
    """The tables of each case, for an engine; `switched` is what a mechanism changes in the interpretation.

    Raises `ScenarioError` or `InputError` for files that are no TOML.
    """
    common = _source(folder).toml()
    own = _of_engine(folder / f"{engine}.toml")
    scale = read_toml(folder / "quick.toml") if quick else {}
    every = list(_combinations(folder))
    for each, file in ((reading, FILE), (switched, MECHANISMS), (own, f"{engine}.toml")):
        known = {name for values, _ in every for name in (*values, " ".join(values))}
        if unknown := [name for name in each.at if name not in known]:
            raise InputError(
                f"{folder / file}: at: found {shown(unknown[0])}; expected a value of cases.toml or a case"
            )
    found = {}
    for values, changes in every:
        content = merged(common, _read_as(reading, values, changes))
        for layer in (switched, own):
            content = _read_as(layer, values, content)
        found[" ".join(values)] = merged(content, scale)
    return found


def _of_engine(path: Path) -> Interpretation:
    """Return what an engine's own file changes, and where; nothing without the file. Raises `InputError`."""
    changes = read_toml(path) if path.is_file() else {}
    at = changes.pop("at", {})
    _check_keys(path, "", {"at": at}, {"at": dict})
    _check_keys(path, "at: ", at, dict.fromkeys(at, dict))
    return Interpretation("", "", changes, at)


def _read_as(reading: Interpretation, values: tuple[str, ...], changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the changes of a case, with those of an interpretation: for all cases, for its values, for it alone."""
    names = dict.fromkeys((*values, " ".join(values)))
    for more in (reading.changes, *(reading.at[name] for name in names if name in reading.at)):
        changes = merged(changes, more)
    return changes


def plan(folder: Path, case: str, content: Mapping[str, Any]) -> Plan:
    """The plan of a case with these tables. Raises as `plans` does."""
    source = _source(folder)
    return Loaded(checked(content, _Case(f"{source.name} ({case})", source.text)), source).plan()


def cases(folder: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each case's name, and what it changes."""
    return ((" ".join(values), changes) for values, changes in _combinations(folder))


def _combinations(folder: Path) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """The values that each case combines, and what it changes."""
    path = folder / "cases.toml"
    if not path.exists():
        yield (ONLY,), {}
        return
    for combination in itertools.product(*(_values(path, key, table) for key, table in read_toml(path).items())):
        changes: dict[str, Any] = {}
        for _, change in combination:
            changes = merged(changes, change)
        yield tuple(name for name, _ in combination), changes


def merged(base: Any, changes: Any) -> Any:
    """`base` with `changes` in it: tables key by key, lists of tables table by table, else `changes`."""
    if isinstance(base, Mapping) and isinstance(changes, Mapping):
        return {**base, **{key: merged(base.get(key), change) for key, change in changes.items()}}
    if _are_tables(base) and _are_tables(changes):
        return [merged(one, other) for one, other in itertools.zip_longest(base, changes, fillvalue=_NOTHING)]
    return changes


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


class _Case(Source):
    """A case's values, which stand in several files: mistakes have no line."""

    def problem(self, loc: Loc, found: str, expected: str) -> Problem:
        return Problem(self.name, None, dotted(loc), found, expected)


def _source(folder: Path) -> Source:
    return Source(str(folder / "scenario.toml"), source_text(folder / "scenario.toml"))


def _values(path: Path, dimension: str, table: Any) -> list[tuple[str, Mapping[str, Any]]]:
    if not isinstance(table, Mapping) or not all(isinstance(change, Mapping) for change in table.values()):
        raise InputError(f"{path}: {dimension}: found something else; expected tables of keys to change")
    return list(table.items())
