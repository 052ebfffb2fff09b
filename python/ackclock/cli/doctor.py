"""`ackclock doctor`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ackclock.cli.capture import ClockLog, Files, Filter


def doctor(
    files: Files,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON, and nothing else.")] = False,
    expression: Filter = "",
    clock_log: ClockLog = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FILE", help="Write a page with figures next to each sentence; it opens offline."
        ),
    ] = None,
) -> None:
    """Say why transfers in packet captures were slow: network, host, capture, shaper, receiver or application.

    A result of `ackclock capture --out` may take the place of the captures.
    Each sentence comes with its figures, the share of the time that it cost, and what to do next.

    The exit status is 0 if nothing stands out, 10 for the network, 11 for the host, 12 for the capture, 13 for a shaper
    or policer, 14 for the receiver, 15 for the application, 19 if that is undecided.

    `ackclock doctor host` examines this host instead: its clock, its disk, its settings.

    Examples:
        ackclock doctor slow.pcap

        ackclock doctor sender.pcap.gz --filter "host 192.0.2.1" --json

        ackclock doctor slow.pcap --html why.html
    """
    from ackclock import capture
    from ackclock.capture.diagnosis import diagnose
    from ackclock.cli.terminal import capture as terminal
    from ackclock.errors import InputError
    from ackclock.system.files import readable

    if html is not None:
        _check_page(html)
    if len(files) == 1 and files[0].is_dir():
        if expression:
            raise InputError(f"--filter: found {readable(files[0])}, a result; expected captures")
        found = capture.of_result(files[0], clock_log)
    else:
        found = capture.read(files, expression, clock_log=clock_log, segments=html is not None)
    for note in found.notes:
        typer.echo(note, err=True)
    diagnosis = diagnose(found.analysis)
    if as_json:
        typer.echo(json.dumps({**diagnosis.as_dict(), "answers": found.analysis}, allow_nan=False))
    else:
        terminal.print_diagnosis(found.analysis, diagnosis)
    if html is not None:
        from ackclock.figures.report import diagnosis as page_of

        page = page_of.write(found.data, found.analysis, diagnosis, html)
        typer.echo(f"wrote {readable(page)}", err=as_json)
    raise typer.Exit(diagnosis.verdict.exit_status)


def _check_page(path: Path) -> None:
    """Only a page is replaced by a page. Raises `InputError`."""
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
