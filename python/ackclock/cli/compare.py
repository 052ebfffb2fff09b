"""`ackclock compare`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ackclock.cli import options
from ackclock.cli.command import Command

if TYPE_CHECKING:
    from ackclock.cli.run_jobs import Options


@click.command(cls=Command)
@options.scenario
@options.experiment(engine=None)
@options.out("Folder of the result (default: results/SCENARIO-compare).")
@options.as_json
@options.dry_run
@options.perturb
@options.report
@options.jobs
@options.collected
def compare(chosen: Options, *, scenario: Path, as_json: bool, dry_run: bool) -> None:
    """Run a scenario with several engines; print their metrics side by side with differences and intervals.

    An engine that does not support the scenario has "–" in its column; the reasons follow the table.

    Examples:
        ackclock compare scenarios/dumbbell.toml --engine packet,fluid
        ackclock compare scenarios/pendulum.toml --engine packet,theory --repeats 20
    """
    from ackclock import engines
    from ackclock.cli import run_jobs
    from ackclock.cli.terminal.comparison import print_comparison
    from ackclock.cli.terminal.output import progress
    from ackclock.experiments import comparison, phase_effects, pilot
    from ackclock.input.source import named

    seeds = run_jobs.seeds(chosen)
    plan = run_jobs.load_scenario(scenario, chosen).plan()
    names = run_jobs.engine_names(chosen.engine)
    folder = chosen.out or Path("results") / f"{Path(named(scenario)).stem}-compare"
    runs = plan if seeds is None else replace(plan, seeds=seeds)
    supported = [name for name in names if not engines.unsupported(engines.engine(name), plan)]
    perturbed = phase_effects.having(runs, supported) if chosen.perturb else []
    if dry_run:
        expected = pilot.of_runs([(runs, name) for name in supported], chosen.jobs, report=chosen.report)
        planned = {"scenario": plan.name, "engines": supported, "forecast": expected.as_dict()}
        click.echo(json.dumps(planned) if as_json else f"{plan.name}: {', '.join(supported)}\n{expected}")
        run_jobs.warn_shortage(expected, folder)
        return
    comparison.check_folder(folder)
    if chosen.module and run_jobs.LINUX in supported:
        run_jobs.check_module([runs], chosen.module)
    with (
        progress(f"{folder.name}: {', '.join(names)}") as report_progress,
        run_jobs.module_loaded(plan, *supported),
    ):
        result = comparison.compare(
            plan, names, seeds, jobs=chosen.jobs, progress=report_progress, command=chosen.command
        )
        for name in perturbed:
            data = phase_effects.checked(result.data[name], runs, name, jobs=chosen.jobs)
            result = replace(result, data={**result.data, name: data})
    comparison.write(result, folder, report=chosen.report, command=chosen.command)
    if as_json:
        click.echo(json.dumps(result.as_dict(), allow_nan=False))
    else:
        print_comparison(result)
    click.echo(f"wrote {folder}", err=as_json)
