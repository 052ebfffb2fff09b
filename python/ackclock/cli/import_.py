"""`ackclock import`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ackclock.cli import options
from ackclock.cli.command import FILE, Command
from ackclock.errors import InputError

if TYPE_CHECKING:
    from ackclock.dataset import Dataset


@click.command("import", cls=Command)
@options.paths("files", "FILE...", FILE, "Output files of other programs, also compressed by gzip.")
@options.out("Folder of the result (default: results/FILE-import, by the name of the first file).")
@click.option("--kind", metavar="KIND", help="flent, iperf3, teacup, tc or ss (default: detected for each file).")
@options.as_json
def import_(*, files: Sequence[Path], out: Path | None, kind: str | None, as_json: bool) -> None:
    """Import measurements of flent, iperf3, TEACUP, ss or tc as a result, for report, plot and metrics.

    Each file is a run, so several files of one test give intervals; a log of ss and one of tc are one run. What a
    program does not report is null.

    Examples:
        ackclock import upload-*.json --out results/upload
        ackclock import tcp_8up.flent.gz
        ackclock import ss.log tc.log --out results/host
    """
    from ackclock import importers
    from ackclock.cli.terminal import result

    data = importers.read(files, kind, command=options.command_line())
    folder = out or _default_folder(files, data)
    metrics = data.metrics()
    data.write(folder)
    if as_json:
        click.echo(json.dumps(metrics, allow_nan=False))
    else:
        result.print_result(data, metrics)
    for note in data.manifest["imported"].get("notes", ()):
        click.echo(note, err=True)
    click.echo(f"wrote {folder}", err=as_json)


def _default_folder(files: Sequence[Path], data: Dataset) -> Path:
    """Return the default folder. Raises `InputError` if it has the measurements of other files."""
    from ackclock.dataset import result_kind
    from ackclock.dataset.manifests import read
    from ackclock.dataset.result_kind import Kind

    folder = Path("results") / f"{Path(files[0].name.removesuffix('.gz')).stem}-import"
    if result_kind.kind(folder) is Kind.IMPORTED:
        earlier = read(folder, Kind.IMPORTED).about["imported"]["files"]
        if earlier != data.manifest["imported"]["files"]:
            raise InputError(f"{folder}: found measurements of other files; expected another folder (--out)")
    return folder
