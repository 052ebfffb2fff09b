"""What `ackclock show` shows: the catalog, and an algorithm's card."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ackclock import algorithms
from ackclock.algorithms import code

if TYPE_CHECKING:
    from ackclock.algorithms import Card

#: Folders of a checkout where an algorithm's files may be.
PLACES = ("crates", "python", "tests", "reproductions", "scenarios", "modules", "benchmarks", "docs")


def print_catalog() -> None:
    """One line a card."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("family", "name", "what it is"):
        table.add_column(heading)
    for family in algorithms.FAMILIES:
        for name in algorithms.names(family):
            table.add_row(family, name, algorithms.title(family, name))
    console = Console(emoji=False, highlight=False)
    console.print(table)
    console.print("\nackclock show NAME prints a card and the algorithm's files.")


def print_card(card: Card) -> None:
    """A card, and every file of the algorithm."""
    console = Console(emoji=False, highlight=False, markup=False)
    console.print(Text(f"{card.title} ({card.family}: {card.name})", style="bold"))
    console.print(card.summary.strip() + "\n")
    if missing := code.missing(card):
        console.print(f"Note: {missing}.\n", soft_wrap=True)
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
    units = {"p": parameter.packets, "bdp": parameter.bdp, "unlimited": parameter.unlimited}
    extra = [word for word, possible in units.items() if possible]
    return ", ".join([f"{parameter.minimum} to {parameter.maximum}", *extra])


def _toml(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


def _listed(console: Console, heading: str, items: list[str]) -> None:
    if items:
        console.print(Text(f"\n{heading}", style="bold"))
        for item in items:
            console.print(f"- {item}", soft_wrap=True)


def files(name: str) -> list[Path]:
    """Every file of an algorithm: those with its name, in a checkout or else in the installed package."""
    package = Path(__file__).parents[2]
    checkout = package.parent.parent
    if (checkout / "Cargo.toml").is_file():
        found = [path for place in PLACES for path in (checkout / place).rglob("*")]
        base = checkout
    else:
        found, base = list(package.rglob("*")), package.parent
    word = re.compile(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])")
    named = [path.relative_to(base) for path in found if word.search(path.name) and path.is_file()]
    return sorted(path for path in named if path.suffix != ".pyc")
