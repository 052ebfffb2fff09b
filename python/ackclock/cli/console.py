"""What the command line shows: the table of a result, an algorithm's card, and progress.

Results and cards go to standard output, progress to standard error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ackclock.views import numbers as shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from ackclock.catalog import Card
    from ackclock.dataset import Dataset

#: The rows of the table: what was shared, how fairly, at what delay, and what it cost.
ROWS = (
    "utilisation",
    "goodput_bps",
    "jain",
    "queue_delay_mean_s",
    "queue_delay_p95_s",
    "rtt_mean_s",
    "queue_mean_p",
    "queue_empty_fraction",
    "loss_rate",
    "retransmission_rate",
    "timeouts",
    "congestion_epochs",
    "synchronisation",
    "completion_mean_s",
    "completion_p95_s",
    "unfinished",
    "completion_km_mean_s",
)

#: What means nothing where one flow is alone.
OF_SEVERAL = ("jain", "synchronisation")

#: The answer in words: metric, and what is said of its mean.
ANSWER = (
    ("utilisation", "{links} {} busy"),
    ("jain", "Jain's index of the shares is {}"),
    ("queue_delay_mean_s", "a packet waited {} in the queue on average"),
    ("queue_delay_p95_s", "19 of 20 waited less than {}"),
)

#: What is said instead where the mean is 0.
NOTHING = {
    "queue_delay_mean_s": "no packet waited in the queue",
    "queue_delay_p95_s": "19 of 20 did not wait",
}

#: Folders of a checkout where an algorithm's files may be.
PLACES = ("crates", "python", "tests", "reproductions", "scenarios", "benchmarks", "docs")


def print_result(data: Dataset, found: Mapping[str, Any]) -> None:
    """The answer to "how well did they share the link, at what delay", and the numbers behind it.

    `found` is `ackclock.metrics.table(data)`.
    """
    console = Console(highlight=False)
    console.print(Text(found["scenario"] or "", style="bold"))
    alone = len(data.plan.flows) == 1
    summary = {name: row for name, row in found["summary"].items() if not (alone and name in OF_SEVERAL)}
    if answer := _answer(summary, len(data.plan.bottlenecks)):
        console.print(answer)
    if held := [run["held"] for run in data.runs if "held" in run]:
        console.print(_kept_up(held))
    console.print(_table(summary, shown.engine(data.manifest), len(found["runs"])))


def _answer(summary: Mapping[str, Any], bottlenecks: int) -> str:
    means = {name: mean for name, _ in ANSWER if (mean := summary.get(name, {}).get("mean")) is not None}
    if means.get("queue_delay_mean_s") == 0:
        means.pop("queue_delay_p95_s", None)
    links = "The link was" if bottlenecks == 1 else f"The {bottlenecks:,} bottlenecks were together"
    parts = [_said(name, sentence, means[name], links) for name, sentence in ANSWER if name in means]
    if parts:
        return "; ".join(parts) + "."
    return "" if any(row.get("mean") is not None for row in summary.values()) else "Nothing was measured."


def _kept_up(held: list[Mapping[str, Any]]) -> str:
    """How well a machine kept up with runs in real time, at worst."""
    shares = [share for run in held for share in run["shares"].values() if share is not None]
    rate = f"busy links held {shown.value(min(shares), 'share')} of their rate" if shares else "no link was busy"
    mean, most = (shown.value(max(run[key] for run in held), "s") for key in ("late_mean_s", "late_max_s"))
    return f"In real time: {rate}; samples came {mean} late on average, at most {most}."


def _said(name: str, sentence: str, mean: float, links: str) -> str:
    from ackclock.metrics import METRICS

    if mean == 0 and name in NOTHING:
        return NOTHING[name]
    return sentence.format(shown.value(mean, METRICS[name].unit), links=links)


def _table(summary: Mapping[str, Any], engine: str, runs: int) -> Table:
    from ackclock.metrics import METRICS

    title = ", ".join(filter(None, (engine, f"{runs} runs" if runs > 1 else "one run: no intervals")))
    table = Table(title=title, title_justify="left", title_style="", box=None, pad_edge=False, header_style="bold")
    table.add_column("metric")
    for heading in ("mean", "95 % interval", "n"):
        table.add_column(heading, justify="right")
    for name in ROWS:
        row = summary.get(name, {})
        if row.get("mean") is not None:
            mean, interval = shown.interval(row["mean"], row["ci95_low"], row["ci95_high"], METRICS[name].unit)
            table.add_row(METRICS[name].label, mean, interval if row["n"] > 1 else "one run: none", str(row["n"]))
    return table


def print_catalog(cards: list[Card]) -> None:
    """One line a card."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("family", "name", "what it is"):
        table.add_column(heading)
    for card in cards:
        table.add_row(card.family, card.name, card.title)
    console = Console(highlight=False)
    console.print(table)
    console.print("\nackclock show NAME prints a card and the algorithm's files.")


def print_card(card: Card) -> None:
    """A card, and every file of the algorithm."""
    console = Console(highlight=False, markup=False)
    console.print(Text(f"{card.title} ({card.family}: {card.name})", style="bold"))
    console.print(card.summary.strip() + "\n")
    if card.parameters:
        console.print(_parameters(card))
    for name, variant in card.variants.items():
        values = ", ".join(f"{key} = {_toml(value)}" for key, value in variant.parameters.items())
        console.print(f'variant = "{name}": {variant.summary} ({values})')
    _listed(console, "How it differs from its references", list(card.deviations))
    _listed(console, "References", [" · ".join(filter(None, (r.title, r.section, r.url))) for r in card.references])
    _listed(console, "Files", [str(path) for path in files(card.name)])


def _parameters(card: Card) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("parameter", "default", "range", "meaning (source)"):
        table.add_column(heading)
    for name, parameter in card.parameters.items():
        default = "required" if parameter.required else _toml(parameter.default)
        source = f" ({parameter.source})" if parameter.source else ""
        unit = f" [{parameter.unit}]" if parameter.unit else ""
        words = (Text(name), Text(default), Text(_range(parameter)), Text(parameter.description + unit + source))
        table.add_row(*words)
    return table


def _range(parameter: Any) -> str:
    if parameter.kind == "boolean":
        return "true, false"
    if parameter.choices:
        return ", ".join(map(_toml, parameter.choices))
    if parameter.kind == "text":
        return "text"
    extra = [word for word, possible in (("bdp", parameter.bdp), ("unlimited", parameter.unlimited)) if possible]
    return ", ".join([f"{parameter.minimum} to {parameter.maximum}", *extra])


def _toml(value: object) -> str:
    if value is None:
        return "–"
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


def _listed(console: Console, heading: str, items: list[str]) -> None:
    if items:
        console.print(Text(f"\n{heading}", style="bold"))
        for item in items:
            console.print(f"- {item}", soft_wrap=True)


def files(name: str) -> list[Path]:
    """Every file of an algorithm: those with its name, in a checkout or else in the installed package."""
    package = Path(__file__).parent
    checkout = package.parent.parent
    if (checkout / "Cargo.toml").is_file():
        found = [path for place in PLACES for path in (checkout / place).rglob("*")]
        base = checkout
    else:
        found, base = list(package.rglob("*")), package.parent
    word = re.compile(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])")
    named = [path.relative_to(base) for path in found if word.search(path.name) and path.is_file()]
    return sorted(path for path in named if path.suffix != ".pyc")


@contextmanager
def progress(title: str) -> Iterator[Callable[[float], None]]:
    """A bar with an estimate on standard error; call it with the share that is done. Hidden if nobody watches."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True, highlight=False)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("elapsed, left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=1.0)
        yield lambda share: bar.update(task, completed=share)
