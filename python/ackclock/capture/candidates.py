"""The controls that captured flows may have used, as their cards describe them: what `candidates.json` holds.

`tools/generated_data.py` makes that file from this.
"""

from __future__ import annotations

import json
from typing import Any

from ackclock import _core, algorithms


def text() -> str:
    """The controls with the parameters that their cards have as defaults, a line each."""
    lines = (json.dumps(_candidate(algorithms.card("congestion", name))) for name in _core.CONGESTION_CONTROLS)
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _candidate(card: algorithms.AlgorithmSpec) -> dict[str, Any]:
    return {
        "name": card.name,
        "parameters": {card.key(name): value for name, value in card.complete({}).items()},
        "deployed": (card.linux is not None and not card.linux.ours) or card.name in _defaults(),
    }


def _defaults() -> frozenset[str]:
    """What stacks use where nobody says otherwise."""
    return frozenset(algorithms.card("stack", name).congestion for name in algorithms.names("stack"))
