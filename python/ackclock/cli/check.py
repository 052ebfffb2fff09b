"""`ackclock check`: the integrity of results, and the contract of algorithms."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ackclock.cli import completion, options
from ackclock.cli.command import FILE, FOLDER, Argument, Command, FilesOrCommand
from ackclock.errors import InputError

if TYPE_CHECKING:
    from ackclock.dataset.manifests import Checked
    from ackclock.scaffold.contract import Clause
    from ackclock.scaffold.new import Family


@click.command(cls=Command)
@options.algorithm(completion.congestion, "A congestion control algorithm of the packet engine.")
@click.option("--module", metavar="FILE", type=FILE, help="The Python file that the algorithm is in.")
def control(*, name: str, module: Path | None) -> None:
    """Check in seconds that a congestion control algorithm, as built, satisfies the contract of all of them.

    Its spec is complete; the code takes the spec's parameters and no others; windows stay valid in random histories of
    a connection; runs are deterministic. The exit status is 2 if any of this fails.

    Examples:
        ackclock check control cubic
        ackclock check control mine --module mine.py
    """
    from ackclock.scaffold import contract
    from ackclock.scaffold.new import CONTROL

    if module is not None:
        from ackclock.algorithms import prototype

        prototype.load(module)
    _check_clauses(name, contract.congestion_clauses(name), CONTROL)


@click.command(cls=Command)
@options.algorithm(completion.queues, "A queue discipline of the packet engine.")
def queue(*, name: str) -> None:
    """Check in seconds that a queue discipline, as built, satisfies the contract of all of them.

    Its spec is complete; the code takes the spec's parameters and no others; runs are deterministic, and all flows
    deliver data. The exit status is 2 if any of this fails.

    Examples:
        ackclock check queue codel
    """
    from ackclock.scaffold import contract
    from ackclock.scaffold.new import QUEUE

    _check_clauses(name, contract.queue_clauses(name), QUEUE)


@click.command(cls=Command)
@click.argument("library", cls=Argument, metavar="FILE", type=FILE, help="The shared library, such as mine.so.")
def stack(*, library: Path) -> None:
    """Check in seconds that a transport stack satisfies the contract of ackclock.h.

    It connects, transfers under loss, reordering and duplication, ignores foreign datagrams, rests when it is idle and
    backs off without any reply; runs are deterministic, whatever the host's clock. The exit status is 2 if any of
    this fails.

    Examples:
        ackclock check stack mine.so
    """
    from ackclock.scaffold import stack_contract

    if not library.is_file():
        raise InputError(f"{library}: found no such file; expected a shared library")
    _report(str(library), stack_contract.clauses(library))


def _check_clauses(name: str, clauses: Iterable[Clause], family: Family) -> None:
    from ackclock import algorithms
    from ackclock.algorithms import code

    if changed := code.stale(name, family.sources, family.list_file):
        click.echo(f"warning: {changed} is newer than what is built; `make setup` builds it", err=True)
    try:
        _report(name, clauses)
    finally:
        if name not in algorithms.in_python():
            click.echo(f"its own tests: cargo test -p {family.crate} {name}", err=True)


def _report(name: str, clauses: Iterable[Clause]) -> None:
    """Print the clauses as they are checked. Raises `InputError` if one is violated."""
    violated = 0
    for clause in clauses:
        click.echo(f"{'violated' if clause.violations else 'ok'}: {clause.text}")
        for violation in clause.violations:
            click.echo(f"    {violation}")
        violated += bool(clause.violations)
    if violated:
        raise InputError(f"{name}: found {violated} of the contract violated; expected all of it kept")


@click.command(cls=FilesOrCommand, subcommands=[control, queue, stack])
@options.paths(
    "places",
    "DIR...",
    FOLDER,
    "Results, or folders with results in them.",
    shell_complete=completion.subcommand_or("dir", "control", "queue", "stack"),
)
@options.json_flag("Print JSON only, one line for each result.")
def check(*, places: Sequence[Path], as_json: bool) -> None:
    """Verify that results are intact: every table, capture and manifest, by its SHA-256.

    Prints a line for each result in the folders, whatever command wrote it. Of an unfinished sweep the finished parts
    are checked. The exit status is 2 if any result is damaged.

    `ackclock check control NAME` and `ackclock check queue NAME` check an algorithm instead: its spec, its code, its
    behaviour; `ackclock check stack FILE` checks a transport stack of your own.

    Examples:
        ackclock check results
        ackclock check archive/2024 archive/2025 --json
    """
    from ackclock.dataset import manifests

    folders = dict.fromkeys(folder for place in places for folder in _results(place))
    damaged = 0
    for folder in folders:
        checked = manifests.verify(folder)
        damaged += checked.state == manifests.DAMAGED
        click.echo(_json(checked) if as_json else _line(checked))
    if damaged:
        raise InputError(f"found damage in {damaged} of {len(folders)}; expected results as they were written")


def _results(place: Path) -> list[Path]:
    from ackclock.dataset import manifests

    found = list(manifests.find_results(place))
    if not found:
        what = "no ackclock result in it" if place.is_dir() else "no such folder"
        raise InputError(f"{place}: found {what}; expected a result, or a folder with results")
    return found


def _line(checked: Checked) -> str:
    from ackclock.figures import numbers

    if checked.problems:
        return f"{checked.folder}: {checked.state}: {'; '.join(checked.problems)}"
    size = numbers.value(checked.size_bytes, "bytes")
    files = "1 file" if checked.files == 1 else f"{checked.files} files"
    return f"{checked.folder}: {checked.state}: {checked.kind.value}, {files}, {size}"


def _json(checked: Checked) -> str:
    return json.dumps(
        {
            "folder": str(checked.folder),
            "kind": checked.kind.name.lower(),
            "state": checked.state,
            "files": checked.files,
            "bytes": checked.size_bytes,
            "problems": list(checked.problems),
        }
    )
