"""State variables of the packet engine's BBRv3 through a run, for the test cases of draft-ietf-ccwg-bbr."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ackclock import _core
from ackclock.scenario import planning

SCENARIO = """
duration = "{duration}"
[network]
topology = "dumbbell"
rate = {rate}
rtt = "{rtt}"
queue = {queue}
{network}
[[flows]]
congestion = "bbr3"
{flow}
"""

#: Share of payload in a full packet on the wire, with TCP timestamps.
PAYLOAD = 1448 / 1514


@dataclass(frozen=True)
class Row:
    """A moment: the time, the state and the variables by their names in the draft."""

    time_s: float
    state: str
    variables: Mapping[str, float]

    def __getitem__(self, name: str) -> float:
        return self.variables[name]


def follow(
    duration: str = "16s",
    rate: str = "20Mbit",
    rtt: str = "40ms",
    queue: str = '{ discipline = "pfifo", limit = "2bdp" }',
    network: str = "",
    flow: str = "",
    step_s: float = 1e-3,
    place: Path | None = None,
) -> list[Row]:
    """A row for each step of one flow's run. `place` is the folder that a trace's path is relative to."""
    written = rate if rate.startswith("{") else f'"{rate}"'
    text = SCENARIO.format(duration=duration, rate=written, rtt=rtt, queue=queue, network=network, flow=flow)
    if place is None:
        plan = planning.loads(text).plan()
    else:
        (place / "case.toml").write_text(text)
        plan = planning.load(place / "case.toml").plan()
    simulation = _core.Simulation(plan.engine_json, 1)
    rows = []
    for step in range(1, int(plan.duration_s / step_s) + 1):
        reached_s = simulation.advance(step * step_s)
        if found := simulation.control_variables(0):
            rows.append(Row(reached_s, *found))
    return rows


def states(rows: list[Row]) -> list[str]:
    """The states in their order."""
    return [row.state for row in entries(rows)]


def entries(rows: list[Row]) -> Iterator[Row]:
    """The first row in each state."""
    last = ""
    for row in rows:
        if row.state != last:
            yield row
        last = row.state


def entry(rows: list[Row], state: str, number: int = 0) -> Row:
    """The first row of a state, or of a later time in it."""
    return [row for row in entries(rows) if row.state == state][number]


def stay(rows: list[Row], state: str, number: int = 0) -> list[Row]:
    """The rows of a time in a state, and the first one of the next state."""
    start = rows.index(entry(rows, state, number))
    end = next((place for place in range(start, len(rows)) if rows[place].state != state), len(rows) - 1)
    return rows[start : end + 1]
