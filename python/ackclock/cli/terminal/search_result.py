"""The output of `ackclock find`: the result in sentences, the settings that were evaluated, commands of `tc`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from ackclock.cli.terminal import tables
from ackclock.experiments.search.bisection import max_evaluations
from ackclock.experiments.search.result import SearchResult
from ackclock.experiments.search.summary_text import sentences
from ackclock.exporters import ExportError, export
from ackclock.figures import numbers
from ackclock.metrics import METRICS
from ackclock.scenario.points import label, short_labels

#: The device in the commands.
DEVICE = "eth0"

#: Further settings are in the file only.
MAX_ROWS = 60


def print_result(answer: SearchResult) -> None:
    """Print the sentences, the table of settings, and the commands."""
    console = tables.console()
    for sentence in sentences(answer):
        console.print(Text(sentence))
    console.print(_table(answer))
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


def _table(answer: SearchResult) -> Table:
    question = answer.question
    asked = [need.metric for need in question.constraints] + [goal.metric for goal in question.objectives]
    names = list(dict.fromkeys(asked))
    headings = [METRICS[name].short or METRICS[name].label for name in names]
    table = tables.table(*map(Text, answer.short_keys), *headings, "n", left=0)
    table.add_column("verdict")
    short = {
        vary.key: dict(zip(map(label, vary.values), short_labels(vary.values), strict=True)) for vary in question.varied
    }
    for point in answer.points[:MAX_ROWS]:
        cells = [tables.estimate(point["metrics"][name], METRICS[name].unit) for name in names]
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
