"""Values of options on the command line: what TOML reads, or a text without quotes, and lists with commas.

A comma inside braces, brackets or quotes is the item's own, so an item may be a table:
`pfifo,{ discipline = "codel", limit = "1bdp" }`.
"""

from __future__ import annotations

import re
from typing import Any

#: Short names of the keys of a scenario that most questions are about.
KEYS = {
    "limit": "network.queue.limit",
    "discipline": "network.queue.discipline",
    "queue": "network.queue",
    "rate": "network.rate",
    "rtt": "network.rtt",
    "flows": "flows[0].count",
    "congestion": "flows[0].congestion",
}

#: A text in quotes (behind a letter or a digit a mark is no quote), or one character.
_PART = re.compile(r'(?<!\w)"(?:\\.|[^"\\])*"|(?<!\w)\'[^\']*\'|.', re.DOTALL)

_DEEPER = {"{": 1, "[": 1, "}": -1, "]": -1}


def items(text: str) -> list[str]:
    """The items of a list, without the spaces around them. A text without a comma is one item."""
    return [item.strip() for item in split(text)]


def split(text: str) -> list[str]:
    """The items as they are written. What is opened and never closed reaches to the end."""
    found, depth = [""], 0
    for part in _PART.findall(text):
        if part == "," and not depth:
            found.append("")
            continue
        depth = max(0, depth + _DEEPER.get(part, 0))
        found[-1] += part
    return found


def value(text: str) -> Any:
    """Parse a value as TOML: numbers, lists and tables. Any other text, such as `1Gbit`, is returned unchanged."""
    from ackclock import _core

    try:
        read = _core.toml_values(f"value = {text}")
    except ValueError:
        return text
    return read["value"] if len(read) == 1 and isinstance(read["value"], (bool, int, float, str, list, dict)) else text
