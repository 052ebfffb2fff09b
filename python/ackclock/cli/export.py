"""`ackclock export`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from ackclock.cli import options
from ackclock.cli.command import Argument, Command
from ackclock.errors import InputError

#: The target that is written from a result.
QLOG = "qlog"


@click.command(cls=Command)
@click.argument(
    "source",
    cls=Argument,
    metavar="SCENARIO",
    type=click.Path(path_type=Path),
    help="Scenario file (TOML), - is standard input; with --to qlog: folder of a result.",
)
@click.option("--to", metavar="PROGRAM", required=True, help="tc, flent, mermaid, ns2 or ns3; qlog.")
@options.out_file("The script, or the log (default: standard output).")
@click.option(
    "--device", metavar="DEV", help="With tc: shape this device as the bottleneck, instead of network namespaces."
)
@click.option("--link", metavar="NAME", help="With --device: the link that it is, as up (default: the bottleneck).")
@click.option("--flow", "flows", metavar="N", type=int, multiple=True, help="With qlog: only this flow; repeatable.")
@click.option("--run", metavar="N", type=int, help="With qlog: this run of the result (default: 0).")
@click.option(
    "--schema", metavar="VERSION", help="With qlog: 0.3, which qvis opens (default), or draft, the IETF's present one."
)
def export(
    *,
    source: Path,
    to: str,
    out: Path | None,
    device: str | None,
    link: str | None,
    flows: Sequence[int],
    run: int | None,
    schema: str | None,
) -> None:
    """Write a scenario as a commented script for another program, or a result as qlog.

    Features that the program does not support are listed in the script's first comment and on standard error. A log
    is JSON-SEQ, or JSON if its name ends in .qlog.

    Examples:
        ackclock export scenarios/dumbbell.toml --to tc --out dumbbell.sh
        ackclock export scenarios/dumbbell.toml --to tc --device eth0
        ackclock export scenarios/asymmetric.toml --to tc --device eth0 --link up
        ackclock export scenarios/parking-lot.toml --to mermaid
        ackclock export results/dumbbell-packet --to qlog --flow 0 --out flow.sqlog
    """
    if to == QLOG:
        _write(_log(source, out, run or 0, flows, schema), out)
        return
    if flows or run is not None or schema is not None:
        raise InputError(f"--flow, --run and --schema: found with --to {to}; expected with --to qlog")
    from ackclock import exporters
    from ackclock.scenario import planning

    script = exporters.export(planning.load(source).plan(), to, device, link)
    for note in script.notes:
        click.echo(f"not in the script: {note}", err=True)
    _write(iter([script.text]), out)


def _log(source: Path, out: Path | None, run: int, flows: Sequence[int], schema: str | None) -> Iterator[str]:
    from ackclock.dataset import Dataset
    from ackclock.exporters import qlog

    data, is_sequential = Dataset.read(source), out is None or out.suffix != ".qlog"
    log = qlog.write(data, schema=schema or qlog.SCHEMAS[0], sequential=is_sequential, run=run, flows=flows)
    for note in qlog.notes(data, run, flows):
        click.echo(f"not in the log: {note}", err=True)
    return log


def _write(parts: Iterator[str], out: Path | None) -> None:
    if out is None:
        for part in parts:
            click.echo(part, nl=False)
        return
    from ackclock.dataset import folders

    def fill(new: Path) -> None:
        with new.open("w", encoding="utf-8") as file:
            file.writelines(parts)

    folders.atomic_write(out, fill)
    click.echo(f"wrote {out}")
