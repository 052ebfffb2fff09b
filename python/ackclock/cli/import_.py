"""`ackclock import`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from ackclock.cli import options
from ackclock.cli.command import FILE, Command


@click.command("import", cls=Command)
@options.paths("files", "FILE...", FILE, "Output files of other programs, also compressed by gzip.")
@options.out("Folder of the result.", required=True)
@click.option("--kind", metavar="KIND", help="flent, iperf3, teacup, tc or ss (default: detected for each file).")
@options.as_json
def import_(*, files: Sequence[Path], out: Path, kind: str | None, as_json: bool) -> None:
    """Import measurements of flent, iperf3, TEACUP, ss or tc as a result, for report, plot and metrics.

    Each file is a run, so several files of one test give intervals; a log of ss and one of tc are one run. What a
    program does not report is null.

    Examples:
        ackclock import upload-*.json --out results/upload
        ackclock import tcp_8up.flent.gz --out results/flent
        ackclock import ss.log tc.log --out results/host
    """
    from ackclock import importers
    from ackclock.cli.terminal import result

    data = importers.read(files, kind, command=options.command_line())
    metrics = data.metrics()
    data.write(out)
    if as_json:
        click.echo(json.dumps(metrics, allow_nan=False))
    else:
        result.print_result(data, metrics)
    for note in data.manifest["imported"].get("notes", ()):
        click.echo(note, err=True)
    click.echo(f"wrote {out}", err=as_json)
