"""Runs again what is in a bundle, and compares metric by metric.

Of a bundle only its scenario's text is used, with the engine's name, the seeds and what a sweep was asked for; it goes
the way of any scenario, checks included. Nothing in a bundle is executed, and no file of this machine that a bundle
names is used as a kernel, an algorithm or a transport stack: who reruns it gives those.

A metric is *equal* if all its values are, *within* if the difference of the means has zero in its 95 % interval
(Welch's, as between engines), else it *differs*. One run, or one without chance in it, has no interval: its values may
be apart by the rounding of a sum that another machine or library adds up in another order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ackclock import engines
from ackclock import metrics as measured
from ackclock.bundles import archive
from ackclock.dataset import Dataset, folders, manifests, result_kind
from ackclock.dataset.manifests import CAPTURES, POINTS, Manifest
from ackclock.dataset.result_kind import MANIFEST, Kind
from ackclock.engines.engine import Progress, no_progress
from ackclock.errors import InputError
from ackclock.experiments import comparison, runner
from ackclock.experiments.comparison import Sample, difference
from ackclock.experiments.search import result as search_result
from ackclock.experiments.search import search as searches
from ackclock.experiments.search import spec
from ackclock.experiments.search.result import RUNS
from ackclock.experiments.sweep import result as sweep_result
from ackclock.experiments.sweep import run as sweeps
from ackclock.metrics import METRICS
from ackclock.plan import Plan
from ackclock.scenario import planning
from ackclock.scenario.options import KERNEL
from ackclock.scenario.planning import Loaded
from ackclock.scenario.points import described
from ackclock.system.files import printable, readable

#: Verdicts, the worst last.
EQUAL, WITHIN, DIFFERS = "equal", "within", "differs"

#: Relative difference of two sums of the same 64-bit numbers in different orders: 2⁻⁵³ × ten million of them.
ROUNDING = 1e-9

#: No metric is greater: its square is a number yet.
GREATEST = 1e150

#: Metrics of a run by their names.
Run = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric's means, of what was given and of what was run again, and the verdict. `where`: of which part."""

    name: str
    given: float | None
    rerun: float | None
    verdict: str
    where: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name, "given": self.given, "again": self.rerun, "verdict": self.verdict, "where": self.where,
        }  # fmt: skip


def metrics(given: Sequence[Run], again: Sequence[Run], *, exact: bool = False, where: str = "") -> list[Metric]:
    """The metrics that either has, in their order; `exact` if chance has no part in them."""
    scalars = [metric.name for metric in METRICS.values() if not metric.per_flow]
    return [
        Metric(name, _mean(before), _mean(now), _verdict(before, now, exact), where)
        for name in scalars
        if (before := _values_of(given, name)) + (now := _values_of(again, name))
    ]


def worst(found: Iterable[Metric]) -> str:
    """The worst verdict of several; equal if there are none."""
    order = (EQUAL, WITHIN, DIFFERS)
    return max((metric.verdict for metric in found), key=order.index, default=EQUAL)


def _values_of(runs: Sequence[Run], name: str) -> list[float]:
    values = [run.get(name) for run in runs]
    return [float(value) for value in values if isinstance(value, (int, float)) and abs(value) <= GREATEST]


def _mean(values: Sequence[float]) -> float | None:
    return Sample(values).mean if values else None


def _verdict(given: Sequence[float], again: Sequence[float], exact: bool) -> str:
    if given == again:
        return EQUAL
    apart = difference(Sample(given, exact), Sample(again, exact))
    if apart is None:
        return DIFFERS
    if apart.ci95_low is not None and apart.ci95_high is not None and apart.ci95_low <= 0.0 <= apart.ci95_high:
        return WITHIN
    return WITHIN if abs(apart.mean) <= ROUNDING * abs(Sample(given).mean) else DIFFERS


#: Kinds of results that can be run again.
RUNNABLE = (Kind.RUN, Kind.SWEEP, Kind.COMPARISON, Kind.SEARCH)

#: The files of a bundle that are looked into; the others have only to be whole.
REQUIRED = frozenset((MANIFEST, comparison.TABLE, POINTS, RUNS, archive.METRICS))

#: The engine that has kernels.
LINUX = "linux"


@dataclass(frozen=True, slots=True)
class Options:
    """Around the runs: `kernel` in place of what was used, for the engine linux; the user's own algorithm and transport
    stacks, as a plan has them.
    """  # noqa: D205

    jobs: int | None = None
    kernel: str | None = None
    module: Mapping[str, str] | None = None
    stacks: Sequence[Mapping[str, str]] = ()
    command: str = ""
    progress: Progress = no_progress


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of rerunning one result: how many data files are equal byte for byte, of how many; and the metrics.

    `notes` say what else is not as it was.
    """

    name: str
    kind: Kind
    files: int
    equal_files: int
    metrics: tuple[Metric, ...]
    notes: tuple[str, ...] = ()

    @property
    def same_bytes(self) -> bool:
        """Return True if all data are equal byte for byte."""
        return 0 < self.files == self.equal_files

    @property
    def verdict(self) -> str:
        """The worst of the metrics'."""
        return worst(self.metrics)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: what `ackclock rerun --json` prints."""
        return {
            "name": self.name,
            "kind": self.kind.name.lower(),
            "verdict": self.verdict,
            "same_bytes": self.same_bytes,
            "files": self.files,
            "equal_files": self.equal_files,
            "notes": list(self.notes),
            "metrics": [metric.as_dict() for metric in self.metrics],
        }


@contextmanager
def _reading(result: str) -> Iterator[None]:
    """A block that reads what a bundle says, which has its sums and may yet be anything."""
    try:
        yield
    except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
        raise InputError(
            f"{result}: found a manifest that ackclock does not write; expected {archive.EXPECTED}"
        ) from error


@dataclass(frozen=True, slots=True)
class Opened:
    """One result in a bundle; `folder` has the files of it that are `NEEDED`."""

    name: str
    kind: Kind
    folder: Path
    notes: list[str] = field(default_factory=list)
    has_programs: bool = False


def rerun(path: Path, out: Path | None = None, options: Options | None = None) -> Iterator[Outcome]:
    """Runs all results of a bundle again, one after the other, and compares each with what the bundle has.

    What is run goes into `out`: a folder for each of several. Raises `InputError` if the file is no bundle or damaged,
    before anything runs, if nothing in it can be run, and as running its scenarios does.
    """
    with folders.temporary_folder() as place:
        opened = list(_open(path, place))
        able = [result for result in opened if result.kind in RUNNABLE and not result.has_programs]
        if not able:
            raise _nothing_to_run(path, opened)
        with ExitStack() as stack:
            target = out or stack.enter_context(folders.temporary_folder())
            own = {result.name: target if out and len(able) == 1 else target / result.name for result in able}
            for result in able:
                result_kind.check(own[result.name], result.kind)
            for result in able:
                yield _RERUN[result.kind](result, own[result.name], options or Options())


def _nothing_to_run(path: Path, opened: Sequence[Opened]) -> InputError:
    found = opened[0].kind.value if opened else "no results"
    if opened and opened[0].has_programs:
        found = "the result of `ackclock shell`, whose programs ran in real time"
    return InputError(f"{readable(path)}: found {found}; expected a bundle of runs, sweeps, searches or comparisons")


def _open(path: Path, place: Path) -> Iterator[Opened]:
    """The results; all of the file has been compared with its list, and what is needed here is in `place`."""
    bundle = archive.read(path, place, lambda name: name.rpartition("/")[2] in REQUIRED)
    listed = bundle.about.get("results")
    for item in listed if isinstance(listed, list) else []:
        name = item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str) or f"{archive.RESULTS}/{name}/{MANIFEST}" not in bundle.parts:
            raise InputError(f"{readable(path)}: {archive.LIST}: found a result without its manifest; expected both")
        folder = place / archive.RESULTS / name
        about = manifests.read(folder).about
        yield Opened(name, result_kind.of(about), folder, has_programs="shell" in about)


def _run(result: Opened, target: Path, options: Options) -> Outcome:
    """A run again."""
    manifest = manifests.read(result.folder, Kind.RUN)
    with _reading(result.name):
        name = str(manifest.about["engine"])
        plan = _planned(result, manifest.about, [name], options)
    _write_run(plan, name, target, options)
    return _outcome(result, target, _metrics_of(result, target, "", name, plan), manifest.files)


def _write_run(plan: Plan, engine: str, target: Path, options: Options) -> None:
    with folders.staging_folder(target) as private:
        captures = private / CAPTURES if plan.has_captures else None
        data = runner.run(
            plan,
            engine,
            jobs=options.jobs,
            progress=options.progress,
            captures=captures,
            command=options.command,
        )
        data.write(target, captures)


def _comparison(result: Opened, target: Path, options: Options) -> Outcome:
    """A comparison again, with the engines that could not run it too."""
    told = _values(result.folder / comparison.TABLE)
    with _reading(result.name):
        names = [engines.engine(name).name for name in (*told["engines"], *told["unsupported"])]
        of_engines = {name: manifests.read(result.folder / name, Kind.RUN) for name in told["engines"]}
        most = max(of_engines.values(), key=lambda found: len(found.about["runs"]))
        plan = _planned(result, most.about, names, options)
    found = comparison.compare(plan, names, jobs=options.jobs, progress=options.progress, command=options.command)
    comparison.write(found, target, report=False, command=options.command)
    equal = _equal(_files(of_engines), _files({name: manifests.read(target / name) for name in found.engines}))
    rows = [row for name in of_engines for row in _metrics_of(result, target / name, name, name, plan)]
    return Outcome(result.name, result.kind, *equal, tuple(rows), tuple(result.notes))


def _files(of_engines: Mapping[str, Manifest]) -> dict[str, str]:
    """The sums of all engines' files."""
    return {f"{name}/{file}": known for name, engine in of_engines.items() for file, known in engine.files.items()}


def _sweep(result: Opened, target: Path, options: Options) -> Outcome:
    """A sweep again; its runs go into parts as they are done, so only the table of all is compared."""
    with _reading(result.name):
        given = sweep_result.read(result.folder)
        order = given.manifest["sweep"]
        loaded = _loaded(result, order, _name_of(given.manifest), options)
        chosen = {key: order[key] for key in ("seeds", "metrics", "samples", "where")}
        job = sweeps.prepare(loaded, order["engine"], out=target, **chosen)
    job = replace(job, jobs=options.jobs, command=options.command)
    done = job.with_warnings(job.perform(options.progress))
    rows = [row for pair in _points(given, done) for row in metrics(pair[1], pair[2], where=pair[0])]
    equal = _equal(*({POINTS: manifests.read(folder).files[POINTS]} for folder in (result.folder, target)))
    return Outcome(result.name, result.kind, *equal, tuple(rows), tuple(result.notes))


def _points(
    given: sweep_result.Sweep, again: sweep_result.Sweep
) -> Iterator[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]]:
    """The runs of each point of both."""
    keys = [axis.key for axis in given.axes]
    second = {point[0]: rows.to_dicts() for point, rows in again.table.group_by("point", maintain_order=True)}
    for point, rows in given.table.group_by("point", maintain_order=True):
        where = described({key: rows[key][0] for key in keys}) if keys else ""
        yield where, rows.to_dicts(), second.get(point[0], [])


def _search(result: Opened, target: Path, options: Options) -> Outcome:
    """A search again, from its first run on; the answer says what the runs cost, so only the runs are compared."""
    with _reading(result.name):
        manifest = manifests.read(result.folder, Kind.SEARCH)
        order = manifest.about["find"]
        question = spec.restored(order, _loaded(result, order, str(order["scenario_name"]), options))
        given = search_result.read_runs(result.folder, question)
    found = searches.find(question, jobs=options.jobs)
    search_result.write(found, target, command=options.command)
    rows = [
        row
        for number in sorted(given.keys() | found.runs.keys())
        for row in metrics(given.get(number, ()), found.runs.get(number, ()), where=question.described(number))
    ]
    equal = _equal(*({RUNS: manifests.read(folder).files[RUNS]} for folder in (result.folder, target)))
    return Outcome(result.name, result.kind, *equal, tuple(rows), tuple(result.notes))


def _loaded(result: Opened, order: Mapping[str, Any], name: str, options: Options) -> Loaded:
    """The scenario of a sweep or a search, with what this user gives beside it."""
    _check_own_code(result, order.get("module"), order.get("stacks") or (), options)
    loaded = replace(planning.loads(order["scenario"], name), module=options.module, stacks=options.stacks)
    return loaded.on(_kernel(result, order.get("kernel"), options, [order["engine"]]))


#: Functions that run a result of a kind again.
_RERUN = {Kind.RUN: _run, Kind.SWEEP: _sweep, Kind.COMPARISON: _comparison, Kind.SEARCH: _search}


def _planned(result: Opened, about: Mapping[str, Any], names: Sequence[str], options: Options) -> Plan:
    """The plan of the scenario, as this ackclock makes it, for the engines by name and the seeds of the result."""
    text, known = _given(result, about)
    own = [(known.get("options") or {}).get(name) or {} for name in names]
    for engine in own:
        _check_own_code(result, engine.get("module"), engine.get("stacks") or (), options)
    loaded = planning.loads(text, _name_of(about)).on(_kernel(result, _kernel_of(known), options, names))
    loaded = replace(loaded, module=options.module, stacks=options.stacks)
    plan = _as_long(replace(loaded.plan(), seeds=_seeds(result, about)), known)
    _note_difference(result, known, engines.resolve_inputs(engines.engine(about["engine"]), plan))
    return plan


def _check_own_code(result: Opened, module: Any, stacks: Sequence[Any], options: Options) -> None:
    """Compare the algorithm and the transport stacks of the user who made the result with those that are given."""
    pairs = [("--module FILE", module, options.module)] if module else []
    given = {stack["name"]: stack for stack in options.stacks}
    pairs += [(f"--stack {stack['name']}=FILE", stack, given.get(stack["name"])) for stack in stacks]
    for option, was, now in pairs:
        name, sha256 = printable(str(was["name"])), str(was["sha256"])
        if now is None:
            found = f"{result.name}: found a result with {name}, a file of whoever made it (SHA-256 {sha256[:12]}…)"
            raise InputError(f"{found}; expected that file: {option}")
        if now["sha256"] != sha256:
            result.notes.append(f"{name} is another file than it was (SHA-256 {sha256[:12]}…)")


def _given(result: Opened, about: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    text, known = about.get("scenario"), about.get("plan")
    if not isinstance(text, str) or not text or not isinstance(known, dict):
        raise InputError(f"{result.name}: found a result without a scenario; expected one that a scenario was run for")
    return text, known


def _kernel_of(known: Mapping[str, Any]) -> object:
    return ((known.get("options") or {}).get(LINUX) or {}).get("kernel")


def _seeds(result: Opened, about: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(int(run["seed"]) for run in _runs(result, about))


def _as_long(plan: Plan, known: Mapping[str, Any]) -> Plan:
    """Quick, if it was."""
    quick = replace(runner.quick(plan), seeds=plan.seeds)
    return quick if known.get("duration_s") == quick.duration_s else plan


def _note_difference(result: Opened, known: Mapping[str, Any], plan: Plan) -> None:
    ours = json.loads(json.dumps(plan.to_dict()))
    known = {**known, "options": _without_files(known.get("options")), "seeds": None}
    if differs := _first_difference(known, {**ours, "options": _without_files(ours["options"]), "seeds": None}):
        result.notes.append(f"this version of ackclock plans the scenario differently: {differs}")


def _without_files(options: Any) -> Any:
    """Return a plan's options without the places of the user's own files, which are another machine's."""
    if isinstance(options, dict):
        return {key: _without_files(value) for key, value in options.items() if key != "file"}
    return [_without_files(item) for item in options] if isinstance(options, list) else options


def _kernel(result: Opened, kernel: object, options: Options, names: Sequence[str]) -> str | None:
    """The kernel to be used, if Linux is among the engines: never a file that a bundle names."""
    if LINUX not in names:
        return None
    if options.kernel is not None or kernel is None:
        return options.kernel
    if not isinstance(kernel, str) or not re.fullmatch(KERNEL, kernel):
        raise InputError(f"{result.name}: found a run with a kernel that was a file; expected one of yours (--kernel)")
    return kernel


def _runs(result: Opened, about: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    manifests.check_runs(about, Path(result.name))
    if not about["runs"] or any(run.get("seed") is None for run in about["runs"]):
        raise InputError(f"{result.name}: found runs without seeds; expected those of an engine")
    return list(about["runs"])


def _metrics_of(result: Opened, target: Path, part: str, engine: str, plan: Plan) -> list[Metric]:
    """Return the metrics of one dataset, as bundled and as rerun."""
    told = _values(result.folder.parents[1] / archive.ABOUT / result.name / archive.METRICS)
    with _reading(result.name):
        given = [dict(run["metrics"]) for run in (told[part] if part else told)["runs"]]
    again = [measured.of_run(view) for view in measured.runs(Dataset.read(target))]
    exact = not engines.engine(engine).is_stochastic(plan)
    return metrics(given, again, exact=exact, where=part)


def _outcome(result: Opened, target: Path, rows: list[Metric], files: Mapping[str, str]) -> Outcome:
    equal = _equal(files, manifests.read(target).files)
    return Outcome(result.name, result.kind, *equal, tuple(rows), tuple(result.notes))


def _equal(given: Mapping[str, str], again: Mapping[str, str]) -> tuple[int, int]:
    """Return how many files either has, and how many of them are equal."""
    return len(given.keys() | again.keys()), sum(again.get(name) == known for name, known in given.items())


def _values(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{path.parent.name}: found no {path.name} that can be read; expected {archive.EXPECTED}")
    return found


def _name_of(about: Mapping[str, Any]) -> str:
    return Path(str(about.get("scenario_path") or "scenario.toml")).name


def _first_difference(given: Any, again: Any, place: str = "") -> str:
    """Return the first difference of two values; empty if they are equal."""
    if isinstance(given, dict) and isinstance(again, dict):
        keys = [*given, *(key for key in again if key not in given)]
        found = (_first_difference(given.get(key), again.get(key), f"{place}.{key}" if place else key) for key in keys)
        return next(filter(None, found), "")
    if isinstance(given, list) and isinstance(again, list) and len(given) == len(again):
        pairs = enumerate(zip(given, again, strict=True))
        found = (_first_difference(one, other, f"{place}[{number}]") for number, (one, other) in pairs)
        return next(filter(None, found), "")
    return (
        "" if given == again else f"{printable(place)} was {manifests.excerpt(given)} and is {manifests.excerpt(again)}"
    )
