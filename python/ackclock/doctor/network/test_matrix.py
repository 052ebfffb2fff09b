"""Test plan of a network measurement and its results: one cell for each direction and number of flows.

Used by `transfers`, which fills it, and by the findings and tables of `doctor host network`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ackclock.metrics.summary import Summary, summarise

#: Directions of the data, relative to this host.
TO, FROM = "to", "from"

#: The side that listens. The other side opens all connections, whatever the direction of the data.
REMOTE, LOCAL = "remote", "local"

#: Media of a transfer: from memory to memory; or a disk is at one end, or at both.
MEMORY, FILE = "memory", "file"

#: This part of a transfer is not measured: slow start.
WARMUP = 0.2

#: Columns of a transfer that are averaged, and what they cannot exceed.
AVERAGED = {
    "goodput_bps": float("inf"),
    "rtt_idle_s": float("inf"),
    "rtt_loaded_s": float("inf"),
    "rtt_loaded_p95_s": float("inf"),
    "retransmitted": 1.0,
    "lost": 1.0,
    "receive_window": 1.0,
    "send_buffer": 1.0,
    "congestion_window": 1.0,
}

#: Columns with the share of time in which each limit held the senders back.
LIMITS = ("receive_window", "send_buffer", "congestion_window")


@dataclass(frozen=True, slots=True)
class Cell:
    """Transfers of one kind."""

    direction: str
    flows: int
    medium: str = MEMORY


@dataclass(frozen=True, slots=True)
class TestPlan:
    """Plan of a measurement: host, numbers of flows, directions, duration and repeats.

    `data`: the addresses here and there, as far as they are given; `port`: None is any; `files`: by side, the folder or
    file on whose disk its data are.
    """

    host: str
    flows: tuple[int, ...] = (1, 10)
    directions: tuple[str, ...] = (TO, FROM)
    duration_s: float = 5.0
    repeats: int = 3
    server: str = REMOTE
    port: int | None = None
    data: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    ssh_config: Path | None = None

    def cells(self) -> list[Cell]:
        """Return all kinds of transfers."""
        media = (MEMORY, FILE) if self.files else (MEMORY,)
        return [
            Cell(direction, flows, medium) for direction in self.directions for flows in self.flows for medium in media
        ]

    @property
    def warmup_s(self) -> float:
        """Return the unmeasured start of each transfer, in seconds."""
        return WARMUP * self.duration_s

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "to": self.host,
            "duration_s": self.duration_s,
            "warmup_s": self.warmup_s,
            "repeats": self.repeats,
            "server": self.server,
            **({"files": dict(self.files)} if self.files else {}),
        }


@dataclass(frozen=True, slots=True)
class CellResult:
    """Means of a cell with their intervals over the repeats.

    Mean shares of the time by host: `busy`, its processors were; `waits`, what sends or receives waited for its disk.
    """

    cell: Cell
    means: Mapping[str, Summary]
    busy: Mapping[str, float]
    unconnected: int
    waits: Mapping[str, float] = field(default_factory=dict)

    @staticmethod
    def of(cell: Cell, rows: Sequence[Mapping[str, Any]]) -> CellResult:
        """Average the rows of the cell's transfers, of which there must be at least one."""
        means = {name: summarise([row[name] for row in rows], 0.0, most) for name, most in AVERAGED.items()}
        unconnected = sum(cell.flows - row["connected"] for row in rows)
        return CellResult(cell, means, _shares(rows, "busy"), unconnected, _shares(rows, "waits"))

    def mean(self, name: str) -> float:
        """Return a mean; 0 where there is none."""
        return self.means[name].mean or 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        means = {name: summary.as_dict() for name, summary in self.means.items()}
        waits = {"waits": dict(self.waits)} if self.waits else {}
        return {**asdict(self.cell), **means, "busy": dict(self.busy), **waits, "unconnected": self.unconnected}


def _shares(rows: Sequence[Mapping[str, Any]], key: str) -> dict[str, float]:
    return {name: sum(row[key][name] for row in rows) / len(rows) for name in rows[0].get(key, ())}
