"""`ackclock bundle`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def bundle(
    results: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of results.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The bundle (default: RUN.bundle.tar here; several need a name)."),
    ] = None,
    data: Annotated[
        bool,
        typer.Option(
            "--data/--without-data", help="With tables and packet captures, or only their checksums and the metrics."
        ),
    ] = True,
) -> None:
    """Pack results into one file: scenario, plan, commands, versions, data, figures, and the checksums of all.

    Other files in a result's folder are included. The same results make
    the same bytes. `tar` unpacks a bundle, `ackclock rerun` runs it again.

    Examples:
        ackclock bundle results/dumbbell-packet

        ackclock bundle results/cubic results/reno --out paper.bundle.tar
    """
    from ackclock.bundles import content
    from ackclock.errors import InputError
    from ackclock.figures import numbers

    if out is None and len(results) > 1:
        raise InputError(f"--out: found none for {len(results)} results; expected the name of the file")
    path = out or Path(f"{results[0].resolve().name}.bundle.tar")
    size_bytes = content.pack(results, path, data=data)
    typer.echo(f"wrote {path} ({numbers.value(size_bytes, 'bytes')})")
