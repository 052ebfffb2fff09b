"""`ackclock capture`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from ackclock.cli.options import command

if TYPE_CHECKING:
    from ackclock.capture import Captured, CaptureSummary

Files: TypeAlias = Annotated[
    list[Path],
    typer.Argument(metavar="FILE...", help="Captures (pcap or pcapng, also as gz, zst or xz); - is standard input."),
]
Filter: TypeAlias = Annotated[
    str,
    typer.Option(
        "--filter", metavar="EXPR", help='Only these packets, in the syntax of tcpdump: "host 192.0.2.1 and port 443".'
    ),
]

ClockLog: TypeAlias = Annotated[
    Path | None,
    typer.Option("--clock", metavar="LOG", help="A log of gaps in the clock of the host, which explain silences."),
]


def capture(
    files: Files,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write what was found as a result, for report, plot and compare."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON, and nothing else.")] = False,
    expression: Filter = "",
    clock_log: ClockLog = None,
    join: Annotated[
        bool,
        typer.Option(
            "--join", help="Join two captures of the same flows from two points of their path: what was lost where."
        ),
    ] = False,
    segments: Annotated[
        bool,
        typer.Option("--segments", help="Also keep each segment and acknowledgement, for the figure sequence."),
    ] = False,
    tables: Annotated[
        bool,
        typer.Option(
            "--tables",
            help="Print the tables of published trace studies: by direction, over the flows, and loss epochs.",
        ),
    ] = False,
) -> None:
    """Report what happened to the TCP connections in packet captures: losses, retransmissions, RTTs, what limits them.

    Several files are read as one capture, in the order of time; with --join, two as captures of the same packets.

    Examples:
        ackclock capture upload.pcap

        ackclock capture day-*.pcap.zst --filter "port 443" --out results/day

        ackclock capture backbone.pcap --tables

        tcpdump -w - | ackclock capture - --json

        ackclock capture sender.pcap receiver.pcap --join
    """
    from ackclock import capture

    if out is None and not join and not tables:
        _print(capture.summarise(files, expression, clock_log=clock_log), as_json)
        return
    from ackclock.dataset.folders import check
    from ackclock.dataset.result_kind import Kind
    from ackclock.system.files import readable

    if out is not None:
        check(out, Kind.CAPTURE)
    segments = segments or tables
    if join:
        found = _joined(files, expression, clock_log=clock_log, command=command())
    else:
        found = capture.read(files, expression, clock_log=clock_log, segments=segments, command=command())
    _print(found, as_json)
    if tables:
        from ackclock.cli.terminal import trace_tables

        trace_tables.print_tables(found.data, err=as_json)
    if out is not None:
        typer.echo(f"wrote {readable(found.data.write(out))}", err=as_json)


def _print(found: CaptureSummary | Captured, as_json: bool) -> None:
    for note in found.notes:
        typer.echo(note, err=True)
    if as_json:
        typer.echo(json.dumps(found.analysis, allow_nan=False))
    else:
        from ackclock.cli.terminal import capture as terminal

        terminal.print_answers(found.analysis)


def _joined(files: list[Path], expression: str, **options: Any) -> Captured:
    from ackclock.capture import match
    from ackclock.errors import InputError

    if len(files) != 2:
        raise InputError(f"--join: found {len(files)} file{'s' if len(files) > 1 else ''}; expected two")
    return match.read(files[0], files[1], expression, **options)
