"""The entries: the folders of `reproductions/`, which the package carries."""

from __future__ import annotations

import csv
import importlib.util
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from ackclock.dataset import Dataset
from ackclock.errors import InputError
from ackclock.gallery import cases
from ackclock.gallery.cases import Ablation, Interpretation, Interpretations
from ackclock.gallery.rows import Measure, Measured, Row, Values
from ackclock.input.fields import SUGGESTIONS, SYNONYMS, nearest, shown
from ackclock.plan import Plan

#: Folder of the entries: in a checkout a link to its top, in an installed package a folder.
REPRODUCTIONS = Path(__file__).parents[1] / "reproductions"

#: Files of every entry.
FILES = ("README.md", "scenario.toml", "quick.toml", "published.csv", "check.py")

#: Files of an entry that no engine runs: `host.py` measures the machine itself.
OF_HOSTS = ("README.md", "host.py", "published.csv", "check.py")

#: The columns of `published.csv`.
COLUMNS = ("claim", "what", "published", "value", "unit", "where", "how")


@dataclass(frozen=True, slots=True)
class Published:
    """A published result: `published` in the paper's words, `value` as a number in `unit` where it is one."""

    claim: str
    what: str
    published: str
    value: float | None
    unit: str
    where: str
    how: str


@dataclass(frozen=True)
class Entry:
    """One published result and how it is reproduced; with `only`, by some of its engines; with `read`, as some say."""

    folder: Path
    only: tuple[str, ...] = ()
    read: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The folder's name: `B5.4-5.6`."""
        return self.folder.name

    @cached_property
    def title(self) -> str:
        """The heading of the README."""
        return self._readme[0].removeprefix("#").strip()

    @property
    def text(self) -> str:
        """The README below its heading."""
        return "\n".join(self._readme[1:]).strip() + "\n"

    @cached_property
    def published(self) -> Mapping[str, Published]:
        """Return the published results by claim."""
        path = self.folder / "published.csv"
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) != COLUMNS:
                raise InputError(f"{path}: found the columns {reader.fieldnames}; expected {', '.join(COLUMNS)}")
            return {row["claim"]: _published(path, row) for row in reader}

    @property
    def engines(self) -> Sequence[str]:
        """The engines that are to run it; none where the machine itself is measured."""
        return [engine for engine in self.all_engines if not self.only or engine in self.only]

    @property
    def all_engines(self) -> Sequence[str]:
        """The engines that it is made for."""
        return () if self.examine else tuple(self._part("check", "ENGINES"))

    def with_engines(self, engines: Sequence[str]) -> Entry:
        """The entry with these of its engines alone. Raises `InputError` for others."""
        for engine in engines:
            if engine not in self.all_engines:
                raise InputError(f"--engine: found {shown(engine)}; expected of {self.id} {_one_of(self.all_engines)}")
        return replace(self, only=tuple(engines))

    @cached_property
    def readings(self) -> Interpretations:
        """The ways in which the paper can be read, if `readings.toml` names several. Raises `InputError`."""
        return cases.read(self.folder)

    @property
    def chosen(self) -> Sequence[Interpretation]:
        """The interpretations that are to be run."""
        return [reading for reading in self.readings.every if not self.read or reading.name in self.read]

    def read_as(self, names: Sequence[str]) -> Entry:
        """The entry with these of its interpretations alone. Raises `InputError` for others."""
        known = [reading.name for reading in self.readings.every]
        for name in names:
            if name not in known:
                raise InputError(f"--interpretation: found {shown(name)}; expected of {self.id} {_one_of(known)}")
        return replace(self, read=tuple(names))

    @cached_property
    def mechanisms(self) -> Sequence[Ablation]:
        """Return the ablations of `mechanisms.toml`, if there is one. Raises `InputError`."""
        return cases.read_ablations(self.folder, self.readings)

    def switched(self, names: Sequence[str]) -> Sequence[Ablation]:
        """These of its mechanisms, or with `all` every one. Raises `InputError` for others."""
        known = [each.name for each in self.mechanisms]
        for name in names:
            if name not in (*known, "all"):
                raise InputError(f"--ablation: found {shown(name)}; expected of {self.id} all, {_one_of(known)}")
        return [each for each in self.mechanisms if each.name in names or "all" in names]

    @cached_property
    def examine(self) -> Callable[..., Dataset] | None:
        """Return the function `examine(quick=…)` of `host.py` that measures the machine itself, if the entry has one.

        Its `MEASURES` are functions of the whole dataset, with a value for each repeat.
        """
        has = (self.folder / "host.py").is_file()
        return cast("Callable[..., Dataset]", self._part("host", "examine")) if has else None

    def runs(self, engine: str, case: str, *, quick: bool = False) -> bool:
        """Return True if an engine runs a case: all do, unless `check.py` has a function `runs(engine, case)`.

        Of those, `--quick` leaves out what a function `is_quick(engine, case)` says no to, if there is one.
        """
        rules: list[Callable[[str, str], bool] | None]
        rules = [getattr(self._check, name, None) for name in ("runs", *["is_quick"] * quick)]
        return all(rule is None or rule(engine, case) for rule in rules)

    def fed(self, engine: str, case: str, plan: Plan, result: Callable[[str, str], Dataset]) -> Plan:
        """Return the plan that an engine runs of a case, changed by the function `fed` of `check.py` if there is one.

        `result(engine, case)` is what an engine that comes before in `ENGINES` made of a case; of "captured", what its
        captures tell.
        """
        rule: Callable[[str, str, Plan, Callable[[str, str], Dataset]], Plan] | None
        rule = getattr(self._check, "fed", None)
        return plan if rule is None else rule(engine, case, plan, result)

    @property
    def measures(self) -> Mapping[str, Measure]:
        """Return the measures of each run."""
        return cast("Mapping[str, Measure]", self._part("check", "MEASURES"))

    @property
    def of_host(self) -> Mapping[str, Callable[[Dataset], Values]]:
        """Return the measures of the machine itself, with a value for each repeat."""
        return cast("Mapping[str, Callable[[Dataset], Values]]", self._part("check", "MEASURES"))

    @property
    def captured(self) -> Mapping[str, Measure]:
        """Return the measures of each run's capture (`CAPTURED` of `check.py`), read without knowledge of the run.

        The scenario asks for captures with one vantage.
        """
        return cast("Mapping[str, Measure]", getattr(self._check, "CAPTURED", {}))

    @property
    def reading(self) -> Mapping[str, Any]:
        """Arguments of `captures.read` for those captures: `READING` of `check.py`, if it is there."""
        return cast("Mapping[str, Any]", getattr(self._check, "READING", {}))

    def imposed(self, case: str, capture: Path) -> Any:
        """Return what the function `imposed(case, capture)` of `check.py` puts into a capture before it is read.

        What that gives (of JSON's kinds) stands in the manifest of what was read, under `imposed`.
        """
        rule: Callable[[str, Path], Any] | None = getattr(self._check, "imposed", None)
        return None if rule is None else rule(case, capture)

    def check(self, measured: Measured) -> list[Row]:
        """The rows with their verdicts. Raises `InputError` for a claim that is not published."""
        rule = cast("Callable[[Measured, Mapping[str, Published]], list[Row]]", self._part("check", "check"))
        return self._check_claims(rule(measured, self.published))

    def compare(self, measured: Mapping[str, Measured]) -> list[Row] | dict[str, list[Row]]:
        """Rows that set engines beside each other, if `check.py` has a function `compare(measured, published)`.

        Or by the engines' names, where they are not about all of them.
        """
        rule: Callable[[Mapping[str, Measured], Mapping[str, Published]], list[Row] | dict[str, list[Row]]] | None
        rule = getattr(self._check, "compare", None)
        found = [] if rule is None else rule(measured, self.published)
        if isinstance(found, dict):
            return {engines: self._check_claims(rows) for engines, rows in found.items()}
        return self._check_claims(found)

    @cached_property
    def _check(self) -> ModuleType:
        return _module(self.folder / "check.py")

    def _check_claims(self, rows: list[Row]) -> list[Row]:
        for row in rows:
            if row.claim not in self.published:
                raise InputError(f"{self.folder / 'check.py'}: found {shown(row.claim)}; expected a published claim")
        return rows

    @property
    def draw(self) -> Callable[..., Any] | None:
        """The entry's own figure: a function of the datasets by case."""
        has = (self.folder / "figure.py").exists()
        return cast("Callable[..., Any]", self._part("figure", "draw")) if has else None

    def _part(self, file: str, name: str) -> Any:
        """A name of one of the entry's modules."""
        module = self._check if file == "check" else _module(self.folder / f"{file}.py")
        found = getattr(module, name, None)
        if found is None:
            raise InputError(f"{self.folder / file}.py: found no {name}; expected it")
        return found

    @cached_property
    def _readme(self) -> list[str]:
        lines = (self.folder / "README.md").read_text(encoding="utf-8").splitlines()
        if not lines or not lines[0].startswith("# "):
            raise InputError(f"{self.folder / 'README.md'}: found no heading; expected # and the title")
        return lines


def entries(place: Path = REPRODUCTIONS) -> list[Entry]:
    """All entries in the order of their ids. Raises `InputError` for a folder that lacks something."""
    folders = [path for path in place.iterdir() if path.is_dir() and path.name[0] not in "._"] if place.is_dir() else []
    for folder in folders:
        wanted = OF_HOSTS if (folder / "host.py").is_file() else FILES
        if missing := [name for name in wanted if not (folder / name).is_file()]:
            raise InputError(f"{folder}: found no {', '.join(missing)}; expected {', '.join(wanted)}")
    return sorted(map(Entry, folders), key=lambda entry: _order(entry.id))


def find(wanted: str, known: Sequence[Entry] | None = None) -> Entry:
    """The entry of an id, in whatever case and with whatever dashes; `B5.4` is enough for `B5.4-5.6`."""
    among = entries() if known is None else known
    key = _key(wanted)
    exact = [entry for entry in among if _key(entry.id) == key]
    found = exact or [entry for entry in among if _key(entry.id).startswith(key + "-")]
    if len(found) == 1:
        return found[0]
    raise InputError(f"ID: found {shown(wanted)}; expected {_choices(wanted, found or among)}")


def _choices(wanted: str, among: Sequence[Entry]) -> str:
    """Return the entries that an unknown id may mean: by their text, or else by their ids."""
    words = [_key(wanted), *SYNONYMS.get(_key(wanted), ())]
    titled = [entry for word in words for entry in among if word in f"{entry.id} {entry.title}".casefold()]
    about = list(dict.fromkeys(titled or [entry for word in words for entry in among if word in entry.text.casefold()]))
    if about:
        listed = "; ".join(f"{entry.id} ({entry.title})" for entry in about[:SUGGESTIONS])
        more = len(about) - SUGGESTIONS
        return f"{listed}; or {more} more on {shown(wanted)}" if more > 0 else listed
    return nearest(wanted, [entry.id for entry in among])


def _one_of(known: Sequence[str]) -> str:
    return f"one of {', '.join(known) or 'none'}"


def _key(name: str) -> str:
    return re.sub("[‐‑‒–—−]", "-", name.strip()).casefold()


def _order(name: str) -> list[tuple[int, str]]:
    """Numbers in names count as numbers: B5.4 before B5.21."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|\D+", name)]


def _published(path: Path, row: Mapping[str, str]) -> Published:
    try:
        value = float(row["value"]) if row["value"] else None
    except ValueError:
        raise InputError(f"{path}: {row['claim']}: found {shown(row['value'])}; expected a number or nothing") from None
    return Published(value=value, **{name: row[name] for name in COLUMNS if name != "value"})


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{__package__}.entries.{path.parent.name}.{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path}: found no Python file; expected one")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
