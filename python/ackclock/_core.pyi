"""The native part of ackclock: the packet engine, the models, and the lines of a TOML text's keys."""

from collections.abc import Callable, Sequence
from os import PathLike
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
ENDS: list[str]
CAUSES: list[str]
FATES: list[str]
LIMITS: list[str]
"""Names of the codes in column `what` of the `packets` table."""

DATASET_TABLES: dict[str, dict[str, str]]
"""Tables of the dataset that engines in Rust fill: table name → column name → Rust's type of a value."""

CAPTURE_TABLES: dict[str, dict[str, str]]
"""Tables that `Capture` fills: table name → column name → Rust's type of a value."""

CAPTURE_VANTAGES: list[str]
"""Names of the codes in column `vantage` of a capture's `flows`."""

CAPTURE_FATES: list[str]
"""Names of the codes in column `fate` of a capture's `segments`."""

CAPTURE_CAUSES: list[str]
"""Names of the codes in column `cause` of a capture's `segments`, and in `class` of its events but stalls."""

CAPTURE_LIMITS: list[str]
"""Names of the codes in column `limit` of a capture's `flow_samples`."""

CAPTURE_STALLS: list[str]
"""Names of the codes in column `class` of a capture's events of kind `stall`."""

FLUID_LAWS: list[str]
"""Congestion controls of which the fluid engine has the growth law."""

def check_congestion(kind: str, parameters_json: str) -> None:
    """Try a congestion control's complete parameters (a JSON object by keys of a plan).

    Raises:
        ValueError: no controller can be made of them; the message says why. A control that the packet engine does not
            have passes.
    """

def check_contract(kind: str, parameters_json: str, histories: int) -> str | None:
    """Try a congestion control with complete parameters in so many random histories of a connection, always the same.

    Returns what of the contract of all controls is broken, in words; None if all of it holds.

    Raises:
        ValueError: a text that is not JSON.
    """

def check_queue(discipline: str, parameters_json: str, rate_bps: float) -> None:
    """Try a queue discipline's complete parameters (a JSON object by keys of a plan) behind a link of that rate.

    Raises:
        ValueError: no queue can be made of them; the message says why. A discipline that the packet engine does not
            have passes.
    """

def drawn(plan_json: str, seed: int) -> dict[str, dict[str, Any]]:
    """Draw what a plan (JSON) leaves to a seed, as the packet engine does: table name → column name → values.

    `flows` has `start_s`; `transfers` has a row for each generated transfer, `gates` one for what transfers wait for;
    `datagrams` has the times of each UDP source, `departures_s`. `ways` has the links of each flow there and back
    (`forward`, `reverse`), in a network of hosts and switches; none of one whose packets draw theirs. Of a transfer
    without end `size_bytes` is 0, one that waits has no start; a number that is not there is 2³² − 1.

    Raises:
        ValueError: the plan cannot be run.
    """

def fluid_many(
    plans_json: Sequence[str], seeds: Sequence[int], threads: int, progress: Callable[[int], object] | None = None
) -> list[dict[str, dict[str, _Column]]]:
    """Run each plan (JSON) with its seed on so many threads; the results do not depend on their number.

    Args:
        plans_json: what `crates/ackclock-models/src/fluid/plan.rs` reads.
        seeds: one for each plan.
        threads: at most so many at a time.
        progress: called with the number of runs that are done; what it raises ends the call.

    Returns:
        For each plan, in their order: table name → column name → values. Packets are fractions of packets; missing
        values are NaN, and 2³² − 1 in `link`.

    Raises:
        ValueError: a plan cannot be run; the message says why.
        RuntimeError: the engine failed.
    """

@final
class ClockWatch:
    """Looks at this host's clocks once in a period; what is late by more than `least_s` beyond it is a gap.

    Raises `OSError` if the kernel does not let it, `ValueError` for times that are none. There is none but on Linux.
    """

    def __init__(self, *, period_s: float, least_s: float) -> None: ...
    def watch(self, for_s: float) -> dict[str, list[float] | list[str]]:
        """Watches for a while: column name → values, a row for each gap.

        `start_s` (monotonic), `wall_s` (since 1970), `duration_s`, `class`, and what told it: `waited_s`, `stolen_s`,
        `stepped_s`, `clock_stopped_s`. The interpreter is not held.
        """

    @property
    def clocks_s(self) -> tuple[float, float]:
        """The monotonic and the wall clock when it was last awake."""

    @property
    def has_counter(self) -> bool:
        """Whether the machine has a counter that goes on when its clocks are held."""

def execute_run_spec(path: str) -> None:
    """Carry out the order in a file, inside a Linux kernel's namespaces: set up, run, write the result.

    To be called in a process that is alone in its network and mount namespaces. It tells how far it is on the standard
    output (`progress 0.25`), and what is wrong (`error …`).

    Args:
        path: the order, as JSON of `crates/ackclock-linux/src/run_spec.rs`.

    Raises:
        SystemExit: with status 1, after an error was told.
    """

def linux_result(result: bytes) -> dict[str, dict[str, _Column]]:
    """The tables of a result that `execute_run_spec` has written: table name → column name → values.

    Columns are named as in the dataset; missing values are NaN, and the greatest value of an unsigned integer type.
    The codes in column `kind` of `events` are those of `EVENT_KINDS`.

    Raises:
        ValueError: the bytes are no such result.
    """

def toml_spans(text: str) -> list[tuple[tuple[str | int, ...], int]]:
    """The 1-based line of every key and array item of a TOML text.

    Raises:
        ValueError: the text is not TOML; the message names line and column.
    """

def toml_values(text: str) -> dict[str, Any]:
    """The values of a TOML text, as `tomllib` gives them, in a fraction of its time.

    Raises:
        ValueError: the text is not TOML, or has a time of day.
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

    def captures(self) -> list[bytes]:
        """Take what has been written of each capture (pcap) since the last call, in the order of the plan's."""

@final
class MeanField:
    """One run of the mean-field model: the same plan and seed give the same bytes."""

    def __new__(cls, plan_json: str, seed: int) -> MeanField:
        """Set a run up; the seed matters to particles only.

        Args:
            plan_json: what `crates/ackclock-models/src/meanfield/plan.rs` reads, as JSON.
            seed: the run's seed, 0 … 2⁶⁴ − 1.

        Raises:
            ValueError: the plan is not one that the model can run; the message says why.
        """

    def advance(self, until_s: float) -> float:
        """Go on to `until_s` seconds, or the end of the plan, without holding the interpreter.

        Returns:
            The time reached, in seconds.

        Raises:
            RuntimeError: the model failed; the run cannot be used any more.
        """

    def drain(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Take the rows since the last call: `flow_samples`, `queue_samples`, `hits` and `episodes` by column."""

    def finish(self) -> dict[str, dict[str, _Column]]:
        """The last rows, and the totals: `flows`, and the link as the one row of `links`."""

@final
class Listing:
    """The TCP segments of a capture, one by one, with what tells each from all others: for two captures of one path."""

    def __new__(cls, path: str | PathLike[str], filter: str = "") -> Listing:
        """Open a file; `-` is standard input.

        Raises:
            ValueError: the filter is none; the message says where.
        """

    def advance(self, segments: int) -> bool:
        """Take in at most so many segments, without holding the interpreter; false when nothing is left."""

    def drain(self) -> dict[str, dict[str, _Column]]:
        """Take the rows since the last call.

        `listed`: `time_ns` since 1970, `key` (the same for the same packet, wherever it is captured), `pair` (a row of
        `pairs`), `from_first` (who of the pair sent it), `sequence`, `acknowledgement`, `payload_bytes`. A
        super-segment has a row for each of its segments. `pairs`: the ends of connections, as text.
        """

class Capture:
    """Captures under analysis: the segments of all files, in one order of time, in; rows out."""

    def __new__(
        cls,
        paths: Sequence[str | PathLike[str]],
        filter: str = "",
        interval_s: float = 0.1,
        events: bool = True,
        segments: bool = False,
        max_connections: int = 10_000,
    ) -> Capture:
        """Open files (pcap or pcapng, also as gz, zst or xz); `-` is standard input.

        Args:
            paths: the files. Nothing is raised for one that cannot be read: `files()` says why.
            filter: only these packets, in the words of pcap-filter(7) for addresses and ports.
            interval_s: a flow is sampled at most once in this time; 0: no samples.
            events: whether `events` has more than silences.
            segments: whether `segments` and `acknowledgements` are: the fate of each copy of each data segment.
            max_connections: connections that `largest` tells of.

        Raises:
            ValueError: the filter is none; the message says where.
        """

    def advance(self, segments: int) -> bool:
        """Take in at most so many segments, without holding the interpreter.

        Returns:
            Whether there may be more. When not, every connection has been ended, and `drain` gives the last rows.

        Raises:
            RuntimeError: the analysis failed; it cannot be used any more.
        """

    def drain(self) -> dict[str, dict[str, _Column]]:
        """Take the rows found since the last call: table name → column name → values, as `CAPTURE_TABLES` says.

        A flow's row comes when its connection is over. Missing values are NaN, and the greatest value of an unsigned
        integer type.
        """

    def skim(self, segments: int) -> bool:
        """`advance` and `drain`, but that the rows are thrown away: `seen` and `largest` tell what is left of them."""

    def seen(self) -> list[dict[str, Any]]:
        """Sums over the directions that were seen from each vantage, of the rows that were taken.

        Keys: `vantage`, `directions`, `payload_bytes`, `not_captured`, `data_segments`.
        """

    def largest(self, columns: Sequence[str]) -> list[dict[str, Any]]:
        """Of the rows that were taken those of the connections with the most data, in the order of their numbers.

        Args:
            columns: those of the table `flows` that are wanted. None stands for what is not known.

        Raises:
            ValueError: there is no such column.
        """

    def top_talker_stalls(self) -> list[dict[str, Any]]:
        """Silences of those connections, in the order of time: `flow`, `time_s`, `duration_s` and `class`."""

    def files(self) -> list[dict[str, Any]]:
        """What is known of each file so far.

        Keys: `path`, `refused`, `note` (why it, or its rest, cannot be read), `dropped` (packets that
        its host says it lost; None if it does not say), and counts: `packets`, `segments`, `unknown_link`, `not_ip`,
        `not_tcp`, `later_fragments`, `cut`, `malformed`, `bad_checksums`, `offloaded_checksums`, `super_segments`,
        `seen_before`, `without_time`, `out_of_order_timestamps`.
        """

    @property
    def ranked(self) -> int:
        """How many flows `congestion` tells of."""

    def congestion(self, candidates: str) -> dict[int, list[tuple[str, list[str], float, float | None]]]:
        """Which congestion control flows used: those that are over and lost anything, the longest of them.

        Args:
            candidates: JSON, `[{"name", "parameters", "deployed"}]`: controls with the parameters that a plan has;
                `deployed` says whether it is in use: others are less probable beforehand.

        Returns:
            The number of each flow → names, "unknown" among them, the names of others that did the same, their
            probabilities, and by what share each one's windows are off in half of the round trips or more (None for
            "unknown", and where no round trip could be compared), the most probable first.

        Raises:
            ValueError: what is no candidate.
        """

    def path(self) -> dict[str, Any] | None:
        """Return the limit of the path that carries most data, from one address to another; None without data.

        Keys: `limiter` (policer, shaper, queue, none or undecided); `rate_bps`; `depth_bytes`, what it passes above its
        rate before it drops (a lower bound if `depth_is_minimum`); `burst_bytes`, what a shaper passes undelayed; each
        with a 95 % interval (`rate_ci95`, …) or None; round trips under load: `rtt_min_s`, `rtt_median_s`, `rtt_p95_s`,
        and `standing_queue_s`, the delay that nine of ten exceeded.
        """

    def levels(self, rate_bps: float, most: int) -> dict[str, list[float] | list[bool]]:
        """What was above a rate on that path, thinned: the columns `time_s`, `level_bytes` and `lost`.

        Of each of `most` equal parts of the time there are the highest and lowest that passed, and that were lost.
        """

    @property
    def connections(self) -> int:
        """Connections so far."""

    @property
    def evicted_connections(self) -> int:
        """Those of them that were open and were ended for want of memory: what went on of them counts as others."""

    @property
    def segments(self) -> int:
        """TCP segments so far, without those that were seen twice."""

    @property
    def clamped_timestamps(self) -> int:
        """Those of them whose times are 4.5 years or more from the first's."""

    @property
    def origin_ns(self) -> int | None:
        """When the first segment was captured, in nanoseconds since 1970; times in the tables count from there."""

    @property
    def duration_s(self) -> float:
        """How long after it the last one was, in seconds."""
