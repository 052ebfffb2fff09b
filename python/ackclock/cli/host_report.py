"""The results of `ackclock doctor host` and its commands: checked before the work, printed and written after it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ackclock.cli import options
from ackclock.errors import InputError
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
    log: Path | None = None,
) -> None:
    """Print the measurements and findings, and write them where an option says so."""
    from ackclock.cli.terminal import host as terminal
    from ackclock.doctor import clock_gaps, examined

    found = examined(stalls=stalls, disk=disk, network=network, rate_bps=rate_bps, command=options.command_line())
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
