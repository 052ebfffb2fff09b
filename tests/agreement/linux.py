"""Recorded runs of Linux, and the same scenarios in the packet engine.

What is compared, over 10–60 s of each run:

- *goodput*: payload bytes acknowledged (Linux: `tcpi_bytes_acked`) or received in order (here);
- *queueing delay*: the mean of all flows' smoothed RTTs, sampled every 50 ms, less the base RTT. The smoothed RTT
  is the sender's own, so it holds the receiver's delay and the packet's transmission as well as its wait.

The recorded hosts had a processor and one clock to themselves, and take no time here (`processing = "0s"`).

Retransmissions are those of the whole run. `data/README.md` says where the numbers come from.
"""

from __future__ import annotations

import csv
import math
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

import ackclock as ac
from ackclock import algorithms, metrics
from ackclock.algorithms import Family
from ackclock.dataset import Dataset
from ackclock.metrics.metric import Value

DATA = Path(__file__).parent / "data"
MATRIX = Path(__file__).with_name("matrix.toml")
WARMUP_S, END_S, INTERVAL_S = 10.0, 60.0, 0.05

#: Largest relative difference of the goodput.
GOODPUT = 0.02
#: Largest difference of the mean queueing delay: the larger of a share and a time.
DELAY, DELAY_S = 0.10, 0.003

SCENARIO = """
name = "{run}"
duration = "60s"
warmup = "10s"

[network]
topology = "dumbbell"
rate = "{rate_bps:.0f}bit"
rtt = "{base_rtt_ms:g}ms"
frame_overhead = "14B"
{burst}
queue = {queue}

[tcp]
stack = "linux"
receive_window = "{window}"
timer_tick = "10ms"
ecn = "{ecn}"
processing = "0s"

[[flows]]
congestion = {congestion}
start = "{base_rtt_ms:g}ms"
{others}
[record]
interval = "50ms"
"""


#: The flows after the first, whose SYN has waited a base RTT for the address of the next hop (ARP).
OTHERS = """
[[flows]]
count = {others}
congestion = {congestion}
start = {{ at = "100ms", every = "100ms" }}
"""


@dataclass(frozen=True)
class Run:
    """A run of Linux: its setting and what came out."""

    run: str
    congestion: str
    flows: int
    rate_bps: float
    base_rtt_s: float
    queue: str
    goodput_bps: float
    jain: float
    srtt_mean_s: float
    drops: int
    retransmissions: int
    #: Set if the recorded link is a token bucket, and not one that transmits.
    token_bucket: bool = True

    @property
    def queueing_delay_s(self) -> float:
        """Mean smoothed RTT less the base RTT."""
        return self.srtt_mean_s - self.base_rtt_s

    @property
    def discipline(self) -> str:
        """The queue discipline's name."""
        return self.queue.split()[0]

    @property
    def limit_packets(self) -> int:
        """The limit of a `pfifo`."""
        return int(self.queue.split()[-1])

    @property
    def scenario(self) -> str:
        """The same setting as a scenario file."""
        congestion = _table("congestion", self.congestion, {})
        others = self.flows - 1
        return SCENARIO.format(
            run=self.run,
            others=OTHERS.format(others=others, congestion=congestion) if others else "",
            window=WINDOW,
            rate_bps=self.rate_bps,
            base_rtt_ms=self.base_rtt_s * 1e3,
            burst=f'burst = "{BURST}"' if self.token_bucket else "",
            queue=_table("queue", self.discipline, _given(self.queue)),
            congestion=congestion,
            ecn="classic" if "ecn" in self.queue.split() and self.congestion != "dctcp" else "auto",
        )


#: The burst of the recorded token buckets: `htb rate RATE burst 1600`.
BURST = "1600B"

#: The receive window that a socket buffer of 16 MB has room for.
WINDOW = "8MiB"

#: Effect of the kernel's clock of 10 ms (`HZ=100`) on times that are checked every tick.
TICKS = {"tick": "10ms", "tupdate": "20ms"}

#: Words of tc that stand alone.
FLAGS = {"ecn"}

#: Units that tc's words leave out.
UNITS = {"bytes": "B", "packets": "p"}


def _given(words: str) -> dict[str, str]:
    """The parameters in tc's words: `red limit 400000 ecn` has a limit, and the flag ecn."""
    given: dict[str, str] = {}
    rest = iter(words.split()[1:])
    for word in rest:
        given[word] = "true" if word in FLAGS else next(rest)
    return given


def _table(family: Family, name: str, given: dict[str, str]) -> str:
    """The table of a scenario: tc's parameters with the units of the spec, and the kernel's clock."""
    spec = algorithms.spec(family, name)
    ticks = {key: value for key, value in TICKS.items() if key in spec.parameters}
    values = {f'{algorithms.NAME_KEYS[family]} = "{name}"'}
    for key, value in {**ticks, **given}.items():
        kind = spec.parameters[key].kind
        text = value if kind in ("number", "integer", "boolean") else f'"{value}{UNITS.get(kind, "")}"'
        values.add(f"{key} = {text}")
    return "{ " + ", ".join(sorted(values)) + " }"


@dataclass(frozen=True)
class Simulated:
    """Results of the packet engine."""

    run: Run
    data: Dataset

    @cached_property
    def goodput_flow_bps(self) -> npt.NDArray[np.float64]:
        """Each flow's goodput."""
        return self.data.flows["measured_bytes"].to_numpy() * 8.0 / (END_S - WARMUP_S)

    @cached_property
    def goodput_bps(self) -> float:
        """The sum of the flows' goodputs."""
        return float(self.goodput_flow_bps.sum())

    @cached_property
    def jain(self) -> float:
        """Jain's index of the flows' goodputs."""
        shares = self.goodput_flow_bps
        return float(shares.sum() ** 2 / (shares.size * (shares**2).sum()))

    @cached_property
    def queueing_delay_s(self) -> float:
        """Mean smoothed RTT less the base RTT."""
        samples = self.data.flow_samples.filter(pl.col("time_s") >= WARMUP_S)
        return float(samples["srtt_s"].mean()) - self.run.base_rtt_s  # type: ignore[arg-type]

    @cached_property
    def retransmissions(self) -> int:
        """Return the retransmissions of all flows, over the whole run."""
        return int(self.data.flows["retransmissions"].sum())

    @cached_property
    def drops(self) -> int:
        """At the bottleneck, over the whole run."""
        return int(self.data.links["dropped_total_p"].sum())

    @property
    def goodput_difference(self) -> float:
        """Relative to Linux's."""
        return self.goodput_bps / self.run.goodput_bps - 1

    @property
    def delay_difference_s(self) -> float:
        """The queueing delay above Linux's."""
        return self.queueing_delay_s - self.run.queueing_delay_s

    @property
    def delay_tolerance_s(self) -> float:
        """A tenth of the queueing delay, but at least 3 ms."""
        return max(DELAY_S, DELAY * self.run.queueing_delay_s)

    @property
    def agrees(self) -> bool:
        """Return True if goodput and queueing delay are both within their tolerance."""
        return abs(self.goodput_difference) <= GOODPUT and abs(self.delay_difference_s) <= self.delay_tolerance_s

    def windows_at(self, times_s: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Each flow's congestion window in segments by time and flow, the last sample before each time."""
        columns = []
        for _, samples in self.data.flow_samples.group_by("flow", maintain_order=True):
            at = np.searchsorted(samples["time_s"].to_numpy(), times_s + INTERVAL_S / 2) - 1
            columns.append(np.where(at < 0, np.nan, samples["cwnd"].to_numpy()[np.maximum(at, 0)]))
        return np.column_stack(columns)


def recorded(name: str) -> list[Run]:
    """The runs of `data/<name>.csv`."""
    return [_run(row, token_bucket=name != "serialising") for row in _rows(name)]


#: The recordings' receivers read every 5 ms. In these runs that decides: with a reader that reads at once the same
#: kernel gives something else.
READ_LATE = (
    "bic-20M-50ms-25p-1x",
    "highspeed-20M-50ms-8p-1x",
    "htcp-20M-50ms-8p-1x",
    "vegas-20M-50ms-83p-1x",
    "westwood-20M-50ms-8p-1x",
    "westwood-20M-50ms-25p-1x",
)


def changed() -> dict[str, list[tuple[str, Run]]]:
    """The runs of `data/mechanisms.csv` by setting: what was changed, and what came out."""
    runs: dict[str, list[tuple[str, Run]]] = {}
    for row in _rows("mechanisms"):
        runs.setdefault(row["run"], []).append((row.pop("change"), _run(row)))
    return runs


def _rows(name: str) -> list[dict[str, str]]:
    with (DATA / f"{name}.csv").open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


WORDS, WHOLE = ("run", "congestion", "queue"), ("flows", "drops", "retransmissions")


def _run(row: dict[str, str], *, token_bucket: bool = True) -> Run:
    words = {key: row[key] for key in WORDS}
    counts = {key: int(row[key]) for key in WHOLE}
    numbers = {key: float(text) for key, text in row.items() if key not in WORDS + WHOLE}
    return Run(**words, **counts, **numbers, token_bucket=token_bucket)  # type: ignore[arg-type]


@cache
def simulate(run: Run) -> Simulated:
    """The run's setting in the packet engine; nothing is random in it, so one seed is all."""
    return Simulated(run, ac.run(ac.loads(run.scenario, f"{run.run}.toml").plan(), seeds=[1]))


def recorded_windows(run: Run) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Linux's congestion windows: times (s), and segments by time and flow (NaN before a flow's start)."""
    values = np.genfromtxt(DATA / "cwnd" / f"{run.run}.csv", delimiter=",", skip_header=1)
    return values[:, 0], values[:, 1:]


@cache
def cells() -> pl.DataFrame:
    """The recorded cells of `matrix.toml`, of both engines."""
    return pl.read_csv(DATA / "matrix.csv")


def cell(queue: str, *, rate: str, rtt: str, flows: int, congestion: str) -> dict[str, Value]:
    """The metrics of a cell of `matrix.toml` by the packet engine as it is; `queue` in TOML."""
    scenario = MATRIX.read_text(encoding="utf-8").partition("[sweep]")[0]
    keys = {"network.rate": rate, "network.rtt": rtt, "flows[0].count": flows, "flows[0].congestion": congestion}
    keys["network.queue"] = tomllib.loads(f"queue = {queue}")["queue"]
    (view,) = metrics.runs(ac.run(ac.loads(scenario).with_(keys)))
    return metrics.of_run(view)


def falls(window: npt.NDArray[np.float64]) -> int:
    """Return the number of times a window, sampled every 0.2 s, fell by more than a tenth in a step."""
    fallen = window[1:] < 0.9 * window[:-1]
    return int(np.count_nonzero(fallen[1:] & ~fallen[:-1]) + fallen[0])


HEAD = (
    "run",
    "goodput, Linux (Mb/s)",
    "here",
    "difference",
    "queueing delay, Linux (ms)",
    "here",
    "difference",
    "Jain, Linux",
    "here",
    "retransmissions, Linux",
    "here",
    "agrees",
)


def row(result: Simulated) -> tuple[str, ...]:
    """A run of both side by side, in the columns of `HEAD`."""
    run = result.run
    single = run.flows == 1
    return (
        run.run,
        f"{run.goodput_bps / 1e6:.3f}",
        f"{result.goodput_bps / 1e6:.3f}",
        f"{result.goodput_difference:+.2%}",
        f"{run.queueing_delay_s * 1e3:.2f}",
        f"{result.queueing_delay_s * 1e3:.2f}",
        f"{result.delay_difference_s * 1e3:+.2f} ms",
        "–" if single else f"{run.jain:.2f}",
        "–" if single else f"{result.jain:.2f}",
        f"{run.retransmissions}",
        f"{result.retransmissions}",
        "yes" if result.agrees else "no",
    )


def printed(results: Iterable[Simulated]) -> str:
    """The comparison as text, a line a run."""
    rows = [HEAD, *map(row, results)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in rows)


def enough(runs: int, share: float = 0.9) -> int:
    """Return the number of these runs that have to agree."""
    return math.ceil(share * runs)
