"""What one call of `ackclock compare` has to do."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from ackclock.campaigns.compare import compare as comparing
from ackclock.campaigns.compare import folder as folders
from ackclock.cli import compare_table as terminal
from ackclock.cli import console, jobs


def run(scenario: Path, options: jobs.Options, *, as_json: bool) -> None:
    """Runs the scenario with each engine, writes the folder, and prints the table."""
    seeds = jobs.seeds(options)
    plan = jobs.loaded(scenario, options.kernel, options.engines).plan()
    names = jobs.engine_names(options.engines)
    folder = options.out or Path("results") / f"{scenario.stem}-compare"
    folders.check(folder)
    with console.progress(f"{scenario.stem}: {', '.join(names)}") as progress:
        found = comparing.compare(plan, names, seeds, jobs=options.jobs, progress=progress, command=options.command)
    folders.write(found, folder, report=options.report)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), allow_nan=False))
    else:
        terminal.print_comparison(found)
    typer.echo(f"wrote {folder}", err=as_json)
