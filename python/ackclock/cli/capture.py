"""`ackclock capture`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ackclock.cli import options
from ackclock.cli.command import FILE, Command
from ackclock.errors import InputError
from ackclock.system.files import readable

if TYPE_CHECKING:
    from ackclock.capture import Captured, CaptureSummary

packet_filter: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--filter",
    "expression",
    metavar="EXPR",
    default="",
    show_default=False,
    help='Only these packets, in tcpdump syntax (pcap-filter): "host 192.0.2.1 and tcp port 443".',
)
clock_log: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--clock-log",
    metavar="LOG",
    type=FILE,
    help="Log of gaps in the host's clock (`ackclock doctor host stalls --log`), to explain stalls.",
)


@click.command(cls=Command)
@options.captures
@options.out("Write a result, for report and plot.")
@options.json_flag("Print one line of JSON only.")
@packet_filter
@clock_log
@click.option(
    "--join",
    is_flag=True,
    help="Match two captures of the same flows from two vantage points: where packets were lost, one-way delays.",
)
@click.option("--segments", is_flag=True, help="Keep each segment and acknowledgement, for `ackclock plot … sequence`.")
@click.option(
    "--tables",
    is_flag=True,
    help="Print trace-study statistics: retransmissions by direction, distributions over the flows, loss epochs.",
)
def capture(
    *,
    files: Sequence[Path],
    out: Path | None,
    as_json: bool,
    expression: str,
    clock_log: Path | None,
    join: bool,
    segments: bool,
    tables: bool,
) -> None:
    """Analyse TCP connections in packet captures: losses, retransmissions, RTTs, stalls, limiting factors, the CCA.

    Several files are read as one capture, merged by time. If they have the same packets, they are of several vantage
    points, and each is analysed alone; --join matches the packets of two.

    QUIC connections and other flows of UDP are listed with what is visible without keys.

    A qlog (JSON or JSON-SEQ) is analysed as its QUIC connections, with the windows and RTTs that it reports.

    Examples:
        ackclock capture upload.pcap
        ackclock capture day-*.pcap.zst --filter "port 443" --out results/day
        ackclock capture backbone.pcap --tables
        tcpdump -w - | ackclock capture - --json
        ackclock capture sender.pcap receiver.pcap --join
        ackclock capture server.sqlog
    """
    from ackclock.capture import read, summarise
    from ackclock.capture.vantage_points import SeveralVantagePointsError

    if _are_qlogs(files):
        given = {
            "--filter": expression,
            "--clock-log": clock_log,
            "--join": join,
            "--segments": segments,
            "--tables": tables,
        }
        _analyse_qlogs(files, out, as_json, [name for name, value in given.items() if value])
        return
    if out is None and not join and not tables:
        try:
            _print(summarise(files, expression, clock_log=clock_log), as_json)
        except SeveralVantagePointsError as several:
            _print_each(several.groups, expression, clock_log, as_json=as_json)
        return
    from ackclock.dataset.folders import check
    from ackclock.dataset.result_kind import Kind

    if out is not None:
        check(out, Kind.CAPTURE)
    if join:
        analysis = _matched(files, expression, clock_log=clock_log, command=options.command_line())
    else:
        analysis = read(
            files,
            expression,
            clock_log=clock_log,
            segments=segments or tables,
            command=options.command_line(),
        )
    _print(analysis, as_json)
    if tables:
        from ackclock.cli.terminal import trace_tables

        trace_tables.print_tables(analysis.data, err=as_json)
    if out is not None:
        click.echo(f"wrote {readable(analysis.data.write(out))}", err=as_json)


def _are_qlogs(files: Sequence[Path]) -> bool:
    """Return True if all files are logs of QUIC. Raises `InputError` if some are."""
    from ackclock.qlog.records import is_qlog

    logs = [path for path in files if is_qlog(path)]
    if logs and len(logs) < len(files):
        raise InputError(f"{readable(logs[0])}: found a qlog among captures; expected qlogs only, or captures only")
    return bool(logs)


def _analyse_qlogs(files: Sequence[Path], out: Path | None, as_json: bool, others: Sequence[str]) -> None:
    from ackclock.capture import qlog

    if others:
        raise InputError(f"{others[0]}: found {readable(files[0])}, a qlog; expected captures of packets")
    if out is None:
        _print(qlog.summarise(files), as_json)
        return
    from ackclock.dataset.folders import check
    from ackclock.dataset.result_kind import Kind

    check(out, Kind.CAPTURE)
    analysis = qlog.read(files, options.command_line())
    _print(analysis, as_json)
    click.echo(f"wrote {readable(analysis.data.write(out))}", err=as_json)


def _print(analysis: CaptureSummary | Captured, as_json: bool) -> None:
    for note in analysis.notes:
        click.echo(note, err=True)
    if as_json:
        click.echo(json.dumps(analysis.analysis, allow_nan=False))
    else:
        from ackclock.cli.terminal import capture as terminal

        terminal.print_analysis(analysis.analysis)


def _print_each(groups: Sequence[Sequence[Path]], expression: str, clock_log: Path | None, *, as_json: bool) -> None:
    """Print the analysis of each vantage point."""
    from ackclock.capture import summarise

    points = [summarise(group, expression, clock_log=clock_log) for group in groups]
    if as_json:
        for note in (note for point in points for note in point.notes):
            click.echo(note, err=True)
        click.echo(json.dumps({"vantage_points": [point.analysis for point in points]}, allow_nan=False))
        return
    click.echo(f"The captures have the same packets, of {len(groups)} vantage points: --join matches two.")
    for group, point in zip(groups, points, strict=True):
        click.echo(f"\n{', '.join(map(readable, group))}:")
        _print(point, as_json)


def _matched(files: Sequence[Path], expression: str, **more: Any) -> Captured:
    from ackclock.capture import match

    if len(files) != 2:
        raise InputError(f"--join: found {len(files)} file{'s' if len(files) > 1 else ''}; expected two")
    return match.read(files[0], files[1], expression, **more)
