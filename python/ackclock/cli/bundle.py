"""`ackclock bundle`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ackclock.cli import options
from ackclock.cli.command import FOLDER, Command
from ackclock.errors import InputError


@click.command(cls=Command)
@options.paths("results", "RUN...", FOLDER, "Folders of results.")
@options.out_file("The bundle (default: RUN.bundle.tar beside the result; required for several results).")
@click.option(
    "--data/--without-data",
    default=True,
    help="Include tables and packet captures, or only their checksums and the metrics.",
)
def bundle(*, results: Sequence[Path], out: Path | None, data: bool) -> None:
    """Pack results into one file: scenario, plan, commands, versions, data, figures, and the checksums of all.

    Other files in a result's folder are included. The same results make the same bytes. `tar` unpacks a bundle,
    `ackclock rerun` reruns it.

    Examples:
        ackclock bundle results/dumbbell-packet
        ackclock bundle results/cubic results/reno --out paper.bundle.tar
    """
    from ackclock.bundles import archive
    from ackclock.figures import numbers

    if out is None and len(results) > 1:
        raise InputError(f"--out: found none for {len(results)} results; expected the name of the file")
    path = out or _default_path(results[0])
    size_bytes = archive.pack(results, path, data=data)
    click.echo(f"wrote {path} ({numbers.value(size_bytes, 'bytes')})")


def _default_path(result: Path) -> Path:
    """Return the default path of a result's bundle: where the result is."""
    place = result if result.name else result.resolve()
    return place.with_name(f"{place.name}.bundle.tar")
