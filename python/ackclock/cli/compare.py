"""`ackclock compare`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ackclock.cli import completion, options
from ackclock.cli.command import Command
from ackclock.errors import InputError
from ackclock.system import signals

if TYPE_CHECKING:
    from ackclock.cli.run_jobs import Options


@click.command(cls=Command)
@options.scenario
@click.option(
    "--try",
    "choices",
    metavar="NAME[,NAME]",
    shell_complete=completion.list_of(completion.queues, completion.congestion),
    help="Congestion control algorithms (of the first flows), qdiscs, TCP stacks, or KEY=VALUE,VALUE, to compare.",
)
@options.experiment
@options.out("Folder of the result (default: results/SCENARIO-compare, with --try also -KEY-…).")
@options.restart
@options.as_json
@options.dry_run
@options.perturb
@options.report
@options.jobs
@options.collected
def compare(
    chosen: Options, *, scenario: Path, choices: str | None, restart: bool, as_json: bool, dry_run: bool
) -> None:
    """Compare choices, or engines, in one scenario: their metrics side by side, with differences and intervals.

    With --try, each choice runs with the same seeds, and the differences to the first are means over pairs of runs. For
    congestion control algorithms beside other groups of flows, the harm to each other follows (Ware et al., HotNets
    2019).

    Results that are there already are compared by `ackclock report A B`.

    With several engines, one that does not support the scenario has "–" in its column; the reasons follow the table.

    Examples:
        ackclock compare scenarios/dumbbell.toml --try cubic,bbr,vegas
        ackclock compare scenarios/dumbbell.toml --try pfifo,codel,fq_codel --repeats 10
        ackclock compare scenarios/dumbbell.toml --try limit=0.1bdp,1bdp
        ackclock compare scenarios/dumbbell.toml --engine packet,fluid
    """
    from ackclock.cli import run_jobs

    names = run_jobs.engine_names(chosen.engine)
    if choices is None:
        if restart:
            raise InputError("--restart: found no --try; expected it with --try, whose runs are kept")
        _compare_engines(chosen, scenario, names, as_json, dry_run)
    elif len(names) > 1:
        raise InputError(f"--engine: found {chosen.engine} with --try; expected one engine")
    else:
        _compare_choices(chosen, scenario, choices, restart, as_json, dry_run)


def _compare_choices(chosen: Options, scenario: Path, typed: str, restart: bool, as_json: bool, dry_run: bool) -> None:
    from ackclock.cli import run_jobs
    from ackclock.cli.report import write_report
    from ackclock.cli.terminal import output
    from ackclock.cli.terminal.comparison import print_choices
    from ackclock.experiments import choices
    from ackclock.input.source import named
    from ackclock.scenario.points import short_labels

    loaded = run_jobs.load_scenario(scenario, chosen)
    found = choices.choices(typed, loaded)
    seeds = run_jobs.seeds(chosen)
    name = choices.folder_name(Path(named(scenario)).stem, loaded, found, chosen.engine, seeds)
    folder = chosen.out or Path("results") / name
    job = choices.prepare(loaded, found, chosen.engine, out=folder, seeds=seeds, perturb=chosen.perturb)
    job = job.with_options(jobs=chosen.jobs, command=chosen.command, restart=restart)
    labels = short_labels(found.values)
    if dry_run:
        expected = job.forecast()
        planned = {"key": found.key, "choices": labels, "engine": chosen.engine, "forecast": expected.as_dict()}
        click.echo(json.dumps(planned) if as_json else f"{found.key}: {', '.join(labels)}\n{expected}")
        run_jobs.warn_shortage(expected, folder)
        return
    if chosen.module:
        run_jobs.check_module(((plan, chosen.engine) for plan in job.main.checked_plans()), chosen.module)
    with (
        signals.exit_message(f"interrupted; finished runs are kept in {folder}: the same command resumes"),
        run_jobs.module_loaded(job.main.loaded.point(0).plan, chosen.engine),
        output.progress(f"{folder.name}: {', '.join(labels)}") as report_progress,
    ):
        result = job.perform(report_progress)
    choices.write(result, folder)
    if as_json:
        click.echo(json.dumps(result.as_dict(), allow_nan=False))
    else:
        print_choices(result)
    click.echo(f"wrote {folder}", err=as_json)
    if chosen.report:
        click.echo(f"wrote {write_report([folder], None)}", err=as_json)


def _compare_engines(chosen: Options, scenario: Path, names: list[str], as_json: bool, dry_run: bool) -> None:
    from ackclock import engines
    from ackclock.cli import run_jobs
    from ackclock.cli.terminal.comparison import print_comparison
    from ackclock.cli.terminal.output import progress
    from ackclock.experiments import comparison, phase_effects, pilot
    from ackclock.input.source import named

    seeds = run_jobs.seeds(chosen)
    plan = run_jobs.load_scenario(scenario, chosen).plan()
    comparison.check_engines(names)
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
    if chosen.module:
        run_jobs.check_module([(runs, name) for name in supported], chosen.module)
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
