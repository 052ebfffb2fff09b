"""`ackclock sweep`: a sweep for each engine, each into a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ackclock.cli import options
from ackclock.cli.command import FILE, Argument, Command
from ackclock.errors import InputError
from ackclock.input import cli_values
from ackclock.system import signals

if TYPE_CHECKING:
    from ackclock.cli.run_jobs import Options
    from ackclock.experiments.search.criteria import Constraint, Objective
    from ackclock.experiments.search.pareto import Grid
    from ackclock.experiments.sweep.result import Sweep
    from ackclock.experiments.sweep.run import Job

#: Points that `--dry-run` prints.
DRY_RUN_POINTS = 5

#: The exit status of each verdict on requirements.
STATUSES = {"holds": 0, "none": 4, "undecided": 5}


class Criteria(NamedTuple):
    """Requirements on each point, and the objectives that rank those that meet them."""

    requirements: tuple[Constraint, ...] = ()
    objectives: tuple[Objective, ...] = ()

    @property
    def metrics(self) -> list[str]:
        """The metrics of both, without duplicates."""
        return list(dict.fromkeys([*(each.metric for each in self.requirements), *(o.metric for o in self.objectives)]))


class Selection(NamedTuple):
    """The part of a sweep that is run, as it was typed."""

    metrics: str | None
    samples: bool
    where: Sequence[str]
    shard: str | None
    design: str | None


@click.command(cls=Command)
@click.argument(
    "scenario",
    cls=Argument,
    metavar="SCENARIO",
    type=FILE,
    help="Scenario file with a table [sweep]; - is standard input.",
)
@options.experiment
@options.out("Folder of the result (default: results/SCENARIO-ENGINE-sweep, with --set also -KEY-…).")
@options.metrics("Compute only these metrics (default: all).")
@options.where
@click.option("--shard", metavar="K/N", help="Run only the K-th of N parts, to be merged by `ackclock merge-shards`.")
@click.option(
    "--design",
    metavar="NAME",
    help="full, or fractional:4: a fraction of the points of two-valued keys (resolution IV).",
)
@options.require
@options.best
@click.option("--samples", is_flag=True, help="Keep samples and events of every run.")
@options.restart
@options.as_json
@options.dry_run
@options.perturb
@options.report
@options.parallel
@options.collected
def sweep(  # noqa: PLR0913 (each is an option of the command line)
    chosen: Options,
    *,
    scenario: Path,
    metrics: str | None,
    where: Sequence[str],
    shard: str | None,
    design: str | None,
    require: Sequence[str],
    best: Sequence[str],
    samples: bool,
    restart: bool,
    as_json: bool,
    dry_run: bool,
) -> None:
    """Run every point of a parameter sweep with every seed, on all cores, and tabulate the metrics.

    After an interruption, even by kill -9, the same command resumes: finished runs are not repeated.

    With --require and --best each point gets a verdict as in `ackclock find`; the exit status is 4 if no point meets
    the requirements, 5 if that is undecided.

    Examples:
        ackclock sweep scenarios/buffer-sizing.toml
        ackclock sweep mine.toml --engine fluid --repeats 20 --out results/mine
        ackclock sweep mine.toml --where network.queue.limit=0.1bdp,1bdp
        ackclock sweep mine.toml --shard 3/20
        ackclock sweep mine.toml --require 'utilisation >= 99%'
    """
    from ackclock.cli import run_jobs

    criteria = _criteria(require, best)
    target = chosen.target
    if shard is not None and any(criteria):
        raise InputError("--shard: found --require or --best as well; expected them after merging, with all shards")
    made = list(_prepared(scenario, chosen, criteria, Selection(metrics, samples, where, shard, design)))
    if dry_run:
        for job in made:
            _print_plan(job, as_json)
        run_jobs.preflight([made[0].loaded.point(0).plan], [job.spec.engine for job in made])
        return
    if chosen.module:
        planned = ((plan, job.spec.engine) for job in made for plan in job.checked_plans())
        run_jobs.check_module(planned, chosen.module)
    for job in made:
        _perform(
            replace(job, restart=restart, target=target),
            criteria,
            as_json=as_json,
            report=chosen.report and shard is None,
        )


def _criteria(require: Sequence[str], best: Sequence[str]) -> Criteria:
    if not require and not best:
        return Criteria()
    from ackclock.experiments.search import criteria

    return Criteria(tuple(map(criteria.parse_constraint, require)), tuple(map(criteria.parse_objective, best)))


def _prepared(scenario: Path, chosen: Options, criteria: Criteria, selection: Selection) -> Iterator[Job]:
    """Yield a sweep for each engine. All errors are raised before anything runs."""
    from ackclock.cli import run_jobs
    from ackclock.cli.terminal.output import delayed_progress
    from ackclock.experiments.sweep import run as sweeps

    seeds = run_jobs.seeds(chosen)
    metrics = None
    if selection.metrics is not None:
        metrics = list(dict.fromkeys([*cli_values.items(selection.metrics), *criteria.metrics]))
    points = options.selected_values(selection.where)
    loaded = run_jobs.load_scenario(scenario, chosen)
    names = run_jobs.engine_names(chosen.engine)
    for name in names:
        suffix = f"-sweep{run_jobs.settings_suffix(chosen.settings)}"
        folder = run_jobs.result_folder(scenario, name, chosen.out, several=len(names) > 1, suffix=suffix)
        if selection.shard and not chosen.out:
            folder = folder.with_name(f"{folder.name}-{selection.shard.replace('/', '-of-')}")
        with delayed_progress(f"Checking {loaded.count:,} points") as report_progress:
            job = sweeps.prepare(
                loaded,
                name,
                out=folder,
                seeds=seeds,
                metrics=metrics,
                samples=selection.samples,
                where=points,
                shard=selection.shard,
                design=selection.design,
                perturb=chosen.perturb,
                progress=report_progress,
            )
        yield replace(job, jobs=chosen.jobs, command=chosen.command)


def _print_plan(job: Job, as_json: bool) -> None:
    """Print the number of points, the first of them, and the cost."""
    from ackclock.cli import run_jobs
    from ackclock.scenario.points import described

    expected = job.forecast()
    count = len(job.points)
    first = [job.loaded.point(number).values for number in job.points[:DRY_RUN_POINTS]]
    if as_json:
        plan = {"scenario": job.spec.title, "engine": job.spec.engine, "points": count, "first_points": first}
        click.echo(json.dumps({**plan, "forecast": expected.as_dict()}, default=str))
        run_jobs.warn_shortage(expected, job.out)
        return
    part = f", shard {job.spec.shard}" if job.spec.shard else ""
    lines = [f"{job.title}: {count:,} {'point' if count == 1 else 'points'}{part}"]
    lines += [f"  {described(values)}" for values in first if values] + ["  …"] * (count > DRY_RUN_POINTS)
    click.echo("\n".join([*lines, str(expected)]))
    run_jobs.warn_shortage(expected, job.out)


def _perform(job: Job, criteria: Criteria, *, as_json: bool, report: bool) -> None:
    from ackclock.cli import run_jobs
    from ackclock.cli.report import write_report
    from ackclock.cli.terminal.output import print_warnings, progress
    from ackclock.cli.terminal.settings import print_sweep
    from ackclock.dataset.manifests import POINTS

    count = len(job.runs) * (1 if job.perturbed is None else 2)
    first = job.loaded.point(job.points[0]).plan
    with (
        signals.exit_message(f"interrupted; finished runs are kept in {job.out}: the same command resumes"),
        run_jobs.module_loaded(first, job.spec.engine),
        progress(f"{job.title}: {count:,} runs") as report_progress,
    ):
        done = job.with_warnings(job.perform(report_progress))
    grid = _judge(job, done, criteria) if any(criteria) else None
    if as_json:
        found = {**done.as_dict(), **(grid.as_dict() if grid else {}), "warnings": done.warnings}
        click.echo(json.dumps(found, allow_nan=False))
    else:
        print_sweep(done, grid, criteria.metrics)
        print_warnings(done.warnings)
    click.echo(f"wrote {done.folder / POINTS}", err=as_json)
    if report and done.axes:
        click.echo(f"wrote {write_report([done.folder], None)}", err=as_json)
    if grid and grid.verdict != "holds":
        raise click.exceptions.Exit(STATUSES[grid.verdict])


def _judge(job: Job, done: Sweep, criteria: Criteria) -> Grid:
    """Return a verdict on each point."""
    from ackclock import engines
    from ackclock.experiments.search.pareto import judge

    groups = done.table.group_by("point", maintain_order=True)
    runs = [group.select(criteria.metrics).to_dicts() for _, group in groups]
    is_exact = not engines.engine(done.engine).is_stochastic(job.loaded.point(0).plan)
    return judge(*criteria, runs, exact=is_exact)
