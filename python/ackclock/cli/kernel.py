"""`ackclock kernel`: guest kernels of the engine `linux`, and CCAs in the running kernel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ackclock.cli import completion, options
from ackclock.cli.command import FILE, Group
from ackclock.errors import InputError
from ackclock.input import cli_values


@click.group(cls=Group, no_args_is_help=True)
def kernel() -> None:
    """Build and list the guest kernels of the engine linux; load our CCAs into the running kernel."""


@kernel.command("build")
@click.option(
    "--source", metavar="DIR", type=FILE, help="A Linux source tree, not modified; or a .deb or .tar.xz of one."
)
@click.option(
    "--series", metavar="X.Y", help="Build Debian's source of another series, such as 6.12, next to the default one."
)
@click.option("--force", is_flag=True, help="Build it even if it exists.")
def build(*, source: Path | None, series: str | None, force: bool) -> None:
    """Build the guest kernel, from Debian's linux-source or from your own tree. Takes a few minutes; needs no root.

    Examples:
        ackclock kernel build
        ackclock kernel build --source ~/linux
        ackclock kernel build --series 6.12
    """
    from ackclock.cli.terminal.output import progress
    from ackclock.engines.linux.kernel import build as building

    if source is not None and series is not None:
        raise InputError("--series: found both --source and --series; expected one of them")
    with progress("Building the guest kernel") as report_progress:
        kept = building.build(
            source, report_progress, lambda step: click.echo(f"{step} …", err=True), again=force, series=series
        )
    click.echo(f"Linux {kept.version}: {kept.folder}")


@kernel.command("list")
def list_() -> None:
    """List the guest kernels, and the one that runs use.

    Examples:
        ackclock kernel list
    """
    from rich.console import Console
    from rich.table import Table

    from ackclock.engines.linux.kernel import cache
    from ackclock.figures import numbers

    kernels = cache.every()
    if not kernels:
        click.echo(f"No guest kernel in {cache.home()}: `ackclock kernel build` makes one.")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("Linux", "built", "size", "folder", ""):
        table.add_column(heading, overflow="fold")
    default = cache.taken(kernels)
    for kept in kernels:
        role = "default" if kept is default else "" if kept.current else "of another version of ackclock"
        built = str(kept.about["made"]).replace("T", " ").removesuffix("+00:00")
        table.add_row(kept.version, built, numbers.value(kept.size_bytes(), "bytes"), str(kept.folder), role)
    Console(emoji=False, highlight=False, markup=False).print(table)


@kernel.command("load")
@options.algorithm(completion.loadable, "lincubic or accucubic.")
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="A parameter of the algorithm (ackclock show NAME); repeatable.",
)
def load(*, name: str, settings: Sequence[str]) -> None:
    """Load one of our congestion control algorithms into the running kernel, as a BPF program (root).

    It is available to every socket until it is unloaded or the machine reboots.

    Examples:
        sudo ackclock kernel load lincubic
        sudo ackclock kernel load lincubic --set beta=0.7 --set distance=3
    """
    from ackclock.engines.linux.kernel import bpf

    values = bpf.load(name, parameters(settings))
    click.echo(f"{name} is loaded: {', '.join(f'{key} {value}' for key, value in values.items())}")
    click.echo(f"sockets choose it by TCP_CONGESTION, or all: sysctl -w net.ipv4.tcp_congestion_control={name}")


@kernel.command("unload")
@options.algorithm(completion.loadable, "The algorithm that was loaded.")
def unload(*, name: str) -> None:
    """Unload it (root). Connections that use it keep it until they end.

    Examples:
        sudo ackclock kernel unload lincubic
    """
    from ackclock.engines.linux.kernel import bpf

    bpf.unload(name)
    click.echo(f"{name} is unloaded")


def parameters(settings: Sequence[str]) -> dict[str, Any]:
    """Parse `["beta=0.7", "tick=1ms"]` as the values of a scenario's table. Raises `InputError`."""
    from ackclock.input.fields import shown

    parsed: dict[str, Any] = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not (key and equals and value):
            raise InputError(f"--set: found {shown(text)}; expected KEY=VALUE, such as beta=0.7")
        parsed[key] = cli_values.value(value)
    return parsed
