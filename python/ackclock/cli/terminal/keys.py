"""What `ackclock show` says of the scenario file: the keys of one of its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from ackclock.scenario.key_reference import Described

#: What the words of values mean that have a unit.
UNITS = "Quantities are texts with their unit: 100Mbit, 20ms, 64KB, 50p (packets), 1bdp, 250/s."


def print_keys(tables: list[Described], further: dict[str, list[str]]) -> None:
    """The keys of each table; `further` names what else can be shown, by what that is."""
    console = Console(emoji=False, highlight=False, markup=False)
    for described in tables:
        console.print(Text(f"{described.title}\n", style="bold"))
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("key", "value", "default", "meaning"):
            table.add_column(heading)
        for key in described.keys:
            table.add_row(*map(Text, (key.name, key.value, key.default, key.meaning)))
        console.print(table)
        console.print()
    console.print(UNITS, soft_wrap=True)
    for what, names in further.items():
        console.print(f"ackclock show NAME, {what}: {', '.join(names)}", soft_wrap=True)
