"""`ackclock doctor host`: this host itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from ackclock.cli.options import command

if TYPE_CHECKING:
    from ackclock.doctor import Examined
    from ackclock.doctor.clock_gaps import Stalls
    from ackclock.doctor.disk import Disk
    from ackclock.doctor.network import Network

For: TypeAlias = Annotated[
    str, typer.Option("--for", metavar="TIME", help="How long the clock is watched, such as 60s or 1h.")
]
Log: TypeAlias = Annotated[
    Path | None,
    typer.Option("--log", metavar="FILE", help="Write the gaps as the log that `ackclock capture --clock` reads."),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one line of JSON, and nothing else.")]
Out: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write what was measured as a result: tables and a manifest.")
]
Rate: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="RATE", help="What would be captured, such as 300Mbit (default: the fastest interface's rate)."
    ),
]
Repeats: TypeAlias = Annotated[int, typer.Option(min=1, max=1000, help="How often each speed of the disk is measured.")]
SshConfig: TypeAlias = Annotated[
    Path | None,
    typer.Option("--ssh-config", metavar="FILE", help="HOST is reached with this configuration of ssh (its -F)."),
]

app = typer.Typer(
    rich_markup_mode="rich",
    help="""Examine this host: gaps in its clock, the speed of its disk, and settings that slow transfers down.

The clock is watched first, then the disk is measured; each part is also a command of its own.

Examples:
    ackclock doctor host --for 10s

    ackclock doctor host stalls --for 1h --log clock.csv

    ackclock doctor host disk /var/captures --rate 300Mbit

    ackclock doctor host network alice
""",
)


@app.callback(invoke_without_command=True)
def host(
    context: typer.Context,
    for_: For = "60s",
    folder: Annotated[
        Path, typer.Option("--disk", metavar="DIR", help="The folder whose disk is measured; nothing is left in it.")
    ] = Path(),
    rate: Rate = None,
    repeats: Repeats = 10,
    log: Log = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """All parts: see the help of the group."""
    if context.invoked_subcommand is None:
        rate_bps, for_s = _rate_bps(rate), _time_s(for_)
        _check(out, log, folder)
        seen = _watched(for_s)
        _told(seen, _disk(folder, repeats=repeats), rate_bps, log, out, as_json)


@app.command()
def stalls(*, for_: For = "60s", log: Log = None, out: Out = None, as_json: AsJson = False) -> None:
    """Watch the clock of this host: when nothing ran here, and why.

    Every millisecond it reads the clocks and the kernel's counters. A reading that is late by more than another
    millisecond is a gap: the scheduler ran something else, the hypervisor ran other guests, the process was stopped,
    the machine was paused, or the clock was set.

    Examples:
        ackclock doctor host stalls --for 10s

        ackclock doctor host stalls --for 1h --log clock.csv
    """
    for_s = _time_s(for_)
    _check(out, log)
    _told(_watched(for_s), None, None, log, out, as_json)


@app.command()
def disk(
    *,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder on the disk to measure.")],
    rate: Rate = None,
    repeats: Repeats = 10,
    device: Annotated[
        Path | None, typer.Option(metavar="DEVICE", help="Read this block device as well, past its file system (root).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write the device too. All that is on it is lost.")] = False,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Measure how fast a disk writes and reads blocks of 4 KiB to 1 MiB, with and without the system's cache.

    What is written has no name and is gone when the command ends, however it ends; it takes a tenth of the room that
    is left at most. The measurements take turns, ten times each.

    Examples:
        ackclock doctor host disk .

        ackclock doctor host disk /var/captures --rate 300Mbit --json

        sudo ackclock doctor host disk /tmp --device /dev/sdb
    """
    from ackclock.errors import InputError

    if force and device is None:
        raise InputError("--force: found no --device; expected the block device that is to be overwritten")
    rate_bps = _rate_bps(rate)
    _check(out, None)
    _told(None, _disk(folder, repeats=repeats, device=device, force=force), rate_bps, None, out, as_json)


@app.command()
def network(  # noqa: PLR0913 (each is an option of the command line)
    *,
    host: Annotated[str, typer.Argument(metavar="HOST", help="The other host, as ssh takes it.")],
    for_: Annotated[str, typer.Option("--for", metavar="TIME", help="How long each transfer lasts.")] = "5s",
    flows: Annotated[str, typer.Option(metavar="N[,N]", help="Connections at a time, 1 to 300.")] = "1,10",
    direction: Annotated[
        str, typer.Option(metavar="WAY", help="Where the data go: to HOST, from it, or both.")
    ] = "both",
    repeats: Annotated[int, typer.Option(min=1, max=1000, help="How often each transfer is repeated.")] = 3,
    listen: Annotated[
        str, typer.Option(metavar="SIDE", help="Which side's port is open: there or here. The other side connects.")
    ] = "there",
    port: Annotated[
        int | None, typer.Option(min=1, max=19_999, help="The port to listen on (default: any, 10000 to 19000).")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="[HERE,]THERE", help="IPv4 addresses between which the data go (default: ssh's own)."),
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH|:PATH", help="Also from and to this host's disk; with a colon, the other's."),
    ] = None,
    ssh_config: SshConfig = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Measure how fast TCP is between this host and another one, and what limits it.

    An agent is copied to HOST by ssh and removed afterwards. Transfers from memory to memory are interleaved: each
    direction and number of flows in turn, repeatedly. The first fifth of each is not measured. One side listens, and
    the other opens all connections, whichever way the data go. Neither host is changed, except that, with root, its
    kernel caches no metrics of its peer meanwhile.

    With --file the same transfers are also made with a disk at one end, or at both: that of a folder, or of a file,
    which is read. The file written has no name and is gone when the command ends, however it ends.

    Examples:
        ackclock doctor host network alice

        ackclock doctor host network alice --flows 1,4,50 --for 10s --repeats 10 --json

        ackclock doctor host network alice --direction from --listen here --port 5001

        ackclock doctor host network alice --file /var/captures --file :/var/captures
    """
    from ackclock.cli import network_args
    from ackclock.cli.terminal.progress import progress
    from ackclock.doctor.network import transfers

    asked = network_args.of_network(host, for_, flows, direction, repeats, listen, port, data, file or (), ssh_config)
    _check(out, None)
    with progress("Measuring the network") as tell:
        found = transfers.measure(asked, tell)
    _told(None, None, None, None, out, as_json, found)


def _watched(for_s: float) -> Stalls:
    from ackclock.cli.terminal.progress import progress
    from ackclock.doctor import clock_gaps as watching

    with progress("Watching the clock") as tell:
        return watching.watch(for_s, tell)


def _disk(folder: Path, **options: Any) -> Disk:
    from ackclock.cli.terminal.progress import progress
    from ackclock.doctor import disk as measuring

    with progress("Measuring the disk") as tell:
        return measuring.measure(folder, report_progress=tell, **options)


def _told(
    seen: Stalls | None,
    found: Disk | None,
    rate_bps: float | None,
    log: Path | None,
    out: Path | None,
    as_json: bool,
    between: Network | None = None,
) -> None:
    from ackclock import doctor
    from ackclock.cli.terminal import host as terminal
    from ackclock.doctor import clock_gaps as watching

    examined: Examined = doctor.examined(stalls=seen, disk=found, network=between, rate_bps=rate_bps, command=command())
    if as_json:
        typer.echo(json.dumps(examined.analysis, allow_nan=False))
    else:
        terminal.print_host(examined)
    if log is not None and seen is not None:
        typer.echo(f"wrote {watching.write_log(seen, log)}", err=as_json)
    if out is not None:
        typer.echo(f"wrote {examined.data.write(out)}", err=as_json)


def _check(out: Path | None, log: Path | None, folder: Path | None = None) -> None:
    """What could not be written is found out before the work. Raises `InputError`."""
    from ackclock.dataset import result_kind
    from ackclock.doctor import disk as measuring

    if folder is not None:
        measuring.room_for(folder)
    if out is not None:
        result_kind.check(out, result_kind.Kind.HOST)
    if log is not None:
        _check_log(log)


def _check_log(log: Path) -> None:
    from ackclock.errors import InputError
    from ackclock.system.files import readable

    if not log.parent.is_dir():
        raise InputError(f"--log: {readable(log.parent)}: found no such directory")
    if log.is_dir():
        raise InputError(f"--log: found {readable(log)}, a folder; expected a file")


def _time_s(text: str) -> float:
    from ackclock.input import units

    return _read("--for", text, units.time_s, (0.01, 30 * 86400.0), "a time from 10ms to 720h")


def _rate_bps(text: str | None) -> float | None:
    from ackclock.input import units

    return None if text is None else _read("--rate", text, units.rate_bps, (1e-9, inf), "a rate above zero")


def _read(option: str, text: str, read: Callable[[str], float], bounds: tuple[float, float], expected: str) -> float:
    """A quantity with its unit, within bounds. Raises `InputError`."""
    try:
        found = read(text)
    except ValueError as error:
        raise _refused(option, text, str(error)) from error
    if not bounds[0] <= found <= bounds[1]:
        raise _refused(option, text, f"expected {expected}")
    return found


def _refused(option: str, text: str, expected: str) -> Exception:
    from ackclock.errors import InputError
    from ackclock.input.fields import shown

    return InputError(f"{option}: found {shown(text)}; {expected}")
