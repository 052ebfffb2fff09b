"""`ackclock doctor host`: this host itself."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ackclock.cli import options
from ackclock.cli.command import FILE, FOLDER, Argument, Group
from ackclock.cli.host_network import check_outputs, report
from ackclock.cli.host_network import network as network_
from ackclock.errors import InputError

if TYPE_CHECKING:
    from ackclock.doctor.clock_gaps import Stalls
    from ackclock.doctor.disk import Disk

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


host.add_command(network_)


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
