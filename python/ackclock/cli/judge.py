"""`ackclock judge`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ackclock.cli.command import FILE, Argument, Command

if TYPE_CHECKING:
    from ackclock.judge import Deviation, Judgement

#: Exit status if a connection deviates.
DEVIATES = 1

#: Names for `--as`, as in `ackclock.judge.NAMES`, which is not imported for a help text.
NAMES = ("reno", "cubic", "bbr3")


@click.command(cls=Command)
@click.argument(
    "file", cls=Argument, metavar="FILE", type=FILE, help="A qlog (JSON or JSON-SEQ, also gzip-compressed)."
)
@click.option(
    "--as",
    "specification",
    metavar="NAME",
    required=True,
    help="The specification: reno (RFC 9002), cubic (RFC 9438) or bbr3 (draft-ietf-ccwg-bbr-06).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON only.")
def judge(*, file: Path, specification: str, as_json: bool) -> None:
    """Judge a QUIC implementation's congestion controller by its specification, from its qlog.

    Each congestion window in the log is compared with that of ackclock's own controller, which is given the same
    acknowledgements, losses, marks and round-trip times. A window may differ by 2 datagrams or 3 %. For BBR the bounds
    of its model are compared, within 4 datagrams and 5 %. What the log does not show is undecided.

    Exit status: 0 no deviation, 1 deviations, otherwise as for all commands.

    Examples:
        ackclock judge server.sqlog --as cubic
        ackclock judge server.sqlog --as reno --json
        ackclock judge server.sqlog --as bbr3
    """
    from ackclock.judge import judge as judged

    results = judged(file, specification)
    if as_json:
        click.echo(json.dumps([one.as_json() for one in results], allow_nan=False))
    else:
        for one in results:
            _print(one)
    if any(one.deviations for one in results):
        raise click.exceptions.Exit(DEVIATES)


def _print(result: Judgement) -> None:
    from rich.text import Text

    from ackclock.cli.terminal import output
    from ackclock.judge import group

    console = output.console()
    console.print(Text(f"{result.title}: {result.summary}" if result.title else result.summary))
    groups = group(result.deviations)
    if groups:
        table = output.table("rule", "specified in", "first at", "expected", "found", "times", left=2)
        for rule, deviations in groups.items():
            first = deviations[0]
            cells = (f"{first.time_s:.3f} s", _expected(first), _value(rule, first.found), f"{len(deviations):,}")
            table.add_row(rule, first.section, *cells)
        console.print(table)
    for note in result.notes:
        click.echo(note, err=True)


def _expected(deviation: Deviation) -> str:
    """Return what is expected, as a range if it is wider than it can be read."""
    low, high = (_value(deviation.rule, value) for value in (deviation.expected_low, deviation.expected_high))
    return low if low == high else f"{low} to {high}"


def _value(rule: str, value: float) -> str:
    from ackclock.figures import numbers

    return numbers.value(value, "bit/s" if rule == "pacing" else "bytes")
