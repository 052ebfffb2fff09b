"""Runs an entry: every engine and case, then the rule, the figure and the page, into one folder."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from ackclock import _core, captures, engines
from ackclock.campaigns import running
from ackclock.campaigns.reproduce import cases, figures, page
from ackclock.campaigns.reproduce.entry import Entry
from ackclock.campaigns.reproduce.measured import Measured, Values, of_run
from ackclock.campaigns.reproduce.result import FULL, QUICK, Judged, Result
from ackclock.campaigns.reproduce.verdict import Row
from ackclock.dataset import Dataset, folders, kinds, manifests
from ackclock.dataset.kinds import Kind
from ackclock.engines.engine import Progress, circumstances, no_progress
from ackclock.errors import InputError, UnsupportedError
from ackclock.metrics import runs
from ackclock.plan import Plan
from ackclock.system.temporary import Private
from ackclock.views.plots import style

#: What captures tell, in an entry's result: a folder beside those of the engines.
CAPTURED = "captured"

#: What the machine itself tells, in the engine's place.
HOST = "host"

#: The table and the figure in an entry's result.
TABLE, FIGURE = "reproduced.csv", "figure.png"


def run(
    entry: Entry,
    folder: Path,
    *,
    quick: bool = False,
    jobs: int | None = None,
    progress: Progress = no_progress,
    command: str = "",
) -> Result:
    """Runs an entry and writes its folder, whole or not at all.

    The folder holds `ENGINE/CASE/` (datasets), `captured/CASE/` (what captures tell), `reproduced.csv`, `figure.png`
    and `page.md`. An engine that this machine lacks is left out with a warning, and a case that an engine cannot run
    without one: rows that hang on them are asides, not measured, with the reason, and the figure is given no datasets
    of them.

    Args:
        entry: what to run.
        folder: where the result goes; an earlier result there is replaced.
        quick: at the reduced scale of `quick.toml`: a look, not the verdict that the documentation quotes.
        jobs: runs at a time; by default one for each core.
        progress: called with the share that is done, 0 to 1.
        command: what the manifests say was run.

    Raises:
        InputError: something is wrong in the entry's files, or something else is in the folder's place.
    """
    kinds.check(folder, Kind.REPRODUCTION)
    lacks = _lacks(entry)
    by_engine = {engine: {} if lack else _cases(entry, engine, quick=quick) for engine, lack in lacks.items()}
    total = sum(map(len, by_engine.values()))
    found: dict[str, Found] = {}
    with folders.replacing(folder, manifests.is_note(folder)) as new:
        for number, (engine, chosen) in enumerate(by_engine.items()):
            tell = _Part(progress, sum(map(len, [*by_engine.values()][:number])), total)
            found[engine] = Found(why=lacks[engine] or "")
            _measure(entry, chosen, found[engine], new / engine, tell, jobs, command)
        if entry.examine:
            found[HOST] = Found(_examined(entry, new / HOST, quick=quick))
        rows = _rows(entry, found, [case for case, _ in cases.cases(entry.folder)], _shortened(entry, by_engine))
        if not any(rows.values()):
            raise InputError(
                f"{entry.id}: found nothing that {', '.join(by_engine)} could measure; expected a row or more"
            )
        result = Result(entry.id, list(_judged(entry, rows, QUICK if quick else FULL)))
        drawn = _drawn(entry, rows, by_engine, new)
        with folders.writing(new):
            result.write(new / TABLE)
            drawn.savefig(new / FIGURE, dpi=style.STYLE["savefig.dpi"], metadata={"Software": None})
            (new / "page.md").write_text(page.entry_page(entry, result, FIGURE), encoding="utf-8")
            about = {"id": entry.id, "scale": result.scale, "engines": list(entry.engines)}
            manifest = {"ackclock": _core.version, "reproduction": about, **circumstances(command)}
            manifests.write(new, manifest, manifests.written(new))
    return result


@dataclass(slots=True)
class Found:
    """What an engine measured of an entry, and why it did not measure more."""

    measured: dict[str, Mapping[str, Values]] = field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """What an entry runs with one engine; `content` are its tables. To plan it takes milliseconds."""

    entry: Entry
    engine: str
    name: str
    content: Mapping[str, Any]

    @property
    def seeds(self) -> int:
        """How many are asked for."""
        return len(self.content.get("seeds") or ()) or int(self.content.get("repeats") or 1)

    def plan(self) -> Plan:
        """Its plan. Raises `InputError` for what is wrong in the entry's files."""
        return cases.plan(self.entry.folder, self.name, self.content)


def listed(entry: Entry, *, quick: bool = False) -> list[Case]:
    """What an entry runs. Raises `InputError` for files that are no TOML."""
    with warnings.catch_warnings(action="ignore"):  # that an engine is not there is said when the entry is run
        there = [engine for engine, lack in _lacks(entry).items() if not lack]
    return [
        Case(entry, engine, name, content)
        for engine in there
        for name, content in cases.contents(entry.folder, engine=engine, quick=quick).items()
        if entry.runs(engine, name, quick=quick)
    ]


def _cases(entry: Entry, engine: str, *, quick: bool) -> dict[str, Plan]:
    """The plans of an engine, by the cases that it runs."""
    every = cases.plans(entry.folder, engine=engine, quick=quick)
    return {case: plan for case, plan in every.items() if entry.runs(engine, case, quick=quick)}


def _lacks(entry: Entry) -> dict[str, str | None]:
    """What this machine lacks for each of the entry's engines; None: nothing."""
    lacks = {engine: engines.lacking(engine) for engine in entry.engines}
    for engine, lack in lacks.items():
        if lack:
            warnings.warn(f'{entry.id} is run without the engine "{engine}": {lack}', stacklevel=3)
    return lacks


def _shortened(entry: Entry, by_engine: Mapping[str, Mapping[str, Plan]]) -> set[str]:
    """The engines that do not run all that they would at full scale."""
    every = [case for case, _ in cases.cases(entry.folder)]
    return {name for name, chosen in by_engine.items() if any(entry.runs(name, c) and c not in chosen for c in every)}


def _rows(entry: Entry, found: Mapping[str, Found], every: Sequence[str], shortened: set[str]) -> dict[str, list[Row]]:
    """Each engine's rows, then those that set engines beside each other: with `shortened` ones, those with a value."""
    measured = {engine: _Some(entry, of.measured, every) for engine, of in found.items() if of.measured or not of.why}
    together = entry.beside(measured)
    named = together if isinstance(together, Mapping) else {", ".join(measured): together}
    own = {engine: _own_rows(entry, of, every) for engine, of in found.items()}
    for label, rows in named.items():
        shown = [row for row in rows if row.summary.n or shortened.isdisjoint(label.split(", "))]
        own |= {label: shown} if shown else {}
    return own


def _own_rows(entry: Entry, found: Found, every: Sequence[str]) -> list[Row]:
    """An engine that does not run every case has no value in the others, and no row about them alone.

    Of one that could not, they are asides that say why.
    """
    if len(found.measured) == len(every):
        return entry.check(found.measured)
    rows = entry.check(_Some(entry, found.measured, every))
    if not found.why:
        return [row for row in rows if row.summary.n]
    return [row if row.summary.n else replace(row, aside=True, because=found.why) for row in rows]


class _Some(dict[str, Mapping[str, Values]]):
    """What was measured in some of the cases. In another it is None for each seed, though that case is not listed."""

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


class _Part:
    """The progress of one engine's cases among all."""

    def __init__(self, progress: Progress, first: int, total: int) -> None:
        self._progress, self._first, self._total = progress, first, total

    def of(self, number: int) -> Progress:
        return lambda share: self._progress((self._first + number + share) / self._total)


def _measure(
    entry: Entry, plans: Mapping[str, Plan], found: Found, folder: Path, tell: _Part, jobs: int | None, command: str
) -> None:
    """Runs an engine's cases. What it cannot run is left out, with the reason."""
    for number, (case, planned) in enumerate(plans.items()):
        plan = entry.fed(folder.name, case, planned, lambda other, of: Dataset.read(folder.parent / other / slug(of)))
        try:
            found.measured[case] = _of_case(entry, case, plan, folder, partial(_run, jobs, tell.of(number), command))
        except UnsupportedError as error:
            found.why = _with(found.why, error)


def _with(why: str, error: UnsupportedError) -> str:
    """Why cases cannot be run, each reason once."""
    reason = error.reasons[0]
    if f"no {reason.what}" in why:
        return why
    return f"{why}, no {reason.what}" if why else f'engine "{reason.engine}" has no {reason.what}'


def _run(jobs: int | None, progress: Progress, command: str, plan: Plan, engine: str, captures: Path | None) -> Dataset:
    return running.run(plan, engine, jobs=jobs, progress=progress, captures=captures, command=command)


def _of_case(
    entry: Entry, case: str, plan: Plan, folder: Path, run: Callable[[Plan, str, Path | None], Dataset]
) -> Mapping[str, Values]:
    with Private() as place:
        kept = place / "captures" if entry.captured and plan.record.pcap else None
        data = run(plan, folder.name, kept)
        by_run = [of_run(view, entry.measures) for view in runs(data)]
        seen = [] if kept is None else [_seen(entry, case, kept / f"seed-{each['seed']}.pcap") for each in data.runs]
        if seen:
            Dataset.concat(seen).write(folder.parent / CAPTURED / slug(case))
    data.write(folder / slug(case))
    by_capture = [of_run(view, entry.captured) for capture in seen for view in runs(capture)]
    nothing = dict.fromkeys(entry.captured)
    both = [own | told for own, told in zip(by_run, by_capture or [nothing] * len(by_run), strict=True)]
    return {name: tuple(each[name] for each in both) for name in (*entry.measures, *entry.captured)}


def _examined(entry: Entry, folder: Path, *, quick: bool) -> dict[str, Mapping[str, Values]]:
    """What the entry measures of this machine."""
    assert entry.examine is not None
    data = entry.examine(quick=quick)
    data.write(folder / cases.ONLY)
    return {cases.ONLY: {name: measure(data) for name, measure in entry.of_host.items()}}


def _seen(entry: Entry, case: str, capture: Path) -> Dataset:
    """What the capture of a run tells."""
    truth = entry.imposed(case, capture)
    data = captures.read([capture], **entry.reading).data
    return data if truth is None else replace(data, manifest={**data.manifest, "imposed": truth})


def _judged(entry: Entry, rows: Mapping[str, Sequence[Row]], scale: str) -> Sequence[Judged]:
    return [
        Judged.of(row, engine, entry.published[row.claim].unit, scale)
        for engine, found in rows.items()
        for row in found
    ]


def _drawn(
    entry: Entry, rows: Mapping[str, Sequence[Row]], by_engine: Mapping[str, Mapping[str, Plan]], folder: Path
) -> Figure:
    if entry.draw is None:
        return figures.rows(rows, entry.published)
    given = [_read(folder / engine, by_engine.get(engine, ())) for engine in entry.all_engines]
    if entry.examine:
        given.append(_read(folder / HOST, [cases.ONLY]))
    if entry.captured:
        given.append(_read(folder / CAPTURED, {case: None for cases in by_engine.values() for case in cases}))
    drawn: Figure = entry.draw(*given)
    return drawn


def _read(folder: Path, every: Iterable[str]) -> dict[str, Dataset]:
    """The datasets of those cases that have one."""
    return {case: Dataset.read(folder / slug(case)) for case in every if (folder / slug(case)).exists()}


def slug(case: str) -> str:
    """A case's name as a folder: `cubic 0.1bdp` → `cubic-0.1bdp`."""
    return case.replace(" ", "-")
