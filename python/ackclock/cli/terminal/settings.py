"""Tables of settings: the points of `ackclock sweep`, and those that `ackclock find` evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ackclock import repr_format
from ackclock.cli.terminal import output
from ackclock.experiments.search.bisection import max_evaluations
from ackclock.experiments.search.pareto import Grid
from ackclock.experiments.search.result import SearchResult
from ackclock.experiments.search.summary_text import sentences
from ackclock.experiments.sweep.result import Sweep
from ackclock.exporters import ExportError, export
from ackclock.figures import numbers, summary_text
from ackclock.figures.sweep_axes import values_of
from ackclock.figures.table_export import default_metrics
from ackclock.metrics import METRICS
from ackclock.scenario.points import label, short_keys, short_labels

#: Metrics in the table, unless some were selected by name.
MAX_COLUMNS = 4

#: Further settings are in the file only.
MAX_ROWS = 60

#: The device in the commands of `tc`.
DEVICE = "eth0"


def print_sweep(sweep: Sweep, grid: Grid | None = None, criteria: Sequence[str] = ()) -> None:
    """Print a row for each point: the swept values and the means of the main metrics, with half their 95 % intervals.

    The table has as many of the main metrics as fit the terminal; metrics that were selected by name are all printed,
    in several tables if need be. The metrics that `grid` judges by (`criteria`) come first.
    """
    console = output.console()
    console.print(Text(sweep.name, style="bold"))
    points = sweep.points
    counts = {point["n"] for point in points}
    each = repr_format.counted(max(counts), "run") if len(counts) == 1 else f"{min(counts)} to {max(counts)} runs"
    console.print(f"{sweep.engine} engine, {repr_format.counted(len(points), 'point')}, {each} each")
    for line in summary_text.phase_sentences(sweep):
        console.print(line)
    names = list(dict.fromkeys([*criteria, *(_selected(sweep) or default_metrics(sweep)[:MAX_COLUMNS])]))
    while names:
        shown = _fitting(console, names, lambda some: _sweep_table(sweep, points, some, grid))
        console.print(_sweep_table(sweep, points, shown, grid))
        names = names[len(shown) :] if _selected(sweep) else []
    if len(points) > MAX_ROWS:
        console.print(f"… and {repr_format.counted(len(points) - MAX_ROWS, 'more point')}: see points.parquet")


def _selected(sweep: Sweep) -> list[str]:
    """Return the scalar metrics that were selected by name; none if all were computed."""
    scalars = [name for name in sweep.metrics if not METRICS[name].per_flow]
    return scalars if len(sweep.metrics) < len(METRICS) else []


def _fitting(console: Console, names: list[str], table: Callable[[list[str]], Table]) -> list[str]:
    """Return the first metrics, as many as fit the width, and at least one."""
    unlimited = console.options.update(width=10 * console.width)
    for count in range(len(names), 1, -1):
        if console.measure(table(names[:count]), options=unlimited).maximum <= console.width:
            return names[:count]
    return names[:1]


def _sweep_table(sweep: Sweep, points: list[dict[str, Any]], names: list[str], grid: Grid | None = None) -> Table:
    headings = [METRICS[name].short or METRICS[name].label for name in names]
    table = output.table(*map(Text, short_keys(sweep.axes)), *headings, left=0)
    if grid:
        table.add_column("verdict")
    for index, point in enumerate(points[:MAX_ROWS]):
        texts = values_of(sweep, point)
        verdict = [_verdict(grid, index)] if grid else []
        table.add_row(
            *map(Text, texts), *(summary_text.estimate(point["summary"][name], name) for name in names), *verdict
        )
    return table


def _verdict(grid: Grid, index: int) -> str:
    """Return the verdict on a point, and "best" for the best of those that meet the requirements."""
    return grid.judgements[index].verdict + (", best" if grid.best != grid.holding and index in grid.best else "")


def print_search(answer: SearchResult) -> None:
    """Print the sentences, the table of settings, and the commands."""
    console = output.console()
    for sentence in sentences(answer):
        console.print(Text(sentence))
    console.print(_search_table(answer))
    for line in _commands(answer):
        console.print(Text(line), soft_wrap=True)


def cost(answer: SearchResult) -> str:
    """Return the number of runs and the CPU time."""
    seconds = numbers.value(answer.cpu_s, "s")
    return f"{answer.count:,} runs, {answer.made:,} of them by this command in {seconds} of CPU"


def progress_share(answer: SearchResult) -> float:
    """Return about which share of a search is done."""
    question = answer.question
    expected = question.rows * (max_evaluations(question.row) if question.end else min(question.row, MAX_ROWS))
    return min(0.99, len(answer.verdicts) / expected)


def _search_table(answer: SearchResult) -> Table:
    question = answer.question
    asked = [need.metric for need in question.constraints] + [goal.metric for goal in question.objectives]
    names = list(dict.fromkeys(asked))
    headings = [METRICS[name].short or METRICS[name].label for name in names]
    table = output.table(*map(Text, answer.short_keys), *headings, "n", left=0)
    table.add_column("verdict")
    short = {
        vary.key: dict(zip(map(label, vary.values), short_labels(vary.values), strict=True)) for vary in question.varied
    }
    for point in answer.points[:MAX_ROWS]:
        cells = [output.estimate(point["metrics"][name], METRICS[name].unit) for name in names]
        texts = [Text(short[key][label(value)]) for key, value in point["values"].items()]
        table.add_row(*texts, *cells, str(point["n"]), point["verdict"])
    return table


def _commands(answer: SearchResult) -> Iterator[str]:
    """Yield the commands of `tc` that configure the best queue, if `tc` supports it."""
    if answer.best is None or len(answer.question.objectives) > 1:
        return
    try:
        script = export(answer.question.point(answer.best).plan, "tc", DEVICE)
    except ExportError:
        return
    yield from (line for line in script.text.splitlines() if line.startswith(("tc qdisc add", "tc class add")))
