"""What is summed over all connections while they pass, since there may be millions of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ackclock import _core
from ackclock.dataset.tables import Column

Columns: TypeAlias = Mapping[str, Column]

#: What is summed of the directions that were seen from a vantage.
SUMMED = ("payload_bytes", "capture_lost", "data_segments")


class Tally:
    """Sums by vantage, and the connections with the most data: at most `most` of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sums = {name: np.zeros(len(_core.CAPTURE_VANTAGES), np.uint64) for name in ("directions", *SUMMED)}
        self._connections: npt.NDArray[np.uint32] = np.zeros(0, np.uint32)
        self._bytes: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)

    def add(self, flows: Columns) -> None:
        """Takes in rows of directions; those of one connection come together."""
        vantage = np.asarray(flows["vantage"])
        np.add.at(self._sums["directions"], vantage, 1)
        for name in SUMMED:
            np.add.at(self._sums[name], vantage, np.asarray(flows[name]).astype(np.uint64))
        connections, place = np.unique(np.asarray(flows["flow"]) // 2, return_inverse=True)
        sizes = np.zeros(len(connections), np.uint64)
        np.add.at(sizes, place, np.asarray(flows["payload_bytes"]))
        self._connections = np.concatenate([self._connections, connections.astype(np.uint32)])
        self._bytes = np.concatenate([self._bytes, sizes])
        kept = np.lexsort((self._connections, self._bytes))[-self._most :]
        self._connections, self._bytes = self._connections[kept], self._bytes[kept]

    def seen(self) -> list[dict[str, Any]]:
        """The sums of each vantage."""
        counts = {name: values.tolist() for name, values in self._sums.items()}
        words: Sequence[str] = _core.CAPTURE_VANTAGES
        return [
            {"vantage": word, **{name: values[code] for name, values in counts.items()}}
            for code, word in enumerate(words)
            if counts["directions"][code]
        ]

    def largest(self) -> npt.NDArray[np.uint32]:
        """The numbers of the connections with the most data."""
        return np.sort(self._connections)
