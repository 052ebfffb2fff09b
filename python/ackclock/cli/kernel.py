"""`ackclock kernel`: the kernels that the engine `linux` runs in its guests, and what is loaded into the live one."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ackclock.completion import words as completing
from ackclock.errors import InputError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Build and list the kernels of the engine linux; load our congestion controls into the running one.",
)


@app.command()
def build(
    *,
    source: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A source tree of Linux, not modified; also a .deb or .tar.xz of one."),
    ] = None,
    series: Annotated[
        str | None,
        typer.Option(
            metavar="X.Y", help="Debian's source of another series, such as 6.12, in addition to the default one."
        ),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Build it even if it exists.")] = False,
) -> None:
    """Build the guest kernel, from Debian's linux-source or from your own tree. Takes a few minutes, once; no root.

    Examples:
        ackclock kernel build

        ackclock kernel build --source ~/linux

        ackclock kernel build --series 6.12
    """
    from ackclock.cli.terminal.progress import progress
    from ackclock.engines.linux.kernel import build as work

    if source is not None and series is not None:
        raise InputError("--series: found both --source and --series; expected one of them")
    with progress("Building the guest kernel") as tell:
        kept = work.build(source, tell, lambda what: typer.echo(f"{what} …", err=True), again=again, series=series)
    typer.echo(f"Linux {kept.version}: {kept.folder}")


@app.command("list")
def list_() -> None:
    """List the guest kernels, and which one a run uses.

    Examples:
        ackclock kernel list
    """
    from rich.console import Console
    from rich.table import Table

    from ackclock.engines.linux.kernel import cache
    from ackclock.figures import numbers

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
        table.add_row(kept.version, made, numbers.value(kept.size_bytes(), "bytes"), str(kept.folder), role)
    Console(emoji=False, highlight=False, markup=False).print(table)


@app.command()
def load(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="lincubic or accucubic.", autocompletion=completing.of("ours"))
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter of its card (ackclock show NAME); repeatable."),
    ] = None,
) -> None:
    """Load one of our congestion controls into the kernel that is running, as a BPF program (root).

    It is available to every socket until it is unloaded or the machine reboots.

    Examples:
        sudo ackclock kernel load lincubic

        sudo ackclock kernel load lincubic --set beta=0.7 --set distance=3
    """
    from ackclock.engines.linux.kernel import bpf

    values = bpf.load(name, parameters(settings or ()))
    typer.echo(f"{name} is loaded: {', '.join(f'{key} {value}' for key, value in values.items())}")
    typer.echo(f"sockets choose it by TCP_CONGESTION, or all: sysctl -w net.ipv4.tcp_congestion_control={name}")


@app.command()
def unload(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What was loaded.", autocompletion=completing.of("ours"))],
) -> None:
    """Remove it again (root). Connections that use it keep it until they end.

    Example:
        sudo ackclock kernel unload lincubic
    """
    from ackclock.engines.linux.kernel import bpf

    bpf.unload(name)
    typer.echo(f"{name} is unloaded")


def parameters(settings: Sequence[str]) -> dict[str, Any]:
    """`["beta=0.7", "tick=1ms"]` as a scenario's table would have them. Raises `InputError` for another form."""
    return dict(_setting(text) for text in settings)


def _setting(text: str) -> tuple[str, Any]:
    from ackclock.input.fields import shown

    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise InputError(f"--set: found {shown(text)}; expected KEY=VALUE, such as beta=0.7")
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value
    except (ValueError, RecursionError):
        raise InputError(f"--set: found {shown(text)}; expected KEY=VALUE, such as beta=0.7") from None
