"""`ackclock compare`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from ackclock.cli import options
from ackclock.cli.command import Command


@click.command(cls=Command)
@options.scenario
@options.engines(default=None)
@options.kernel
@options.ssh_config
@options.module
@options.settings
@options.seed
@options.repeats
@options.out("Folder of the result (default: results/SCENARIO-compare).")
@options.as_json
@options.dry_run
@options.perturb
@options.report
@options.jobs
def compare(  # noqa: PLR0913 (each is an option of the command line)
    *,
    scenario: Path,
    engine: str,
    kernel: str | None,
    ssh_config: Path | None,
    module: Path | None,
    settings: Sequence[str],
    seed: int | None,
    repeats: int | None,
    out: Path | None,
    as_json: bool,
    dry_run: bool,
    perturb: bool,
    report: bool,
    jobs: int | None,
) -> None:
    """Run a scenario with several engines; print their metrics side by side with differences and intervals.

    An engine that does not support the scenario has "–" in its column; the reasons follow the table.

    Examples:
        ackclock compare scenarios/dumbbell.toml --engine packet,fluid
        ackclock compare scenarios/pendulum.toml --engine packet,theory --repeats 20
    """
    from ackclock import engines
    from ackclock.cli import forecast, run_jobs
    from ackclock.cli.terminal.comparison import print_comparison
    from ackclock.cli.terminal.progress import progress
    from ackclock.experiments import phase_effects
    from ackclock.experiments.compare import compare as comparing
    from ackclock.experiments.compare import folder as folders
    from ackclock.input.source import named

    chosen = run_jobs.Options(
        engines=engine,
        kernel=kernel,
        ssh_config=ssh_config,
        seed=seed,
        repeats=repeats,
        jobs=jobs,
        command=options.command_line(),
        module=module,
        settings=tuple(settings),
    )
    seeds = run_jobs.seeds(chosen)
    plan = run_jobs.load_scenario(scenario, chosen).plan()
    names = run_jobs.engine_names(engine)
    folder = out or Path("results") / f"{Path(named(scenario)).stem}-compare"
    runs = plan if seeds is None else replace(plan, seeds=seeds)
    supported = [name for name in names if not engines.unsupported(engines.engine(name), plan)]
    perturbed = phase_effects.having(runs, supported) if perturb else []
    expected = forecast.of_plans([(runs, name) for name in supported], jobs, report=report)
    if dry_run:
        planned = {"scenario": plan.name, "engines": supported, "forecast": expected.as_dict()}
        forecast.show(expected, folder, planned if as_json else f"{plan.name}: {', '.join(supported)}")
        return
    folders.check(folder)
    if module and run_jobs.LINUX in supported:
        run_jobs.check_module([runs], module)
    forecast.announce(expected, folder)
    with (
        progress(f"{folder.name}: {', '.join(names)}") as report_progress,
        run_jobs.module_loaded(plan, *supported),
    ):
        result = comparing.compare(plan, names, seeds, jobs=jobs, progress=report_progress, command=chosen.command)
        checked = {name: phase_effects.checked(result.data[name], runs, name, jobs=jobs) for name in perturbed}
    result = replace(result, data={**result.data, **checked})
    folders.write(result, folder, report=report, command=chosen.command)
    if as_json:
        click.echo(json.dumps(result.as_dict(), allow_nan=False))
    else:
        print_comparison(result)
    click.echo(f"wrote {folder}", err=as_json)
