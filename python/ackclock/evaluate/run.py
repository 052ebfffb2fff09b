"""Run the cases, with more seeds where a verdict is undecided, and judge them.

Each case is a sweep of its variants into a folder, which keeps the tables of the runs and resumes:

results/evaluate-bbr/
├── dossier.html, dossier.md, dossier.json
├── manifest.json
└── runs/packet/5.2.1-competition/
    ├── scenario.toml     the variants as a sweep: `ackclock sweep scenario.toml`
    ├── seeds-1-4         the sweep of the first look, further ones for more seeds
    └── alone-1-4         the victim by itself
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from ackclock import engines
from ackclock.algorithms import spec
from ackclock.dataset import folders
from ackclock.engines.engine import Progress, cores, no_progress
from ackclock.errors import Unsupported, UnsupportedError
from ackclock.evaluate import NOT_COVERED, SECTIONS, in_section, verdicts
from ackclock.evaluate.cases import Case
from ackclock.evaluate.verdicts import RISK, UNDECIDED, Finding
from ackclock.experiments.cluster import Target
from ackclock.experiments.executors import StoppedError
from ackclock.experiments.sweep import run
from ackclock.experiments.sweep import run as sweeps
from ackclock.experiments.sweep.result import Sweep
from ackclock.experiments.sweep.run import Pool
from ackclock.scenario.planning import Loaded
from ackclock.scenario.points import exact, label

#: Numbers of seeds at each look; of the short evaluation.
SAMPLE_SIZES, QUICK_SIZES = (4, 8, 16, 32), (4, 8)

#: The reason of sections that have scenarios, but none in this evaluation.
NOT_SELECTED = "not selected"

#: The second yardstick: standards track as well (RFC 5681).
RENO = "reno"

#: Values of one metric by seed.
BySeed: TypeAlias = dict[int, float | None]

#: Values by the number of the variant (−1: the victim by itself), the number of the point, and the metric.
Rows: TypeAlias = dict[tuple[int, int, str], BySeed]


@dataclass(frozen=True)
class Request:
    """The question: an algorithm as scenarios have it, its yardstick, engines, and the seeds of each look."""

    candidate: Any
    baseline: str = "cubic"
    engines: tuple[str, ...] = ("packet",)
    sizes: tuple[int, ...] = SAMPLE_SIZES
    first_seed: int = 1
    jobs: int | None = None
    target: Target | None = None
    restart: bool = False
    command: str = ""

    @property
    def references(self) -> tuple[str, ...]:
        """Return the algorithms whose harm is the yardstick."""
        return tuple(dict.fromkeys((self.baseline, RENO)))

    @property
    def algorithms(self) -> list[Any]:
        """Return the variants, each once: the candidate may be one of the references."""
        return [self.candidate, *(name for name in self.references if exact(name) != exact(self.candidate))]

    @property
    def name(self) -> str:
        """Return the candidate as text."""
        return label(self.candidate)


@dataclass(frozen=True)
class Evaluation:
    """The findings, and the values of the runs by engine and case, on which they rest.

    `unsupported` has the reasons of cases, by engine and name, that an engine cannot run.
    """

    request: Request
    cases: Sequence[Case]
    findings: Sequence[Finding]
    rows: Mapping[tuple[str, str], Rows]
    unsupported: Mapping[tuple[str, str], str]
    folder: Path

    @cached_property
    def not_covered(self) -> dict[str, str]:
        """Return the sections without a finding, each with the reason."""
        judged = {finding.section for finding in self.findings}
        reasons = {
            case.judged.section: reason
            for case in self.cases
            for (_, name), reason in self.unsupported.items()
            if name == case.name
        }
        return {
            section: NOT_COVERED.get(section) or reasons.get(section) or NOT_SELECTED
            for section in SECTIONS
            if section not in judged
        }

    def failing(self, required: Sequence[str]) -> list[Finding]:
        """Return the findings in the required sections (or "all") that are more harmful."""
        return [
            finding
            for finding in self.findings
            if finding.verdict == verdicts.WORSE and any(_is_required(finding.section, name) for name in required)
        ]

    def unjudged(self, required: Sequence[str]) -> list[str]:
        """Return the required sections (or "all") in which no finding rests on a value."""
        return without(required, {finding.section for finding in self.findings if any(finding.by_seed.values())})


def without(required: Sequence[str], sections: Collection[str]) -> list[str]:
    """Return the required sections (or "all") that none of the sections is in."""
    return [name for name in required if not any(_is_required(section, name) for section in sections)]


def _is_required(section: str, name: str) -> bool:
    return name == "all" or in_section(section, name)


def check(cases: Sequence[Case], request: Request) -> dict[tuple[str, str], Unsupported]:
    """Check the sweeps of the first look and run nothing; return the reasons of pairs of engine and case without runs.

    Raises `UnsupportedError` if no engine can run a case, `ScenarioError` and `InputError` for mistakes.
    """
    seeds = range(request.first_seed, request.first_seed + request.sizes[0])
    unsupported: dict[tuple[str, str], Unsupported] = {}
    pairs = [(engine, case) for engine in request.engines for case in cases]
    for engine, case in pairs:
        parts = ((case.variants(request.algorithms), case.metrics), (case.isolated_victim(), case.harm))
        try:
            for loaded, metrics in parts:
                if loaded is not None:
                    sweeps.prepare(loaded, engine, seeds=seeds, metrics=metrics)
        except UnsupportedError as error:
            unsupported[engine, case.name] = error.reasons[0]
    if len(unsupported) == len(pairs):
        raise UnsupportedError(dict.fromkeys(unsupported.values()))
    return unsupported


def evaluate(cases: Sequence[Case], request: Request, folder: Path, progress: Progress = no_progress) -> Evaluation:
    """Run the cases into `folder` and judge them. Runs that are there are not repeated.

    Raises `InputError` for unknown algorithms, `UnsupportedError` if an engine can run no case, `AckclockError` for a
    run that failed.
    """
    spec("congestion", request.baseline)
    findings: list[Finding] = []
    rows: dict[tuple[str, str], Rows] = {}
    unsupported: dict[tuple[str, str], Unsupported] = {}
    pairs = [(engine, case) for engine in request.engines for case in cases]
    with run.open_pool(request.jobs or cores(), request.engines, request.target) as pool, suppress(StoppedError):
        for number, (engine, case) in enumerate(pairs):
            progress(number / len(pairs))
            try:
                found, rows[engine, case.name] = _Judge(case, engine, request, folder, pool).findings()
                findings += found
            except UnsupportedError as error:
                unsupported[engine, case.name] = error.reasons[0]
    if len(unsupported) == len(pairs):
        raise UnsupportedError(dict.fromkeys(unsupported.values()))
    reasons = {key: str(reason) for key, reason in unsupported.items()}
    return Evaluation(request, cases, findings, rows, reasons, folder)


@dataclass(frozen=True)
class _Judge:
    """One case with one engine."""

    case: Case
    engine: str
    request: Request
    folder: Path
    pool: Pool

    def findings(self) -> tuple[list[Finding], Rows]:
        """Return the findings, with more seeds as long as one is undecided, and the values of all runs."""
        variants = self.case.variants(self.request.algorithms)
        alone = self.case.isolated_victim()
        is_exact = not engines.engine(self.engine).is_stochastic(variants.point(0).plan)
        rows: Rows = {}
        before, found = 0, list[Finding]()
        for size in self.request.sizes[:1] if is_exact else self.request.sizes:
            self._add(rows, *self._run(variants, alone, before, size))
            found = self._judged(rows, is_exact)
            before = size
            if all(finding.verdict != UNDECIDED for finding in found):
                break
        return found, rows

    def _add(self, rows: Rows, main: Sweep, alone: Sweep | None) -> None:
        """Add the values of a look: the tested algorithm is the last axis of a sweep, so it changes fastest."""
        for row in main.table.iter_rows(named=True):
            point, variant = divmod(row["point"], len(self.request.algorithms))
            for metric in self.case.metrics:
                rows.setdefault((variant, point, metric), {})[row["seed"]] = row[metric]
        for row in alone.table.iter_rows(named=True) if alone else ():
            for metric in self.case.harm:
                rows.setdefault((-1, row["point"], metric), {})[row["seed"]] = row[metric]

    def _run(self, variants: Loaded, alone: Loaded | None, before: int, size: int) -> tuple[Sweep, Sweep | None]:
        first = self.request.first_seed
        seeds = tuple(range(first + before, first + size))
        place = case_folder(self.folder, self.engine, self.case)
        main = self._sweep(variants, place / stage_folder("seeds", seeds), seeds, self.case.metrics)
        text = variants.source.text.encode("utf-8", "replace")
        folders.atomic_write(place / "scenario.toml", lambda new: new.write_bytes(text))
        return main, self._sweep(alone, place / stage_folder("alone", seeds), seeds, self.case.harm) if alone else None

    def _sweep(self, loaded: Loaded, folder: Path, seeds: Sequence[int], metrics: Sequence[str]) -> Sweep:
        samples = self.case.judged.figure == "convergence"
        job = sweeps.prepare(loaded, self.engine, out=folder, seeds=seeds, metrics=metrics, samples=samples)
        request = self.request
        return replace(job, restart=request.restart, command=request.command, pool=self.pool).perform()

    def _judged(self, rows: Rows, is_exact: bool) -> list[Finding]:
        case = self.case
        asked = [(name, "harm") for name in case.harm] + [(name, "performance") for name in case.judged.performance]
        return [
            finding
            for number, point in enumerate(case.points)
            for metric, kind in asked
            if (finding := self._finding(rows, number, point, metric, kind, is_exact))
        ]

    def _finding(
        self, rows: Rows, number: int, point: Mapping[str, str], metric: str, kind: str, is_exact: bool
    ) -> Finding | None:
        request = self.request
        names = [exact(each) for each in request.algorithms]
        values = {name: rows.get((at, number, metric), {}) for at, name in enumerate(names)}
        references = {name: values[exact(name)] for name in request.references}
        alone = rows.get((-1, number, metric), {}) if kind == "harm" and self.case.judged.victim else None
        by_seed = verdicts.excesses(metric, values[names[0]], references, alone)
        risk = RISK / len(request.sizes) / len(by_seed)
        excess = {
            name: verdicts.interval([*some.values()], risk, exact=is_exact) for name, some in by_seed.items() if some
        }
        means = {"candidate": _mean(values[names[0]]), **{name: _mean(some) for name, some in references.items()}}
        if alone is not None:
            means["alone"] = _mean(alone)
        return Finding(
            self.engine, self.case.name, self.case.judged.section, point, kind, metric,
            verdicts.verdict(excess) if len(excess) == len(by_seed) else UNDECIDED, means, excess, by_seed,
        )  # fmt: skip


def case_folder(folder: Path, engine: str, case: Case) -> Path:
    """Return the folder of a case's runs."""
    return folder / "runs" / engine / case.name


def stage_folder(kind: str, seeds: Sequence[int]) -> str:
    """Return the name of the folder of a look at some seeds."""
    return f"{kind}-{seeds[0]}-{seeds[-1]}"


def _mean(values: Mapping[int, float | None]) -> float | None:
    known = [value for value in values.values() if value is not None]
    return sum(known) / len(known) if known else None
