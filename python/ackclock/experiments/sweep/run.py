"""Run a sweep, or what is left of it, into a folder: tasks of several runs are dealt out to an executor."""

from __future__ import annotations

import gc
import math
import pickle
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from ackclock import engines
from ackclock.dataset import folders
from ackclock.dataset.manifests import WARNINGS
from ackclock.engines.engine import Progress, cores, no_progress
from ackclock.errors import InputError
from ackclock.experiments import cluster, executors, guards, phase_effects, pilot
from ackclock.experiments import cluster as clusters
from ackclock.experiments.cluster import Target
from ackclock.experiments.executors import Executor, StoppedError
from ackclock.experiments.pilot import Forecast
from ackclock.experiments.runner import WAKE_S
from ackclock.experiments.sweep import designs, result, worker
from ackclock.experiments.sweep import spec as orders
from ackclock.experiments.sweep.folder import Parts, extend_manifest
from ackclock.experiments.sweep.result import Sweep
from ackclock.experiments.sweep.spec import Run, Runs, SweepSpec
from ackclock.experiments.sweep.worker import Done
from ackclock.input import arguments
from ackclock.input.arguments import checked, optional, several
from ackclock.metrics.protocols import PHASE
from ackclock.plan import Plan
from ackclock.scenario import builder
from ackclock.scenario.builder import Accepted, taken
from ackclock.scenario.planning import Loaded
from ackclock.scenario.points import described
from ackclock.system import signals

#: A task is as many runs as take about so long, in seconds, and never more than `MAX_IN_TASK`.
TASK_S = 0.5
MAX_IN_TASK = 500


@dataclass(slots=True)
class Pool:
    """An executor that several sweeps may share, and whether a signal is pending that ends all of them."""

    executor: Executor
    interrupted: Callable[[], bool]


@contextmanager
def open_pool(jobs: int, engines: Sequence[str], target: Target | None = None) -> Iterator[Pool]:
    """Open `jobs` processes, or a cluster, for runs of these engines; signals are deferred to the end of the block."""
    with signals.defer_signals() as interrupted:
        with _opened(jobs, engines, target, interrupted) as executor:
            pool = Pool(executor, interrupted)
            del executor
            try:
                yield pool
            finally:
                del pool.executor  # whoever has the pool keeps no processes
        if interrupted():
            gc.collect()  # the processes' semaphores, which are named


def _opened(
    jobs: int, engines: Sequence[str], target: Target | None, interrupted: Callable[[], bool]
) -> AbstractContextManager[Executor]:
    return executors.local(jobs, interrupted) if target is None else cluster.opened(target, engines, interrupted)


def run_all(order: SweepSpec, runs: Sequence[Run], parts: Parts, progress: Progress, pool: Pool) -> None:
    """Make all runs, and give them to `parts`, which keeps them if one fails.

    `progress` is called with the share of the runs that is done. If a signal is pending some runs are not made. Raises
    `AckclockError` for a run that failed.
    """
    try:
        _drain(pool.executor, pickle.dumps(order), Tasks(runs), parts, progress, pool.interrupted)
    finally:
        parts.write()


def _drain(
    executor: Executor, order: bytes, tasks: Tasks, parts: Parts, progress: Progress, interrupted: Callable[[], bool]
) -> None:
    """Keep the executor busy until all is done. Progress is reported from the first result on, not during imports."""
    waiting: dict[Future[Done], Sequence[Run]] = {}
    while (waiting or tasks.left) and not interrupted():
        slots = executor.slots
        while tasks.left and len(waiting) < 2 * slots:
            task = tasks.next(slots)
            waiting[executor.submit(worker.run_task, order, task)] = task
        done, _ = wait(waiting, timeout=WAKE_S, return_when=FIRST_COMPLETED)
        ended = [(waiting.pop(future), future) for future in done]
        for task, found in [(task, future.result()) for task, future in ended if not future.exception()]:
            tasks.took(len(task), found.elapsed_s)
            parts.add(found.rows)
        if tasks.share:
            progress(tasks.share)
        for _, future in ended:
            future.result()


class Tasks:
    """Cuts runs into tasks that take about `TASK_S`, by the time that earlier ones took."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._next, self._done = 0, 0
        self._run_s: float | None = None

    @property
    def left(self) -> int:
        """Return the number of runs that are not yet dealt out."""
        return len(self._runs) - self._next

    @property
    def share(self) -> float:
        """Return the share of the runs that is done."""
        return self._done / len(self._runs)

    def next(self, slots: int) -> Sequence[Run]:
        """Return the next task: one run until its time is known; few at the end, for all `slots` to work."""
        wanted = 1.0 if self._run_s is None else TASK_S / max(self._run_s, 1e-9)
        count = max(1, math.floor(min(wanted, self.left / (2 * slots), MAX_IN_TASK)))
        self._next += count
        return self._runs[self._next - count : self._next]

    def took(self, runs: int, elapsed_s: float) -> None:
        """Record the time that a task of so many runs took."""
        self._done += runs
        last_s = elapsed_s / runs
        self._run_s = last_s if self._run_s is None else min(last_s, (self._run_s + last_s) / 2)


@checked(
    jobs=optional(arguments.JOBS),
    scheduler=optional(arguments.WORD),
    cluster=optional(arguments.WORD),
    restart=arguments.FLAG,
    progress=arguments.CALL,
    command=arguments.TEXT,
)
def sweep(  # noqa: PLR0913 (all but the first have defaults)
    loaded: Accepted,
    engine: str = "packet",
    *,
    out: Path | str | None = None,
    seeds: Iterable[int] | None = None,
    metrics: Iterable[str] | None = None,
    samples: bool = False,
    where: Mapping[str, Iterable[str]] | None = None,
    shard: str | None = None,
    design: str | None = None,
    perturb: bool = False,
    jobs: int | None = None,
    scheduler: str | None = None,
    cluster: str | None = None,
    restart: bool = False,
    progress: Progress = no_progress,
    command: str = "",
) -> Sweep:
    """Run every point of the scenario's `[sweep]` with every seed, and return the table of all runs.

    Runs of this sweep that the folder `out` already has are not repeated, so the same call resumes an interrupted one.
    The runs are made in separate processes: in a script, call it under `if __name__ == "__main__":`.

    Args:
        loaded: the scenario: whatever `run` takes. One without a sweep is a sweep of one point.
        engine: name of the engine.
        out: folder of the result; by default a temporary one, deleted with the returned object.
        seeds: the seeds to run, instead of the scenario's own.
        metrics: names of the metrics to compute; by default all.
        samples: keep samples and events too, not only the tables `flows` and `links`.
        where: run only the points that have one of these values at these keys, as written in the file.
        shard: one part of the points only: "3/20" is the third of twenty, for `ackclock merge-shards`.
        design: "fractional:4" runs the points of a two-level design of resolution IV only (3 to 5).
        perturb: make every point's perturbed run too, and say which points are phase-locked.
        jobs: processes; by default one for each core.
        scheduler: the address of a Dask scheduler, whose workers run it instead.
        cluster: workers to start for it: "local:8", or those of a batch system, "slurm:40".
        restart: start again from scratch in a folder that has a sweep.
        progress: called with the fraction completed, 0 to 1.
        command: the command recorded in the manifest.

    Raises:
        ScenarioError: the mistakes of all points. Of more than 3,000 points, a sample is checked before anything
            runs, each other one when it is its turn; what was done before is kept.
        UnsupportedError: the engine cannot model something at some point.
        InputError: an unknown engine or metric, no metric at all, invalid seeds, or a folder that holds
            something else.
        TypeError: an argument of another type.
        AckclockError: a run failed; what was done before is kept.
    """
    job = prepare(
        loaded,
        engine,
        out=out,
        seeds=seeds,
        metrics=metrics,
        samples=samples,
        where=where,
        shard=shard,
        design=design,
        perturb=perturb,
    )
    target = clusters.target(scheduler, cluster)
    job = replace(job, jobs=jobs, restart=restart, command=command, target=target)
    return job.with_warnings(job.perform(progress))


#: Number of points up to which warnings name who starves; of more only the metrics are read.
MAX_NAMED = 32

#: Number of points that have pilots for a forecast.
MAX_PILOTS = 16


@dataclass(frozen=True)
class Job:
    """A sweep that is known to be good: what is to be run, and where it goes (None: a temporary folder).

    With a `pool`, which others share, `jobs` and `target` have no effect, and `StoppedError` is raised if a signal is
    pending.
    """

    loaded: Loaded
    spec: SweepSpec
    runs: Runs
    out: Path | None
    jobs: int | None = None
    restart: bool = False
    command: str = ""
    target: Target | None = None
    perturbed: Job | None = None
    pool: Pool | None = None

    @property
    def title(self) -> str:
        """Return the title for a terminal."""
        return f"{self.out.name if self.out else self.spec.title}, {self.spec.engine} engine"

    @property
    def points(self) -> list[int]:
        """The points that are run, by their numbers among all."""
        return list(self.runs.points)

    def checked_plans(self) -> list[Plan]:
        """Return the plans of the points that are checked before anything runs."""
        return [point.plan for point in self.loaded.points(self.loaded.sample())]

    def with_warnings(self, done: Sweep) -> Sweep:
        """Record why the result may mislead, in sentences, and return it with them; the reports show them."""
        more = {WARNINGS: self._warnings(done)}
        extend_manifest(done.folder, more)
        return replace(done, manifest={**done.manifest, **more})

    def _warnings(self, done: Sweep) -> list[str]:
        """Return the warnings; of many points a sample is checked (`Loaded.sample`)."""
        sample = self.loaded.sample()
        rows = {
            int(point): group.select(self.spec.metrics).to_dicts()
            for (point,), group in done.table.filter(pl.col("point").is_in(sample)).group_by(
                "point", maintain_order=True
            )
        }
        are_few = len(rows) <= MAX_NAMED
        settings = (
            guards.Setting(
                described(point.values),
                point.plan,
                self.spec.engine,
                rows[point.number],
                done.of_point(point.number, point.plan) if are_few else None,
            )
            for point in self.loaded.points(list(rows))
        )
        return guards.warnings(settings, perturbed=self.perturbed is not None)

    def forecast(self) -> Forecast:
        """Estimate the sweep from pilots at some of its points."""
        points = self.points
        numbers = random.Random(0).sample(points, min(MAX_PILOTS, len(points)))
        pairs = ((self.loaded.point(number).plan, self.spec.engine) for number in numbers)
        runs = len(self.runs) * (1 if self.perturbed is None else 2)
        jobs = self.jobs if self.target is None else self.target.workers
        return pilot.of_sweep(pairs, runs, jobs, names=self.spec.metrics, tables=self.spec.tables)

    def perform(self, progress: Progress = no_progress) -> Sweep:
        """Run what is left. `progress` is called with the share of the runs that is done."""
        if self.out is not None:
            return self._checked(self.out, progress)
        own = folders.temporary_folder()
        return replace(self._checked(own.path / "sweep", progress), keep=own)

    def _checked(self, folder: Path, progress: Progress) -> Sweep:
        """Perform the sweep, with the comparison of each point with its perturbed run, if those are wanted."""
        if self.perturbed is None:
            return self._performed(folder, progress)
        done = self._performed(folder, lambda share: progress(share / 2))
        twin = replace(self.perturbed, jobs=self.jobs, restart=self.restart, command=self.command, target=self.target)
        other_folder = folder.with_name(f"{folder.name}-twin")
        other = twin._performed(other_folder, lambda share: progress((1 + share) / 2))
        noisy = {point["point"]: point["summary"] for point in other.points}
        effects = {
            str(point["point"]): phase_effects.compared(point["summary"], noisy[point["point"]])
            for point in done.points
        }
        extend_manifest(done.folder, {PHASE: effects})
        return replace(result.read(done.folder), keep=done.keep)

    def _performed(self, folder: Path, progress: Progress) -> Sweep:
        with Parts(folder, self.spec, command=self.command, restart=self.restart) as parts:
            left = self.runs.without(parts.done)
            if left:
                self._run(left, parts, progress)
            progress(1.0)
            return result.finish(parts, self.loaded)

    def _run(self, left: Runs, parts: Parts, progress: Progress) -> None:
        done = 1.0 - len(left) / len(self.runs)
        is_alone = engines.engine(self.spec.engine).exclusive(self.loaded.point(0).plan)
        if is_alone and self.target is not None:
            raise InputError(
                f"{self.target.option}: found a testbed, whose hosts have one network; expected it without"
            )
        jobs = 1 if is_alone else self.jobs or cores()

        def report(share: float) -> None:
            progress(done + share * (1.0 - done))

        if self.pool is None:
            with open_pool(jobs, [self.spec.engine], self.target) as pool:
                run_all(self.spec, left.mixed(), parts, report, pool)
            return
        run_all(self.spec, left.mixed(), parts, report, self.pool)
        if self.pool.interrupted():
            raise StoppedError


@checked(
    loaded=taken,
    engine=arguments.WORD,
    out=optional(arguments.PATH),
    seeds=optional(arguments.SEEDS),
    metrics=optional(several(arguments.WORD, "names of metrics")),
    samples=arguments.FLAG,
    where=optional(arguments.TEXTS_BY_KEY),
    shard=optional(arguments.WORD),
    design=optional(arguments.WORD),
    perturb=arguments.FLAG,
)
def prepare(  # noqa: PLR0913 (all but the first have defaults)
    loaded: Accepted,
    engine: str = "packet",
    *,
    out: Path | str | None = None,
    seeds: Iterable[int] | None = None,
    metrics: Iterable[str] | None = None,
    samples: bool = False,
    where: Mapping[str, Iterable[str]] | None = None,
    shard: str | None = None,
    design: str | None = None,
    perturb: bool = False,
    progress: Progress = no_progress,
) -> Job:
    """Check a sweep, up to `planning.MAX_CHECKED` points of it; run nothing.

    Arguments and errors are those of `sweep`; `progress` is called with the share of the check that is done.
    """
    chosen = {key: tuple(texts) for key, texts in (where or {}).items()}
    whole, own = builder.scenario_and_seeds("loaded", loaded)
    scenario, seeds = whole.only(chosen), own if seeds is None else seeds
    source = scenario.source
    order = SweepSpec(
        text=source.text,
        name=source.name,
        engine=engine,
        seeds=None if seeds is None else tuple(seeds),
        metrics=orders.chosen_metrics(metrics),
        samples=samples,
        where=chosen,
        kernel=scenario.kernel,
        ssh_config=scenario.ssh_config,
        shard=None if shard is None else designs.parse_shard(shard),
        design=None if design == designs.FULL else design,
        module=scenario.module,
        stacks=scenario.stacks,
    )
    place = None if out is None else Path(out)
    twin = None
    if perturb:
        noisy = orders.perturbed(order)
        twin = Job(scenario, noisy, orders.runs(scenario, noisy, lambda share: progress(share / 2)), None)
    return Job(scenario, order, orders.runs(scenario, order, progress), place, perturbed=twin)
