"""`ackclock report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ackclock.cli import options
from ackclock.cli.command import FOLDER, Command
from ackclock.errors import InputError
from ackclock.system.files import readable


@click.command(cls=Command)
@options.paths("results", "RUN...", FOLDER, "Folders of results.")
@options.out_file("HTML file (default: report.html in the folder, or here for several).")
def report(*, results: Sequence[Path], out: Path | None) -> None:
    """Write a report: one HTML file that opens offline. Several results are shown side by side, sweeps overlaid.

    For several results it also prints the significant differences between them.

    Examples:
        ackclock report results/dumbbell-packet
        ackclock report results/cubic-packet results/reno-packet --out both.html
    """
    path, sentences = _write(results, out)
    for line in (*sentences, f"wrote {path}"):
        click.echo(line)


def write_report(results: Sequence[Path], out: Path | None) -> Path:
    """Write the report of results, or of sweeps; return its path. Raises `InputError`."""
    return _write(results, out)[0]


def _write(results: Sequence[Path], out: Path | None) -> tuple[Path, list[str]]:
    """Return the report's path, and sentences on how several results differ."""
    from ackclock.dataset.result_kind import Kind, kind
    from ackclock.experiments.sweep import result
    from ackclock.figures import report

    for folder in results:
        if kind(folder) is Kind.HOST:
            raise InputError(
                f"{readable(folder)}: found {Kind.HOST.value}, which has no report; expected the result of a run "
                "(`ackclock plot DIR gaps` and `disk` draw that of a host)"
            )
    path = out or (results[0] / "report.html" if len(results) == 1 else Path("report.html"))
    if any(kind(folder) is Kind.SWEEP for folder in results):
        return report.write_sweeps([result.read(folder) for folder in results], path), []
    return report.write_with_comparison(results, path)
