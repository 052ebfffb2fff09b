"""The answer: the best setting that meets all requirements, with everything that was found on the way, and its folder.

The folder:

    results/dumbbell-find-limit-3fa2c1/
    ├── manifest.json     the question, versions, command, and the SHA-256 of the files
    ├── answer.json       what `ackclock find --json` prints
    ├── runs.parquet      a row for each run: the setting's number and values, the seed, and the metrics
    ├── scenario.toml     the scenario at the best setting
    └── find.png          what is needed and what is best, over the settings; for several goals the frontier
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import Any

import polars as pl

from ackclock import _core, metrics
from ackclock.dataset import folders, manifests, result_kind
from ackclock.dataset.result_kind import Kind
from ackclock.engines.engine import circumstances
from ackclock.errors import InputError
from ackclock.experiments import guards
from ackclock.experiments.phase_effects import compared
from ackclock.experiments.search.criteria import FAILS, HOLDS, RISK, UNDECIDED, Judgement, chance
from ackclock.experiments.search.evaluator import Row, Runs
from ackclock.experiments.search.spec import Question
from ackclock.metrics import METRICS, Summary
from ackclock.metrics.protocols import PHASE
from ackclock.scenario.points import described, inline, label, short_keys

#: A verdict of what ran a setting otherwise; one that is undecided says nothing.
AGREES = {HOLDS: True, FAILS: False}

#: Most settings whose plans are checked for what may mislead.
MAX_CHECKED = 200

#: No setting meets all requirements.
NONE = "none"


@dataclass(frozen=True)
class SearchResult:
    """`best` is the number of the setting, or None; `ends` the one found in each row where an end is looked for.

    `complete` says that the search came to its end; `runs` are all there are of each setting that was looked at,
    `made` those of this call. `cpu_s` is what this call took, a confirmation included. `confirmed` says by engine
    whether it agrees: None if undecided. `perturbed` are the best one's perturbed runs, if they were asked for, and
    `perturbed_met` says whether it meets the needs.
    """

    question: Question
    verdicts: Mapping[int, Judgement]
    runs: Runs
    best: int | None
    ends: Mapping[int, int | None]
    frontier: Sequence[int]
    complete: bool
    made: int = 0
    cpu_s: float = 0.0
    confirmed: Mapping[str, bool | None] | None = None
    confirming: Mapping[str, Sequence[Row]] | None = None
    perturbed: Sequence[Row] | None = None
    perturbed_met: bool | None = None
    warnings: Sequence[str] = ()

    @property
    def verdict(self) -> str:
        """*holds* if there is a setting, *none* if none is, else *undecided*."""
        if self.best is not None and self.complete:
            return HOLDS
        doubts = any(verdicts.verdict == UNDECIDED for verdicts in self.verdicts.values())
        return NONE if self.complete and not doubts else UNDECIDED

    @cached_property
    def points(self) -> list[dict[str, Any]]:
        """The settings that were looked at, in their order: `values`, `verdict`, `n`, and the `metrics`' summaries."""
        return [
            {
                "values": dict(self.question.values(number)),
                "verdict": self.verdicts[number].verdict,
                "n": len(self.runs[number]),
                "metrics": {name: found.as_dict() for name, found in self.summary(number).items()},
            }
            for number in sorted(self.verdicts)
        ]

    @property
    def count(self) -> int:
        """Return the number of runs; settings with the same plan share theirs."""
        return sum({id(rows): len(rows) for rows in self.runs.values()}.values())

    @property
    def short_keys(self) -> list[str]:
        """Return short names of the keys."""
        sweep = self.question.loaded.sweep
        return short_keys(sweep.axes) if sweep else []

    def summary(self, number: int) -> dict[str, Summary]:
        """The metrics of a setting over its seeds."""
        return summary(self.runs[number], self.question.metrics)

    def with_confirmation(self, engine: str, found: Judgement, rows: Sequence[Row], cpu_s: float) -> SearchResult:
        """The answer with what another engine says to it, and the CPU time which that took."""
        return replace(
            self,
            cpu_s=self.cpu_s + cpu_s,
            confirmed={**(self.confirmed or {}), engine: AGREES.get(found.verdict)},
            confirming={**(self.confirming or {}), engine: rows},
        )

    def with_perturbed(self, found: Judgement, rows: Sequence[Row], cpu_s: float) -> SearchResult:
        """Return the answer with its perturbed runs, and the CPU time which those took."""
        met = AGREES.get(found.verdict)
        return replace(self, cpu_s=self.cpu_s + cpu_s, perturbed=rows, perturbed_met=met).with_warnings()

    @property
    def phase(self) -> dict[str, Any] | None:
        """Return the effect of perturbing the best setting, as `experiments.phase_effects` reports it."""
        if self.best is None or self.perturbed is None:
            return None
        here, there = (
            {name: found.as_dict() for name, found in summary(rows, self.question.metrics).items()}
            for rows in (self.runs[self.best], self.perturbed)
        )
        return compared(here, there)

    def with_warnings(self) -> SearchResult:
        """Return the answer with what may mislead: along a range at the best settings, else at all evaluated ones.

        Of a setting that is rejected anyway only the plan is checked, which may be why.
        """
        numbers: Sequence[int] = sorted(self.verdicts)[:MAX_CHECKED]
        if any(vary.ordered for vary in self.question.varied):
            best = [] if self.best is None else [self.best]
            numbers = self.frontier or [number for number in self.ends.values() if number is not None] or best
        settings = (
            guards.Setting(
                self.question.described(number),
                self.question.point(number).plan,
                self.question.engine,
                self.runs[number] if self.best is None or self.verdicts[number].holds else (),
            )
            for number in numbers
        )
        return replace(self, warnings=guards.warnings(settings, perturbed=self.perturbed is not None))

    def as_dict(self) -> dict[str, Any]:
        """For JSON: what `ackclock find --json` prints."""
        best = self.best
        return {
            "verdict": self.verdict,
            "answer": None if best is None else dict(self.question.values(best)),
            "metrics": {} if best is None else {name: found.as_dict() for name, found in self.summary(best).items()},
            "points": self.points,
            "frontier": [dict(self.question.values(number)) for number in self.frontier],
            "runs": self.count,
            "cpu_s": self.cpu_s,
            "confirmed": {"linux": None, **(self.confirmed or {})},
            "warnings": list(self.warnings),
            **({PHASE: self.phase} if self.phase else {}),
        }

    def as_good(self) -> list[int]:
        """The settings that the best one is not clearly better than by the first goal: pairs of the same seeds tell."""
        objectives, best = self.question.objectives, self.best
        if best is None or len(objectives) != 1:
            return []
        own = objectives[0].costs(self.runs[best])
        others = [number for number, found in self.verdicts.items() if found.holds and number != best]
        return sorted(number for number in others if not _clearly(objectives[0].costs(self.runs[number]), own))

    def before(self) -> int | None:
        """The nearest setting that was looked at before the best one, from the end that is looked for."""
        return next(self._before(), None)

    def doubtful(self) -> list[int]:
        """Settings further towards that end that are undecided: a metric may turn more than once."""
        return [number for number in list(self._before())[1:] if self.verdicts[number].verdict == UNDECIDED]

    def _before(self) -> Iterator[int]:
        """The settings that were looked at before the best one, the nearest first."""
        question = self.question
        if self.best is None or question.end is None:
            return
        row = self.best // question.row
        numbers = [question.number(row, place) for place in range(question.row)]
        yield from (n for n in reversed(numbers[: numbers.index(self.best)]) if n in self.verdicts)


def summary(rows: Sequence[Row], names: Sequence[str]) -> dict[str, Summary]:
    """The metrics of some runs."""
    return {name: metrics.summarise([row[name] for row in rows], 0.0, METRICS[name].maximum) for name in names}


def _clearly(others: Sequence[float], own: Sequence[float]) -> bool:
    """Return True if the others cost significantly more, paired by seed."""
    margins = [other - mine for other, mine in zip(others, own, strict=False)]
    return bool(margins) and any(margins) and chance(margins) <= RISK


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
    return read_runs(folder, question)


def read_runs(folder: Path, question: Question) -> Runs:
    """Return the runs of a result of this question."""
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
