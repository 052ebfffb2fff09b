"""`ackclock run`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ackclock.cli import options
from ackclock.cli.command import FILE, Command

if TYPE_CHECKING:
    from ackclock.cli.run_jobs import Job, Options
    from ackclock.plan import Plan


@click.command(cls=Command)
@options.paths("scenarios", "SCENARIO...", FILE, "Scenario files (TOML); - is standard input.")
@options.experiment
@options.out("Folder of the result (default: results/SCENARIO-ENGINE, with --set also -KEY-…).")
@options.as_json
@options.dry_run_flag("Print the plan (JSON, SI units) and its approximate cost; write nothing.")
@click.option("--quick", is_flag=True, help="Preview: one seed, a tenth of the duration and of the warm-up.")
@options.perturb
@options.report
@options.jobs
@options.threads
@options.collected
def run(chosen: Options, *, scenarios: Sequence[Path], as_json: bool, dry_run: bool) -> None:
    """Run scenarios; print utilisation, fairness and queueing delay; write the result and a report.

    With several scenarios or engines, --out is the parent of the results' folders, and --json prints a line for each.

    Examples:
        ackclock run scenarios/dumbbell.toml
        ackclock run scenarios/dumbbell.toml --repeats 20 --out results/twenty
        ackclock run scenarios/dumbbell.toml --seed 7 --json --no-report
        ackclock run scenarios/dumbbell.toml --set network.rate=1Gbit
        ackclock run scenarios/pendulum.toml --engine packet,theory
        ackclock run scenarios/dumbbell.toml --engine linux --kernel live
        ackclock run mine.toml --engine linux --module mine.c
    """
    from ackclock.cli import run_jobs

    plans = run_jobs.plans(scenarios, chosen)
    if dry_run:
        names = run_jobs.supported_engines(plans, chosen)
        _print_plans(plans, names, chosen, as_json)
        run_jobs.preflight(plans, names)
        run_jobs.report_threads(plans, names, chosen)
        return
    made = run_jobs.prepare(scenarios, plans, chosen)
    run_jobs.report_threads(plans, run_jobs.engine_names(chosen.engine), chosen)
    for job in made:
        _run_job(job, as_json)


def _print_plans(plans: Sequence[Plan], names: Sequence[str], chosen: Options, as_json: bool) -> None:
    """Print the plans, and their cost to standard error; as JSON, a line for each result with both."""
    from ackclock.cli import run_jobs
    from ackclock.experiments import guards, pilot

    pairs = [(plan, name) for plan in plans for name in names]
    if as_json:
        for plan, name in pairs:
            expected = pilot.of_runs([(plan, name)], chosen.jobs, report=chosen.report)
            click.echo(json.dumps({"engine": name, "forecast": expected.as_dict(), "plan": plan.to_dict()}))
        return
    for plan in plans:
        click.echo(plan.to_json())
    expected = pilot.of_runs(pairs, chosen.jobs, report=chosen.report)
    click.echo(str(expected), err=True)
    settings = [guards.Setting(plan.name if len(plans) > 1 else "", plan, name) for plan, name in pairs]
    for sentence in guards.warnings(settings, perturbed=chosen.perturb):
        click.echo(f"warning: {sentence}", err=True)
    run_jobs.warn_shortage(expected, chosen.out)


def _run_job(job: Job, as_json: bool) -> None:
    from ackclock.cli.terminal import output, result

    with output.progress(job.title) as report:
        data = job.run(report)
    metrics = data.metrics()
    rows = [run["metrics"] for run in metrics["runs"]]
    warnings = job.warnings(rows, data)
    if as_json:
        click.echo(json.dumps({**metrics, "warnings": warnings}, allow_nan=False))
    else:
        result.print_result(data, metrics)
        output.print_warnings(warnings)
    for path in job.outputs():
        click.echo(f"wrote {path}", err=as_json)
