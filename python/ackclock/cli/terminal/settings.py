"""Tables of settings: the points of `ackclock sweep`, and those that `ackclock find` evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from rich.table import Table
from rich.text import Text

from ackclock import algorithms, repr_format
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
from ackclock.input.cli_values import KEYS
from ackclock.metrics import METRICS
from ackclock.plan import Plan
from ackclock.scenario.points import inline, short_keys

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
        shown = output.fitting(console, names, lambda some: _sweep_table(sweep, points, some, grid))
        console.print(_sweep_table(sweep, points, shown, grid))
        names = names[len(shown) :] if _selected(sweep) else []
    if len(points) > MAX_ROWS:
        console.print(f"… and {repr_format.counted(len(points) - MAX_ROWS, 'more point')}: see points.parquet")


def _selected(sweep: Sweep) -> list[str]:
    """Return the scalar metrics that were selected by name; none if all were computed."""
    scalars = [name for name in sweep.metrics if not METRICS[name].per_flow]
    return scalars if len(sweep.metrics) < len(METRICS) else []


def _sweep_table(sweep: Sweep, points: list[dict[str, Any]], names: Sequence[str], grid: Grid | None = None) -> Table:
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
    """Print the sentences, the table of settings, what configures the best one, and the warnings."""
    console = output.console()
    for sentence in sentences(answer):
        console.print(Text(sentence))
    console.print(_search_table(answer))
    for line in _settings(answer):
        console.print(Text(line), soft_wrap=True)
    output.print_warnings(answer.warnings)


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
    for number, point in zip(sorted(answer.verdicts), answer.points[:MAX_ROWS], strict=False):
        cells = [output.estimate(point["metrics"][name], METRICS[name].unit) for name in names]
        best = ", best" if len(question.objectives) > 1 and number in answer.frontier else ""
        texts = map(Text, question.short_values(number).values())
        table.add_row(*texts, *cells, str(point["n"]), point["verdict"] + best)
    return table


def _settings(answer: SearchResult) -> Iterator[str]:
    """Yield what configures the best setting: commands of `tc`, lines of the scenario, and a host's sysctl."""
    question = answer.question
    if answer.best is None or len(question.objectives) > 1:
        return
    plan, values = question.point(answer.best).plan, question.values(answer.best)
    if any(key.startswith("network.") for key in values):
        yield from _tc_commands(plan, values)
    others = {key: value for key, value in values.items() if not key.startswith("network.")}
    if others:
        yield f"In the scenario: {'; '.join(f'{key} = {inline(value)}' for key, value in others.items())}"
    chosen = others.get(KEYS["congestion"])
    if isinstance(chosen, str) and _is_in_kernel(chosen):
        yield f"In Linux: sysctl -w net.ipv4.tcp_congestion_control={chosen}"


def _tc_commands(plan: Plan, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the commands of `tc` for each link of which a key was varied, else for the bottleneck."""
    links = [number for number, link in enumerate(plan.links) if any(_is_of_link(key, link.name) for key in values)]
    is_one_of_several = sum(link.bottleneck for link in plan.links) > 1
    for number in links or [plan.bottleneck]:
        with suppress(ExportError):
            script = export(replace(plan, bottleneck=number), "tc", DEVICE)
            if is_one_of_several:
                yield f"# {plan.links[number].name}, at the device before it:"
            yield from (line for line in script.text.splitlines() if line.startswith(("tc qdisc add", "tc class add")))


def _is_of_link(key: str, link: str) -> bool:
    return key.startswith(f"network.{link}.")


def _is_in_kernel(congestion: str) -> bool:
    """Return True if Linux itself has a congestion control algorithm, under the same name."""
    linux = algorithms.spec("congestion", congestion).linux
    return linux is not None and not linux.ours and not linux.user_supplied
