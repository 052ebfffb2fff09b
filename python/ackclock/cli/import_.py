"""`ackclock import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ackclock.cli.options import AsJson, command


def import_(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Measurements of other programs, also as gz.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the result.")],
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="flent, iperf3, teacup, tc or ss (default: what each file looks like)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Import measurements of flent, iperf3, TEACUP, ss or tc as a result, for report, plot and metrics.

    Each file is a run, so several of one test give intervals; a log of ss and
    one of tc are a run together. What a program does not report is null.

    Examples:
        ackclock import upload-*.json --out results/upload

        ackclock import tcp_8up.flent.gz --out results/flent

        ackclock import ss.log tc.log --out results/host
    """
    import json

    from ackclock import importers
    from ackclock.cli.terminal import result

    data = importers.read(files, kind, command=command())
    found = data.metrics()
    data.write(out)
    if as_json:
        typer.echo(json.dumps(found, allow_nan=False))
    else:
        result.print_result(data, found)
    typer.echo(f"wrote {out}", err=as_json)
