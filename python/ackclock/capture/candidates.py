"""Candidate congestion control algorithms for captured flows, as `candidates.json` lists them.

`tools/generated_data.py` makes that file from this.
"""

from __future__ import annotations

import json
from typing import Any

from ackclock import _core, algorithms


def text() -> str:
    """Return the JSON text: every CCA with the default parameters of its spec, one a line."""
    lines = (json.dumps(_candidate(algorithms.card("congestion", name))) for name in _core.CONGESTION_CONTROLS)
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _candidate(card: algorithms.Card) -> dict[str, Any]:
    return {
        "name": card.name,
        "parameters": {card.key(name): value for name, value in card.complete({}).items()},
        "deployed": (card.linux is not None and not card.linux.ours) or card.name in _defaults(),
    }


def _defaults() -> frozenset[str]:
    """Return the default CCAs of the TCP stacks that are known."""
    return frozenset(algorithms.card("stack", name).congestion for name in algorithms.names("stack"))
