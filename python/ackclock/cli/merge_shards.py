"""`ackclock merge-shards`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from ackclock.cli import options
from ackclock.cli.command import FOLDER, Command


@click.command("merge-shards", cls=Command)
@options.paths("shards", "DIR...", FOLDER, "Folders of all shards of a sweep, in any order.")
@options.out("Folder of the merged sweep.", required=True)
@options.as_json
@options.report
def merge_shards(*, shards: Sequence[Path], out: Path, as_json: bool, report: bool) -> None:
    """Merge the results of `ackclock sweep --shard K/N` from N machines into one sweep.

    The table has the same bytes as if one machine had run the sweep. Shards of different sweeps are rejected, and so is
    a shard that is duplicate, missing, unfinished or damaged.

    Examples:
        ackclock merge-shards from-*/results/mine-packet-sweep-*-of-20 --out results/mine
    """
    from ackclock.cli.report import write_report
    from ackclock.cli.terminal.output import print_warnings, progress
    from ackclock.cli.terminal.settings import print_sweep
    from ackclock.dataset.manifests import POINTS
    from ackclock.experiments.sweep import result

    with progress(f"{out.name}: {len(shards)} shards") as report_progress:
        merged = result.merge(shards, out, progress=report_progress, command=options.command_line())
    if as_json:
        click.echo(json.dumps({**merged.as_dict(), "warnings": merged.warnings}, allow_nan=False))
    else:
        print_sweep(merged)
        print_warnings(merged.warnings)
    click.echo(f"wrote {merged.folder / POINTS}", err=as_json)
    if report and merged.axes:
        click.echo(f"wrote {write_report([merged.folder], None)}", err=as_json)
