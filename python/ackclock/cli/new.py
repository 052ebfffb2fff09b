"""`ackclock new`: templates of algorithms for a checkout, of a transport stack for any folder, and traces of links."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ackclock.cli.command import FILE, FOLDER, Argument, Group
from ackclock.errors import InputError

if TYPE_CHECKING:
    from ackclock.scaffold.new import Family, File

#: Models of traces (`scaffold.traces.MODELS`).
MODELS = ("docsis", "leo", "wifi")

_name: Callable[[Callable[..., Any]], Callable[..., Any]] = click.argument(
    "name", cls=Argument, metavar="NAME", help="Its name in scenarios, such as my_reno."
)
_checkout: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--checkout", metavar="DIR", type=FOLDER, help="The source checkout (default: the one around this folder)."
)
_dry_run: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--dry-run", is_flag=True, help="Print what would be written; write nothing."
)


@click.group(cls=Group, no_args_is_help=True)
def new() -> None:
    """Add your own algorithm to a source checkout, begin a transport stack of your own, or make a trace for a link."""


@new.command("control")
@click.argument("name", cls=Argument, metavar="[NAME]", required=False, help="Its name in scenarios, such as my_reno.")
@click.option("--from", "prototype", metavar="FILE", type=FILE, help="Begin with a prototype in Python, and its name.")
@_checkout
@_dry_run
def control(*, name: str | None, prototype: Path | None, checkout: Path | None, dry_run: bool) -> None:
    """Write a congestion control algorithm to start from: Rust file, spec, line in the list, scenario, C for kernels.

    The template works as it is: Reno with another decrease. `make setup` builds it, `ackclock check control NAME` tests
    it.

    Examples:
        ackclock new control my_reno
        ackclock new control my_reno --dry-run
        ackclock new control --from prototype.py
    """
    from ackclock.scaffold import new as scaffold

    if (name is None) == (prototype is None):
        raise InputError(
            f"NAME: found {'nothing' if name is None else 'NAME and --from'}; expected NAME or --from FILE"
        )
    folder = scaffold.find_checkout(checkout)
    if prototype is not None:
        _write(scaffold.CONTROL, scaffold.render_prototype(folder, prototype), folder, dry_run=dry_run)
    else:
        _write(scaffold.CONTROL, scaffold.render(scaffold.CONTROL, folder, str(name)), folder, dry_run=dry_run)


@new.command("queue")
@_name
@_checkout
@_dry_run
def queue(*, name: str, checkout: Path | None, dry_run: bool) -> None:
    """Write a queue discipline to start from: Rust file, spec, line in the list, scenario.

    The template works as it is: a FIFO that drops arriving packets from a threshold on. `make setup` builds it,
    `ackclock check queue NAME` tests it.

    Examples:
        ackclock new queue my_aqm
        ackclock new queue my_aqm --dry-run
    """
    from ackclock.scaffold import new as scaffold

    folder = scaffold.find_checkout(checkout)
    _write(scaffold.QUEUE, scaffold.render(scaffold.QUEUE, folder, name), folder, dry_run=dry_run)


@new.command("stack")
@_name
@click.option("--out", metavar="DIR", type=FOLDER, help="The folder of the files (default: NAME).")
@click.option("--quinn", is_flag=True, help="A Rust crate: the QUIC stack quinn-proto with a controller of your own.")
@_dry_run
def stack(*, name: str, out: Path | None, quinn: bool, dry_run: bool) -> None:
    """Write a transport stack to start from: C file, the header of the interface, scenario.

    The template works as it is: a toy transport (not QUIC) with a handshake, a window and retransmission, or the QUIC
    stack quinn-proto. The C compiler or Cargo builds it, `ackclock check stack FILE` tests it, and `ackclock run
    --stack` runs it. No checkout is needed.

    Examples:
        ackclock new stack mine
        ackclock new stack mine --quinn
        ackclock new stack mine --out stacks --dry-run
    """
    from ackclock.scaffold import new as scaffold

    folder = Path(name) if out is None else out
    files = scaffold.render_stack(folder, name, quinn=quinn)
    _write_files(files, folder, dry_run=dry_run)
    if not dry_run:
        library = scaffold.QUINN_LIBRARY if quinn else f"{name}.so"
        in_c = f"cc -std=c11 -O2 -Wall -shared -fPIC -o {library} {name}.c"
        build = "cargo build --release --locked" if quinn else in_c
        click.echo(f"next: cd {folder} && {build} && ackclock check stack {library}", err=True)


@new.command("trace")
@click.argument("model", cls=Argument, type=click.Choice(MODELS), help=f"{', '.join(MODELS[:-1])} or {MODELS[-1]}.")
@click.argument("file", cls=Argument, metavar="FILE", type=FILE, help="The file to write, such as wifi.csv.")
@click.option("--seed", metavar="N", type=click.IntRange(0), default=1, help="Of the random numbers.")
@click.option("--duration", metavar="TIME", default="60s", help="Its length, after which it repeats.")
@click.option("--stations", metavar="N", type=click.IntRange(0, 50), default=2, help="wifi: others that contend.")
@click.option("--rate", metavar="RATE", default="20Mbit", help="docsis: rate of the service, at most 500Mbit.")
@click.pass_context
def trace(
    context: click.Context, /, *, model: str, file: Path, seed: int, duration: str, stations: int, rate: str
) -> None:
    """Write a trace that a link may follow, by a model with published parameters.

    docsis is the upstream of a cable modem (request and grant), leo a low-orbit satellite link with another delay
    every 15 s, wifi the downlink of an IEEE 802.11n station (aggregation, contention, rate adaptation). The same
    options give the same bytes.

    Examples:
        ackclock new trace leo leo.csv
        ackclock new trace wifi wifi.csv --seed 7 --duration 30s --stations 5
        ackclock new trace docsis up.csv --rate 50Mbit
    """
    from ackclock.dataset import folders
    from ackclock.input import units
    from ackclock.scaffold import traces

    for name, of in (("stations", "wifi"), ("rate", "docsis")):
        if model != of and context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
            raise InputError(f"--{name}: found {model}; expected {of}, the only model with this option")
    settings = traces.Settings(
        duration_s=_amount("--duration", duration, units.time_s, "10ms", "1h"),
        seed=seed,
        stations=stations,
        rate_bps=_amount("--rate", rate, units.rate_bps, "100kbit", "500Mbit"),
    )
    text = traces.csv(model, settings)
    folders.atomic_write(file, lambda new: new.write_text(text, encoding="ascii"))
    click.echo(f"wrote {file}")


def _amount(option: str, text: str, parse: Callable[[object], float], least: str, most: str) -> float:
    """Return a quantity between two others. Raises `InputError`."""
    from ackclock.input.units import UnitError

    try:
        if parse(least) <= (found := parse(text)) <= parse(most):
            return found
    except UnitError as error:
        raise InputError(f"{option}: found {text}; {error}") from None
    raise InputError(f"{option}: found {text}; expected {least} to {most}")


def _write(family: Family, files: tuple[File, ...], checkout: Path, *, dry_run: bool) -> None:
    _write_files(files, checkout, dry_run=dry_run)
    if not dry_run:
        click.echo(f"next: make setup && ackclock check {family.command} {files[0].path.stem}", err=True)


def _write_files(files: tuple[File, ...], folder: Path, *, dry_run: bool) -> None:
    from ackclock.scaffold import new as scaffold

    if not dry_run:
        scaffold.write(folder, files)
    for file in files:
        click.echo(f"{'would write' if dry_run else 'wrote'} {file.path}{' (a line)' if file.added else ''}")
        if dry_run:
            click.echo(f"\n{file.added or file.text}")
