"""`ackclock shell`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ackclock.cli import options
from ackclock.cli.command import Argument, Command

if TYPE_CHECKING:
    from ackclock.cli.run_jobs import Options
    from ackclock.shell.session import Command as Program
    from ackclock.shell.session import Network

#: Status of a shell whose command is not found.
NO_PROGRAM = 127

#: Names by which a program finds servers at its own end only.
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


@click.command(cls=Command)
@options.scenario
@click.argument(
    "program",
    cls=Argument,
    metavar="[-- PROGRAM...]",
    nargs=-1,
    help="The program and its arguments (default: $SHELL).",
)
@click.option("--peer", metavar="COMMAND", help="Command of the server at the other end, for sh -c.")
@click.option(
    "--at",
    "hosts",
    metavar="HOST COMMAND",
    nargs=2,
    multiple=True,
    help="Command at a host of the scenario, for sh -c; repeatable: the last is the program.",
)
@click.option("--mtu", metavar="BYTES", type=click.IntRange(576, 65535), default=1500, help="MTU of both ends.")
@click.option("--internet", is_flag=True, help="Reach real servers: other addresses lie behind the peer's end.")
@options.seed
@options.settings
@options.out("Folder of the result (default: results/SCENARIO-shell, with --set also -KEY-…).")
@click.option("--pcap", is_flag=True, help="Capture the packets at each end, and where record.pcap asks for it.")
@options.report
@options.collected
def shell(
    chosen: Options,
    *,
    scenario: Path,
    program: Sequence[str],
    peer: str | None,
    hosts: Sequence[tuple[str, str]],
    mtu: int,
    internet: bool,
    pcap: bool,
) -> None:
    """Run a program whose packets cross a scenario's network in real time.

    The program is at the receivers' end: what it downloads is queued, delayed and lost as the data of the scenario's
    flows, which are simulated beside it. The server (--peer) is at the senders' end, with the name "peer" and the
    address $ACKCLOCK_PEER; with --internet all other servers are behind that end, too. Nothing outside the
    namespaces is touched, and no root is needed. The exit status is the program's. Options stand before the scenario.

    In a network of hosts (graph, fat tree, leaf–spine), --at puts commands at hosts, which know each other by name. The
    last one is the program; it starts when the others listen. With --internet, real servers are behind the first.

    Examples:
        ackclock shell --peer 'python3 -m http.server 80' scenarios/dumbbell.toml -- curl -so page http://peer/
        ackclock shell --peer 'iperf3 -s' --pcap mine.toml -- iperf3 -c peer -R
        ackclock shell --set network.rate=2Mbit mine.toml
        ackclock shell --internet mine.toml -- curl -sO https://www.rfc-editor.org/rfc/rfc9438.txt
        ackclock shell --at h0 'iperf3 -s' --at h5 'iperf3 -c h0' scenarios/fat-tree.toml
    """
    from ackclock.cli import run_jobs
    from ackclock.cli.terminal import output, result
    from ackclock.dataset import folders
    from ackclock.dataset.manifests import CAPTURES
    from ackclock.dataset.result_kind import Kind
    from ackclock.errors import AckclockError
    from ackclock.scenario import planning
    from ackclock.shell import plans
    from ackclock.shell.session import Network

    if hosts and (program or peer):
        raise click.UsageError(
            "--at: found a program or --peer as well; expected commands at hosts, the last the program"
        )
    words = program or (os.environ.get("SHELL", "sh"),)
    if not hosts and shutil.which(words[0]) is None:  # before anything is replaced
        click.echo(f"{words[0]}: No such program", err=True)
        sys.exit(NO_PROGRAM)
    nodes = tuple(dict.fromkeys(host for host, _ in hosts))
    loaded = run_jobs.apply_options(lambda: plans.with_programs(planning.source(scenario), nodes), chosen)
    plan = plans.planned(loaded, run_jobs.seeds(chosen), nodes)
    suffix = run_jobs.settings_suffix(chosen.settings)
    folder = run_jobs.result_folder(scenario, "shell", chosen.out, several=False, suffix=suffix)
    folders.check(folder, Kind.RUN)
    job = run_jobs.Job(plan, "packet", folder, chosen)
    errors: list[AckclockError] = []
    with folders.staging_folder(folder) as private:
        captures = private / CAPTURES if pcap else None
        ends = nodes or plans.ENDS
        network = Network(
            plan, ends, peer=peer, mtu=mtu, captures=captures, internet=internet, command_line=chosen.command
        )
        with network:
            network.serve(hosts[:-1])
            at, command = hosts[-1] if hosts else (None, words)
            status = _status(network, command, at)
        data = network.dataset()
        data.write(folder, captures, lambda new: errors.extend(job.write_report(data, new)))
    for error in errors:
        raise error
    result.print_result(data, data.metrics(), err=True)
    time_kept, warnings = network.time_kept
    output.console(err=True).print(time_kept)
    for sentence in warnings:
        click.echo(f"warning: {sentence}", err=True)
    for path in (*job.outputs(), *([folder / CAPTURES] if pcap else [])):
        click.echo(f"wrote {path}", err=True)
    if status and (name := next((name for name in LOOPBACK if any(name in word for word in words)), None)):
        click.echo(f"hint: {name} is the program's own end; {_servers(internet=internet)}", err=True)
    sys.exit(status)


def _servers(*, internet: bool) -> str:
    """Return which names servers have in the network."""
    if internet:
        return 'a server on this machine has the name "host", the one of --peer the name "peer"'
    return 'the server of --peer has the name "peer"; with --internet one on this machine has the name "host"'


def _status(network: Network, program: Program, at: str | None) -> int:
    """Run the program in the foreground of the terminal; return its status as a shell does."""
    from ackclock.shell.session import signals_for_program

    try:
        with signals_for_program():
            code = network.run(program, at=at).returncode
    except OSError as error:
        click.echo(f"{error.filename}: {error.strerror}", err=True)
        return NO_PROGRAM
    return code if code >= 0 else 128 - code
