"""Base RTTs that are not quite alike: `rtt_spread`."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ackclock.errors import ScenarioError
from ackclock.input.fields import Loc
from ackclock.input.source import Source
from ackclock.plan import PathPlan
from ackclock.scenario.topology.endpoints import Placed
from ackclock.scenario.topology.network import Drawing, Hosts, Way

#: Decimals of a second that an engine can tell apart.
PICOSECOND_DIGITS = 12


def spread(drawing: Drawing, tables: Sequence[tuple[Loc, Placed]], seed: int, source: Source) -> Drawing:
    """The drawing in which each way of a group with a spread is longer or shorter by a draw.

    Half of that is on the way there. Raises `ScenarioError` for a spread that is more than a way has.
    """
    if not any(table.rtt_spread for _, table in tables):
        return drawing
    places = zip(drawing.places, tables, strict=True)
    return replace(drawing, places=tuple(_place(where, *listed, seed, source) for where, listed in places))


def _place(
    where: tuple[Way, ...] | Hosts, place: Loc, table: Placed, seed: int, source: Source
) -> tuple[Way, ...] | Hosts:
    if not table.rtt_spread or isinstance(where, Hosts):
        return where
    most_s = min(2 * path.delay_s for way in where for path in (way.forward, way.reverse))
    if table.rtt_spread > most_s:
        found, expected = (
            f"{table.rtt_spread:g} s",
            f"at most {most_s:g} s, what the shortest way leaves",
        )
        raise ScenarioError([source.problem((*place, "rtt_spread"), found, expected)])
    return tuple(_moved(where, table.rtt_spread, random.Random(f"{seed} {place}")))


def _moved(ways: Sequence[Way], spread_s: float, draws: random.Random) -> Iterator[Way]:
    for way in ways:
        by_s = spread_s * (2 * draws.random() - 1)
        forward, reverse = (_longer(path, by_s / 2) for path in (way.forward, way.reverse))
        yield replace(way, forward=forward, reverse=reverse, base_rtt_s=_rounded(way.base_rtt_s + by_s))


def _longer(path: PathPlan, by_s: float) -> PathPlan:
    return replace(path, delay_s=_rounded(path.delay_s + by_s))


def _rounded(time_s: float) -> float:
    return round(time_s, PICOSECOND_DIGITS)
