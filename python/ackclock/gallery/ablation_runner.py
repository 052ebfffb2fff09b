"""Runs the mechanisms of an entry: its cases with what each switches, and the rows that this should move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ackclock import _core
from ackclock.dataset import folders, manifests, result_kind
from ackclock.dataset.result_kind import Kind
from ackclock.engines.engine import Progress, circumstances, no_progress
from ackclock.errors import InputError
from ackclock.experiments.executors import Executor
from ackclock.gallery import cases, page, runner
from ackclock.gallery.entry import Entry
from ackclock.gallery.interpretations import SWITCHED, Ablation
from ackclock.gallery.result import FULL, KEY, QUICK, TABLE, Judged, Result, current_result, made_of
from ackclock.gallery.rows import Row
from ackclock.plan import Plan


def place(out: Path, entry: Entry) -> Path:
    """Return the folder for ablation runs of an entry, next to its own result."""
    return out / f"{entry.id}-switched"


def stored_result(entry: Entry, chosen: Sequence[Ablation], folder: Path, *, quick: bool = False) -> Result | None:
    """Return the stored result of ablations, if nothing that it depends on has changed."""
    names = [each.name for each in chosen]
    made = made_of(entry, QUICK if quick else FULL, runner.missing(entry), names)
    return current_result(entry, folder, SWITCHED, made)


def run(
    entry: Entry,
    chosen: Sequence[Ablation],
    folder: Path,
    *,
    quick: bool = False,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: Progress = no_progress,
    command: str = "",
) -> Result:
    """Runs mechanisms of an entry and writes a folder, whole or not at all.

    The folder holds `MECHANISM/ENGINE/CASE/` (datasets), `switched.csv` and `page.md`. In the rows the mechanism's name
    stands for the reading's. The arguments are those of `runner.run`.

    Raises:
        InputError: something is wrong in the entry's files, or something else is in the folder's place.
    """
    result_kind.check(folder, Kind.REPRODUCTION)
    names, scale = [each.name for each in chosen], QUICK if quick else FULL
    made = made_of(entry, scale, runner.missing(entry), names)
    passes = [_pass(entry, each, quick=quick) for each in chosen]
    tell = runner.Part(progress, sum(len(plans) for each in passes for plans in each.plans.values()))
    how = runner.How(jobs, executor, command, perturbed=False)
    with folders.replace_folder(folder, manifests.is_note(folder)) as new:
        rows: list[Judged] = []
        for mechanism, each in zip(chosen, passes, strict=True):
            found = {engine: runner.EngineResult() for engine in each.plans}
            for engine, plans in each.plans.items():
                runner.measure(entry, plans, found[engine], each.folder(new) / engine, tell, how)
            if entry.examine:
                place = each.folder(new) / runner.HOST
                found[runner.HOST] = runner.EngineResult(
                    runner.examined(entry, place, quick=quick, **mechanism.changes)
                )
            rows += _moved(entry, mechanism, runner.rows_of(entry, found, [each], each), scale)
        result = Result(entry.id, rows)
        with folders.write_errors(new):
            result.write(new / SWITCHED)
            last = Result.last(entry.folder / TABLE, entry.id)
            (new / "page.md").write_text(page.entry_page(entry, last, switched=result), encoding="utf-8")
            about = {"id": entry.id, "scale": scale, "mechanisms": names, KEY: made}
            manifest = {"ackclock": _core.version, "reproduction": about, **circumstances(command)}
            manifests.write(new, manifest, manifests.list_files(new))
    return result


def plans(entry: Entry, mechanism: Ablation, engine: str, *, quick: bool = False) -> dict[str, Plan]:
    """Return the plans of an ablation by case. Raises `InputError` for mistakes in the entry's files."""
    reading, switched = mechanism.layers(entry.readings)
    every = cases.contents(entry.folder, engine=engine, quick=quick, reading=reading, switched=switched)
    for name in mechanism.cases or ():
        if name not in every:
            raise InputError(
                f"{entry.folder / 'mechanisms.toml'}: cases: found {name!r}; expected one of {list(every)}"
            )
    return {
        case: cases.plan(entry.folder, case, content)
        for case, content in every.items()
        if mechanism.runs(engine, case) and entry.runs(engine, case, quick=quick)
    }


def listed(entry: Entry, chosen: Sequence[Ablation], *, quick: bool = False) -> list[tuple[Plan, str]]:
    """Return the runs of ablations of an entry: plans, each with its engine. Raises `InputError` as `plans` does."""
    passes = [_pass(entry, each, quick=quick) for each in chosen]
    return [(plan, engine) for each in passes for engine, of in each.plans.items() for plan in of.values()]


def _pass(entry: Entry, mechanism: Ablation, *, quick: bool) -> runner.Pass:
    lacks = runner.warn_missing(entry)
    found = {name: {} if lacks[name] else plans(entry, mechanism, name, quick=quick) for name in lacks}
    return runner.Pass(mechanism.layers(entry.readings)[1], {name: of for name, of in found.items() if of})


def _moved(entry: Entry, mechanism: Ablation, rows: Mapping[str, Sequence[Row]], scale: str) -> list[Judged]:
    """The rows of the claims that a mechanism moves, where the switched runs have a value."""
    return [
        Judged.of(row, label, entry.published[row.claim].unit, scale, mechanism.name)
        for label, found in rows.items()
        for row in found
        if row.claim in mechanism.moves and row.summary.n
    ]
