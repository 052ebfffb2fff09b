"""Makes the page that compares the packet engine with the real kernel, cell by cell: `concepts/linux-agreement.md`.

The cells are those of `tests/agreement/matrix.toml`, each run by both engines:

    ackclock sweep tests/agreement/matrix.toml --engine packet
    ackclock sweep tests/agreement/matrix.toml --engine linux
    python docs/make_matrix.py results/matrix-packet-sweep results/matrix-linux-sweep

The last command puts the metrics into `tests/agreement/data/matrix.csv`, with the cells that are already there;
without arguments the page is made from that. A cell may have been run with several seeds (`--repeats`), and has then
their medians: single flows behind queues that drop at random, PIE and RED, are run five times in the kernel and ten
times by the packet engine (three times in the kernel at 100 Mb/s).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import claims
import numpy as np
import polars as pl
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from ackclock.experiments.sweep.result import read

DOCS = Path(__file__).resolve().parent
TABLE = DOCS.parent / "tests" / "agreement" / "data" / "matrix.csv"

#: The kernel's cells once more, whose applications read 16 KiB at a time from the first byte on.
LATE = TABLE.with_name("matrix-late.csv")

#: The key of a row or a column of the figure.
Key: TypeAlias = tuple[Any, ...]

#: Metric → its name on the page, and the relative difference that is aimed at (None: none is).
METRICS: dict[str, tuple[str, float | None]] = {
    "goodput_bps": ("goodput", 0.02),
    "queue_delay_mean_s": ("queueing delay", 0.10),
    "loss_rate": ("loss rate", 0.20),
    "jain": ("Jain's index", None),
    "cwnd_period_s": ("period of the window", None),
}
AIMED = {name: aim for name, (_, aim) in METRICS.items() if aim is not None}

#: By what the cells are grouped, as the page calls it.
GROUPS = {"congestion control": "congestion", "queue": "queue", "RTT": "rtt", "rate": "rate", "flows": "flows"}

#: Tolerances of a near match: seconds of delay, and drops in the measurement interval.
NEARLY_S, NEARLY_DROPS = 0.001, 5.0
MEASURED_S, SEGMENT_BITS = 50.0, 1448 * 8.0

#: The swept keys, under the names they have here.
KEYS = {
    "network.rate": "rate",
    "network.rtt": "rtt",
    "flows[0].count": "flows",
    "flows[0].congestion": "congestion",
    "network.queue": "queue",
}

INTRODUCTION = """<!-- Made by docs/make_matrix.py: edit that. -->

# The packet engine and the kernel

One scenario (`tests/agreement/matrix.toml`), two engines: {congestion} congestion control algorithms over `pfifo` of
0.1, 0.3 and 1 BDP, CoDel, PIE, FQ-CoDel and RED, with one flow and ten, at 10 and 100 Mb/s, 10, 50 and 200 ms; 60 s, of
which the first 10 are left out; one run each, but for single flows behind PIE and RED: these drop at random, and a few
draws decide what a flow gets. There the values are medians of {packet_seeds} runs of the packet engine, and of
{kernel_seeds} of the kernel where it was run more than once: where there are two outcomes, a mean of few runs only
shows how often one of them occurred. Of all goodputs {medians} are within the aim by medians, {means} by means,
{first} by the first run of each cell.
Of the {every} cells, {cells} have been run in the kernel; the others are white.
A difference is the packet engine's value over the kernel's, less one.
The aim is a goodput within 2 %, a queueing delay within 10 % and a loss rate within 20 % in nine of ten cells.

A run of either engine is one outcome of many: where the losses of a flow decide, a start that is shifted by a
millisecond can change a loss rate a great deal. *Or nearly* counts a cell too if its delays differ by less than 1 ms,
or its drops by less than 5 in the 50 s. The kernel alone shows how much two outcomes differ: with an
application that reads 16 KiB at a time, which moves the first round trips only, {again}.

"""

CAUSES = """
## What is behind the differences

Without batches some of the differences of single flows at 10 Mb/s shrink or vanish. Loss rates in 1/10000, the kernel's
first; *no batches* was measured once, by `ackclock sweep` as above with `--set tcp.tso_batching=false`:

{batches}

In three of the six rows the difference shrinks. <!-- so: [abs(one[0] - one[1]) > abs(other[0] - other[1]) for one,
other in ([[*map(float, row[column].split(", "))] for column in ("as it is", "no batches")] for row in
rows("Loss rates"))] == [False, True, True, False, True, False] --> BBR and Illinois at 10 ms also depend on exactly
when a compressed SACK leaves (in the kernel `net.ipv4.tcp_comp_sack_nr = 0` switches the compression off).

- *0.1 BDP at 10 Mb/s and 10 ms* is a queue of one packet, so single packets decide. Illinois settles into
  a periodic pattern there, and a detail such as the receive window may decide into which.
- *PIE and RED* drop at random, and a single flow's loss rate depends on a few draws. At 100 Mb/s and 200 ms the 60 s
  are too short to recover from what the end of slow start may cost Reno, so there are two outcomes. Under RED it has 37
  to 38 Mb/s in three runs of the kernel and in six of ten of the packet engine, 65 to 66 in the others. <!-- so:
  [[sum(low < run["goodput_bps"] / 1e6 < high for run in csv("tests/agreement/data/matrix.csv").filter( rate="100Mbit",
  rtt="200ms", flows=1, congestion="reno", engine=engine).iter_rows(named=True) if '"red"' in run["queue"]) for low,
  high in ((36.5, 38), (65, 66.5))] for engine in ("linux", "packet")] == [[3, 0], [6, 4]] --> Under PIE the phase of
  its updates, 30 ms apart, decides: at the end of slow start the drop probability is zero again with one update more or
  less. Where updates are in the same phase, all three runs of the kernel end at the low rate, and eight of ten of
  the packet engine. <!-- so: [sum(run["goodput_bps"] < 50e6 for run in csv("tests/agreement/data/matrix.csv").filter(
  rate="100Mbit", rtt="200ms", flows=1, congestion="reno", engine=engine).iter_rows(named=True) if '"pie"' in
  run["queue"] and period in run["queue"]) for engine, period in (("linux", "20ms"), ("packet", "30ms"))] == [3, 8] -->
- The kernel's queueing delay is the mean backlog divided by the rate of the packets that wait, sampled every 10 ms.

These cells revealed the following errors of the packet engine, which have been corrected:

- PIE's first update came half a second after the flows began, as Linux waits after a queue is set up. But a queue is
  older than its flows; a guest's is set up two seconds before. The probability now changes from the start on, in the
  phase that it has in the guest.
- An RTT that is taken from timestamps comes in whole milliseconds. Vegas remembers it as its smallest RTT, and its
  window settles one or two segments lower.
- A loss that is found during a recovery, but lies beyond its end, starts another one with the ACK that ends the first.
  The window is reduced again; it used to grow until the next loss was found. CoDel drops in each round trip of a slow
  start's overshoot, so this matters for single flows.
- Westwood sets its window to the measured one at the end of each recovery, even where another one follows at once, and
  counts ACKs without SACK blocks in full.
- From the fourth SACK of a hole on, the receiver waits for a twentieth of the RTT, at most 1 ms, plus its timer's
  slack. Westwood, which counts ACKs, measured too much.
- An ACK that waits in this way is sent before a third range of segments begins behind other holes, since an ACK has
  room for three. Otherwise some ranges are never reported, and the sender repeats what has arrived.
- Batches end where a buffer of the write queue ends, of 45 segments at most (64 KB) and fewer while the receiver's
  window is small: a segment that is left over leaves alone and at once, which shifts all that follows by a segment.
  Memory for these buffers is granted for two windows, while the window is not used; behind a hole that
  stays open it is used up, and the flow stops. This matters most for single flows at 100 Mb/s and 10 ms: behind 25
  packets Reno now loses what the kernel's does, within 0.1 %, and Vegas's queue is 0.6 % longer. <!-- so: [abs(round(
  100 * (behind[0][metric][0] / behind[1][metric][0] - 1), 1)) for control, metric in (("reno", "loss_rate"), ("vegas",
  "queue_delay_mean_s")) for behind in [[csv("tests/agreement/data/matrix.csv").filter(rate="100Mbit", rtt="10ms",
  flows=1, congestion=control, queue='{{ discipline = "pfifo", limit = "0.3bdp" }}', engine=engine) for engine in
  ("packet", "linux")]]] == [0, 0.6] -->
- Batches are what the pacing rate sends in 1/1024 s, not in a millisecond. At 100 Mb/s and 10 ms, with an SRTT of
  10.67 ms, ours grew to eight segments with a window of 72, the kernel's with 73, so that a queue of 8 packets
  overflowed earlier.
- Westwood takes an ACK's RTT before it checks whether a sample of the bandwidth is over: the ACK that ends a recovery
  has a short RTT and may end a sample, which the window then uses (100 Mb/s, 200 ms, 1 BDP: 27.7 Mb/s, as the kernel
  has). <!-- so: [round(csv("tests/agreement/data/matrix.csv").filter(rate="100Mbit", rtt="200ms", flows=1,
  congestion='{{ kind = "westwood", tick = "10ms" }}', queue='{{ discipline = "pfifo", limit = "1bdp" }}',
  engine=engine)["goodput_bps"][0] / 1e6, 1)
  for engine in ("packet", "linux")] == [27.7, 27.7] -->
- Until the receive window is open, at segment 2874 of 8 MiB, each ACK announces a larger one, and none is on the fast
  path; there Westwood counts twice what duplicates stood for.
- A cumulative ACK with a new SACK block gives the RTT of the segment in the block. H-TCP takes no largest RTT from the
  second SACK of a hole on.
- A buffer that is full while nothing is before it sends a batch in the midst of writing, and what is left of it is
  filled up again: after the first ten segments a full buffer is left, of 22, not of 12 with another behind it. So
  later buffers end elsewhere, and with them batches. At 0.1 BDP, H-TCP at 10 Mb/s and 200 ms now has 1.0 % less
  goodput than the kernel's, CUBIC at 100 Mb/s and 200 ms 0.1 % more. <!-- so: [round(100 *
  (behind[0]["goodput_bps"][0] / behind[1]["goodput_bps"][0] - 1), 1) for control, rate in (("htcp", "10Mbit"),
  ("cubic", "100Mbit")) for behind in [[csv("tests/agreement/data/matrix.csv").filter(rate=rate, rtt="200ms", flows=1,
  congestion='{{ kind = "' + control + '", tick = "10ms" }}', queue='{{ discipline = "pfifo", limit = "0.1bdp" }}',
  engine=engine) for engine in ("packet", "linux")]]] == [-1.0, 0.1] -->
- Timers run for whole ticks of the kernel's clock, 10 ms here, and one more: delayed ACKs, timeouts, probes. Behind
  0.1 BDP at 10 Mb/s and 50 ms this matters to Westwood, whose goodput is within 1 % of that of a kernel that is read
  late, and 5.5 % above that of one that is read at once. <!-- so: [round(100 * (ours / theirs - 1), 1)
  for keys in [dict(rate="10Mbit", rtt="50ms", flows=1, congestion='{{ kind = "westwood", tick = "10ms" }}',
  queue='{{ discipline = "pfifo", limit = "0.1bdp" }}')] for cells in [csv("tests/agreement/data/matrix.csv")]
  for ours in [cells.filter(engine="packet", **keys)["goodput_bps"][0]]
  for theirs in (csv("tests/agreement/data/matrix-late.csv").filter(**keys)["goodput_bps"][0],
  cells.filter(engine="linux", **keys)["goodput_bps"][0])] == [0.3, 5.5] --> Since 6.1.60 the reordering timer has a
  floor of 2 ms, not of two ticks.
- Room for the application is looked for, and memory granted, after each batch that leaves, not only when all has
  left that an ACK lets go: after the first of two batches the window is not used yet. So buffers are filled earlier.
  This decides in which round trip a single flow overflows a queue of a few packets; behind three, at 10 Mb/s and
  10 ms, the loss rates of Reno, BIC, Vegas, Illinois, HighSpeed and Scalable are the kernel's within 2 %. <!-- so:
  all(abs(behind[0]["loss_rate"][0] / behind[1]["loss_rate"][0] - 1) < 0.02 for control in ("reno", "bic", "vegas",
  "illinois", "highspeed", "scalable") for behind in [[csv("tests/agreement/data/matrix.csv").filter(rate="10Mbit",
  rtt="10ms", flows=1, congestion=control, queue='{{ discipline = "pfifo", limit = "0.3bdp" }}', engine=engine)
  for engine in ("packet", "linux")]]) -->
- BIC measures segments per ACK only while all is in order: of a hole's ACKs the first counts, as one of no segment.
  Ours counted the second too, and its increments took more segments than the kernel's.

A receive window is given because the recorded runs had one. Without one the kernel's buffer grows with the flow, and
each segment that opens the window is acknowledged at once; the packet engine does the same.
"""


#: Effects of batches: a cell's name, its key, its metric in a unit, and both engines without batches.
BATCHES = (
    ("Reno, 50 ms, 0.1 BDP", ("reno", "50ms", "pfifo 0.1"), "loss_rate", "16.4, 16.4"),
    ("Vegas, 10 ms, 0.3 BDP (goodput in Mb/s)", ("vegas", "10ms", "pfifo 0.3"), "goodput_bps", "7.64, 7.65"),
    ("BBR, 50 ms, CoDel", ("bbr", "50ms", "codel"), "loss_rate", "55, 55"),
    ("BBR, 10 ms, CoDel", ("bbr", "10ms", "codel"), "loss_rate", "223, 119"),
    ("Illinois, 50 ms, 0.1 BDP", ("illinois", "50ms", "pfifo 0.1"), "loss_rate", "30, 15"),
    ("Illinois, 10 ms, 0.3 BDP", ("illinois", "10ms", "pfifo 0.3"), "loss_rate", "307, 198"),
)
UNITS = {"loss_rate": 1e-4, "goodput_bps": 1e6}


def keep(folders: Sequence[Path]) -> None:
    """Puts the metrics of sweeps into the table; each may have some of the cells, and the newest of a cell stay."""
    parts = [pl.read_csv(TABLE)] if TABLE.exists() else []
    for sweep in map(read, folders):
        table = sweep.table.rename(KEYS)
        parts.append(table.select(*KEYS.values(), "seed", *METRICS).with_columns(engine=pl.lit(sweep.engine)))
    cells = _newest(parts)
    number = pl.col("rate", "rtt").str.extract(r"(\d+)").cast(pl.Int64)
    cells.sort("engine", number, "flows", "congestion", "queue", "seed").write_csv(TABLE)


def _newest(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return all runs of each cell from the last part that has it."""
    cell = [*KEYS.values(), "engine"]
    numbered = [part.with_columns(part=pl.lit(number)) for number, part in enumerate(parts)]
    cells = pl.concat(numbered, how="vertical_relaxed")
    return cells.filter(pl.col("part") == pl.col("part").max().over(cell)).drop("part")


def compared(table: pl.DataFrame, one: Callable[[pl.Expr], pl.Expr] = pl.Expr.median) -> pl.DataFrame:
    """A row a cell: the one value of each engine's runs, their differences, and whether these are as aimed at."""
    return joined(of_cells(table, "linux", one), of_cells(table, "packet", one))


def of_cells(table: pl.DataFrame, engine: str, one: Callable[[pl.Expr], pl.Expr] = pl.Expr.median) -> pl.DataFrame:
    """A row a cell: the one value of an engine's runs.

    Of PIE's two periods each engine has its own: a kernel of 100 Hz that is told 20 ms takes 30 ms.
    """
    other = {"packet": "20ms", "linux": "30ms"}[engine]
    own = (pl.col("engine") == engine) & ~pl.col("queue").str.contains(other, literal=True)
    return named(table.filter(own)).group_by(*KEYS.values(), maintain_order=True).agg(one(pl.col(list(METRICS))))


def joined(kernel: pl.DataFrame, packet: pl.DataFrame) -> pl.DataFrame:
    """A row a cell that both have: the second's values have `_packet` in their names."""
    cells = kernel.join(packet, on=list(KEYS.values()), suffix="_packet", how="inner", maintain_order="left")
    cells = cells.with_columns(_difference(name).alias(f"{name}_difference") for name in METRICS)
    cells = cells.with_columns(
        (pl.col(f"{name}_difference").abs() <= aim).alias(name_of(name)) for name, aim in AIMED.items()
    )
    return cells.with_columns(
        (pl.col(name_of(name)) | (_gap(name) < least)).alias(f"{name_of(name)}, or nearly")
        for name, least in (("queue_delay_mean_s", NEARLY_S), ("loss_rate", NEARLY_DROPS))
    )


def name_of(metric: str) -> str:
    """Return the page's name for a metric."""
    return METRICS[metric][0]


def _difference(name: str) -> pl.Expr:
    """Relative; nothing against nothing is no difference."""
    packet, kernel = pl.col(f"{name}_packet"), pl.col(name)
    return pl.when(packet == kernel).then(0.0).otherwise(packet / kernel - 1)


def _gap(name: str) -> pl.Expr:
    """The difference itself, a loss rate's as a number of packets."""
    gap = (pl.col(f"{name}_packet") - pl.col(name)).abs()
    return gap * pl.col("goodput_bps") * MEASURED_S / SEGMENT_BITS if name == "loss_rate" else gap


def shares(cells: pl.DataFrame, by: str) -> str:
    """A table: the share of the cells that are as aimed at, by one of the keys and over all."""
    names = [name for aimed in map(name_of, AIMED) for name in (aimed, f"{aimed}, or nearly") if name in cells.columns]
    groups = [*cells.group_by(by, maintain_order=True), (("all",), cells)]
    head = [by, "cells", *names, "median difference of the goodput"]
    rows = [
        [str(key), str(group.height), *(_percent(group[name].mean()) for name in names), _median(group)]
        for (key,), group in groups
    ]
    return "".join("| " + " | ".join(line) + " |\n" for line in [head, ["---"] * len(head), *rows])


def _percent(value: Any) -> str:
    return f"{value:.0%}"


def _median(group: pl.DataFrame) -> str:
    return f"{np.median(group['goodput_bps_difference'].abs().to_numpy()):.2%}"


def draw(cells: pl.DataFrame) -> Figure:
    """Every cell's differences as colours: a row a control and number of flows, a column a network and queue."""
    figure = Figure(figsize=(13, 12), layout="constrained")
    axes = figure.subplots(len(AIMED), 1, sharex=True)
    rows = cells.select("congestion", "flows").unique(maintain_order=True).rows()
    columns = sorted(cells.select("rate", "rtt", "queue").unique().rows(), key=_by_network)
    for axis, (name, aim) in zip(axes, AIMED.items(), strict=True):
        norm = TwoSlopeNorm(0, -5 * aim, 5 * aim)
        image = axis.imshow(_grid(cells, name, rows, columns), "RdBu_r", norm, aspect="auto")
        axis.set_title(f"{name_of(name)}: packet engine over kernel, less one (aim: ±{aim:.0%})", loc="left")
        axis.set_yticks(range(len(rows)), [f"{control} × {flows}" for control, flows in rows], fontsize=6)
        figure.colorbar(image, ax=axis, format="{x:+.0%}", extend="both")
    axes[-1].set_xticks(range(len(columns)), [" ".join(map(str, key)) for key in columns], fontsize=5, rotation=90)
    return figure


def _by_network(column: Key) -> Key:
    """The order of the columns: rates and RTTs as numbers."""
    rate, rtt, queue = column
    return int(rate.removesuffix("Mbit")), int(rtt.removesuffix("ms")), queue


def _grid(cells: pl.DataFrame, name: str, rows: list[Key], columns: list[Key]) -> np.ndarray[Any, Any]:
    grid = np.full((len(rows), len(columns)), np.nan)
    for cell in cells.drop_nulls(f"{name}_difference").iter_rows(named=True):
        row, column = (cell["congestion"], cell["flows"]), (cell["rate"], cell["rtt"], cell["queue"])
        grid[rows.index(row), columns.index(column)] = cell[f"{name}_difference"]
    return grid


def named(table: pl.DataFrame) -> pl.DataFrame:
    """Short names: a table of a scenario becomes the algorithm's name, and a limit where there is one."""
    queue = pl.col("queue")
    limit = queue.str.extract(r"limit\W+([\d.]+)bdp").fill_null("")
    discipline = queue.str.extract(r"discipline\W+(\w+)")
    short = pl.when(discipline == "pfifo").then(pl.concat_str(discipline, pl.lit(" "), limit)).otherwise(discipline)
    congestion = pl.col("congestion")
    return table.with_columns(short.alias("queue"), congestion.str.extract(r"kind\W+(\w+)").fill_null(congestion))


def batches(cells: pl.DataFrame) -> str:
    """A table: single flows at 10 Mb/s with batches, as in the cells, and without."""
    lines = ["| cell | as it is | no batches |", "|---|---|---|"]
    for name, (control, rtt, queue), metric, without in BATCHES:
        (cell,) = cells.filter(rate="10Mbit", flows=1, congestion=control, rtt=rtt, queue=queue).iter_rows(named=True)
        values = (f"{cell[key] / UNITS[metric]:.3g}" for key in (metric, f"{metric}_packet"))
        lines.append(f"| {name} | {', '.join(values)} | {without} |")
    return "\n".join(lines)


def seeds(runs: pl.DataFrame, engine: str) -> str:
    """Return the number of runs per cell of an engine in cells that it ran repeatedly."""
    numbers = set(runs.filter(pl.col("engine") == engine).group_by(*KEYS.values()).len()["len"]) - {1}
    return " or ".join(map(str, sorted(numbers)))


def within(cells: pl.DataFrame, name: str) -> str:
    """The share of the cells whose metric is as aimed at."""
    return f"{float(np.mean(cells[name].to_numpy())):.1%}"


def repeatability(runs: pl.DataFrame) -> str:
    """Return the kernel's agreement with itself: runs of the first seed, and the same read late."""
    first = runs.filter(pl.col("engine") == "linux", pl.col("seed") == 1)
    late = pl.read_csv(LATE).with_columns(engine=pl.lit("linux"))
    cells = joined(of_cells(first, "linux"), of_cells(late, "linux"))
    shares = [f"its {name} is within {100 * aim:.0f} % of itself in {within(cells, name)}" for name, aim in _aims()]
    return ", ".join(shares[:-1]) + f" and {shares[-1]} of the cells"


def _aims() -> list[tuple[str, float]]:
    return [(name_of(metric), aim) for metric, aim in AIMED.items()]


def page(cells: pl.DataFrame, runs: pl.DataFrame) -> str:
    """The page in Markdown, from the cells and all runs that they come from."""
    every = named(runs.filter(pl.col("engine") == "packet")).unique(list(KEYS.values())).height
    text = INTRODUCTION.format(
        cells=cells.height,
        every=every,
        congestion=cells["congestion"].n_unique(),
        kernel_seeds=seeds(runs, "linux"),
        packet_seeds=seeds(runs, "packet"),
        medians=within(cells, "goodput"),
        means=within(compared(runs, pl.Expr.mean), "goodput"),
        first=within(compared(runs, pl.Expr.first), "goodput"),
        again=repeatability(runs),
    )
    parts = [f"## By {word}\n\n{shares(cells, by)}" for word, by in GROUPS.items()]
    return (
        text
        + "![The differences of all cells](linux-agreement.png)\n\n"
        + "\n".join(parts)
        + CAUSES.format(batches=batches(cells))
    )


def made() -> tuple[str, pl.DataFrame]:
    """The page, and the cells that it is made of."""
    runs = pl.read_csv(TABLE)
    cells = compared(runs)
    return page(cells, runs), cells


if __name__ == "__main__":
    if len(sys.argv) > 1:
        keep([Path(name) for name in sys.argv[1:]])
    text, found = made()
    claims.write(DOCS / "concepts" / "linux-agreement.md", text)
    draw(found).savefig(DOCS / "concepts" / "linux-agreement.png", dpi=110, metadata={"Software": None})
