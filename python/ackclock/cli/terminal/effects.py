"""What `ackclock effects` prints."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ackclock.experiments.effects.effects import Effects
from ackclock.experiments.effects.summary_text import effect, sentences, share
from ackclock.figures import numbers


def print_effects(found: Effects) -> None:
    """The sentences, then a row for each key and pair, the one that matters most first."""
    console = Console(emoji=False, highlight=False)
    for sentence in sentences(found):
        console.print(Text(sentence))
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("key")
    for heading in ("share", "from", "to", "change of the mean", "clear"):
        table.add_column(heading, justify="right")
    for term in found.terms:
        step = found.step(term)
        low, high = found.values(step) if step else ("", "")
        known = numbers.NOTHING if term.p is None else "yes" if found.clear(term) else "no"
        cells = (found.named(term), share(term.share), low, high, effect(found, step) if step else "", known)
        table.add_row(*map(Text, cells))
    console.print(table)
