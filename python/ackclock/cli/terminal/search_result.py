"""What `ackclock find` shows: the answer in sentences, the settings that were looked at, and how to set it up."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ackclock.experiments.search.bisection import looks_of
from ackclock.experiments.search.result import Answer
from ackclock.experiments.search.summary_text import sentences
from ackclock.exporters import ExportError, export
from ackclock.figures import numbers
from ackclock.metrics import METRICS
from ackclock.scenario.points import label, short_labels

#: The device whose name stands in the commands.
DEVICE = "eth0"

#: Settings beyond this many are in the file only.
MOST_ROWS = 60


def print_answer(answer: Answer) -> None:
    """The sentences, the table of settings, and the commands."""
    console = Console(emoji=False, highlight=False)
    for sentence in sentences(answer):
        console.print(Text(sentence))
    console.print(_table(answer))
    for line in _commands(answer):
        console.print(Text(line), soft_wrap=True)


def cost(answer: Answer) -> str:
    """What it took."""
    seconds = numbers.value(answer.cpu_s, "s")
    return f"{answer.count:,} runs, {answer.made:,} of them by this command in {seconds} of CPU"


def share(answer: Answer) -> float:
    """About how much of a search is done."""
    question = answer.question
    expected = question.rows * (looks_of(question.row) if question.end else min(question.row, MOST_ROWS))
    return min(0.99, len(answer.judged) / expected)


def _table(answer: Answer) -> Table:
    question = answer.question
    names = [need.metric for need in question.needs] + [goal.metric for goal in question.goals]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for key in answer.short_keys:
        table.add_column(Text(key), justify="right")
    for name in dict.fromkeys(names):
        table.add_column(METRICS[name].short or METRICS[name].label, justify="right")
    table.add_column("n", justify="right")
    table.add_column("verdict")
    short = {
        vary.key: dict(zip(map(label, vary.values), short_labels(vary.values), strict=True)) for vary in question.varied
    }
    for point in answer.points[:MOST_ROWS]:
        cells = [_cell(point["metrics"][name], METRICS[name].unit) for name in dict.fromkeys(names)]
        texts = [Text(short[key][label(value)]) for key, value in point["values"].items()]
        table.add_row(*texts, *cells, str(point["n"]), point["verdict"])
    return table


def _cell(found: dict[str, float | None], unit: str) -> str:
    return numbers.estimate(found["mean"], found["ci95_low"], found["ci95_high"], unit)


def _commands(answer: Answer) -> Iterator[str]:
    """The commands of `tc` that give a device the queue that was found, where `tc` can say it."""
    if answer.best is None or len(answer.question.goals) > 1:
        return
    try:
        script = export(answer.question.point(answer.best).plan, "tc", DEVICE)
    except ExportError:
        return
    yield from (line for line in script.text.splitlines() if line.startswith(("tc qdisc add", "tc class add")))
