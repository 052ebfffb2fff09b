"""Runs an entry: every engine and case, then the rule, the figure and the page, into one folder."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from ackclock import _core, engines
from ackclock.capture import read as read_capture
from ackclock.dataset import Dataset, folders, manifests, result_kind
from ackclock.dataset.result_kind import Kind
from ackclock.engines.engine import Progress, circumstances, cores, no_progress
from ackclock.errors import InputError, UnsupportedError
from ackclock.experiments import phase_effects, runner
from ackclock.experiments.executors import Executor
from ackclock.figures.plots import style
from ackclock.gallery import cases, figures, page
from ackclock.gallery.cases import NONE, Interpretation
from ackclock.gallery.entry import Entry
from ackclock.gallery.result import FULL, KEY, QUICK, TABLE, Judged, Result, current_result, made_of
from ackclock.gallery.rows import Measured, Row, Values, of_run
from ackclock.metrics import runs
from ackclock.plan import Plan
from ackclock.system.files import LockedTempDir

#: Folder of captured data in an entry's result.
CAPTURED = "captured"

#: Perturbed runs of cases that are prone to phase effects, in an entry's result, and the engines that have some: in the
#: others packets do not meet, or hosts take time anyway.
NOISY, TWINNED = "noisy", ("packet",)

#: Name of the machine itself in the engine's place.
HOST = "host"

#: The figure in an entry's result.
FIGURE = "figure.png"


def stored_result(entry: Entry, folder: Path, *, quick: bool = False) -> Result | None:
    """An entry's result that is in its folder, if nothing that it comes of has changed since it was made."""
    made = made_of(entry, QUICK if quick else FULL, missing(entry))
    return current_result(entry, folder, TABLE, made)


def run(
    entry: Entry,
    folder: Path,
    *,
    quick: bool = False,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: Progress = no_progress,
    command: str = "",
) -> Result:
    """Runs an entry and writes its folder, whole or not at all.

    The folder holds `ENGINE/CASE/` (datasets), `captured/CASE/` (what captures tell), `reproduced.csv`, `figure.png`
    and `page.md`; the runs of an interpretation are below a folder of its name. An engine that this machine lacks is
    left out with a warning, and a case that an engine cannot run without one: rows that hang on them are asides, not
    measured, with the reason, and the figure is given no datasets of them. Of cases that are known to be prone to phase
    effects a perturbed run is made too, below `noisy/`, but not by `quick`.

    Args:
        entry: what to run.
        folder: where the result goes; an earlier result there is replaced.
        quick: at the reduced scale of `quick.toml`: a look, not the verdict that the documentation quotes.
        jobs: runs at a time; by default one for each core.
        executor: makes the runs elsewhere; by default they are made in this process.
        progress: called with the fraction completed, 0 to 1.
        command: the command recorded in the manifests.

    Raises:
        InputError: something is wrong in the entry's files, or something else is in the folder's place.
    """
    result_kind.check(folder, Kind.REPRODUCTION)
    lacks, scale = warn_missing(entry), QUICK if quick else FULL
    made = made_of(entry, scale, lacks)
    passes = _passes(entry, lacks, quick=quick)
    tell = Part(progress, sum(len(chosen) for each in passes for chosen in each.plans.values()))
    how = How(jobs, executor, command, perturbed=not quick)
    with folders.replace_folder(folder, manifests.is_note(folder)) as new:
        rows: dict[tuple[str, str], Sequence[Row]] = {}
        common: dict[str, EngineResult] = {}
        for each in passes:
            found = {engine: EngineResult(why=lacks[engine] or "") for engine in each.plans}
            for engine, chosen in each.plans.items():
                measure(entry, chosen, found[engine], each.folder(new) / engine, tell, how)
            if entry.examine:
                found[HOST] = EngineResult(examined(entry, new / HOST, quick=quick))
            known = {**common, **found}
            ordered = {engine: known[engine] for engine in (*lacks, HOST) if engine in known}
            own = _rows_with_perturbed(entry, ordered, passes, each)
            rows |= {(label, each.reading.name): of for label, of in own.items() if label not in common}
            common = common or ({} if each.reading.name else found)
        if not any(rows.values()):
            engines = ", ".join(lacks)
            raise InputError(f"{entry.id}: found nothing that {engines} could measure; expected a row or more")
        result = Result(entry.id, list(_judged(entry, rows, scale)))
        drawn = _drawn(
            entry, rows, next(each for each in passes if each.reading.name or not result.readings), passes, new
        )
        with folders.write_errors(new):
            result.write(new / TABLE)
            drawn.savefig(new / FIGURE, dpi=style.STYLE["savefig.dpi"], metadata={"Software": None})
            (new / "page.md").write_text(page.entry_page(entry, result, FIGURE), encoding="utf-8")
            about = {"id": entry.id, "scale": result.scale, "engines": list(entry.engines), KEY: made}
            if result.readings:
                about["readings"] = result.readings
            manifest = {"ackclock": _core.version, "reproduction": about, **circumstances(command)}
            manifests.write(new, manifest, manifests.list_files(new))
    return result


@dataclass(frozen=True, slots=True)
class Pass:
    """The runs of one interpretation: the plans of each engine, by case."""

    reading: Interpretation
    plans: Mapping[str, Mapping[str, Plan]]

    def folder(self, result: Path) -> Path:
        """Return the folder of its datasets in an entry's result."""
        return result / slug(self.reading.name) if self.reading.name else result


def _passes(entry: Entry, lacks: Mapping[str, str | None], *, quick: bool) -> list[Pass]:
    """Return the passes: engines that no interpretation changes, then each interpretation with the others."""

    def of(reading: Interpretation, concerned: Iterable[str]) -> Pass:
        plans = {name: {} if lacks[name] else _cases(entry, name, reading, quick=quick) for name in concerned}
        return Pass(reading, plans)

    alike = [engine for engine in lacks if not entry.readings.concern(engine)]
    others = [engine for engine in lacks if engine not in alike]
    first = [of(NONE, alike)] if alike or not entry.readings.every else []
    return first + [of(reading, filter(reading.runs_in, others)) for reading in entry.chosen]


@dataclass(slots=True)
class EngineResult:
    """Measurements of an engine, the reasons for missing ones, and those of the perturbed runs."""

    measured: dict[str, Mapping[str, Values]] = field(default_factory=dict)
    why: str = ""
    noisy: dict[str, Mapping[str, Values]] = field(default_factory=dict)

    @property
    def perturbed(self) -> EngineResult:
        """Return the measurements with the perturbed runs in place of their cases."""
        return replace(self, measured={**self.measured, **self.noisy}, noisy={})


@dataclass(frozen=True, slots=True)
class Case:
    """A case that an entry runs with one engine; `content` are its tables. Planning it takes milliseconds."""

    entry: Entry
    engine: str
    name: str
    content: Mapping[str, Any]

    @property
    def seeds(self) -> int:
        """Return the number of seeds."""
        return len(self.content.get("seeds") or ()) or int(self.content.get("repeats") or 1)

    def plan(self) -> Plan:
        """Its plan. Raises `InputError` for what is wrong in the entry's files."""
        return cases.plan(self.entry.folder, self.name, self.content)


def listed(entry: Entry, *, quick: bool = False) -> list[Case]:
    """Return the cases of an entry. Raises `InputError` for files that are no TOML."""
    with warnings.catch_warnings(action="ignore"):  # that an engine is not there is said when the entry is run
        there = [engine for engine, lack in warn_missing(entry).items() if not lack]
    return [
        Case(entry, engine, name, content)
        for engine in there
        for reading in (entry.chosen if entry.readings.concern(engine) else (NONE,))
        for name, content in cases.contents(entry.folder, engine=engine, quick=quick, reading=reading).items()
        if reading.runs_in(engine) and entry.runs(engine, name, quick=quick)
    ]


def _cases(entry: Entry, engine: str, reading: Interpretation, *, quick: bool) -> dict[str, Plan]:
    """The plans of an engine, by the cases that it runs."""
    every = cases.plans(entry.folder, engine=engine, quick=quick, reading=reading)
    return {case: plan for case, plan in every.items() if entry.runs(engine, case, quick=quick)}


def warn_missing(entry: Entry) -> dict[str, str | None]:
    """Return why this machine cannot run each of the entry's engines; None if it can."""
    lacks = missing(entry)
    for engine, lack in lacks.items():
        if lack:
            warnings.warn(f'{entry.id} is run without the engine "{engine}": {lack}', stacklevel=3)
    return lacks


def missing(entry: Entry) -> dict[str, str | None]:
    """The same, without a word to the user."""
    return {engine: engines.unavailable(engine) for engine in entry.engines}


def _rows_with_perturbed(
    entry: Entry, found: Mapping[str, EngineResult], passes: Sequence[Pass], this: Pass
) -> dict[str, list[Row]]:
    """Return the rows, each with its values in the perturbed runs, if there are any."""
    own = rows_of(entry, found, passes, this)
    if not any(of.noisy for of in found.values()):
        return own
    twins = rows_of(entry, {engine: of.perturbed for engine, of in found.items()}, passes, this)
    values = {(label, row.claim, row.at): row.values for label, rows in twins.items() for row in rows}
    return {
        label: [replace(row, perturbed=values.get((label, row.claim, row.at), ())) for row in rows]
        for label, rows in own.items()
    }


def rows_of(
    entry: Entry, found: Mapping[str, EngineResult], passes: Sequence[Pass], this: Pass
) -> dict[str, list[Row]]:
    """Each engine's rows, then those that set engines beside each other: with shortened ones, those with a value.

    If interpretations change only some engines, the others are compared only once there is an interpretation.
    """
    every = [case for case, _ in cases.cases(entry.folder)]
    own = {engine: _own_rows(entry, of, every) for engine, of in found.items()}
    if this is passes[0] and len(passes) > 1 and not this.reading.name:
        return own
    measured = {engine: _Some(entry, of.measured, every) for engine, of in found.items() if of.measured or not of.why}
    try:
        together = entry.compare(_Run(measured))
    except _NotRunError:
        together = []
    named = together if isinstance(together, Mapping) else {", ".join(measured): together}
    shortened = {
        name
        for each in passes
        for name, chosen in each.plans.items()
        if any(entry.runs(name, case) and case not in chosen for case in every)
    }
    for label, rows in named.items():
        shown = [row for row in rows if row.summary.n or shortened.isdisjoint(label.split(", "))]
        own |= {label: shown} if shown else {}
    return own


def _own_rows(entry: Entry, found: EngineResult, every: Sequence[str]) -> list[Row]:
    """An engine that does not run every case has no value in the others, and no row about them alone.

    Of one that could not, they are asides that say why.
    """
    if not found.measured and not found.why:
        return []
    if len(found.measured) == len(every):
        return entry.check(found.measured)
    rows = entry.check(_Some(entry, found.measured, every))
    if not found.why:
        return [row for row in rows if row.summary.n]
    return [row if row.summary.n else replace(row, aside=True, because=found.why) for row in rows]


class _NotRunError(KeyError):
    """An engine of the entry was not run, or is not there."""


class _Run(dict[str, Any]):
    """Runs of engines, or of an engine's cases."""

    def __missing__(self, name: str) -> Any:
        raise _NotRunError(name)


class _Some(dict[str, Mapping[str, Values]]):
    """Measurements of some of the cases. In other cases they are None for each seed."""

    def __init__(self, entry: Entry, found: Measured, every: Sequence[str]) -> None:
        super().__init__(found)
        seeds = max((len(values) for case in found.values() for values in case.values()), default=0)
        self._nothing = dict.fromkeys((*entry.measures, *entry.captured), (None,) * seeds)
        self._every = every

    def __missing__(self, case: str) -> Mapping[str, Values]:
        if case not in self._every:
            raise KeyError(case)
        return self._nothing


def check_folder(folder: Path) -> None:
    """Refuses a folder that holds something else, or cannot be made. Raises `InputError`."""
    folders.check(folder, Kind.REPRODUCTION)


class Part:
    """The progress of one engine's cases after another's."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total, self._begun = progress, total, 0

    def next(self, cases: int) -> Progress:
        """The progress of the next so many cases."""
        done, self._begun = self._begun, self._begun + cases
        return lambda share: self._progress((done + cases * share) / self._total)


@dataclass(frozen=True, slots=True)
class How:
    """Options of a run of cases.

    `jobs` is the number of runs at a time (None: one for each core), `executor` makes the runs elsewhere, `command` is
    recorded, `perturbed` adds perturbed runs.
    """

    jobs: int | None
    executor: Executor | None
    command: str
    perturbed: bool

    def at_a_time(self, engine: str, plans: Iterable[Plan]) -> int:
        """Return the number of cases that run at a time: as many as their seeds leave cores for."""
        chosen, every = engines.engine(engine), list(plans)
        if any(chosen.exclusive(plan) for plan in every):
            return 1
        return max(1, self.places // max((len(plan.seeds) for plan in every), default=1))

    @property
    def places(self) -> int:
        """Return the number of runs at a time."""
        return self.jobs or cores()


@dataclass(frozen=True, slots=True)
class _Planned:
    """A case, or its perturbed run, with its plan and the folder for its result."""

    case: str
    plan: Plan
    folder: Path
    noisy: bool = False


def measure(entry: Entry, plans: Mapping[str, Plan], found: EngineResult, folder: Path, tell: Part, how: How) -> None:
    """Run an engine's cases, and perturbed runs of those that are prone to phase effects.

    What it cannot run is left out, with the reason. The results do not depend on how many go on at a time.
    """
    listed = list(_listed(entry, plans, folder, perturbed=how.perturbed))
    at_a_time = how.at_a_time(folder.name, plans.values())
    jobs = how.places // at_a_time
    calls = [partial(_of_run, entry, each, jobs, how) for each in listed]
    measured = runner.run_parallel(calls, at_a_time, tell.next(len(plans))) if calls else []
    for each, values in zip(listed, measured, strict=True):
        if isinstance(values, UnsupportedError):
            found.why = _with(found.why, values)
        else:
            (found.noisy if each.noisy else found.measured)[each.case] = values


def _listed(entry: Entry, plans: Mapping[str, Plan], folder: Path, *, perturbed: bool) -> Iterator[_Planned]:
    for case, planned in plans.items():
        plan = entry.fed(folder.name, case, planned, lambda other, of: _made(folder.parent, other, of))
        yield _Planned(case, plan, folder)
        if perturbed and folder.name in TWINNED and phase_effects.prone(plan):
            yield _Planned(case, phase_effects.perturbed(plan), folder.parent / NOISY / folder.name, noisy=True)


def _of_run(
    entry: Entry, run: _Planned, jobs: int, how: How, tell: Progress
) -> Mapping[str, Values] | UnsupportedError:
    try:
        make = partial(runner.run, jobs=jobs, progress=tell, command=how.command, executor=how.executor)
        return _of_case(entry, run, make)
    except UnsupportedError as error:
        return error


def _made(folder: Path, engine: str, case: str) -> Dataset:
    """Return the dataset of a case: of this interpretation, or the common one if it does not change the engine."""
    own = folder / engine / slug(case)
    return Dataset.read(own if own.exists() else folder.parent / engine / slug(case))


def _with(why: str, error: UnsupportedError) -> str:
    """Why cases cannot be run, each reason once."""
    reason = error.reasons[0]
    if f"no {reason.what}" in why:
        return why
    return f"{why}, no {reason.what}" if why else f'engine "{reason.engine}" has no {reason.what}'


def _of_case(entry: Entry, this: _Planned, run: Callable[..., Dataset]) -> Mapping[str, Values]:
    with LockedTempDir() as place:
        kept = place / "captures" if entry.captured and this.plan.has_captures else None
        data = run(this.plan, this.folder.name, captures=kept)
        by_run = [of_run(view, entry.measures) for view in runs(data)]
        seen = (
            []
            if kept is None
            else [_capture_data(entry, this.case, kept / f"seed-{each['seed']}.pcap") for each in data.runs]
        )
        if seen:
            Dataset.concat(seen).write(this.folder.parent / CAPTURED / slug(this.case))
    data.write(this.folder / slug(this.case))
    by_capture = [of_run(view, entry.captured) for capture in seen for view in runs(capture)]
    nothing = dict.fromkeys(entry.captured)
    both = [own | told for own, told in zip(by_run, by_capture or [nothing] * len(by_run), strict=True)]
    return {name: tuple(each[name] for each in both) for name in (*entry.measures, *entry.captured)}


def examined(entry: Entry, folder: Path, *, quick: bool, **changes: Any) -> dict[str, Mapping[str, Values]]:
    """Return the entry's measurements of this machine; `changes` are those of an ablation."""
    assert entry.examine is not None
    data = entry.examine(quick=quick, **changes)
    data.write(folder / cases.ONLY)
    return {cases.ONLY: {name: measure(data) for name, measure in entry.of_host.items()}}


def _capture_data(entry: Entry, case: str, file: Path) -> Dataset:
    """Return the data of a run's capture."""
    truth = entry.imposed(case, file)
    data = read_capture([file], **entry.reading).data
    return data if truth is None else replace(data, manifest={**data.manifest, "imposed": truth})


def _judged(entry: Entry, rows: Mapping[tuple[str, str], Sequence[Row]], scale: str) -> Sequence[Judged]:
    return [
        Judged.of(row, engine, entry.published[row.claim].unit, scale, reading)
        for (engine, reading), found in rows.items()
        for row in found
    ]


def _drawn(
    entry: Entry, rows: Mapping[tuple[str, str], Sequence[Row]], first: Pass, passes: Sequence[Pass], folder: Path
) -> Figure:
    """The figure: of an entry that draws its own, of its first interpretation; else, or without an engine, all rows."""
    every_row = partial(figures.rows, {", ".join(filter(None, key)): found for key, found in rows.items()})
    if entry.draw is None:
        return every_row(entry.published)
    by_engine = {name: (each, chosen) for each in (*passes, first) for name, chosen in each.plans.items()}
    given = [
        _read(by_engine[engine][0].folder(folder) / engine, by_engine[engine][1]) if engine in by_engine else _Run()
        for engine in entry.all_engines
    ]
    if entry.examine:
        given.append(_read(folder / HOST, [cases.ONLY]))
    if entry.captured:
        every = {case: None for _, chosen in by_engine.values() for case in chosen}
        given.append(_read(first.folder(folder) / CAPTURED, every))
    try:
        drawn: Figure = entry.draw(*given)
    except _NotRunError:
        return every_row(entry.published)
    if readings := _read_as(by_engine):
        drawn.suptitle(readings, x=0.01, ha="left", fontsize="small")
    return drawn


def _read_as(by_engine: Mapping[str, tuple[Pass, Mapping[str, Plan]]]) -> str:
    """Return the interpretation of the runs in a figure; empty if there is only one."""
    names = {engine: each.reading.name for engine, (each, cases) in by_engine.items() if cases and each.reading.name}
    if len(set(names.values())) < 2:
        return "".join(f"read as: {name}" for name in set(names.values()))
    return "read as: " + "; ".join(f"{name} ({engine})" for engine, name in names.items())


def _read(folder: Path, every: Iterable[str]) -> dict[str, Dataset]:
    """The datasets of those cases that have one."""
    return {case: Dataset.read(folder / slug(case)) for case in every if (folder / slug(case)).exists()}


def slug(case: str) -> str:
    """A case's name as a folder: `cubic 0.1bdp/4` → `cubic-0.1bdp-4`."""
    return case.replace(" ", "-").replace("/", "-")
