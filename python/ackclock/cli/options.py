"""Options that several commands share, each declared once."""

from __future__ import annotations

import dataclasses
import functools
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import click

from ackclock.cli import completion
from ackclock.cli.command import FILE, FOLDER, Argument
from ackclock.errors import InputError
from ackclock.input import cli_values
from ackclock.system.files import readable

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

scenario: Decorator = click.argument(
    "scenario", cls=Argument, metavar="SCENARIO", type=FILE, help="Scenario file (TOML); - is standard input."
)


def algorithm(known: completion.Source, description: str) -> Decorator:
    """Declare the argument NAME: an algorithm, completed from those that are known."""
    return click.argument(
        "name", cls=Argument, metavar="NAME", shell_complete=completion.one_of(known), help=description
    )


def paths(name: str, metavar: str, kind: click.Path, description: str, **more: Any) -> Decorator:
    """Declare an argument of one path or more."""
    return click.argument(
        name, cls=Argument, metavar=metavar, type=kind, nargs=-1, required=True, help=description, **more
    )


captures: Decorator = paths(
    "files",
    "FILE...",
    FILE,
    "Captures (pcap or pcapng, also compressed by gzip, zstd or xz); - is standard input.",
    shell_complete=completion.subcommand_or("file", "host"),
)


def engine_list(help: str) -> Decorator:
    """Declare `--engine`, a list."""
    return click.option(
        "--engine",
        metavar="NAME[,NAME]",
        default="packet",
        shell_complete=completion.list_of(completion.engines),
        help=help,
    )


def dry_run_flag(help: str) -> Decorator:
    """Declare `--dry-run`."""
    return click.option("--dry-run", is_flag=True, help=help)


engines = engine_list(f"Engines to run: {', '.join(completion.engines())}; differences are relative to the first.")


kernel: Decorator = click.option(
    "--kernel",
    metavar="KERNEL",
    help="Kernel for the engine linux, instead of the scenario's: guest, live (the running one), or the version or "
    "path of a guest kernel.",
)
ssh_config: Decorator = click.option(
    "--ssh-config", metavar="FILE", type=FILE, help="ssh configuration for a testbed's hosts (ssh -F)."
)
module: Decorator = click.option(
    "--module",
    metavar="FILE",
    type=FILE,
    help="Your own congestion control algorithm: mine.py is one in Python for the engine packet; for the engine linux "
    "mine.c is compiled for the guest, mine.bpf.c for --kernel live.",
)
stack: Decorator = click.option(
    "--stack",
    "stacks",
    metavar="NAME=FILE",
    multiple=True,
    help="Your own transport stack, a shared library with the functions of ackclock.h; scenarios name it by "
    'stack = "NAME" (engine packet); repeatable.',
)
perturb: Decorator = click.option(
    "--perturb",
    is_flag=True,
    help="Repeat the run with noise in host processing times, and report whether the result is a phase effect.",
)
seed: Decorator = click.option("--seed", metavar="N", type=int, help="Run once (each point) with this seed.")
repeats: Decorator = click.option("--repeats", metavar="N", type=int, help="Run (each point) with the seeds 1 to N.")
as_json: Decorator = click.option(
    "--json", "as_json", is_flag=True, help="Print the metrics as JSON only, one line for each result."
)
report: Decorator = click.option("--report/--no-report", default=True, help="Write report.html into the folder.")
jobs: Decorator = click.option("--jobs", metavar="N", type=int, help="Parallel runs (default: one per core).")
threads: Decorator = click.option(
    "--threads", metavar="N", type=int, default=1, help="Threads of each run, for networks of nodes (default: 1)."
)
settings: Decorator = click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    shell_complete=completion.assignment(),
    help="Override a key of the scenario, or limit, discipline, queue, rate, rtt, flows or congestion; repeatable.",
)
where: Decorator = click.option(
    "--where",
    metavar="KEY=VALUE[,VALUE]",
    multiple=True,
    shell_complete=completion.assignment(several=True),
    help="Only points with one of these values.",
)
scheduler: Decorator = click.option(
    "--scheduler", metavar="ADDRESS", help="Run on the workers of this Dask scheduler, such as tcp://HOST:8786."
)
cluster: Decorator = click.option(
    "--cluster",
    metavar="KIND:N",
    shell_complete=completion.one_of(completion.clusters),
    help="Start N workers and run on them: local, or a batch system such as slurm.",
)
dry_run = dry_run_flag("Print what would be run and its approximate cost; write nothing.")
require: Decorator = click.option(
    "--require",
    metavar="'METRIC >= VALUE'",
    multiple=True,
    shell_complete=completion.one_of(completion.scalar_metrics),
    help="A requirement on the mean over the seeds, with >= or <=; repeatable.",
)
best: Decorator = click.option(
    "--best",
    metavar="min:METRIC",
    multiple=True,
    shell_complete=completion.objective,
    help="An objective, min: or max:; several give the Pareto frontier.",
)
restart: Decorator = click.option("--restart", is_flag=True, help="Discard the runs in the folder and start over.")


def _all(*decorators: Decorator) -> Decorator:
    """Apply decorators in the order in which the help lists their options."""

    def apply(command: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return apply


#: Options of commands whose runs may be made on a cluster.
parallel = _all(jobs, scheduler, cluster)


#: Options of `run`, `sweep` and `compare` that define what is run.
experiment = _all(engines, kernel, ssh_config, module, stack, settings, seed, repeats)


def collected(command: Callable[..., None]) -> Callable[..., None]:
    """Pass the options that `run_jobs.Options` has to a command as one argument, the first, and the others by name."""

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        from ackclock.cli.run_jobs import Options

        names = [field.name for field in dataclasses.fields(Options) if field.name in given]
        chosen = Options(**{name: given.pop(name) for name in names}, command=command_line())
        command(chosen, **given)

    return with_options


def metrics(help: str) -> Decorator:
    """Declare `--metrics`, a list."""
    return click.option(
        "--metrics", metavar="NAME[,NAME]", shell_complete=completion.list_of(completion.metrics), help=help
    )


def out(help: str, *, required: bool = False) -> Decorator:
    """Declare `--out`, a folder."""
    return click.option("--out", metavar="DIR", type=FOLDER, required=required, help=help)


def out_file(help: str) -> Decorator:
    """Declare `--out`, a file."""
    return click.option("--out", metavar="FILE", type=FILE, help=help)


def json_flag(help: str) -> Decorator:
    """Declare `--json` of a command that prints something other than metrics."""
    return click.option("--json", "as_json", is_flag=True, help=help)


def command_line() -> str:
    """Return the command as it was typed, for the manifest."""
    return readable(shlex.join(["ackclock", *sys.argv[1:]]))


def selected_values(given: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of each key of `--where KEY=VALUE,VALUE`. Raises `InputError`."""
    from ackclock.input.fields import shown

    values: dict[str, list[str]] = {}
    for text in given:
        key, sign, listed = text.partition("=")
        if not sign:
            raise InputError(f"--where: found {shown(text)}; expected KEY=VALUE, such as network.queue.limit=1bdp")
        values.setdefault(key.strip(), []).extend(cli_values.items(listed))
    return values


def parse_quantity(
    option: str, text: str, parse: Callable[[str], float], bounds: tuple[float, float], expected: str
) -> float:
    """Parse a quantity with its unit, within bounds. Raises `InputError`."""
    from ackclock.input.fields import shown

    try:
        value = parse(text)
    except ValueError as error:
        raise InputError(f"{option}: found {shown(text)}; {error}") from error
    if not bounds[0] <= value <= bounds[1]:
        raise InputError(f"{option}: found {shown(text)}; expected {expected}")
    return value
