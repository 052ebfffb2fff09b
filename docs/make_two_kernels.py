"""Makes the page that compares two kernels, cell by cell: `concepts/two-kernels.md`.

The cells are those of `tests/agreement/two-kernels.toml`, each run by both with the same seeds:

    ackclock sweep tests/agreement/two-kernels.toml --engine linux --kernel 6.1 --out results/linux-6.1
    ackclock sweep tests/agreement/two-kernels.toml --engine linux --kernel 6.12 --out results/linux-6.12
    python docs/make_two_kernels.py results/linux-6.1 results/linux-6.12

The last command puts the metrics into `tests/agreement/data/two-kernels.csv`, with the cells that are already there;
without arguments the page is made from that. A part of the cells may be run (`--where`): the page has those that both
kernels have.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import claims
import polars as pl

from ackclock.experiments.sweep.result import read
from ackclock.figures import numbers
from ackclock.metrics import METRICS
from ackclock.metrics.summary import student_quantile
from ackclock.scenario import planning

DOCS = Path(__file__).resolve().parent
SCENARIO = DOCS.parent / "tests" / "agreement" / "two-kernels.toml"
TABLE = DOCS.parent / "tests" / "agreement" / "data" / "two-kernels.csv"

#: Metric → its name on the page, and the least relative difference that counts.
COMPARED = {
    "goodput_bps": ("goodput", 0.02),
    "queue_delay_mean_s": ("queueing delay", 0.05),
    "loss_rate": ("loss rate", 0.10),
}

#: The two compared kernels: the series, and the releases that were run.
OLD, NEW = "6.1", "6.12"
RELEASES = {OLD: "6.1.192", NEW: "6.12.117"}

#: The swept keys, under the names they have here.
KEYS = {"flows[0].count": "flows", "flows[0].congestion": "congestion", "network.queue": "queue"}
CELL = list(KEYS.values())

INTRODUCTION = """<!-- Made by docs/make_two_kernels.py: edit that. -->

# What changed in Linux's TCP between {old} and {new}

The same scenarios in two guests of the engine `linux`, Linux {old_release} and Linux {new_release}, both of Debian's
source: congestion control algorithms over `pfifo` of a quarter of a BDP and a whole one, FQ-CoDel, PIE and RED, at 10
Mb/s and 40 ms (`tests/agreement/two-kernels.toml`); {cells} of its {every} cells, with {seeds} seeds each, from which
the starts are drawn. A run is 15 s long, and 3 s of it are left out.
{controls}.

A difference is the mean over the seeds of the new kernel's value less the old one's, with the same seed, over the mean
of the old one's. It *counts* if its 95 % interval over the seeds leaves out zero, and if it is at least
{least}.
Where nothing has changed, one interval of twenty leaves out zero by chance, and about as many do. <!-- so: 0.8 <
sum(values("an interval without zero", "%")) / sum(values("by chance", "%")) < 1.2 -->

"""

SOURCES = """
## Differences in the sources

Compared file by file (`net/ipv4`, `net/sched`, `include/net`), Linux 6.12.117 with 6.1.192:

| part | changed between the two |
|---|---|
| `tcp_cubic.c`, `tcp_bbr.c`, `tcp_htcp.c` | annotations for BPF and concurrent access: no effect on a flow |
| `tcp_bic.c`, `tcp_vegas.c`, `tcp_westwood.c`, `tcp_illinois.c`, `tcp_scalable.c` | nothing |
| `tcp_dctcp.c` | other paths when congestion lasts (PLB), off by default |
| delivery rates and RACK (`tcp_rate.c`, `tcp_recovery.c`) | nothing |
| `sch_fq_codel.c`, `sch_pie.c`, `sch_red.c`, the headers of CoDel and RED | nothing in what is dropped, and when |
| batches (`tcp_output.c`) | one shorter than the window allows is filled up from the next buffer (`tcp_grow_skb`) |
| the receive window | by the measured share of payload in a packet's memory; it was a fixed share |
| a receive buffer that grows | by what was read; it was by what had come |
| delayed ACKs | the timer's estimate is at most the longest delay |
| interactive connections | from how many answers on: a sysctl, `tcp_pingpong_thresh`, by default 1 as before |
| SYNs | the first four are repeated after equal times (`tcp_syn_linear_timeouts`) |
| timestamps | may count microseconds, where a route asks for it |
| netem | has its own random numbers: other draws from the same distributions |

So a CUBIC flow of 6.12 grows as one of 6.1 does, in its Reno-friendly region too: neither has RFC 9438's W_est, which
grows by a segment per round trip from the window before the last loss on (section 4.3).

What differs is how segments are put together in batches. In 6.1 one ends where a buffer of the write queue ends, and a
segment that is left over goes alone; 6.12 takes what is missing from the next buffer. Here it moves no losses: over a
quarter of a BDP one Reno flow loses 0.128 % with either. <!-- so: [round(100 *
csv("tests/agreement/data/two-kernels.csv").filter(kernel=kernel, flows=1, congestion="reno", queue='{ discipline =
"pfifo", limit = "0.25bdp" }')["loss_rate"].mean(), 3) for kernel in (6.1, 6.12)] == [0.128, 0.128] -->

PIE and RED draw at random, and each cell has few runs: what differs there may be chance.
"""


def keep(folders: Sequence[Path]) -> None:
    """Puts the metrics of sweeps into the table; of a cell that is there already the newest stay."""
    parts = [pl.read_csv(TABLE, schema_overrides={"kernel": pl.String})] if TABLE.exists() else []
    for sweep in map(read, folders):
        table = sweep.table.rename(KEYS).with_columns(pl.lit(sweep.manifest["sweep"]["kernel"]).alias("kernel"))
        parts.append(table.select("kernel", *CELL, "seed", *COMPARED))
    kept = pl.concat(parts, how="vertical_relaxed").unique(["kernel", *CELL, "seed"], keep="last")
    kept.sort(["kernel", *CELL, "seed"]).write_csv(TABLE)


@dataclass(frozen=True)
class Difference:
    """A metric in a cell: the old kernel's mean and the new one's, and the relative difference with its interval."""

    cell: tuple[object, ...]
    metric: str
    old: float
    new: float
    relative: float
    half_width: float

    @property
    def is_sure(self) -> bool:
        """Return True if the interval leaves out zero."""
        return abs(self.relative) > self.half_width

    @property
    def counts(self) -> bool:
        """Return True if the difference is significant and large enough."""
        return self.is_sure and abs(self.relative) >= COMPARED[self.metric][1]


def differences(table: pl.DataFrame) -> list[Difference]:
    """Return the differences of every metric in each cell that both kernels have run with the same seeds."""
    old, new = (table.filter(kernel=kernel).drop("kernel") for kernel in (OLD, NEW))
    both = old.join(new, on=[*CELL, "seed"], suffix="_new", maintain_order="left")
    cells = both.group_by(CELL, maintain_order=True)
    return [found for cell, rows in cells for name in COMPARED if (found := _difference(cell, name, rows))]


def _difference(cell: tuple[object, ...], name: str, rows: pl.DataFrame) -> Difference | None:
    """None where the old kernel has nothing, and where there is one seed."""
    pairs = rows.select(name, f"{name}_new").drop_nulls()
    old, new = pairs[name].to_list(), pairs[f"{name}_new"].to_list()
    if len(old) < 2 or (mean := statistics.fmean(old)) == 0:
        return None
    gaps = [(there - here) / mean for here, there in zip(old, new, strict=True)]
    half = student_quantile(len(gaps) - 1) * statistics.stdev(gaps) / len(gaps) ** 0.5
    return Difference(cell, name, mean, statistics.fmean(new), statistics.fmean(gaps), half)


def page(table: pl.DataFrame, every: int) -> str:
    """The page in Markdown; `every` is the number of the cells, run or not."""
    found = differences(table)
    cells = list(dict.fromkeys(one.cell for one in found))
    least = ", ".join(f"{aim:.0%} of a {name}" for name, aim in COMPARED.values())
    text = INTRODUCTION.format(
        old=OLD,
        new=NEW,
        old_release=RELEASES[OLD],
        new_release=RELEASES[NEW],
        controls="; ".join(_controls(cells)),
        cells=len(cells),
        every=every,
        seeds=table["seed"].n_unique(),
        least=least,
    )
    return text + "".join([*_summary(found), "\n## The cells that differ\n\n", *_listed(found), SOURCES])


def _controls(cells: Sequence[tuple[object, ...]]) -> Iterator[str]:
    """Yield the names of CCAs with their numbers of flows."""
    for flows in sorted({cell[0] for cell in cells}, key=str):
        names = dict.fromkeys(str(cell[1]) for cell in cells if cell[0] == flows)
        yield f"{flows} {'flow' if flows == 1 else 'flows'}: {', '.join(names)}"


def _summary(found: Sequence[Difference]) -> Iterator[str]:
    """A row for each metric."""
    head = (
        "metric",
        "cells",
        "exactly equal",
        "an interval without zero",
        "by chance",
        "that count",
        "median difference",
    )
    yield from (_row(head), _row(["---"] * len(head)))
    for name, (words, _) in COMPARED.items():
        of_it = [one for one in found if one.metric == name]
        if not of_it:
            continue
        sure = sum(one.is_sure for one in of_it)
        equal = sum(one.relative == 0 and one.half_width == 0 for one in of_it)
        count = sum(one.counts for one in of_it)
        median = statistics.median(abs(one.relative) for one in of_it)
        by_chance = f"{0.05 * len(of_it):.1f}"
        yield _row([words, len(of_it), equal, sure, by_chance, count, f"{median:.2%}"])


def _listed(found: Sequence[Difference]) -> Iterator[str]:
    """A row for each difference that counts, the largest first."""
    listed = sorted((one for one in found if one.counts), key=lambda one: -abs(one.relative))
    if not listed:
        yield "None.\n"
        return
    head = ("control", "flows", "queue", "metric", OLD, NEW, "difference")
    yield from (_row(head), _row(["---"] * len(head)))
    for one in listed:
        flows, control, queue = one.cell
        unit, name = METRICS[one.metric].unit, COMPARED[one.metric][0]
        values = (numbers.value(value, unit) for value in (one.old, one.new))
        yield _row([control, flows, _short(str(queue)), name, *values, f"{one.relative:+.1%} ± {one.half_width:.1%}"])


def _row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |\n"


def _short(queue: str) -> str:
    """A queue's discipline, and its limit where the cells have several."""
    words = queue.replace('"', "").replace("=", " ").replace(",", " ").split()
    name = words[words.index("discipline") + 1]
    return f"{name} {words[words.index('limit') + 1]}" if name == "pfifo" else name


if __name__ == "__main__":
    if len(sys.argv) > 1:
        keep([Path(name) for name in sys.argv[1:]])
    kept = pl.read_csv(TABLE, schema_overrides={"kernel": pl.String})
    text = page(kept, planning.load(SCENARIO).count)
    claims.write(DOCS / "concepts" / "two-kernels.md", text)
