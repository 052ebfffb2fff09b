"""The flows of `[[flows]]`, one by one, and base RTTs that are not quite alike: `rtt_spread`."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ackclock.errors import ScenarioError
from ackclock.input.fields import Loc, Spread
from ackclock.input.source import Source
from ackclock.input.units import Size
from ackclock.plan import FlowPlan, PathPlan, TcpPlan
from ackclock.scenario.topology.endpoints import Placed
from ackclock.scenario.topology.network import Drawing, Hosts, Way
from ackclock.scenario.traffic.flows import Flows

#: Decimals of a second that an engine can tell apart.
PICOSECOND_DIGITS = 12


def flow_plans(flows: Flows, group: int, tcp: TcpPlan, ways: Sequence[Way]) -> Iterator[FlowPlan]:
    """The flows of one table: for each source's way, `streams` of them."""
    for number, way in enumerate(ways):
        plan = FlowPlan(
            group=group,
            start_s=round(flows.start.at + number * flows.start.every, PICOSECOND_DIGITS),
            start_jitter_s=flows.start.jitter,
            stop_s=flows.stop,
            size_bytes=transfer_bytes(nth(flows.size, number, len(ways)), tcp),
            request_bytes=None if flows.request is None else int(flows.request),
            application_rate_bps=nth(flows.application_rate, number, len(ways)),
            priority=flows.priority,
            ends=way.ends,
            forward=way.forward,
            reverse=way.reverse,
            base_rtt_s=way.base_rtt_s,
        )
        for _ in range(flows.streams):
            yield plan


def nth(spread: Spread | None, number: int, sources: int) -> Any:
    """Return the value of a source; None without a spread."""
    return spread.at(number, sources) if spread else None


def transfer_bytes(size: Size | None, tcp: TcpPlan) -> int | None:
    """A size in bytes, or in full segments."""
    if size is None:
        return None
    return max(1, round(size.value * (tcp.mss_bytes if size.unit == "p" else 1)))


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
