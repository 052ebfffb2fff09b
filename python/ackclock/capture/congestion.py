"""Identification of the congestion control algorithm of captured flows, by replay of all candidates.

Used by `ackclock.capture`, its JSON (`analysis`) and its tables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ackclock import _core

if TYPE_CHECKING:
    from ackclock.algorithms import AlgorithmSpec

Ranking: TypeAlias = Sequence[Mapping[str, Any]]

#: All candidates, as `_core.Capture.congestion` takes them: to read their specs takes longer than many a capture.
CANDIDATES = Path(__file__).parent / "candidates.json"

#: Name where nothing fits.
UNKNOWN = "unknown"

#: A name is listed from this probability on; `UNKNOWN` always is.
MIN_PROBABILITY = 0.01

#: A second name is reported from this probability on: of the names with at most that one in ten is right, or fewer.
MIN_SECOND = 0.1

#: A name that is less probable than all others together is not said.
MARGIN = 0.5


def rankings(capture: _core.Capture) -> dict[int, Ranking]:
    """Return names with their probabilities, the most probable first, by the number of the direction.

    With each are the names of others that did the same over the flow, as nothing tells them from it, and the share by
    which its windows are `off` in half of the round trips or more. Of the longest flows that lost anything and are
    over; of others nothing is known.
    """
    result = capture.congestion(CANDIDATES.read_text("utf-8")) if capture.ranked else {}
    return {flow: [one for one in map(_ranked, named) if _is_listed(one)] for flow, named in result.items()}


def _ranked(named: tuple[str, list[str], float, float | None]) -> dict[str, Any]:
    name, same, probability, off = named
    return {"name": name, "same": same, "probability": probability, "off": off}


def _is_listed(one: Mapping[str, Any]) -> bool:
    return bool(one["name"] == UNKNOWN or one["probability"] >= MIN_PROBABILITY)


def word(ranking: Ranking | None) -> str:
    """Return the most probable name if it is more probable than all others together, else `UNKNOWN`."""
    if not ranking or ranking[0]["probability"] < MARGIN:
        return UNKNOWN
    return str(ranking[0]["name"])


def same(ranking: Ranking | None) -> Sequence[str]:
    """Return the CCAs that behaved identically over the flow."""
    return ranking[0]["same"] if ranking and word(ranking) != UNKNOWN else ()


def second(ranking: Ranking | None) -> Mapping[str, Any] | None:
    """Return the next most probable CCA after `word`, with its probability, if it is worth a mention."""
    others = [one for one in ranking or () if one["name"] not in (UNKNOWN, word(ranking))]
    return others[0] if others and others[0]["probability"] >= MIN_SECOND else None


def candidates() -> str:
    """Return the text of `CANDIDATES`: each algorithm with the default parameters of its spec, a line each."""
    from ackclock import algorithms

    stacks = (algorithms.spec("stack", name) for name in algorithms.names("stack"))
    defaults = frozenset(stack.congestion for stack in stacks)
    specs = (algorithms.spec("congestion", name) for name in _core.CONGESTION_CONTROLS)
    lines = (json.dumps(_candidate(spec, spec.name in defaults)) for spec in specs)
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _candidate(spec: AlgorithmSpec, is_default: bool) -> dict[str, Any]:
    return {
        "name": spec.name,
        "parameters": {spec.key(name): value for name, value in spec.complete({}).items()},
        "is_l4s": spec.ecn == "l4s",
        "deployed": (spec.linux is not None and not spec.linux.ours) or is_default,
    }
