"""The folder of an answer.

results/dumbbell-find-limit-3fa2c1/
├── manifest.json     the question, versions, command, and the SHA-256 of the files
├── answer.json       what `ackclock find --json` prints
├── runs.parquet      a row for each run: the setting's number and values, the seed, and the metrics
├── scenario.toml     the scenario at the best setting
└── find.png          what is needed and what is best, over the settings; for several goals the frontier
"""

from __future__ import annotations

import json
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import Any

import polars as pl

from ackclock import _core
from ackclock.dataset import folders, manifests, result_kind
from ackclock.dataset.result_kind import Kind
from ackclock.engines.engine import circumstances
from ackclock.errors import InputError
from ackclock.experiments.search.evaluator import Runs
from ackclock.experiments.search.result import SearchResult
from ackclock.experiments.search.spec import Question
from ackclock.scenario.points import described, inline, label

#: The files of an answer.
ANSWER, RUNS, SCENARIO, FIGURE = "answer.json", "runs.parquet", "scenario.toml", "find.png"

#: Infix between the scenario's name and the question's in a folder's name.
FIND = "-find-"


def check(folder: Path) -> None:
    """Raise `InputError` for a folder that holds something else, or cannot be made."""
    folders.check(folder, Kind.SEARCH)


def default(scenario: str, question: Question) -> Path:
    """Return the default folder of a result: each question about a scenario has its own."""
    return Path("results") / f"{Path(scenario).stem}{FIND}{question.name}"


def runs(folder: Path, question: Question) -> Runs:
    """Return the runs that exist for this question, made by this version of ackclock.

    What another question about the same settings had run is taken from its folder, if that lies beside this one; the
    needs, or the goals, are all that it may differ in. Raises `InputError` for a folder that is damaged.
    """
    if found := _runs(folder, question):
        return found
    before = folder.name.partition(FIND)[0]
    for other in sorted(folder.parent.glob(f"{escape(before)}{FIND}*")) if FIND in folder.name else ():
        with suppress(InputError):
            if found := _runs(other, question):
                return found
    return {}


def _runs(folder: Path, question: Question) -> Runs:
    if result_kind.kind(folder) is not Kind.SEARCH:
        return {}
    manifest = manifests.read(folder, Kind.SEARCH)
    if manifest.about["find"]["sum"] != question.sum or manifest.about["ackclock"] != _core.version:
        return {}
    manifest.check([RUNS])
    return _read(pl.read_parquet(folder / RUNS), question.metrics)


def write(answer: SearchResult, folder: Path, *, command: str = "", figure: bool = True) -> None:
    """Write the answer as far as it is known, completely or not at all; an earlier one is replaced."""
    result_kind.check(folder, Kind.SEARCH)
    with folders.replace_folder(folder, manifests.is_note(folder)) as new, folders.write_errors(new):
        text = json.dumps(answer.as_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        (new / ANSWER).write_text(text + "\n", encoding="utf-8")
        _table(answer).write_parquet(new / RUNS, compression="zstd")
        if answer.best is not None:
            (new / SCENARIO).write_text(_scenario(answer.question, answer.best), encoding="utf-8")
        if figure:
            _draw(answer, new / FIGURE)
        about = {**answer.question.about, "sum": answer.question.sum}
        manifests.write(
            new, {"ackclock": _core.version, "find": about, **circumstances(command)}, manifests.list_files(new)
        )


def _scenario(question: Question, number: int) -> str:
    """The scenario at a setting, a line for each of its tables."""
    sweep = question.loaded.sweep
    assert sweep is not None
    content, _ = sweep.content(number)
    lines = [f"{key} = {inline(value)}" for key, value in content.items()]
    return "\n".join([f"# {described(question.values(number))}", *lines, ""])


def _draw(answer: SearchResult, path: Path) -> None:
    from ackclock.figures.plots import searched

    try:
        frontier = [dict(answer.question.values(number)) for number in answer.frontier]
        searched(answer.question.about, answer.points, frontier).savefig(path)
    except InputError:  # nothing was looked at
        return


def _table(answer: SearchResult) -> pl.DataFrame:
    question = answer.question
    rows = [
        {
            "setting": number,
            **{key: label(value) for key, value in question.values(number).items()},
            "seed": seed,
            **row,
        }
        for number, found in sorted(answer.runs.items())
        for seed, row in enumerate(found, question.seed)
    ]
    texts: dict[str, Any] = {vary.key: pl.String for vary in question.varied}
    measures: dict[str, Any] = dict.fromkeys(question.metrics, pl.Float64)
    return pl.DataFrame(rows, schema={"setting": pl.Int64, **texts, "seed": pl.Int64, **measures})


def _read(table: pl.DataFrame, metrics: list[str]) -> Runs:
    found: Runs = {}
    for row in table.sort("setting", "seed").iter_rows(named=True):
        found.setdefault(row["setting"], []).append({name: row[name] for name in metrics})
    return found
