"""The native part of ackclock: the packet engine, and the lines of a TOML text's keys."""

from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

_Column: TypeAlias = NDArray[Any] | list[str] | list[NDArray[np.float64]] | list[NDArray[np.uint64]]

version: str
"""The crate's version."""

CONGESTION_CONTROLS: list[str]
QUEUE_DISCIPLINES: list[str]
EVENT_KINDS: list[str]
"""Names of the codes in column `kind` of the `events` table."""

PACKET_KINDS: list[str]
"""Names of the codes in column `kind` of the `packets` table."""

PACKET_ACTIONS: list[str]
"""Names of the codes in column `what` of the `packets` table."""

def toml_spans(text: str) -> list[tuple[tuple[str | int, ...], int]]:
    """The 1-based line of every key and array item of a TOML text.

    Raises:
        ValueError: the text is not TOML; the message names line and column.
    """

@final
class Simulation:
    """One run of the packet engine: the same plan and seed give the same bytes."""

    def __new__(cls, plan_json: str, seed: int) -> Simulation:
        """Set a run up.

        Args:
            plan_json: the plan, as JSON of `Plan.engine_input()`.
            seed: the run's seed, 0 … 2⁶⁴ − 1.

        Raises:
            ValueError: the plan is not one that the engine can run; the message says why.
        """

    def advance(self, until_s: float) -> float:
        """Simulate up to `until_s` seconds, or the end of the plan, without holding the interpreter.

        Returns:
            The simulated time reached, in seconds.

        Raises:
            RuntimeError: the engine failed; the simulation cannot be used any more.
        """

    def advance_some(self, until_s: float) -> tuple[float, bool]: ...
    def drain(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Take the rows recorded since the last call: table name → column name → values.

        Missing values are NaN in float columns and 2³² − 1 in `flow` and `link`.
        """

    def finish(self) -> dict[str, dict[str, _Column]]:
        """Take the `flows` and `links` tables, and the last rows of the others."""

    def capture(self) -> bytes:
        """Take the capture (pcap) written since the last call; empty unless the plan asks for one."""
