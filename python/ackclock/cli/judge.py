"""`ackclock judge`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ackclock.cli import options
from ackclock.cli.command import FILE, Command
from ackclock.errors import InputError
from ackclock.repr_format import counted
from ackclock.system.files import readable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ackclock.judge import Deviation, Judgement

#: Exit status if a connection deviates.
DEVIATES = 1

#: Verdicts, in the order in which they are counted.
VERDICTS = ("agrees", "deviates", "undecided")

#: Names for `--as`, as in `ackclock.judge.NAMES`, which is not imported for a help text.
NAMES = ("reno", "cubic", "bbr3")


@click.command(cls=Command)
@options.paths("files", "FILE...", FILE, "Logs in qlog (JSON or JSON-SEQ, also gzip-compressed).")
@click.option(
    "--as",
    "specification",
    metavar="NAME",
    required=True,
    help="The specification: reno (RFC 9002), cubic (RFC 9438) or bbr3 (draft-ietf-ccwg-bbr-06).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON only.")
def judge(*, files: tuple[Path, ...], specification: str, as_json: bool) -> None:
    """Judge a QUIC implementation's congestion controller by its specification, from its qlog.

    Each congestion window in the log is compared with that of ackclock's own controller, which is given the same
    acknowledgements, losses, marks and round-trip times. A window may differ by 2 datagrams or 3 %. For BBR the bounds
    of its model are compared, within 4 datagrams and 5 %. What the log does not show is undecided.

    Of several logs those that cannot be judged are named at the end.

    Exit status: 0 no deviation, 1 deviations, otherwise as for all commands.

    Examples:
        ackclock judge server.sqlog --as cubic
        ackclock judge server.sqlog --as reno --json
        ackclock judge logs/*.sqlog --as bbr3
    """
    from ackclock.judge import judge as judged

    by_file, errors = dict[Path, "Sequence[Judgement]"](), dict[str, None]()
    for file in files:
        try:
            by_file[file] = judged(file, specification)
        except InputError as error:
            errors[str(error)] = None
    results = [one for judgements in by_file.values() for one in judgements]
    if as_json:
        records = [{"file": str(file)} | one.as_json() for file, judgements in by_file.items() for one in judgements]
        click.echo(json.dumps(records, allow_nan=False))
    else:
        for file, judgements in by_file.items():
            if len(files) > 1:
                click.echo(f"{readable(file)}:")
            for one in judgements:
                _print(one, f"{readable(file)}: " if len(files) > 1 else "")
        if len(by_file) > 1:
            click.echo(_sum(len(by_file), results))
    if errors:
        raise InputError("\n".join(errors))
    if any(one.deviations for one in results):
        raise click.exceptions.Exit(DEVIATES)


def _sum(logs: int, results: Sequence[Judgement]) -> str:
    """Return the connections by verdict, on one line."""
    verdicts = Counter(one.verdict for one in results)
    counts = (f"{verdict} {verdicts[verdict]:,}" for verdict in VERDICTS)
    return f"{counted(logs, 'log')}, {counted(len(results), 'connection')}: {', '.join(counts)}"


def _print(result: Judgement, place: str) -> None:
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
        click.echo(f"{place}{note}", err=True)


def _expected(deviation: Deviation) -> str:
    """Return what is expected, as a range if it is wider than it can be read."""
    low, high = (_value(deviation.rule, value) for value in (deviation.expected_low, deviation.expected_high))
    return low if low == high else f"{low} to {high}"


def _value(rule: str, value: float) -> str:
    from ackclock.figures import numbers
    from ackclock.judge.rules import UNITS

    return numbers.value(value, UNITS.get(rule, "bytes"))
