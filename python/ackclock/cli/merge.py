"""`ackclock merge`: the shards of a sweep, joined."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ackclock.cli.options import AsJson, Report, command


def merge(
    *,
    shards: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Folders of all shards of a sweep, in any order.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the whole sweep.")],
    as_json: AsJson = False,
    report: Report = True,
) -> None:
    """Join what `ackclock sweep --shard K/N` has left on N machines into the whole sweep.

    The table has the same bytes as if one machine had run the whole sweep. Shards of different sweeps are refused, and
    so is a shard that is duplicate, missing, unfinished or damaged.

    Examples:
        ackclock merge from-*/results/buffers-packet-sweep-*-of-20 --out results/buffers-packet-sweep
    """
    from ackclock.cli.report import write_report
    from ackclock.cli.terminal.progress import progress
    from ackclock.cli.terminal.sweep import print_sweep
    from ackclock.dataset.manifests import POINTS
    from ackclock.experiments.sweep import merge_shards

    with progress(f"{out.name}: {len(shards)} shards") as tell:
        done = merge_shards.merge(shards, out, progress=tell, command=command())
    if as_json:
        typer.echo(json.dumps(done.as_dict(), allow_nan=False))
    else:
        print_sweep(done)
    typer.echo(f"wrote {done.folder / POINTS}", err=as_json)
    if report and done.axes:
        typer.echo(f"wrote {write_report([done.folder], None)}", err=as_json)
