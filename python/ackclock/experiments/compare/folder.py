"""The folder of a comparison: each engine's dataset, the table, figures and a report.

results/dumbbell-compare/
├── manifest.json         engines, versions, command, and the SHA-256 of the files
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

from ackclock import _core
from ackclock.dataset import Dataset, folders, manifests, result_kind
from ackclock.dataset.result_kind import Kind
from ackclock.engines.engine import circumstances
from ackclock.errors import InputError
from ackclock.experiments.compare.compare import Comparison
from ackclock.figures import plots

#: The table as JSON.
TABLE = "comparison.json"

#: Figures that lay the engines' first runs over each other.
OVERLAYS: dict[str, Callable[..., Figure]] = {"cwnd": plots.cwnd, "queue": plots.queue}


def check(folder: Path) -> None:
    """Raise `InputError` for a folder that holds something else, or cannot be made."""
    result_kind.check(folder, Kind.COMPARISON)
    folders.staging_folder(folder).close()


def write(comparison: Comparison, folder: Path, *, report: bool = True, command: str = "") -> None:
    """Write everything, completely or not at all; an earlier comparison is replaced.

    The manifest says that `command` was run.
    """
    result_kind.check(folder, Kind.COMPARISON)
    with folders.replace_folder(folder, manifests.is_note(folder)) as new, folders.write_errors(new):
        _write(comparison, new)
        if report:
            _write_report(comparison, new)
        engines = {"engines": comparison.engines, "scenario": comparison.name}
        about = {"ackclock": _core.version, "comparison": engines, **circumstances(command)}
        manifests.write(new, about, manifests.list_files(new))


def _write(comparison: Comparison, folder: Path) -> None:
    for engine, data in comparison.data.items():
        data.write(folder / engine)
    text = json.dumps(comparison.as_dict(), indent=2, ensure_ascii=False, allow_nan=False)
    (folder / TABLE).write_text(text + "\n", encoding="utf-8")
    comparison.table.write_parquet(folder / "comparison.parquet", compression="zstd")
    for name, figure in _figures(comparison):
        figure.savefig(folder / f"{name}.png")


def _write_report(comparison: Comparison, folder: Path) -> None:
    from ackclock.figures.report import render, write_page

    try:
        text = render([*comparison.data.values()], comparison.engines)
    except InputError:  # an engine of averages alone has no curves to show
        return
    write_page(text, folder / manifests.REPORT)


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
    """Return True if the other engine has the data of the figure, as curves or as a mean."""
    try:
        draw(first, over=[other])
    except InputError:
        return False
    return True
