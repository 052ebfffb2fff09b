"""The commands `ackclock kernel load` and `ackclock kernel unload`: our congestion controls in a live kernel."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ackclock.errors import InputError


def _names(incomplete: str) -> list[str]:
    from ackclock.engines.linux.kernel import ours

    return [name for name in ours.NAMES if name.startswith(incomplete)]


def load(
    name: Annotated[str, typer.Argument(metavar="NAME", help="lincubic or accucubic.", autocompletion=_names)],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter of its card (ackclock show NAME); repeatable."),
    ] = None,
) -> None:
    """Load one of our congestion controls into the kernel that is running, as a BPF program (root).

    It is there for every socket until it is unloaded or the machine starts anew.

    Examples:
        sudo ackclock kernel load lincubic

        sudo ackclock kernel load lincubic --set beta=0.7 --set distance=3
    """
    from ackclock.engines.linux.kernel import bpf

    values = bpf.load(name, parameters(settings or ()))
    typer.echo(f"{name} is loaded: {', '.join(f'{key} {value}' for key, value in values.items())}")
    typer.echo(f"sockets choose it by TCP_CONGESTION, or all: sysctl -w net.ipv4.tcp_congestion_control={name}")


def unload(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What was loaded.", autocompletion=_names)],
) -> None:
    """Remove it again (root). Connections that have it keep it until they end.

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
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise InputError(f"--set: found {text!r}; expected KEY=VALUE, such as beta=0.7")
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value
