"""`ackclock compare`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ackclock.cli.options import (
    AsJson,
    CheckPhase,
    DryRun,
    Engines,
    Jobs,
    Kernel,
    Module,
    Repeats,
    Report,
    Seed,
    Set,
    SshConfig,
    command,
)


def compare(  # noqa: PLR0913 (each is an option of the command line)
    *,
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file (TOML).")],
    engine: Engines,
    kernel: Kernel = None,
    ssh_config: SshConfig = None,
    module: Module = None,
    values: Set = None,
    seed: Seed = None,
    repeats: Repeats = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the result (default: results/SCENARIO-compare).")
    ] = None,
    as_json: AsJson = False,
    dry_run: DryRun = False,
    check_phase: CheckPhase = False,
    report: Report = True,
    jobs: Jobs = None,
) -> None:
    """Run a scenario with several engines; print their metrics side by side, with differences and intervals.

    For an engine that cannot run the scenario "–" is printed, with the reasons below.

    Examples:
        ackclock compare scenarios/dumbbell.toml --engine packet,fluid

        ackclock compare scenarios/pendulum.toml --engine packet,theory --repeats 20 --json
    """
    from ackclock import engines
    from ackclock.cli import forecasts
    from ackclock.cli import run_jobs as work
    from ackclock.cli.terminal import forecast
    from ackclock.cli.terminal.comparison import print_comparison
    from ackclock.cli.terminal.progress import progress
    from ackclock.experiments import phase_effects
    from ackclock.experiments.compare import compare as comparing
    from ackclock.experiments.compare import folder as folders
    from ackclock.input.source import named

    base = work.Options(engine, kernel, ssh_config, seed, repeats, out, jobs, report, command=command())
    options = replace(base, module=module, values=tuple(values or ()))
    seeds = work.seeds(options)
    plan = work.loaded(scenario, options).plan()
    names = work.engine_names(options.engines)
    place = out or Path("results") / f"{Path(named(scenario)).stem}-compare"
    runs = plan if seeds is None else replace(plan, seeds=seeds)
    able = [name for name in names if not engines.refusals(engines.engine(name), plan)]
    twins = phase_effects.having(runs, able) if check_phase else []
    expected = forecasts.of_plans([(runs, name) for name in able], jobs, report=report)
    if dry_run:
        told = {"scenario": plan.name, "engines": able, "forecast": expected.as_dict()}
        forecast.show(expected, place, told if as_json else f"{plan.name}: {', '.join(able)}")
        return
    folders.check(place)
    if module and work.LINUX in able:
        work.check_module([runs], module)
    forecast.warn(expected, place)
    with progress(f"{place.name}: {', '.join(names)}") as tell, work.brought_in(plan, *able):
        found = comparing.compare(plan, names, seeds, jobs=jobs, progress=tell, command=options.command)
        beside = {name: phase_effects.checked(found.data[name], runs, name, jobs=jobs) for name in twins}
    found = replace(found, data={**found.data, **beside})
    folders.write(found, place, report=report, command=options.command)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), allow_nan=False))
    else:
        print_comparison(found)
    typer.echo(f"wrote {place}", err=as_json)
