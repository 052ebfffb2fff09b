"""`ackclock reproduce`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ackclock.cli import completion, options
from ackclock.cli.command import FOLDER, Argument, Command
from ackclock.input import cli_values

if TYPE_CHECKING:
    from ackclock.cli.terminal.reproduction import Settings
    from ackclock.experiments.cluster import Target
    from ackclock.gallery import Entry
    from ackclock.gallery.cases import Ablation


@click.command(cls=Command)
@click.argument(
    "ids",
    cls=Argument,
    metavar="[ID...]",
    nargs=-1,
    shell_complete=completion.one_of(completion.entries),
    help="Papers or entries of the gallery.",
)
@click.option("--all", "every", is_flag=True, help="Run all entries.")
@click.option(
    "--run", "run_entries", is_flag=True, help="Run the entries of the papers instead of printing their claims."
)
@click.option(
    "--quick", is_flag=True, help="Preview at a reduced scale, whose values the documentation does not quote."
)
@click.option("--engine", metavar="NAMES", help="Run only these of the entries' engines, separated by commas.")
@click.option(
    "--interpretation",
    metavar="NAMES",
    help="Run only these interpretations of ambiguous papers, separated by commas.",
)
@click.option(
    "--ablation",
    metavar="NAMES",
    help="Run these ablations instead of the entries, separated by commas, or all: each toggles one mechanism.",
)
@click.option(
    "--out",
    metavar="DIR",
    type=FOLDER,
    default=Path("results/reproduce"),
    help="Folder of the entries' result folders.",
)
@options.json_flag("Print JSON only, one line for each entry.")
@click.option("--force", is_flag=True, help="Run everything, including results that are up to date.")
@options.dry_run_flag("Print the number of results of each entry; run nothing.")
@options.parallel
def reproduce(  # noqa: PLR0913 (each is an option of the command line)
    *,
    ids: Sequence[str],
    every: bool,
    run_entries: bool,
    quick: bool,
    engine: str | None,
    interpretation: str | None,
    ablation: str | None,
    out: Path,
    as_json: bool,
    force: bool,
    dry_run: bool,
    jobs: int | None,
    scheduler: str | None,
    cluster: str | None,
) -> None:
    """Reproduce published results. Of a paper, print its claims with their states; without an ID, list the papers.

    A claim is a sentence of a paper as an inequality over measured values: confirmed, confirmed under a condition,
    failing, inconsistent, undetermined or not testable, by the recorded results of the paper's entries. An entry is
    run: the paper's values, ours, and whether they agree by the entry's own rule. The exit status is 0 for all of
    them. Results in the folder are kept while they are up to date, so the same command resumes after an interruption.

    Examples:
        ackclock reproduce
        ackclock reproduce belhareth2014
        ackclock reproduce B5.4 --quick
        ackclock reproduce B5.21 --engine ns2
        ackclock reproduce B2.7 --ablation all
        ackclock reproduce --all --out results/gallery
    """
    from ackclock.cli import run_jobs
    from ackclock.cli.terminal import reproduction
    from ackclock.gallery import claims, entries, find

    run_jobs.check_number("--jobs", jobs, 1, 10_000)
    target = run_jobs.cluster_target(scheduler, cluster, jobs)
    known = entries()
    papers = claims.papers() if not every else []
    if not ids and not every:
        reproduction.print_papers(papers, known)
        return
    named = {name: claims.find_paper(name, papers) for name in ids}
    if named and all(named.values()) and not run_entries:
        for paper in filter(None, named.values()):
            reproduction.print_paper(paper, as_json=as_json)
        return
    wanted = [entry for name, paper in named.items() for entry in (paper.entries if paper else [name])]
    chosen = known if every else list({entry.id: entry for entry in (find(name, known) for name in wanted)}.values())
    chosen = [_restricted(entry, engine, interpretation) for entry in chosen]
    settings = reproduction.Settings(out, quick, jobs, as_json, options.command_line(), force)
    if ablation:
        names = _names(ablation, [each.name for entry in chosen for each in entry.mechanisms])
        _run_ablations(reproduction.ablations_of(chosen, names), settings, target, dry_run=dry_run)
    else:
        _run_entries(chosen, settings, target, dry_run=dry_run)


def _run_entries(chosen: Sequence[Entry], settings: Settings, target: Target | None, *, dry_run: bool) -> None:
    from ackclock.cli.terminal import reproduction
    from ackclock.experiments import cluster
    from ackclock.gallery import runner

    kept = settings.current_results(chosen)
    cases = {entry.id: runner.listed(entry, quick=settings.quick) for entry in chosen if entry.id not in kept}
    if dry_run:
        _print_plan(cases, settings)
        return
    engines = sorted({case.engine for listed in cases.values() for case in listed})
    with cluster.opened_if(target if cases else None, engines) as executor:
        reproduction.run_entries(chosen, replace(settings, executor=executor), kept)


def _run_ablations(
    chosen: Mapping[Entry, Sequence[Ablation]], settings: Settings, target: Target | None, *, dry_run: bool
) -> None:
    from ackclock.cli.terminal import reproduction
    from ackclock.experiments import cluster
    from ackclock.gallery import ablation_runner

    kept = settings.current_ablations(chosen)
    remaining = {entry: several for entry, several in chosen.items() if entry.id not in kept}
    plans = {
        entry.id: ablation_runner.listed(entry, several, quick=settings.quick) for entry, several in remaining.items()
    }
    if dry_run:
        _print_plan(plans, settings)
        return
    engines = sorted({engine for listed in plans.values() for _, engine in listed})
    with cluster.opened_if(target if plans else None, engines) as executor:
        reproduction.run_ablations(chosen, replace(settings, executor=executor), kept)


def _print_plan(plans: Mapping[str, Sequence[object]], settings: Settings) -> None:
    """Print the number of results that each entry needs."""
    if settings.as_json:
        click.echo(json.dumps({"entries": {name: len(listed) for name, listed in plans.items()}}))
        return
    lines = "\n".join(f"{name}: {len(listed)} results" for name, listed in plans.items())
    click.echo(lines or "all results are up to date (--force runs them anyway)")


def _names(text: str, known: Iterable[str]) -> list[str]:
    """Split a list at its commas, unless it is a known name that contains one."""
    return [text] if text in known else cli_values.items(text)


def _restricted(entry: Entry, engine: str | None, interpretation: str | None) -> Entry:
    """Return the entry with only the named engines and interpretations."""
    from ackclock.cli import run_jobs

    some = entry.with_engines(run_jobs.engine_names(engine)) if engine else entry
    known = [each.name for each in entry.readings.every]
    return some.read_as(_names(interpretation, known)) if interpretation else some
