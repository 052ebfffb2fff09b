"""`ackclock sweep`: a sweep for each engine, each into a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from ackclock.cli.find import STATUSES, Goals, Needs
from ackclock.cli.options import (
    AsJson,
    CheckPhase,
    Cluster,
    DryRun,
    Engines,
    Jobs,
    Kernel,
    Module,
    Repeats,
    Report,
    Scheduler,
    Seed,
    Set,
    SshConfig,
    Where,
    command,
    having,
)
from ackclock.completion import words as completing
from ackclock.errors import InputError
from ackclock.system import signals

if TYPE_CHECKING:
    from ackclock.cli.run_jobs import Options
    from ackclock.experiments.search.constraints import Need
    from ackclock.experiments.search.grid import Grid
    from ackclock.experiments.search.objectives import Goal
    from ackclock.experiments.sweep.result import Sweep
    from ackclock.experiments.sweep.run import Job

#: What is required of points, and what is best.
Asked: TypeAlias = "tuple[tuple[Need, ...], tuple[Goal, ...]]"

#: Which points are run: a shard, a design.
Part: TypeAlias = tuple[str | None, str | None]


def sweep(  # noqa: PLR0913 (each is an option of the command line)
    *,
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file with a table \\[sweep].")],
    engine: Engines = "packet",
    kernel: Kernel = None,
    ssh_config: SshConfig = None,
    module: Module = None,
    values: Set = None,
    seed: Seed = None,
    repeats: Repeats = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the result (default: results/SCENARIO-ENGINE-sweep).")
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,NAME]",
            help="Compute these metrics only (default: all).",
            autocompletion=completing.of("metrics,"),
        ),
    ] = None,
    where: Where = None,
    shard: Annotated[
        str | None, typer.Option(metavar="K/N", help="Only the K-th of N parts of the points, for `ackclock merge`.")
    ] = None,
    design: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="full, or fractional:4: few points of keys with two values (resolution IV)."),
    ] = None,
    require: Needs = None,
    best: Goals = None,
    samples: Annotated[bool, typer.Option("--samples", help="Keep samples and events of every run.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over; discard the sweep in the folder.")] = False,
    as_json: AsJson = False,
    dry_run: DryRun = False,
    check_phase: CheckPhase = False,
    report: Report = True,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    cluster: Cluster = None,
) -> None:
    """Run every point of a scenario's sweep with every seed, on all cores, and collect them in one table.

    After an interruption, even a kill, the same command resumes: finished runs are not repeated.

    With --require and --best each point is judged as `ackclock find` does it; the exit status is 4 if none holds, 5 if
    that is undecided.

    Examples:
        ackclock sweep scenarios/buffer-sizing.toml

        ackclock sweep mine.toml --engine fluid --repeats 20 --out results/mine --json

        ackclock sweep mine.toml --engine packet --where network.queue.limit=0.1bdp,1bdp

        ackclock sweep mine.toml --shard 3/20

        ackclock sweep mine.toml --require 'utilisation >= 99%' --best min:queue_delay_mean
    """
    from ackclock.cli import run_jobs as work

    base = work.Options(engine, kernel, ssh_config, seed, repeats, out, jobs, report, command=command())
    options = replace(base, module=module, check_phase=check_phase, values=tuple(values or ()))
    asked = _asked(require or (), best or ())
    there = work.place(scheduler, cluster, jobs)
    if shard is not None and any(asked):
        raise InputError("--shard: found --require or --best beside it; expected them when all shards are merged")
    made = list(_prepared(scenario, options, _with(metrics, asked), samples, where or (), (shard, design)))
    if dry_run:
        for job in made:
            _tell(job, as_json)
        engines = [job.order.engine for job in made]
        work.look([made[0].loaded.point(0).plan], engines, lambda line: typer.echo(line, err=True))
        return
    if module:
        work.check_module([plan for job in made if job.order.engine == work.LINUX for plan in job.looked_at()], module)
    for job in made:
        _perform(replace(job, fresh=fresh, place=there), asked, as_json=as_json, report=report and shard is None)


def _asked(require: Sequence[str], best: Sequence[str]) -> Asked:
    """What each point must do, and which is the best of those."""
    if not require and not best:
        return (), ()
    from ackclock.experiments.search import constraints, objectives

    return tuple(map(constraints.required, require)), tuple(map(objectives.goal, best))


def _with(metrics: str | None, asked: Asked) -> str | None:
    """The metrics to compute, those that are asked about among them."""
    if metrics is None:
        return None
    from ackclock.input import cli_values

    return ",".join(dict.fromkeys([*cli_values.items(metrics), *_names(asked)]))


def _names(asked: Asked) -> list[str]:
    """The metrics that are asked about, each once."""
    needs, goals = asked
    return list(dict.fromkeys([need.metric for need in needs] + [goal.metric for goal in goals]))


def _prepared(
    scenario: Path, options: Options, metrics: str | None, samples: bool, where: Sequence[str], part: Part
) -> Iterator[Job]:
    """A sweep for each engine. Everything that can be refused is refused before anything runs."""
    from ackclock.cli import run_jobs as work
    from ackclock.cli.terminal.progress import late
    from ackclock.experiments.sweep import run as sweeps
    from ackclock.input import cli_values

    seeds = work.seeds(options)
    shard, design = part
    chosen = None if metrics is None else cli_values.items(metrics)
    points = having(where)
    loaded = work.loaded(scenario, options)
    names = work.engine_names(options.engines)
    for name in names:
        folder = work.folder(scenario, name, options.out, several=len(names) > 1, what="-sweep")
        if shard and not options.out:
            folder = folder.with_name(f"{folder.name}-{shard.replace('/', '-of-')}")
        with late(f"Checking {loaded.count:,} points") as tell:
            job = sweeps.prepare(
                loaded,
                name,
                out=folder,
                seeds=seeds,
                metrics=chosen,
                samples=samples,
                where=points,
                shard=shard,
                design=design,
                check_phase=options.check_phase,
                progress=tell,
            )
        yield replace(job, jobs=options.jobs, command=options.command)


def _tell(job: Job, as_json: bool) -> None:
    """How many points and runs, what they take, and the first points."""
    from ackclock.cli import forecasts
    from ackclock.cli.terminal import forecast
    from ackclock.scenario.points import described

    found, place = forecasts.of_sweep(job), job.out or Path("results")
    count = len(job.points)
    first = [job.loaded.point(number).values for number in job.points[:FIRST]]
    if as_json:
        told = {"scenario": job.order.title, "engine": job.order.engine, "points": count, "first_points": first}
        forecast.show(found, place, {**told, "forecast": found.as_dict()})
        return
    part = f", shard {job.order.shard}" if job.order.shard else ""
    lines = [f"{job.title}: {count:,} {'point' if count == 1 else 'points'}{part}"]
    lines += [f"  {described(values)}" for values in first if values] + ["  …"] * (count > FIRST)
    forecast.show(found, place, "\n".join(lines))


#: So many points are shown of a sweep that is not run.
FIRST = 5


def _perform(job: Job, asked: Asked, *, as_json: bool, report: bool) -> None:
    from ackclock.cli import forecasts
    from ackclock.cli import run_jobs as work
    from ackclock.cli.report import write_report
    from ackclock.cli.terminal import forecast
    from ackclock.cli.terminal.progress import progress
    from ackclock.cli.terminal.sweep import print_sweep
    from ackclock.dataset.manifests import POINTS

    forecast.warn(forecasts.of_sweep(job), job.out or Path("results"))
    kept = f"interrupted; what is done is kept in {job.out}: the same command resumes"
    count = len(job.runs) * (1 if job.twin is None else 2)
    first = job.loaded.point(job.points[0]).plan
    with (
        signals.exit_message(kept),
        work.brought_in(first, job.order.engine),
        progress(f"{job.title}: {count:,} runs") as tell,
    ):
        done = job.perform(tell)
    grid = _judged(job, done, asked) if any(asked) else None
    if as_json:
        typer.echo(json.dumps({**done.as_dict(), **(grid.as_dict() if grid else {})}, allow_nan=False))
    else:
        print_sweep(done, grid, _names(asked))
    typer.echo(f"wrote {done.folder / POINTS}", err=as_json)
    if report and done.axes:
        typer.echo(f"wrote {write_report([done.folder], None)}", err=as_json)
    if grid and grid.verdict != "holds":
        raise typer.Exit(STATUSES[grid.verdict])


def _judged(job: Job, done: Sweep, asked: Asked) -> Grid:
    """A verdict on each point."""
    from ackclock import engines
    from ackclock.experiments.search.grid import judge

    groups = done.table.group_by("point", maintain_order=True)
    runs = [group.select(_names(asked)).to_dicts() for _, group in groups]
    exact = not engines.engine(done.engine).draws(job.loaded.point(0).plan)
    return judge(*asked, runs, exact=exact)
