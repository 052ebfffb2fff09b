"""`ackclock report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer


def report(
    results: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of results.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="HTML file (default: report.html in the folder, or here for several)."),
    ] = None,
) -> None:
    """Write a report: one HTML file that opens offline. Several results are shown side by side, sweeps overlaid.

    Of several results it prints which is best in what, where that is clear.

    Examples:
        ackclock report results/dumbbell-packet

        ackclock report results/cubic-packet results/reno-packet --out both.html
    """
    path, sentences = _written(results, out)
    for line in (*sentences, f"wrote {path}"):
        typer.echo(line)


def write_report(results: Sequence[Path], out: Path | None) -> Path:
    """Writes the report of results, or of sweeps, and returns its path. Raises `InputError`."""
    return _written(results, out)[0]


def _written(results: Sequence[Path], out: Path | None) -> tuple[Path, list[str]]:
    """The report's path, and in sentences how several results differ."""
    from ackclock.dataset.result_kind import Kind, kind
    from ackclock.errors import InputError
    from ackclock.experiments.sweep import result
    from ackclock.figures import report
    from ackclock.figures.report import sweep
    from ackclock.system.files import readable

    for folder in results:
        if kind(folder) is Kind.HOST:
            raise InputError(
                f"{readable(folder)}: found {Kind.HOST.value}, which has no report; expected the result of a run "
                "(`ackclock plot DIR gaps` and `disk` draw that of a host)"
            )
    path = out or (results[0] / "report.html" if len(results) == 1 else Path("report.html"))
    if any(kind(folder) is Kind.SWEEP for folder in results):
        return sweep.write([result.read(folder) for folder in results], path), []
    return report.write_with_comparison(results, path)
