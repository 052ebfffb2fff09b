"""`ackclock rerun`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ackclock.cli.options import Jobs, Kernel, command


def rerun(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A bundle, as `ackclock bundle` writes it.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the new results here (default: they are only compared).")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a line of JSON for each result, and nothing else.")
    ] = False,
    kernel: Kernel = None,
    jobs: Jobs = None,
) -> None:
    """Run a bundle again, and say whether its results are reproduced: byte for byte, or else in their metrics.

    A metric is the same if the difference of the means has zero in its 95 %
    interval. The exit status is 1 if any metric differs, and 2 for a file that is
    damaged or not a bundle. Nothing in the bundle is executed.

    Examples:
        ackclock rerun dumbbell-packet.bundle.tar

        ackclock rerun paper.bundle.tar --out results/again --json
    """
    from ackclock.bundles import rerun, verdict
    from ackclock.cli.terminal.progress import progress
    from ackclock.cli.terminal.rerun import print_outcome

    worst = False
    with progress(f"{file.name}: again") as tell:
        options = rerun.Options(jobs=jobs, kernel=kernel, command=command(), progress=tell)
        outcomes = list(rerun.rerun(file, out, options))
    for outcome in outcomes:
        if as_json:
            typer.echo(json.dumps(outcome.as_dict(), allow_nan=False))
        else:
            print_outcome(outcome)
        worst |= outcome.verdict == verdict.DIFFERS
    if out is not None:
        typer.echo(f"wrote {out}", err=as_json)
    if worst:
        raise typer.Exit(1)
