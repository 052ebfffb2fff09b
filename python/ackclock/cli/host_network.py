"""`ackclock doctor host network`, and the results of all commands of `ackclock doctor host`.

Results are checked before the work, printed and written after it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ackclock.cli import options
from ackclock.cli.command import FILE, Argument, Command
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
    """Print the measurements and findings, and write them where an option says so."""
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
