"""`ackclock kernel`: the kernels that the engine `linux` runs in its guests, and what is loaded into the live one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ackclock import kernel_load

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Make and list the kernels of the engine linux; load our congestion controls into the live one.",
)
app.command()(kernel_load.load)
app.command()(kernel_load.unload)


@app.command()
def build(
    *,
    source: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A source tree of Linux, left as it is; also a .deb or .tar.xz of one."),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Build it even if it is there.")] = False,
) -> None:
    """Make the guest kernel, of Debian's own linux-source or of a tree of yours. Takes a few minutes, once; no root.

    Examples:
        ackclock kernel build

        ackclock kernel build --source ~/linux
    """
    from ackclock import console
    from ackclock.engines.linux.kernel import build as work

    with console.progress("Building the guest kernel") as progress:
        kept = work.build(source, progress, lambda what: typer.echo(f"{what} …", err=True), again=again)
    typer.echo(f"Linux {kept.version}: {kept.folder}")


@app.command("list")
def list_() -> None:
    """List the guest kernels that are there, and which one a run takes.

    Examples:
        ackclock kernel list
    """
    from rich.console import Console
    from rich.table import Table

    from ackclock import shown
    from ackclock.engines.linux.kernel import cache

    kernels = cache.every()
    if not kernels:
        typer.echo(f"No guest kernel in {cache.home()}: `ackclock kernel build` makes one.")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("Linux", "made", "size", "folder", ""):
        table.add_column(heading, overflow="fold")
    taken = cache.taken(kernels)
    for kept in kernels:
        role = "a run takes this one" if kept is taken else "" if kept.current else "of another ackclock"
        made = str(kept.about["made"]).replace("T", " ").removesuffix("+00:00")
        table.add_row(kept.version, made, shown.value(kept.size_bytes(), "bytes"), str(kept.folder), role)
    Console(highlight=False, markup=False).print(table)
