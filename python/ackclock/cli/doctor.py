"""`ackclock doctor`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from ackclock.cli import options
from ackclock.cli.capture import clock_log, packet_filter
from ackclock.cli.command import FILE, FilesOrCommand
from ackclock.cli.host import host
from ackclock.errors import InputError
from ackclock.system.files import readable


@click.command(cls=FilesOrCommand, subcommands=[host])
@options.captures
@options.json_flag("Print one line of JSON only.")
@packet_filter
@clock_log
@click.option(
    "--html", metavar="FILE", type=FILE, help="Write a page with a figure next to each finding; it opens offline."
)
def doctor(*, files: Sequence[Path], as_json: bool, expression: str, clock_log: Path | None, html: Path | None) -> None:
    """Diagnose slow transfers in packet captures: network, host, capture, shaper, receiver or application.

    Several files are of one vantage point, or of several of the same connections: then each is examined alone, and the
    verdict is theirs if they agree. A result of `ackclock capture --out` can take the place of the captures. Each
    finding has its evidence, the share of the time that it cost, and what to do next.

    The exit status is 0 if nothing is wrong, 10 for the network, 11 for the host, 12 for the capture, 13 for a shaper
    or policer, 14 for the receiver, 15 for the application, 19 if that is undecided.

    `ackclock doctor host` examines this host instead: its clock, its disk, its settings.

    Examples:
        ackclock doctor slow.pcap
        ackclock doctor sender.pcap.gz --filter "host 192.0.2.1" --json
        ackclock doctor slow.pcap --html why.html
        ackclock doctor sender.pcap receiver.pcap
    """
    from ackclock.capture import of_result, read
    from ackclock.capture.diagnosis import diagnose
    from ackclock.capture.vantage_points import SeveralVantagePointsError
    from ackclock.cli.terminal import capture as terminal

    if html is not None:
        _check_page(html)
    if len(files) == 1 and files[0].is_dir():
        if expression:
            raise InputError(f"--filter: found {readable(files[0])}, a result; expected captures")
        analysis = of_result(files[0], clock_log)
    else:
        try:
            analysis = read(files, expression, clock_log=clock_log, segments=html is not None)
        except SeveralVantagePointsError as several:
            if html is not None:
                raise
            _diagnose_each(several.groups, expression, clock_log, as_json=as_json)
    for note in analysis.notes:
        click.echo(note, err=True)
    diagnosis = diagnose(analysis.analysis)
    if as_json:
        click.echo(json.dumps({**diagnosis.as_dict(), "answers": analysis.analysis}, allow_nan=False))
    else:
        terminal.print_diagnosis(analysis.analysis, diagnosis)
    if html is not None:
        from ackclock.figures.report import diagnosis as page

        click.echo(f"wrote {readable(page.write(analysis.data, analysis.analysis, diagnosis, html))}", err=as_json)
    raise click.exceptions.Exit(diagnosis.verdict.exit_status)


def _diagnose_each(
    groups: Sequence[Sequence[Path]], expression: str, clock_log: Path | None, *, as_json: bool
) -> NoReturn:
    """Diagnose captures of several vantage points, each alone, print whether they agree, and exit by the verdict."""
    from ackclock.capture import summarise
    from ackclock.capture.agreement import Point, compare
    from ackclock.capture.diagnosis import diagnose
    from ackclock.cli.terminal import capture as terminal

    points = []
    for group in groups:
        summary = summarise(group, expression, clock_log=clock_log)
        for note in summary.notes:
            click.echo(note, err=True)
        points.append(Point(group, summary.analysis, diagnose(summary.analysis)))
    agreement = compare(points)
    if as_json:
        each = [
            {"files": [str(path) for path in point.files], **point.diagnosis.as_dict(), "answers": point.analysis}
            for point in points
        ]
        about = {"verdict": agreement.verdict.name.lower(), "agree": agreement.agree, "sentence": agreement.sentence}
        click.echo(json.dumps({**about, "vantage_points": each}, allow_nan=False))
    else:
        terminal.print_diagnoses(points, agreement)
    raise click.exceptions.Exit(agreement.verdict.exit_status)


def _check_page(path: Path) -> None:
    """Raise `InputError` for a path that is not a page, or that cannot be written."""
    from ackclock.dataset.folders import staging_folder
    from ackclock.errors import InputError
    from ackclock.system.files import readable

    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--html: found {readable(path)}; expected a file name that ends in .html")
    if not path.parent.is_dir():
        raise InputError(f"--html: {readable(path.parent)}: found no such directory")
    if path.exists() and not path.is_file():
        raise InputError(f"--html: {readable(path)}: found no regular file; expected a page, or nothing")
    staging_folder(path).close()
