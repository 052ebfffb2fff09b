"""`ackclock run`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ackclock.cli.options import (
    AsJson,
    CheckPhase,
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

if TYPE_CHECKING:
    from ackclock.cli.run_jobs import Options
    from ackclock.plan import Plan


def run(  # noqa: PLR0913 (each is an option of the command line)
    *,
    scenarios: Annotated[list[Path], typer.Argument(metavar="SCENARIO...", help="Scenario files (TOML).")],
    engine: Engines = "packet",
    kernel: Kernel = None,
    ssh_config: SshConfig = None,
    module: Module = None,
    values: Set = None,
    seed: Seed = None,
    repeats: Repeats = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the result (default: results/SCENARIO-ENGINE)."),
    ] = None,
    as_json: AsJson = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan (JSON, SI units) and its approximate cost; run nothing.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="A preview: one seed, a tenth of the duration and of the warm-up.")
    ] = False,
    check_phase: CheckPhase = False,
    report: Report = True,
    jobs: Jobs = None,
) -> None:
    """Run scenarios, print how well the link was shared and at what delay, and write the result and a report.

    Examples:
        ackclock run scenarios/dumbbell.toml

        ackclock run scenarios/dumbbell.toml --repeats 20 --out results/twenty

        ackclock run scenarios/dumbbell.toml --seed 7 --json --no-report

        ackclock run scenarios/dumbbell.toml --set network.rate=1Gbit --set flows[0].count=50

        ackclock run scenarios/pendulum.toml --engine packet,theory

        ackclock run scenarios/dumbbell.toml --engine linux --kernel live

        ackclock run mine.toml --engine linux --module mine.c

    With several scenarios or engines, --out is the folder of the results' folders, and --json prints a line for each.
    """
    from ackclock.cli import forecasts
    from ackclock.cli import run_jobs as work
    from ackclock.cli.terminal import forecast

    base = work.Options(engine, kernel, ssh_config, seed, repeats, out, jobs, report, quick, command())
    options = replace(base, module=module, check_phase=check_phase, values=tuple(values or ()))
    plans = work.plans(scenarios, options)
    if dry_run:
        names = work.able(plans, options)
        _tell(plans, names, options, as_json)
        work.look(plans, names, lambda line: typer.echo(line, err=True))
        return
    made = work.prepare(scenarios, plans, options)
    forecast.warn(forecasts.of_plans([(job.plan, job.engine) for job in made], jobs, report=report), made[0].folder)
    for line in dict.fromkeys(line for job in made for line in job.doubts()):
        typer.echo(f"warning: {line}", err=True)
    for job in made:
        _run_one(job, as_json)


def _tell(plans: Sequence[Plan], names: Sequence[str], options: Options, as_json: bool) -> None:
    """The plans on standard output, what they take on standard error; as JSON, a line for each result with both."""
    from ackclock.cli import forecasts
    from ackclock.cli.terminal import forecast

    pairs = [(plan, name) for plan in plans for name in names]
    if as_json:
        for plan, name in pairs:
            found = forecasts.of_plans([(plan, name)], options.jobs, report=options.report)
            typer.echo(json.dumps({"engine": name, "forecast": found.as_dict(), "plan": plan.to_dict()}))
        return
    for plan in plans:
        typer.echo(plan.to_json())
    found = forecasts.of_plans(pairs, options.jobs, report=options.report)
    typer.echo(str(found), err=True)
    forecast.lacking(found, options.out or Path("results"))


def _run_one(job: Any, as_json: bool) -> None:
    from ackclock.cli.terminal import result
    from ackclock.cli.terminal.progress import progress

    with progress(job.title) as tell:
        data = job.run(tell)
    found = data.metrics()
    if as_json:
        typer.echo(json.dumps(found, allow_nan=False))
    else:
        result.print_result(data, found)
    for path in job.written():
        typer.echo(f"wrote {path}", err=as_json)
