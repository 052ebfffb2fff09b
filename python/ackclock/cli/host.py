"""`ackclock doctor host`: this host itself, and with `network` its path to another one.

Results are checked before the work, printed and written after it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ackclock.cli import options
from ackclock.cli.command import FILE, FOLDER, Argument, Command, Group
from ackclock.errors import InputError
from ackclock.input import cli_values
from ackclock.system.files import readable

if TYPE_CHECKING:
    from ackclock.doctor.clock_gaps import Stalls
    from ackclock.doctor.disk import Disk
    from ackclock.doctor.network import Network


def report(
    out: Path | None,
    *,
    as_json: bool,
    stalls: Stalls | None = None,
    disk: Disk | None = None,
    network: Network | None = None,
    rate_bps: float | None = None,
    rtt_s: float | None = None,
    log: Path | None = None,
) -> None:
    """Print the measurements and findings, and write them to the files that options name."""
    from ackclock.cli.terminal import host as terminal
    from ackclock.doctor import clock_gaps, examined

    path = {"rate_bps": rate_bps, "rtt_s": rtt_s}
    found = examined(stalls=stalls, disk=disk, network=network, **path, command=options.command_line())
    if as_json:
        click.echo(json.dumps(found.analysis, allow_nan=False))
    else:
        terminal.print_host(found)
    if log is not None and stalls is not None:
        click.echo(f"wrote {clock_gaps.write_log(stalls, log)}", err=as_json)
    if out is not None:
        click.echo(f"wrote {found.data.write(out)}", err=as_json)


def check_outputs(out: Path | None, log: Path | None = None, folder: Path | None = None) -> None:
    """Raise `InputError` before the work for files and folders that could not be written after it."""
    from ackclock.dataset import result_kind
    from ackclock.doctor import disk

    if folder is not None:
        disk.room_for(folder)
    if out is not None:
        result_kind.check(out, result_kind.Kind.HOST)
    if log is not None and not log.parent.is_dir():
        raise InputError(f"--log: {readable(log.parent)}: found no such directory")
    if log is not None and log.is_dir():
        raise InputError(f"--log: found {readable(log)}, a folder; expected a file")


#: Parallel connections.
MIN_FLOWS, MAX_FLOWS = 1, 300

#: Duration of a transfer, in seconds: at least a few round trips, at most the time for which the kernel remembers the
#: minimum RTT.
MIN_S, MAX_S = 1.0, 300.0


@click.command("network", cls=Command)
@click.argument("host", cls=Argument, metavar="HOST", help="The other host, as for ssh.")
@click.option("--duration", metavar="TIME", default="5s", help="Duration of each transfer.")
@click.option("--flows", metavar="N[,N]", default="1,10", help="Numbers of parallel connections, 1 to 300.")
@click.option("--direction", metavar="WAY", default="both", help="Direction of the data: to HOST, from it, or both.")
@click.option("--repeats", metavar="N", type=click.IntRange(1, 1000), default=3, help="Repetitions of each transfer.")
@click.option(
    "--server",
    metavar="SIDE",
    default="remote",
    help="Side that listens: remote or local. The other side opens the connections.",
)
@click.option("--port", type=click.IntRange(1, 19_999), help="Port of the server (default: any from 10000 to 19000).")
@click.option(
    "--addresses",
    metavar="[LOCAL,]REMOTE",
    help="IPv4 addresses of the data connections (default: those of the ssh connection).",
)
@click.option(
    "--file",
    metavar="PATH|:PATH",
    multiple=True,
    help="Also transfer from and to this host's disk; with a colon, the other's.",
)
@click.option("--ssh-config", metavar="FILE", type=FILE, help="ssh configuration for HOST (ssh -F).")
@options.out("Write the measurements as a result: tables and a manifest.")
@options.json_flag("Print one line of JSON only.")
def network(  # noqa: PLR0913 (each is an option of the command line)
    *,
    host: str,
    duration: str,
    flows: str,
    direction: str,
    repeats: int,
    server: str,
    port: int | None,
    addresses: str | None,
    file: Sequence[str],
    ssh_config: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Measure TCP throughput between this host and another one, and what limits it.

    An agent is copied to HOST by ssh and removed afterwards. Memory-to-memory transfers are interleaved: each direction
    and number of flows in turn, repeatedly. The first fifth of each is warm-up. Neither host is changed, except that,
    with root, its kernel does not cache metrics of its peer meanwhile.

    With --file the same transfers are also made with a disk at one end, or at both: that of a folder, or of a file,
    which is read. The file written has no name and vanishes when the command ends, however it ends.

    Examples:
        ackclock doctor host network alice
        ackclock doctor host network alice --flows 1,4,50 --duration 10s --json
        ackclock doctor host network alice --direction from --server local --port 5001
        ackclock doctor host network alice --file /var/captures --file :/var/captures
    """
    from ackclock.cli import run_jobs
    from ackclock.cli.terminal.output import progress
    from ackclock.doctor.network import transfers
    from ackclock.doctor.network.endpoints import checked, parse_files
    from ackclock.doctor.network.test_matrix import FROM, LOCAL, REMOTE, TO, TestPlan
    from ackclock.hosts import ssh
    from ackclock.input import cli_values, units
    from ackclock.input.fields import shown

    directions = {TO: (TO,), FROM: (FROM,), "both": (TO, FROM)}
    if not ssh.DESTINATION.fullmatch(host):
        raise InputError(f"HOST: found {shown(host)}; expected {ssh.EXPECTED}")
    if direction not in directions:
        raise InputError(f"--direction: found {shown(direction)}; expected {', '.join(directions)}")
    if server not in (REMOTE, LOCAL):
        raise InputError(f"--server: found {shown(server)}; expected {REMOTE} or {LOCAL}")
    run_jobs.check_ssh_config(ssh_config)
    bounds = (MIN_S, MAX_S)
    asked = TestPlan(
        host,
        _flow_counts(flows),
        directions[direction],
        options.parse_quantity("--duration", duration, units.time_s, bounds, f"a time from {MIN_S:g}s to {MAX_S:g}s"),
        repeats,
        server,
        port,
        checked(cli_values.items(addresses)) if addresses is not None else (),
        parse_files(file),
        ssh_config.absolute() if ssh_config else None,
    )
    check_outputs(out)
    with progress("Measuring the network") as report_progress:
        measured = transfers.measure(asked, report_progress)
    report(out, as_json=as_json, network=measured)


def _flow_counts(text: str) -> tuple[int, ...]:
    from ackclock.input.fields import shown

    words = cli_values.items(text)
    counts = tuple(int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 9)
    is_valid = len(counts) == len(words) == len(set(counts)) and all(MIN_FLOWS <= n <= MAX_FLOWS for n in counts)
    if not is_valid:
        raise InputError(
            f"--flows: found {shown(text)}; expected different numbers from {MIN_FLOWS} to {MAX_FLOWS}, such as 1,10"
        )
    return counts


_duration: options.Decorator = click.option(
    "--duration", metavar="TIME", default="60s", help="How long to watch the clock, such as 60s or 1h."
)
_log: options.Decorator = click.option(
    "--log", metavar="FILE", type=FILE, help="Write the gaps as a log for `ackclock capture --clock-log`."
)
_rate: options.Decorator = click.option(
    "--rate",
    metavar="RATE",
    help="Rate of the path, and of captures, such as 300Mbit (default: the fastest interface's rate).",
)
_rtt: options.Decorator = click.option(
    "--rtt", metavar="TIME", help="RTT of a path, such as 80ms: are the socket buffers large enough for it?"
)
_repeats: options.Decorator = click.option(
    "--repeats", metavar="N", type=click.IntRange(1, 1000), default=10, help="Measurements of each disk speed."
)
_as_json: options.Decorator = options.json_flag("Print one line of JSON only.")
_out: options.Decorator = options.out("Write the measurements as a result: tables and a manifest.")


@click.group(cls=Group, invoke_without_command=True)
@_duration
@click.option(
    "--disk",
    "folder",
    metavar="DIR",
    type=FOLDER,
    default=Path(),
    help="Folder whose disk is measured; no files remain in it.",
)
@_rate
@_rtt
@_repeats
@_log
@_out
@_as_json
@click.pass_context
def host(  # noqa: PLR0913 (the options of all its parts)
    context: click.Context,
    *,
    duration: str,
    folder: Path,
    rate: str | None,
    rtt: str | None,
    repeats: int,
    log: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Examine this host: gaps in its clock, the speed of its disk, and settings that slow transfers down.

    The clock is watched first, then the disk is measured; each part is also a command.

    Examples:
        ackclock doctor host --duration 10s
        ackclock doctor host settings --rate 1Gbit --rtt 80ms
        ackclock doctor host stalls --duration 1h --log clock.csv
        ackclock doctor host disk /var/captures --rate 300Mbit
        ackclock doctor host network alice
    """
    if context.invoked_subcommand is not None:
        return
    rate_bps, rtt_s, duration_s = _rate_bps(rate), _rtt_s(rtt), _duration_s(duration)
    check_outputs(out, log, folder)
    stalls = _watch(duration_s)
    disk = _measure(folder, repeats=repeats)
    report(out, as_json=as_json, stalls=stalls, disk=disk, rate_bps=rate_bps, rtt_s=rtt_s, log=log)


host.add_command(network)


@host.command("settings")
@_rate
@_rtt
@_out
@_as_json
def settings_(*, rate: str | None, rtt: str | None, out: Path | None, as_json: bool) -> None:
    """Examine the kernel's settings that limit TCP, and with --rtt the size of the socket buffers for a path.

    A connection needs twice the bandwidth-delay product in each buffer. The fields of net.ipv4.tcp_rmem and tcp_wmem
    are the smallest, the first and the largest size; the kernel lets a buffer grow up to the largest as the path needs
    it, unless the application sets SO_RCVBUF or SO_SNDBUF.

    Examples:
        ackclock doctor host settings
        ackclock doctor host settings --rate 1Gbit --rtt 80ms
    """
    rate_bps, rtt_s = _rate_bps(rate), _rtt_s(rtt)
    check_outputs(out)
    report(out, as_json=as_json, rate_bps=rate_bps, rtt_s=rtt_s)


@host.command("stalls")
@_duration
@_log
@_out
@_as_json
def stalls_(*, duration: str, log: Path | None, out: Path | None, as_json: bool) -> None:
    """Watch this host's clock for stalls, times in which no process ran, and their causes.

    Every millisecond it reads the clocks and the kernel's counters. A reading that is late by more than another
    millisecond is a gap: the scheduler ran another process, the hypervisor ran other guests (steal), the process was
    stopped, the machine was paused, or the clock was set.

    Examples:
        ackclock doctor host stalls --duration 10s
        ackclock doctor host stalls --duration 1h --log clock.csv
    """
    duration_s = _duration_s(duration)
    check_outputs(out, log)
    report(out, as_json=as_json, stalls=_watch(duration_s), log=log)


@host.command("disk")
@click.argument("folder", cls=Argument, metavar="DIR", type=FOLDER, help="A folder on the disk to measure.")
@_rate
@_repeats
@click.option(
    "--device", metavar="DEVICE", type=FILE, help="Also read this block device, bypassing its file system (root)."
)
@click.option("--force", is_flag=True, help="Also write the device. All data on it is lost.")
@_out
@_as_json
def disk_(
    *,
    folder: Path,
    rate: str | None,
    repeats: int,
    device: Path | None,
    force: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Measure how fast a disk writes and reads blocks of 4 KiB to 1 MiB, with and without the page cache.

    The test file has no name and vanishes when the command ends, however it ends; it takes at most a tenth of the free
    space. The measurements are interleaved, ten times each.

    Examples:
        ackclock doctor host disk .
        ackclock doctor host disk /var/captures --rate 300Mbit --json
        sudo ackclock doctor host disk /tmp --device /dev/sdb
    """
    if force and device is None:
        raise InputError("--force: found no --device; expected the block device that is to be overwritten")
    rate_bps = _rate_bps(rate)
    check_outputs(out)
    measured = _measure(folder, repeats=repeats, device=device, force=force)
    report(out, as_json=as_json, disk=measured, rate_bps=rate_bps)


def _watch(duration_s: float) -> Stalls:
    from ackclock.cli.terminal.output import progress
    from ackclock.doctor import clock_gaps

    with progress("Watching the clock") as report_progress:
        return clock_gaps.watch(duration_s, report_progress)


def _measure(folder: Path, **more: Any) -> Disk:
    from ackclock.cli.terminal.output import progress
    from ackclock.doctor import disk

    with progress("Measuring the disk") as report_progress:
        return disk.measure(folder, report_progress=report_progress, **more)


def _duration_s(text: str) -> float:
    from ackclock.input import units

    return options.parse_quantity("--duration", text, units.time_s, (0.01, 30 * 86400.0), "a time from 10ms to 720h")


def _rtt_s(text: str | None) -> float | None:
    from ackclock.input import units

    if text is None:
        return None
    return options.parse_quantity("--rtt", text, units.time_s, (1e-6, 1000.0), "a time from 1us to 1000s")


def _rate_bps(text: str | None) -> float | None:
    from ackclock.input import units

    return (
        None
        if text is None
        else options.parse_quantity("--rate", text, units.rate_bps, (1e-9, inf), "a rate above zero")
    )
