"""Claims: sentences of papers, each turned into one inequality over measured values, and how they fare.

A file `PAPER.toml` in the folder of the entries describes a paper, its testbeds and its claims:

    title = "Modeling and Analysis of …"
    authors = ["Ada Author", "Bert Baker"]
    year = 2014
    published = "PhD thesis, …"
    entries = ["B5.4-5.6", "B5.7-5.9"]         # in the order of the paper's page

    [[testbed]]
    name = "testbed of chapter 5"
    entries = ["B5.4-5.6", "B5.7-5.9"]
    [[testbed.reading]]
    name = "kernel of 2014"                    # as in the entries' readings.toml
    otherwise = ["as printed"]                 # in entries that have no reading of that name
    support = 2                                # 2: the text states it, 1: it implies it, 0: it allows it
    because = "section 5.3 names Linux hosts"

    [[claim]]
    id = "cubic-loses-more"
    quote = "with higher values for TCP Cubic compared to New Reno"
    section = "5.4.1"
    entries = ["B5.4-5.6"]
    holds = "'losses' > 1"                     # see `inequalities`

A claim may further have `translation`, `scope`, `about = "model"`, `inconsistent` or `untestable` (each a reason, in
place of `holds`), `audit` (the state that a reader of the paper gave by hand) and `difference` (why ours is another).

**Cells.** An inequality is evaluated for each engine and reading of the recorded results: it holds, fails, or is
undetermined, as the 95 % intervals decide. A cell has host noise if its hosts take time for packets, as real ones do.
Ablations that vary the hosts' noise or the scale (`varies` in mechanisms.toml) are cells of their own.

**One joint reading for each testbed**: the one that the text supports most; among equals the likeliest, which has the
least root mean square of ln(ours / printed) over all rows of the testbed's entries with printed numbers, which is the
likelihood's order where errors are relative, normal and of unknown size. It is never chosen by entry or by claim.
"""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from ackclock.errors import InputError
from ackclock.gallery import cases
from ackclock.gallery.cases import NOISE, NONE, SCALE, SWITCHED, Ablation
from ackclock.gallery.entry import REPRODUCTIONS, Entry, find
from ackclock.gallery.inequalities import (
    FAILS,
    INCONSISTENT,
    MODEL,
    SIMULATORS,
    UNTESTABLE,
    Cell,
    Inequality,
    Interval,
    Outcome,
    State,
    state_of,
)
from ackclock.gallery.result import TABLE, Judged, Result
from ackclock.input.fields import shown
from ackclock.input.source import source_text


@dataclass(frozen=True, slots=True)
class Reading:
    """A joint reading of a testbed: its name in the entries, or the first of `otherwise` that an entry has."""

    name: str
    support: int
    because: str
    otherwise: Sequence[str] = ()

    def of(self, entry: Entry) -> str:
        """Return the entry's reading that it means; empty if the entry has none of them."""
        known = [each.name for each in entry.readings.every]
        return next((name for name in (self.name, *self.otherwise) if name in known), "")


@dataclass(frozen=True, slots=True)
class Testbed:
    """Entries that the paper measured in one place, and the readings of it in the paper's order."""

    name: str
    entries: Sequence[str]
    readings: Sequence[Reading]


@dataclass(frozen=True, slots=True)
class Choice:
    """The joint reading of a testbed; `residuals` are the root mean squares that decided, over `rows` numbers."""

    reading: Reading
    residuals: Mapping[str, float]
    rows: int = 0


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper and its inequality."""

    paper: Paper
    id: str
    quote: str
    section: str
    entries: Sequence[str] = ()
    holds: str = ""
    translation: str = ""
    scope: str = ""
    about: str = ""
    inconsistent: str = ""
    untestable: str = ""
    audit: str = ""
    difference: str = ""

    @property
    def full_id(self) -> str:
        """`belhareth2014.cubic-loses-more`."""
        return f"{self.paper.id}.{self.id}"

    @cached_property
    def inequality(self) -> Inequality:
        """The parsed inequality. Raises `InputError`."""
        try:
            return Inequality.parse(self.holds)
        except InputError as error:
            raise InputError(f"{self.paper.path}: {self.id}: holds: {error}") from None

    @cached_property
    def testbed(self) -> Testbed | None:
        """The testbed that its entries belong to, if they have one."""
        return next((each for each in self.paper.testbeds if set(self.entries) <= set(each.entries)), None)

    @cached_property
    def cells(self) -> Sequence[Cell]:
        """Return its evaluations in the recorded results, of one reading after the other."""
        return [cell for view in self._views() for cell in self._cells(view)] if self.holds else []

    @cached_property
    def state(self) -> State:
        """Return its state by the rule above."""
        if self.inconsistent or self.untestable:
            return State(INCONSISTENT if self.inconsistent else UNTESTABLE, self.inconsistent or self.untestable)
        joint = self._views()[0][0] if self.testbed else None
        return state_of(self.cells, joint, is_model=self.about == MODEL, mechanisms=self._mechanisms())

    def reading_of(self, entry: Entry) -> str:
        """Return the reading of its entry that counts: the testbed's, else the first; empty if there is one only."""
        if self.testbed:
            return self.paper.joint(self.testbed).reading.of(entry)
        return next((each.name for each in entry.readings.every), "")

    def evaluate(self, rows: Sequence[Judged]) -> Outcome:
        """Return whether it holds for rows of one engine, of its only entry."""
        cells = self._cell("", "", {self.entries[0]: rows}, noise=False, complete=False)
        return cells[0].outcome if cells else Outcome(None)

    def _views(self) -> list[tuple[str, Mapping[str, str]]]:
        """The readings by which it is evaluated: a name, and the reading of each entry. That which counts is first."""
        found = {name: find(name, self.paper.all_entries) for name in self.entries}
        if len(found) == 1:
            ((name, entry),) = found.items()
            readings = dict.fromkeys([self.reading_of(entry), *(each.name for each in entry.readings.every)])
            return [(reading, {name: reading}) for reading in readings]
        if self.testbed:
            views: dict[tuple[str, ...], str] = {}  # of names for the same readings the first stays
            for each in [self.paper.joint(self.testbed).reading, *self.testbed.readings]:
                views.setdefault(tuple(each.of(entry) for entry in found.values()), each.name)
            return [(name, dict(zip(found, read, strict=True))) for read, name in views.items()]
        return [("", {name: self.reading_of(entry) for name, entry in found.items()})]

    def _cells(self, view: tuple[str, Mapping[str, str]]) -> Iterable[Cell]:
        """The cells of a reading: of the entries' results, of their perturbed runs, and of "host noise" ablations."""
        name, read = view
        entries = {each: find(each, self.paper.all_entries) for each in self.entries}
        tables = {each: recorded(entry) for each, entry in entries.items()}
        labels = dict.fromkeys(row.engine for table in tables.values() for row in table.rows)
        for label in labels:
            chosen = {each: self._rows(table.rows, label, read[each]) for each, table in tables.items()}
            shared = not any(row.reading for rows in chosen.values() for row in rows)
            # What no reading changes is shown once, with the first of them.
            if shared and name != self._views()[0][0]:
                continue
            noise = all(is_noisy(entries[each], label, read[each]) for each in entries)
            yield from self._cell(label, "" if shared else name, chosen, noise=noise)
            if any(row.perturbed is not None for rows in chosen.values() for row in rows):
                yield from self._cell(label, "" if shared else name, chosen, noise=True, perturbed=True)
            if len(entries) == 1:
                (entry,) = entries.values()
                yield from self._varied(entry, label, read[entry.id], name="" if shared else name, noise=noise)

    def _rows(self, rows: Sequence[Judged], label: str, reading: str) -> list[Judged]:
        """Return the rows of a label and reading; with them, if the claim is about a model, those of models alone."""
        own = rows_of(rows, label, reading)
        if self.about != MODEL or not set(label.split(", ")) & set(SIMULATORS):
            return own
        there, named = {row.claim for row in own}, {name.split(": ")[-1] for name, _ in self.inequality.rows}
        if not there & named:
            return own
        models = [row for row in rows if not set(row.engine.split(", ")) & set(SIMULATORS)]
        return [*own, *(row for row in models if row.claim not in there and row.reading in ("", reading))]

    def _varied(self, entry: Entry, label: str, reading: str, *, name: str, noise: bool) -> Iterable[Cell]:
        """Yield the cells of ablations that vary noise or scale of a reading."""
        for each in entry.mechanisms:
            rows = [row for row in switched(entry).rows if (row.engine, row.reading) == (label, each.name)]
            if rows and each.varies and (not name or each.reading in ("", reading)):
                is_noisy = noise or each.varies == NOISE
                scale = each.name if each.varies == SCALE else ""
                yield from self._cell(label, name, {entry.id: rows}, noise=is_noisy, scale=scale)

    def _cell(
        self,
        label: str,
        reading: str,
        chosen: Mapping[str, Sequence[Judged]],
        *,
        noise: bool,
        perturbed: bool = False,
        scale: str = "",
        complete: bool = True,
    ) -> list[Cell]:
        """Return the cell; none if a row that the inequality names has no value here."""
        named = {name for name, _ in self.inequality.rows}
        rows: dict[str, dict[str, Interval | None]] = {}
        used = []
        for entry, judged in chosen.items():
            prefix = "" if len(chosen) == 1 else f"{entry}: "
            for row in judged:
                rows.setdefault(prefix + row.claim, {})[row.at] = interval_of(row, perturbed=perturbed)
                used += [row] if prefix + row.claim in named else []
            for name, at in self._cases(entry) if complete else ():
                own = rows.get(prefix + name, {})
                if own.keys() & at:  # a case that other engines or readings ran, and this did not, has no value here
                    own |= dict.fromkeys(at - own.keys())
        try:
            outcome = self.inequality.evaluate(rows)
        except KeyError:
            return []
        if not any(row.n for row in used):
            return []
        return [Cell(label, reading, noise, outcome, scale, max(row.n for row in used) == 1)]

    def _cases(self, entry: str) -> set[tuple[str, frozenset[str]]]:
        """The cases of each row of an entry, of each engine and reading."""
        found: dict[tuple[str, str, str], set[str]] = {}
        for row in recorded(find(entry, self.paper.all_entries)).rows:
            found.setdefault((row.claim, row.engine, row.reading), set()).add(row.at)
        return {(claim, frozenset(cases)) for (claim, _, _), cases in found.items()}

    @cached_property
    def partial_mechanisms(self) -> Sequence[str]:
        """The ablations by which a claim that fails holds in some of the cases in which it fails, which are named."""
        found: dict[str, None] = {}
        for each, before, after in self._ablated() if self.holds and self.state.name == FAILS else ():
            remaining = {*after.failing, *after.undetermined}
            turned = [case for case in dict.fromkeys(before.failing) if case not in remaining]
            if turned and not after.truth:
                found[f"{each.name} ({', '.join(turned)}): {each.description}"] = None
        return list(found)

    def _mechanisms(self) -> list[str]:
        """The ablations of its entry that turn the claim, in their own words."""
        turned = [each for each, before, after in self._ablated() if {before.truth, after.truth} == {True, False}]
        return list(dict.fromkeys(f"{each.name}: {each.description}" for each in turned))

    def _ablated(self) -> Iterator[tuple[Ablation, Outcome, Outcome]]:
        """Yield its outcome without and with each ablation of its only entry, for each engine that ran it."""
        for entry in self.paper.all_entries:
            for each in entry.mechanisms if [entry.id] == [*self.entries] else ():
                rows = [row for row in switched(entry).rows if row.reading == each.name and not each.varies]
                for label in dict.fromkeys(row.engine for row in rows):
                    changed = [row for row in rows if row.engine == label]
                    keys = {(row.claim, row.at) for row in changed}
                    first = each.reading or next((reading.name for reading in entry.readings.every), "")
                    base = [row for row in rows_of(recorded(entry).rows, label, first) if (row.claim, row.at) in keys]
                    before, after = (
                        self._cell(label, first, {entry.id: some}, noise=False, complete=False)
                        for some in (base, changed)
                    )
                    if before and after:
                        yield each, before[0].outcome, after[0].outcome


@dataclass(frozen=True)
class Paper:
    """A paper: its entries, its testbeds and its claims."""

    path: Path
    title: str
    authors: Sequence[str]
    year: int
    published: str
    entries: Sequence[str]
    testbeds: Sequence[Testbed]
    tables: Sequence[Mapping[str, Any]]
    inferences: Sequence[Mapping[str, Any]] = ()

    @property
    def id(self) -> str:
        """The file's name: `belhareth2014`."""
        return self.path.stem

    @property
    def short(self) -> str:
        """`Kumar and others 2010`."""
        names = [name.split()[-1] for name in self.authors]
        who = names[0] if len(names) == 1 else f"{names[0]} and {names[1] if len(names) == 2 else 'others'}"
        return f"{who} {self.year}"

    @property
    def all_entries(self) -> list[Entry]:
        """Its entries."""
        return [Entry(self.path.parent / name) for name in self.entries]

    @cached_property
    def claims(self) -> Sequence[Claim]:
        """Its claims, in the file's order."""
        return [Claim(self, **table) for table in self.tables]

    @cached_property
    def _choices(self) -> Mapping[str, Choice]:
        return {
            each.name: choice(each, [find(name, self.all_entries) for name in each.entries]) for each in self.testbeds
        }

    def joint(self, testbed: Testbed) -> Choice:
        """Return the joint reading of one of its testbeds."""
        return self._choices[testbed.name]


def papers(place: Path = REPRODUCTIONS) -> list[Paper]:
    """Return all papers by year and name. Raises `InputError` for mistakes in their files."""
    return sorted((read(path) for path in place.glob("*.toml")), key=lambda paper: (-paper.year, paper.id))


def read(path: Path) -> Paper:
    """Return the paper of a file. Raises `InputError`."""
    try:
        table = tomllib.loads(source_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: found {error}; expected TOML") from None
    testbeds = [_testbed(path, each) for each in table.pop("testbed", [])]
    inferences = table.pop("infer", [])
    claims = table.pop("claim", [])
    for number, each in enumerate(claims, 1):
        _check(path, f"claim {each.get('id', number)}", each, Claim, ("id", "quote", "section"), ("paper",))
        if sum(bool(each.get(key)) for key in ("holds", "inconsistent", "untestable")) != 1:
            raise InputError(f"{path}: claim {each['id']}: expected one of holds, inconsistent and untestable")
        if each.get("holds") and not each.get("entries"):
            raise InputError(f"{path}: claim {each['id']}: found no entries; expected those that it is judged by")
    _check(
        path,
        "",
        table,
        Paper,
        ("title", "authors", "year", "published", "entries"),
        ("path", "testbeds", "tables", "inferences"),
    )
    return Paper(path=path, testbeds=testbeds, tables=claims, inferences=inferences, **table)


def find_paper(wanted: str, known: Sequence[Paper] | None = None) -> Paper | None:
    """Return the paper of an id, in whatever case; None if there is none."""
    among = papers() if known is None else known
    return next((paper for paper in among if paper.id.casefold() == wanted.strip().casefold()), None)


def find_claims(wanted: str, known: Sequence[Paper] | None = None) -> list[Claim]:
    """Return the claim of an id, or all claims of a paper or of an entry. Raises `InputError` if there are none."""
    among = papers() if known is None else known
    every = [claim for paper in among for claim in paper.claims]
    key = wanted.strip().casefold()
    found = [claim for claim in every if key in (claim.full_id.casefold(), claim.paper.id.casefold())]
    if not found:
        try:
            entry = find(wanted).id
        except InputError:
            near = difflib.get_close_matches(key, [claim.full_id for claim in every], n=3, cutoff=0.5)
            such = f", such as {', '.join(near)}" if near else ""
            raise InputError(f"ID: found {shown(wanted)}; expected a claim, an entry or a paper{such}") from None
        found = [claim for claim in every if entry in claim.entries]
        if not found:
            raise InputError(f"ID: found {entry}, by which no claim is judged; expected another entry")
    return found


def _testbed(path: Path, table: dict[str, Any]) -> Testbed:
    readings = table.pop("reading", [])
    place = f"testbed {table.get('name', '')}"
    _check(path, place, table, Testbed, ("name", "entries"), ("readings",))
    for each in readings:
        _check(path, f"{place}: reading {each.get('name', '')}", each, Reading, ("name", "support", "because"), ())
    return Testbed(readings=[Reading(**each) for each in readings], **table)


def _check(
    path: Path, place: str, table: Mapping[str, Any], kind: type, needed: Sequence[str], made: Sequence[str]
) -> None:
    """Reject keys that a table cannot have, and its lack of some. Raises `InputError`."""
    keys = [each.name for each in fields(kind) if each.name not in made]
    where = f"{path}: {place}: " if place else f"{path}: "
    if unknown := [key for key in table if key not in keys]:
        raise InputError(f"{where}found the key {shown(unknown[0])}; expected of {', '.join(keys)}")
    if lacking := [key for key in needed if key not in table]:
        raise InputError(f"{where}found no {lacking[0]}; expected it")


def choice(testbed: Testbed, entries: Sequence[Entry]) -> Choice:
    """Return the joint reading of a testbed: by the text, then by the likelihood of all printed numbers."""
    most = max(each.support for each in testbed.readings)
    left = [each for each in testbed.readings if each.support == most]
    if len(left) == 1:
        return Choice(left[0], {})
    ratios = {each.name: _log_ratios(each, entries) for each in left}
    shared = set.intersection(*(set(found) for found in ratios.values()))
    if not shared:
        return Choice(left[0], {})
    residuals = {
        name: math.sqrt(math.fsum(found[key] ** 2 for key in sorted(shared)) / len(shared))
        for name, found in ratios.items()
    }
    return Choice(min(left, key=lambda each: residuals[each.name]), residuals, len(shared))


def _log_ratios(reading: Reading, entries: Sequence[Entry]) -> dict[tuple[str, ...], float]:
    """ln(ours / printed) of each row of a joint reading, by entry, engine, row and case."""
    return {
        (entry.id, row.engine, row.claim, row.at): math.log(row.reproduced / printed)
        for entry in entries
        for row in recorded(entry).rows
        if row.reading and row.reading == reading.of(entry)
        if (printed := entry.published[row.claim].value) and printed > 0 and row.reproduced and row.reproduced > 0
    }


def rows_of(rows: Iterable[Judged], label: str, reading: str) -> list[Judged]:
    """Return the rows of an engine, of a reading or of every one."""
    return [row for row in rows if row.engine == label and row.reading in ("", reading)]


def interval_of(row: Judged, *, perturbed: bool = False) -> Interval | None:
    """Return the 95 % interval of a row, or of its perturbed run; a single run's value is an interval without width."""
    numbers = (row.perturbed, row.perturbed_low, row.perturbed_high) if perturbed and row.perturbed is not None else ()
    mean, low, high = numbers or (row.reproduced, row.ci95_low, row.ci95_high)
    if mean is None:
        return None
    return Interval(mean if low is None else low, mean if high is None else high)


@cache
def recorded(entry: Entry) -> Result:
    """Return an entry's last result at full scale."""
    return Result.last(entry.folder / TABLE, entry.id)


@cache
def switched(entry: Entry) -> Result:
    """Return the rows of an entry's last ablations at full scale."""
    return Result.last(entry.folder / SWITCHED, entry.id)


@cache
def is_noisy(entry: Entry, label: str, reading: str) -> bool:
    """Return True if the hosts of an engine's runs take time for packets, as the machine itself does."""
    engines = [name for name in label.split(", ") if name in entry.all_engines and name in ("packet", "linux")]
    if not engines:
        return label == "host"
    chosen = next((each for each in entry.readings.every if each.name == reading), NONE)
    name, content = next(iter(cases.contents(entry.folder, engine=engines[0], reading=chosen).items()))
    return any(group.tcp and group.tcp.processing for group in cases.plan(entry.folder, name, content).groups)
