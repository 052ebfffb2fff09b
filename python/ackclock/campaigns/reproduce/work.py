"""Runs an entry: every engine and case, then the rule, the figure and the page, into one folder."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
    and `page.md`. An engine that this machine lacks is left out with a warning: its rows are missing, and the figure is
    given no datasets of it.

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
    by_engine = {engine: _cases(entry, engine, quick=quick) for engine in _there(entry)}
    total = sum(map(len, by_engine.values()))
    measured: dict[str, Measured] = {}
    with folders.replacing(folder, manifests.is_note(folder)) as new:
        for number, (engine, chosen) in enumerate(by_engine.items()):
            tell = _Part(progress, sum(map(len, [*by_engine.values()][:number])), total)
            measured[engine] = _measured(entry, chosen, engine, new / engine, tell, jobs, command)
        if entry.examine:
            measured[HOST] = _examined(entry, new / HOST, quick=quick)
        rows = _rows(entry, measured, [case for case, _ in cases.cases(entry.folder)])
        result = Result(entry.id, list(_judged(entry, rows, QUICK if quick else FULL)))
        drawn = _drawn(entry, rows, by_engine, new)
        with folders.writing(new):
            result.write(new / TABLE)
            drawn.savefig(new / FIGURE, dpi=style.STYLE["savefig.dpi"], metadata={"Software": None})
            (new / "page.md").write_text(page.entry_page(entry, result, FIGURE), encoding="utf-8")
            about = {"ackclock": _core.version, "reproduction": {"id": entry.id, "scale": result.scale}}
            manifests.write(new, {**about, **circumstances(command)}, manifests.written(new))
    return result


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
        there = _there(entry)
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


def _there(entry: Entry) -> list[str]:
    """The entry's engines that this machine can run."""
    lacks = {engine: engines.lacking(engine) for engine in entry.engines}
    for engine, lack in lacks.items():
        if lack:
            warnings.warn(f'{entry.id} is run without the engine "{engine}": {lack}', stacklevel=3)
    return [engine for engine, lack in lacks.items() if not lack]


def _rows(entry: Entry, measured: Mapping[str, Measured], every: Sequence[str]) -> dict[str, list[Row]]:
    """Each engine's rows, then those that set engines beside each other."""
    rows = {engine: _own_rows(entry, found, every) for engine, found in measured.items()}
    together = entry.beside(measured)
    return rows | ({", ".join(measured): together} if together else {})


def _own_rows(entry: Entry, found: Measured, every: Sequence[str]) -> list[Row]:
    """An engine that does not run every case has no value in the others, and no row about them alone."""
    if len(found) == len(every):
        return entry.check(found)
    return [row for row in entry.check(_Some(entry, found, every)) if row.summary.n]


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


def _measured(
    entry: Entry, plans: Mapping[str, Plan], engine: str, folder: Path, tell: _Part, jobs: int | None, command: str
) -> Measured:
    measured = {}
    for number, (case, planned) in enumerate(plans.items()):
        plan = entry.fed(engine, case, planned, lambda other, of: Dataset.read(folder.parent / other / slug(of)))
        with Private() as place:
            kept = place / "captures" if entry.captured and plan.record.pcap else None
            data = running.run(plan, engine, jobs=jobs, progress=tell.of(number), captures=kept, command=command)
            by_run = [of_run(view, entry.measures) for view in runs(data)]
            seen = [] if kept is None else [_seen(entry, case, kept / f"seed-{run['seed']}.pcap") for run in data.runs]
            if seen:
                Dataset.concat(seen).write(folder.parent / CAPTURED / slug(case))
        data.write(folder / slug(case))
        by_capture = [of_run(view, entry.captured) for capture in seen for view in runs(capture)]
        nothing = dict.fromkeys(entry.captured)
        found = [own | told for own, told in zip(by_run, by_capture or [nothing] * len(by_run), strict=True)]
        measured[case] = {name: tuple(run[name] for run in found) for name in (*entry.measures, *entry.captured)}
    return measured


def _examined(entry: Entry, folder: Path, *, quick: bool) -> Measured:
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
    given = [_read(folder / engine, by_engine.get(engine, ())) for engine in entry.engines]
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
