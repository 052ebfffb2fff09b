"""Options that several commands of the command line have, each said once."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from ackclock.completion import words as completing
from ackclock.engines import ENGINES
from ackclock.errors import InputError
from ackclock.system.files import readable

Engines: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="NAME[,NAME]",
        help=f"Engines to run it with, of {', '.join(ENGINES)}; differences are relative to the first.",
        autocompletion=completing.of("engines,"),
    ),
]
Kernel: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="KERNEL",
        help="The engine linux's kernel, in place of the scenario's: guest, live (this machine's own), or the version "
        "or path of a guest.",
    ),
]
SshConfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--ssh-config", metavar="FILE", help="A testbed's hosts are reached with this configuration of ssh (its -F)."
    ),
]
Module: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Give the engine linux's kernel a congestion control of yours: mine.c is compiled for the guest, "
        "mine.bpf.c for --kernel live.",
    ),
]
CheckPhase: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--check-phase",
        help="Also run a noisy twin, and say whether the result depends on a coincidence of phases.",
    ),
]
Seed: TypeAlias = Annotated[int | None, typer.Option(metavar="N", help="One run (of each point) with this seed.")]
Repeats: TypeAlias = Annotated[int | None, typer.Option(metavar="N", help="Run (each point) with the seeds 1 to N.")]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print the metrics as JSON, a line for each result, and nothing else.")
]
Report: TypeAlias = Annotated[bool, typer.Option(help="Write report.html into the folder.")]
Jobs: TypeAlias = Annotated[int | None, typer.Option(metavar="N", help="Runs at a time (default: one per core).")]
Set: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a key of the scenario to another value; repeatable.",
        autocompletion=completing.of("keys="),
    ),
]
Where: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE[,VALUE]",
        help="Only the points that have one of these.",
        autocompletion=completing.of("keys=,"),
    ),
]

Scheduler: TypeAlias = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Run it on the workers of this Dask scheduler: tcp://HOST:8786.")
]
Cluster: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="KIND:N",
        help="Start N workers and run it there: local, or a batch system such as slurm.",
        autocompletion=completing.of("clusters"),
    ),
]

DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Print what would be run and its approximate cost; run nothing.")
]


def command() -> str:
    """The command as it was typed, for the manifest."""
    return readable(shlex.join(["ackclock", *sys.argv[1:]]))


def having(given: Sequence[str] | None) -> dict[str, list[str]]:
    """`KEY=VALUE,VALUE` each, the values of a key together."""
    from ackclock.input import cli_values
    from ackclock.input.fields import shown

    found: dict[str, list[str]] = {}
    for text in given or ():
        key, sign, values = text.partition("=")
        if not sign:
            raise InputError(f"--where: found {shown(text)}; expected KEY=VALUE, such as network.queue.limit=1bdp")
        found.setdefault(key.strip(), []).extend(cli_values.items(values))
    return found
