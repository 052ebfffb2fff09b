"""The folder of a comparison: each engine's dataset, the table, figures and a report.

results/dumbbell-compare/
├── comparison.json       what `ackclock compare --json` prints
├── comparison.parquet    the table: a row for each metric and engine
├── metrics.png           a panel for each metric, with intervals by engine
├── cwnd.png, queue.png   the first runs over each other
├── packet/ fluid/ …      the datasets
└── report.html           all of them side by side
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from matplotlib.figure import Figure

from ackclock.campaigns.compare.compare import Comparison
from ackclock.dataset import Dataset, folders
from ackclock.errors import InputError
from ackclock.system.files import check_name
from ackclock.views import plots

#: The file that marks a folder as a comparison.
MARK = "comparison.json"

#: Figures that lay the engines' first runs over each other.
OVERLAYS: dict[str, Callable[..., Figure]] = {"cwnd": plots.cwnd, "queue": plots.queue}


def check(folder: Path) -> None:
    """Refuses a folder that holds something else. Raises `InputError`."""
    check_name(folder)
    if folder.exists() and not (folder / MARK).is_file() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InputError(f"{folder}: found something that is not a comparison; expected another folder (--out)")


def write(comparison: Comparison, folder: Path, *, report: bool = True) -> None:
    """Writes everything, whole or not at all; an earlier comparison is replaced."""
    check(folder)
    try:
        with folders.replacing(folder) as new:
            _write(comparison, new, report)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror or error}") from error


def _write(comparison: Comparison, folder: Path, report: bool) -> None:
    from ackclock.views import report as reports

    for engine, data in comparison.data.items():
        data.write(folder / engine)
    text = json.dumps(comparison.as_dict(), indent=2, ensure_ascii=False, allow_nan=False)
    (folder / MARK).write_text(text + "\n", encoding="utf-8")
    comparison.table.write_parquet(folder / "comparison.parquet", compression="zstd")
    for name, figure in _figures(comparison):
        figure.savefig(folder / f"{name}.png")
    if report:
        with suppress(InputError):  # an engine of averages alone has no curves to show
            reports.write([folder / engine for engine in comparison.engines], folder / "report.html")


def _figures(comparison: Comparison) -> Iterator[tuple[str, Figure]]:
    datasets = list(comparison.data.values())
    yield "metrics", plots.compared(comparison.name, comparison.table)
    first = next((data for data in datasets if data.flow_samples.height), None)
    if first is None:
        return
    others = [data for data in datasets if data is not first]
    for name, draw in OVERLAYS.items():
        with suppress(InputError):  # the first one has nothing to draw
            yield name, draw(first, over=[other for other in others if _can_lie(draw, other, first)])


def _can_lie(draw: Callable[..., Figure], other: Dataset, first: Dataset) -> bool:
    """Whether the other engine has what the figure shows, as curves or as a mean."""
    try:
        draw(first, over=[other])
    except InputError:
        return False
    return True
