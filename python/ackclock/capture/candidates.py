"""The controls that captured flows may have used, as their specs describe them: what `candidates.json` holds.

`tools/generated_data.py` makes that file from this.
"""

from __future__ import annotations

import json
from typing import Any

from ackclock import _core, algorithms


def text() -> str:
    """The controls with the parameters that their specs have as defaults, a line each."""
    lines = (json.dumps(_candidate(algorithms.spec("congestion", name))) for name in _core.CONGESTION_CONTROLS)
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _candidate(spec: algorithms.AlgorithmSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "parameters": {spec.key(name): value for name, value in spec.complete({}).items()},
        "deployed": (spec.linux is not None and not spec.linux.ours) or spec.name in _defaults(),
    }


def _defaults() -> frozenset[str]:
    """Return the default CCAs of the TCP stacks."""
    return frozenset(algorithms.spec("stack", name).congestion for name in algorithms.names("stack"))
