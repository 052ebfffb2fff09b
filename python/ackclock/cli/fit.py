"""`ackclock fit`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ackclock.cli import options
from ackclock.cli.command import FOLDER, Command


@click.command(cls=Command)
@options.paths("results", "RUN...", FOLDER, "Folders of results: runs or captures.")
@options.json_flag("Print estimates and intervals as JSON.")
@options.out_file("Write to a file (default: standard output).")
def fit(*, results: Sequence[Path], as_json: bool, out: Path | None) -> None:
    """Fit the loss models of the fluid and mean-field engines to results, with 95 % intervals.

    Estimates how many flows lose packets in a loss event, and how that depends on their rate and growth. The output is
    the tables [fluid] and [meanfield] of a scenario.

    Examples:
        ackclock fit results/dumbbell-packet
        ackclock fit results/dumbbell-packet results/upload --out fitted.toml
    """
    from ackclock.dataset import folders
    from ackclock.experiments import fit as fitting

    fitted = fitting.fit(results)
    text = fitted.as_json() if as_json else fitted.toml(map(str, results))
    if out is None:
        click.echo(text, nl=False)
        return
    folders.atomic_write(out, lambda new: new.write_text(text, encoding="utf-8"))
    click.echo(f"wrote {out}")
