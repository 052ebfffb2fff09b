"""The kernel's statistics of the programs' TCP connections (`TCP_INFO`): windows of the flows' samples, and totals.

Each end reports its own sockets (`host.report`). A connection has one at each end; a flow's window is that of the end
whose data were acknowledged the most.

Used by `session`, `plans` and `relay`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ackclock import _core

#: Address and port.
Address: TypeAlias = tuple[str, int]

#: The original ends, outside and the program's, of the connection that has an address at the relay; None for others.
Relayed: TypeAlias = Callable[[str], Sequence[Address] | None]

#: Columns of `flow_samples` that are the kernel's.
WINDOWS = ("cwnd", "ssthresh", "srtt_s", "in_flight")

#: Totals of a flow that are the kernel's, and the statistic that each is; all of a run is measured.
TOTALS = {
    **dict.fromkeys(("retransmissions", "measured_retransmissions"), "retransmissions"),
    **dict.fromkeys(("timeouts", "measured_timeouts"), "timeouts"),
}

#: Reports of a socket that are kept until a sample needs them.
KEPT = 256


@dataclass(slots=True)
class _Socket:
    """A socket: the algorithm, the latest statistics, and those since the last sample that was filled."""

    congestion: str = ""
    latest: Mapping[str, Any] = field(default_factory=dict)
    reported: deque[tuple[float, Mapping[str, Any]]] = field(default_factory=lambda: deque(maxlen=KEPT))

    def at(self, time_s: float) -> Mapping[str, Any] | None:
        """Return the statistics of the last report before a time, and forget those before that."""
        while len(self.reported) > 1 and self.reported[1][0] <= time_s:
            self.reported.popleft()
        return self.reported[0][1] if self.reported and self.reported[0][0] <= time_s else None

    def keep_last(self) -> None:
        """Forget all reports but the last."""
        while len(self.reported) > 1:
            self.reported.popleft()

    @property
    def acknowledged_bytes(self) -> int:
        return int(self.latest.get("acknowledged_bytes", 0))


class Sockets:
    """The sockets of all ends. Times of reports are of the monotonic clock, and `zero_s` is the run's beginning.

    `relayed` maps the address of a relayed connection to its original ends.
    """

    def __init__(self, zero_s: float, relayed: Relayed = lambda _: None) -> None:
        self._zero_s, self._relayed = zero_s, relayed
        self._lock = threading.Lock()
        self._sockets: dict[tuple[str, Address, Address], _Socket] = {}
        #: The sockets of the connections of a flow: both ends'.
        self._of_flow: dict[int, list[tuple[_Socket, ...]]] = {}

    def add(self, end: str, time_s: float, messages: bytes) -> None:
        """Take a report of an end."""
        with self._lock:
            for here, there, congestion, statistics in _core.tcp_sockets(messages):
                seen = self._socket(end, *(self._relayed(there[0]) or (here, there)))
                seen.congestion = congestion or seen.congestion
                seen.latest = statistics
                seen.reported.append((time_s - self._zero_s, statistics))

    def begin(self, begun: Iterable[tuple[int, Mapping[str, Address]]]) -> None:
        """Take connections that have begun: flow, addresses by end."""
        with self._lock:
            for flow, ends in begun:
                self._of_flow.setdefault(flow, []).append(self._pair(ends))

    def fill(self, samples: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns of `flow_samples` with the windows of flows that have one connection.

        Reports that no sample can need any more are dropped, so a socket keeps its last one.
        """
        flows = np.asarray(samples["flow"])
        filled = {name: np.array(samples[name], dtype=np.float64) for name in WINDOWS}
        with self._lock:
            for flow, connections in self._of_flow.items():
                sender = max(connections[0], key=lambda one: one.acknowledged_bytes)
                for one in (one for pair in connections for one in pair if one is not sender):
                    one.keep_last()
                if len(connections) > 1:  # they share the flow, and each has its window
                    sender.keep_last()
                    continue
                for row in np.flatnonzero(flows == flow):
                    if found := sender.at(float(samples["time_s"][row])):
                        for name, column in filled.items():
                            column[row] = np.nan if found[name] is None else found[name]
        return {**samples, **filled}

    def statistics(self, connection: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return, by end of a connection, the algorithm and the kernel's last statistics of its socket."""
        with self._lock:
            pair = zip(connection["ends"], self._pair(connection["ends"]), strict=True)
            return {end: {"congestion": one.congestion or None, **one.latest} for end, one in pair if one.latest}

    def _pair(self, ends: Mapping[str, Address]) -> tuple[_Socket, ...]:
        (one, here), (other, there) = ends.items()
        return self._socket(one, here, there), self._socket(other, there, here)

    def _socket(self, end: str, here: Address, there: Address) -> _Socket:
        return self._sockets.setdefault((end, here, there), _Socket())


def sender_of(statistics: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the statistics of the end whose data were acknowledged the most; none of a connection without any."""
    return max(statistics.values(), key=lambda one: int(one["acknowledged_bytes"]), default={})
