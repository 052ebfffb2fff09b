"""`ackclock reproduce`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ackclock.cli.options import Cluster, DryRun, Jobs, Scheduler, command
from ackclock.completion import words as completing

if TYPE_CHECKING:
    from ackclock.cli.terminal.reproduction import Running
    from ackclock.experiments.cluster.target import Place
    from ackclock.experiments.cost.forecast import Forecast
    from ackclock.gallery import Entry
    from ackclock.gallery.ablations import Mechanism as Switched

Mechanism = Annotated[
    str,
    typer.Option(
        metavar="NAMES",
        help="Instead of the entries, run these of their mechanisms: cases in which one thing is switched off or on."
        " Names separated by commas, or all.",
    ),
]


def reproduce(  # noqa: PLR0913 (each is an option of the command line)
    *,
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID...]", help="Entries to run.", autocompletion=completing.of("entries")),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Run all entries.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="A preview at a reduced scale: not what the documentation quotes.")
    ] = False,
    engine: Annotated[
        str, typer.Option(metavar="NAMES", help="Run only these of the entries' engines, separated by commas.")
    ] = "",
    reading: Annotated[
        str, typer.Option(metavar="NAMES", help="Run only these of the entries' readings, separated by commas.")
    ] = "",
    mechanism: Mechanism = "",
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the entries' result folders.")] = Path(
        "results/reproduce"
    ),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a line of JSON for each entry and nothing else.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Run everything, also results that are still up to date.")
    ] = False,
    dry_run: DryRun = False,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    cluster: Cluster = None,
) -> None:
    """Reproduce published results: the paper's values compared with ours, and a verdict. Without an ID, list all.

    Each entry says agrees, differs, undetermined, not measured or contradicts by the rule in its own file; the exit
    status is 0 whatever it says. Results in the folder are kept as long as nothing they depend on has changed, so the
    same command resumes what was interrupted.

    Examples:
        ackclock reproduce

        ackclock reproduce B5.4 --quick

        ackclock reproduce B5.21 --engine ns2

        ackclock reproduce B2.7 --mechanism all

        ackclock reproduce --all --out results/gallery
    """
    from ackclock.cli import run_jobs
    from ackclock.cli.terminal import reproduction
    from ackclock.gallery import entries, find

    run_jobs.check_number("--jobs", jobs, 1, 10_000)
    there = run_jobs.place(scheduler, cluster, jobs)
    known = entries()
    if not ids and not every:
        reproduction.print_entries(known)
        return
    chosen = known if every else list({entry.id: entry for entry in (find(name, known) for name in ids or ())}.values())
    chosen = [_partly(entry, engine, reading) for entry in chosen]
    how = reproduction.Running(out, quick, jobs, as_json, command(), again)
    if mechanism:
        known_mechanisms = [each.name for entry in chosen for each in entry.mechanisms]
        _switch(reproduction.switched(chosen, _names(mechanism, known_mechanisms)), how, there, dry_run=dry_run)
    else:
        _run(chosen, how, there, dry_run=dry_run)


def _run(chosen: Sequence[Entry], how: Running, there: Place | None, *, dry_run: bool) -> None:
    """Runs entries, but for those that stand."""
    from ackclock.cli import forecasts
    from ackclock.cli.terminal import forecast, reproduction
    from ackclock.experiments.cluster import pool
    from ackclock.gallery import runner

    stand = how.standing(chosen)
    cases = {entry.id: runner.listed(entry, quick=how.quick) for entry in chosen if entry.id not in stand}
    expected = forecasts.of_entries(cases.values(), how.jobs)
    if dry_run:
        _show(cases, expected, how)
        return
    forecast.warn(expected, how.out)
    with pool.running_at(
        there if cases else None, sorted({case.engine for listed in cases.values() for case in listed})
    ):
        reproduction.run_all(chosen, how, stand)


def _switch(chosen: Mapping[Entry, Sequence[Switched]], how: Running, there: Place | None, *, dry_run: bool) -> None:
    """Runs mechanisms of entries, but for those that stand."""
    from ackclock.cli import forecasts
    from ackclock.cli.terminal import forecast, reproduction
    from ackclock.experiments.cluster import pool
    from ackclock.gallery import ablation_runner

    stand = how.switched(chosen)
    left = {entry: of for entry, of in chosen.items() if entry.id not in stand}
    plans = {entry.id: ablation_runner.listed(entry, of, quick=how.quick) for entry, of in left.items()}
    expected = forecasts.of_plans([pair for listed in plans.values() for pair in listed], how.jobs, report=False)
    if dry_run:
        _show(plans, expected, how)
        return
    forecast.warn(expected, how.out)
    with pool.running_at(
        there if plans else None, sorted({engine for listed in plans.values() for _, engine in listed})
    ):
        reproduction.switch_all(chosen, how, stand)


def _show(found: Mapping[str, Sequence[object]], expected: Forecast, how: Running) -> None:
    """What would be run of each entry, and what that would take."""
    from ackclock.cli.terminal import forecast

    told = {"entries": list(found), "forecast": expected.as_dict()}
    lines = "\n".join(f"{name}: {len(listed)} results" for name, listed in found.items())
    forecast.show(
        expected, how.out, told if how.as_json else lines or "all results are up to date (--again runs them anyway)"
    )


def _names(text: str, known: Iterable[str]) -> list[str]:
    """What a list with commas names; one that is the name of something known is no list."""
    from ackclock.input import cli_values

    return [text] if text in known else cli_values.items(text)


def _partly(entry: Entry, engine: str, reading: str) -> Entry:
    """The entry with the engines and the readings that are named, where some are."""
    from ackclock.cli import run_jobs

    some = entry.alone(run_jobs.engine_names(engine)) if engine else entry
    known = [each.name for each in entry.readings.every]
    return some.read_as(_names(reading, known)) if reading else some
