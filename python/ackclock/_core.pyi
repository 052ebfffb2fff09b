"""The native part of ackclock: packet engine, models, Linux runs, capture analysis and TOML parsing."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

_Column: TypeAlias = NDArray[Any] | list[str] | list[NDArray[np.float64]] | list[NDArray[np.uint64]]

version: str
"""The crate's version."""

CONGESTION_CONTROLS: list[str]
QUEUE_DISCIPLINES: list[str]
"""Names of the packet engine's CCAs and qdiscs."""

FLUID_LAWS: list[str]
"""CCAs whose growth law the fluid engine has."""

DATASET_TABLES: dict[str, dict[str, str]]
CAPTURE_TABLES: dict[str, dict[str, str]]
"""Tables that engines in Rust, and `Capture`, fill: table name → column name → Rust's type of a value."""

# Names of the codes in a column of a table of the dataset.
EVENT_KINDS: list[str]  # `events`: `kind`
PACKET_KINDS: list[str]  # `packets`: `kind`
PACKET_ACTIONS: list[str]  # `packets`: `what`
ENDS: list[str]  # `transmissions`: `end`
CAUSES: list[str]  # `transmissions`: `cause`
FATES: list[str]  # `transmissions`: `fate`
LIMITS: list[str]  # `transmissions`: `limit`

# The same of a capture's tables.
CAPTURE_VANTAGES: list[str]  # `flows`: `vantage`
CAPTURE_FATES: list[str]  # `segments`: `fate`
CAPTURE_CAUSES: list[str]  # `segments`: `cause`, and `class` of events other than stalls
CAPTURE_LIMITS: list[str]  # `flow_samples`: `limit`
CAPTURE_STALLS: list[str]  # `events`: `class` of stalls

def check_congestion(kind: str, parameters_json: str, *, quic: bool = False) -> None:
    """Check a CCA's complete parameters (a JSON object by keys of a plan), with `quic` for a QUIC stack.

    A CCA that the packet engine does not have passes.

    Raises:
        ValueError: they are invalid, or a QUIC stack lacks what it requires; the message gives the reason.
    """

def check_contract(kind: str, parameters_json: str, histories: int) -> str | None:
    """Test a CCA with complete parameters in `histories` random histories of a connection, always the same ones.

    Returns:
        A description of the violated part of the contract of all CCAs; None if all of it holds.

    Raises:
        ValueError: the parameters are not JSON.
    """

def check_queue(discipline: str, parameters_json: str, rate_bps: float) -> None:
    """Check a qdisc's complete parameters (a JSON object by keys of a plan) at a link of `rate_bps`.

    A qdisc that the packet engine does not have passes.

    Raises:
        ValueError: the parameters are invalid; the message gives the reason.
    """

def register_congestion(
    name: str, factory: Callable[[str, float], object], is_paced: bool, is_own_recovery: bool
) -> None:
    """Register a CCA in Python for as long as this process lasts, in place of one of the same name.

    Args:
        name: its name in plans.
        factory: called with the complete parameters (JSON) and the initial window in segments; returns the controller.
        is_paced: whether the sender paces, whatever the stack's default.
        is_own_recovery: whether its window applies in recovery too.

    Raises:
        ValueError: the name of a CCA of the packet engine.
    """

@final
class Ack:
    """An acknowledgement, for a CCA in Python: windows and counts in segments, times in seconds."""

    now_s: float
    newly_acked: int
    newly_acked_bytes: int
    newly_lost: int
    marked_bytes: int
    rtt_s: float | None
    srtt_s: float
    min_rtt_s: float | None
    in_flight: int
    prior_in_flight: int
    delivered: int
    prior_delivered: int
    delivery_rate_bps: float | None
    application_limited: bool
    window_limited: bool
    recovering: bool
    in_loss: bool
    may_grow: bool

@final
class Loss:
    """The start of a recovery episode, for a CCA in Python."""

    now_s: float
    in_flight: int
    srtt_s: float
    min_rtt_s: float | None
    delivered: int
    marked: bool

@final
class ControllerReplay:
    """A controller that is fed with events of a log: segments, seconds. `ValueError`: unknown name, bad parameters."""

    def __new__(cls, kind: str, parameters_json: str, initial_window: float) -> ControllerReplay: ...
    def set_rtt(self, srtt_s: float, min_rtt_s: float) -> None: ...
    def on_ack(self, now_s: float, newly_acked: int, in_flight: int, may_grow: bool, recovering: bool) -> None: ...
    def on_loss(self, now_s: float, in_flight: int, marked: bool) -> None: ...
    def on_timeout(self, now_s: float, in_flight: int) -> None: ...
    def resume(self, cwnd: float) -> None: ...
    @property
    def cwnd(self) -> float: ...
    @property
    def ssthresh(self) -> float: ...

def drawn(plan_json: str, seed: int) -> dict[str, dict[str, Any]]:
    """Return the random draws of a plan (JSON) with a seed, those of the packet engine: table → column → values.

    `flows` has `start_s`; `transfers` has a row for each generated transfer, `gates` one for each condition that
    transfers wait for; `datagrams` has the departure times of each UDP source, `departures_s`. In a network of hosts
    and switches `ways` has the links of each flow in both directions (`forward`, `reverse`), empty where each packet
    draws its own path. `size_bytes` is 0 for an endless transfer, and `start_s` is NaN for one that waits; a missing
    number is 2³² − 1.

    Raises:
        ValueError: the plan cannot be run.
    """

def fluid_many(
    plans_json: Sequence[str], seeds: Sequence[int], threads: int, progress: Callable[[int], object] | None = None
) -> list[dict[str, dict[str, _Column]]]:
    """Run each plan (JSON) with its seed; the results do not depend on the number of threads.

    Args:
        plans_json: plans in the format of `crates/ackclock-models/src/fluid/plan.rs`.
        seeds: one for each plan.
        threads: the maximum number of threads.
        progress: called with the number of completed runs; an exception from it ends the call.

    Returns:
        For each plan, in their order: table name → column name → values. Packets are fractions of packets; missing
        values are NaN, and 2³² − 1 in `link`.

    Raises:
        ValueError: a plan cannot be run; the message gives the reason.
        RuntimeError: the engine failed.
    """

@final
class ClockWatch:
    """Monitor of this host's clocks (Linux only): a wake-up later than its period by more than `least_s` is a gap.

    Raises:
        OSError: the kernel does not permit it.
        ValueError: a time is invalid.
    """

    def __init__(self, *, period_s: float, least_s: float) -> None: ...
    def watch(self, for_s: float) -> dict[str, list[float] | list[str]]:
        """Watch for `for_s` seconds, without holding the interpreter: column name → values, a row for each gap.

        `start_s` (monotonic), `wall_s` (since 1970), `duration_s`, `class`, and the evidence for it: `waited_s`,
        `stolen_s`, `stepped_s`, `clock_stopped_s`.
        """

    @property
    def clocks_s(self) -> tuple[float, float]:
        """The monotonic and the wall clock at the last wake-up, in seconds."""

    @property
    def has_counter(self) -> bool:
        """True if the machine has a counter that continues while its clocks are stopped."""

def execute_run_spec(path: str) -> None:
    """Execute the run specification in a file: set up the network, run the traffic, write the result.

    The calling process must have network and mount namespaces of its own. Progress (`progress 0.25`) and an error
    (`error …`) are written to the standard output.

    Args:
        path: the run specification, as JSON of `crates/ackclock-linux/src/run_spec.rs`.

    Raises:
        SystemExit: with status 1, after an error was written.
    """

def linux_result(result: bytes) -> dict[str, dict[str, _Column]]:
    """Return the tables of a result that `execute_run_spec` has written: table name → column name → values.

    Columns as in the dataset; missing values are NaN, and the greatest value of an unsigned integer type.

    Raises:
        ValueError: the bytes are not such a result.
    """

def toml_spans(text: str) -> list[tuple[tuple[str | int, ...], int]]:
    """Return the 1-based line of every key and array item of a TOML text; raise `ValueError` with line and column."""

def toml_values(text: str) -> dict[str, Any]:
    """Return the values of a TOML text as `tomllib` does, but faster. Raises `ValueError` if it is not TOML."""

@final
class Simulation:
    """One run of the packet engine: the same plan and seed give the same bytes."""

    def __new__(
        cls, plan_json: str, seed: int, stacks: Mapping[str, Sequence[str]] = ..., patience_s: float = 10.0
    ) -> Simulation:
        """Set a run of a plan (JSON of `Plan.engine_input()`) up, with a seed from 0 to 2⁶⁴ − 1.

        `stacks`: the commands that host users' stacks, by name; a call longer than `patience_s` has failed.

        Raises:
            ValueError: the engine cannot run the plan. (Every method raises `ConnectionError` for a stack that fails.)
        """

    def advance(self, until_s: float) -> float:
        """Simulate up to `until_s` seconds or the end of the plan, return the time reached; releases the interpreter.

        Raises:
            RuntimeError: the engine failed; the simulation cannot be used any more.
        """

    def advance_some(self, until_s: float) -> tuple[float, bool]:
        """Advance like `advance`, but for some tenths of a second's work; return the time, and True if that was all."""

    def control_variables(self, flow: int) -> tuple[str, dict[str, float]] | None:
        """Return the state of a flow's CCA, and its variables by the names of its specification.

        Volumes are in segments; names have units where there are any; true is 1. None for a flow that is not active,
        and for a CCA that shows no variables.
        """

    def sender_measurements(self, flow: int) -> dict[str, float] | None:
        """Return what a flow's sender has measured: `crates/ackclock-sim/src/sender/agent.rs`; None if not active.

        Seconds, NaN before the first sample; segments (`_p`), bytes, and counts since the connection began.
        """

    def set_window(self, flow: int, cwnd: float, pacing_rate_bps: float | None = None) -> bool:
        """Set window (segments) and pacing rate of a flow; False if it is not active, or its CCA is not "agent".

        Raises:
            ValueError: a window or a rate that is not positive and finite.
        """

    def enable_leaps(self) -> None:
        """Let the run leap past round trips in which no packet matters, before it begins: the hybrid engine."""

    def enable_threads(self, threads: int) -> tuple[int, str]:
        """Divide the run among up to `threads` threads, before it begins; return how many, and why it is only one."""

    def leaps(self) -> tuple[int, float]:
        """Return the number of leaps so far, and the seconds that they have skipped."""

    def drain(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Take the rows recorded since the last call; missing values are NaN, and 2³² − 1 in `flow` and `link`."""

    def finish(self) -> dict[str, dict[str, _Column]]:
        """Take the `flows` and `links` tables, and the last rows of the others."""

    def captures(self) -> list[bytes]:
        """Take the bytes written of each capture (pcap) since the last call, in the order of the plan's captures."""

def tcp_sockets(messages: bytes) -> list[tuple[tuple[str, int], tuple[str, int], str, dict[str, Any]]]:
    """Return the TCP sockets in messages of sock_diag(7): ends, algorithm (empty if unknown), statistics."""

@final
class Bridge:
    """A thread that carries packets between TUN devices and a simulation, whose time is that of the clock."""

    def __new__(
        cls,
        simulation: Simulation,
        ends: Sequence[tuple[str, int, Sequence[str], str | None]],
        routes: Sequence[tuple[int, int, int, int]],
        relay: tuple[list[tuple[str, int, int]], int] | None = None,
    ) -> Bridge:
        """Begin between ends (name, descriptor, addresses, capture) by routes (two of them, a range of flows)."""

    def is_running(self) -> bool: ...
    def thread_id(self) -> int: ...
    def relayed(self, address: str) -> list[tuple[str, int]] | None: ...
    def take_begun(self) -> list[tuple[int, dict[str, tuple[str, int]]]]:
        """Return the connections that have begun since the last call: flow, address and port by end."""

    def stop(self) -> dict[str, Any]:
        """Stop; return lateness, connections, and counts of packets that were not carried. Raises `OSError`."""

@final
class MeanField:
    """One run of the mean-field model: the same plan and seed give the same bytes."""

    def __new__(cls, plan_json: str, seed: int) -> MeanField:
        """Set a run of a plan up (JSON of `crates/ackclock-models/src/meanfield/plan.rs`); particles need the seed.

        Raises:
            ValueError: the model cannot run the plan; the message gives the reason.
        """

    def advance(self, until_s: float) -> float:
        """Continue to `until_s` seconds, or the end of the plan, without holding the interpreter.

        Returns:
            The time reached, in seconds.

        Raises:
            RuntimeError: the model failed; the run cannot be used any more.
        """

    def drain(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Take the rows since the last call: `flow_samples`, `queue_samples`, `hits` and `episodes` by column."""

    def finish(self) -> dict[str, dict[str, _Column]]:
        """Take the last rows, and the totals: `flows`, and the link as the one row of `links`."""

@final
class Listing:
    """The TCP segments of a capture, each with a key that identifies it in other captures of the same path."""

    def __new__(
        cls, path: PathLike[str], filter: str = "", datagrams: bool = False, other: PathLike[str] | None = None
    ) -> Listing:
        """Open a file; `-` is standard input. With `datagrams`, those of QUIC too; segments cut as in capture `other`.

        Raises:
            ValueError: the filter is invalid; the message gives the position.
        """

    def advance(self, packets: int) -> bool:
        """Read at most `packets` packets, without holding the interpreter; return False at the end."""

    def drain(self) -> dict[str, dict[str, _Column]]:
        """Take the rows since the last call.

        `listed`, each segment of super-segments too: `time_ns` since 1970, `key` (the same wherever it is captured),
        `pair` (a row of `pairs`, the ends as text), `from_first`, `sequence`, `acknowledgement`, `payload_bytes`.
        """

@final
class Capture:
    """Captures under analysis: reads the segments of all files in order of time and returns rows."""

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
            paths: the files. An unreadable file raises nothing: `files()` reports the reason.
            filter: the packets to analyse, in the language of pcap-filter(7).
            interval_s: the minimum time between two samples of a flow; 0: no samples.
            events: record events other than stalls.
            segments: record `segments` and `acknowledgements`: the fate of each copy of each data segment.
            max_connections: the maximum number of connections that `largest` returns.

        Raises:
            ValueError: the filter is invalid; the message gives the position.
        """

    def advance(self, segments: int) -> bool:
        """Analyse at most `segments` segments, without holding the interpreter.

        Returns:
            True if there may be more. After False every connection has ended, and `drain` returns the last rows.

        Raises:
            RuntimeError: the analysis failed; it cannot be used any more.
        """

    def drain(self) -> dict[str, dict[str, _Column]]:
        """Take the rows since the last call: table name → column name → values, as in `CAPTURE_TABLES`.

        A flow's row comes when its connection is over. Missing values are NaN, and the greatest value of an unsigned
        integer type.
        """

    def skim(self, segments: int) -> bool:
        """Advance and discard the rows, keeping the sums that `seen` and `largest` return."""

    def seen(self) -> list[dict[str, Any]]:
        """Return sums over the directions of each vantage point, for the rows taken so far.

        Keys: `vantage directions payload_bytes delivered_bytes lost unseen not_captured data_segments`.
        """

    def largest(self, columns: Sequence[str]) -> list[dict[str, Any]]:
        """Return the rows of the connections with the most data, of those taken, in the order of their numbers.

        Args:
            columns: the columns of the table `flows` to return. An unknown value is None.

        Raises:
            ValueError: `flows` has no such column.
        """

    def top_talker_stalls(self) -> list[dict[str, Any]]:
        """Return the stalls of these connections, in order of time: `flow`, `time_s`, `duration_s` and `class`."""

    def icmp_reports(self) -> list[dict[str, Any]]:
        """Return the ICMP errors that quote segments of connections, in the order of the flows.

        Keys: `flow`, the number of the quoted flow; `kind`, the reason; `reporter`, the address of the host or router;
        `mtu` in bytes, the smallest reported, or None; `errors`, their number; `first_s`, the time of the first.
        """

    def udp(self, max_flows: int) -> str:
        """Return JSON: the flows of UDP with the most bytes, and the sum of the others."""

    def files(self) -> list[dict[str, Any]]:
        """Return a report on each file so far.

        Keys: `path`, `refused` (unreadable), `note` (why it, or its rest, is), `dropped` (packets that the capturing
        host reports as lost, or None), and counts: `packets`, `segments`, `unknown_link`, `not_ip`, `not_tcp`,
        `datagrams`, `later_fragments`, `cut`, `malformed`, `bad_checksums`, `offloaded_checksums`, `super_segments`,
        `seen_before`, `without_time`, `out_of_order_timestamps`.
        """

    @property
    def ranked(self) -> int:
        """The number of flows that `congestion` identifies."""

    def congestion(self, candidates: str) -> dict[int, list[tuple[str, list[str], float, float | None]]]:
        """Identify the CCA of the longest finished flows with losses.

        Args:
            candidates: JSON, `[{"name", "parameters", "deployed"}]`: CCAs with their parameters as in a plan. One that
                is not `deployed` has a smaller prior probability.

        Returns:
            The number of each flow → its candidates, "unknown" among them, the most probable first. Each has its name,
            the names of others with the same windows, its probability, and the median relative error of its windows
            (None for "unknown", and where no round trip was comparable).

        Raises:
            ValueError: a candidate is invalid.
        """

    def path(self) -> dict[str, Any] | None:
        """Return the limit of the path (from one address to another) that carries most data; None without data.

        Keys: `limiter` (policer, shaper, queue, none or undecided); `rate_bps`, `depth_bytes` (the excess over its rate
        that it accepts before it drops; a lower bound if `depth_is_minimum`), `burst_bytes` (the excess that a shaper
        forwards without delay), each with a 95 % interval (`rate_ci95`, …) or None; no rate where that is wider than
        ±5 %; RTTs under load: `rtt_min_s`, `rtt_median_s`, `rtt_p95_s`; `standing_queue_s`, which 90 % of them exceed.
        """

    def levels(self, rate_bps: float, most: int) -> dict[str, list[float] | list[bool]]:
        """Return the level of a bucket of this rate: `time_s`, `level_bytes`, `lost`; the extremes in `most` parts."""

    @property
    def connections(self) -> int:
        """Connections so far."""

    @property
    def evicted_connections(self) -> int:
        """Open connections that were ended because memory was short; their rest counts as other connections."""

    @property
    def segments(self) -> int:
        """TCP segments so far, without those captured twice."""

    @property
    def clock_steps(self) -> tuple[int, float]: ...
    @property
    def clamped_timestamps(self) -> int:
        """Segments whose times are 4.5 years or more from the first's."""

    @property
    def origin_ns(self) -> int | None:
        """The capture time of the first segment, in ns since 1970: the origin of times in the tables."""

    @property
    def duration_s(self) -> float:
        """The time from the first segment to the last, in seconds."""
