"""Makes the page on CUBIC in QUIC and in Linux: `concepts/cubic-in-quic.md`.

python docs/make_cubic_in_quic.py --run FILE    # the runs, into the table; needs a guest kernel (`ackclock kernel
                                                # build`), and FILE, the library of `ackclock new stack quinn --quinn`
python docs/make_cubic_in_quic.py               # the page, from the table
"""

from __future__ import annotations

import itertools
import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import claims
import polars as pl

import ackclock as ac
from ackclock import metrics, stacks
from ackclock.algorithms import prototype
from ackclock.figures import numbers
from ackclock.scenario import planning

DOCS = Path(__file__).resolve().parent
TABLE = DOCS.parent / "tests" / "agreement" / "data" / "cubic-in-quic.csv"

SEEDS = (1, 2, 3)
RTTS, BUFFERS = ("20ms", "80ms"), ("0.5bdp", "1bdp")
#: RTT and buffer of each cell.
CELLS = [*itertools.product(RTTS, BUFFERS)]

QUIC = 'transport = "quic"\nreceive_window = "16MB"\n'

#: Compared flows: name on the page → engine, keys.
RUNS: Mapping[str, tuple[str, str]] = {
    "TCP, Linux 6.1": ("linux", 'congestion = "cubic"\n'),
    "TCP, engine": ("packet", 'congestion = "cubic"\n'),
    "QUIC, engine's CUBIC": ("packet", QUIC + 'controller = "engine"\ncongestion = "cubic"\n'),
    "QUIC, noq's CUBIC": ("packet", QUIC + 'congestion = "cubic"\n'),
    "QUIC, quinn's CUBIC": ("packet", QUIC + 'stack = "quinn"\ncongestion = "cubic"\n'),
}
LINUX, TCP, ENGINE, OWN, QUINN = RUNS

#: Variants, one thing changed at a time: of the engine's CUBIC, and of a prototype that follows RFC 8312.
PROTOTYPE = 'controller = "engine"\ncongestion = {{ kind = "cubic_rfc8312", from_w_max = {} }}\n'
VARIANTS: Mapping[str, tuple[str, str]] = {
    "engine's, in fractions of segments": (
        "packet",
        QUIC + 'controller = "engine"\ncongestion = { kind = "cubic", whole_segments = false }\n',
    ),
    "RFC 8312, W_est from β W_max": ("packet", QUIC + PROTOTYPE.format("true")),
    "RFC 8312, W_est from the window": ("packet", QUIC + PROTOTYPE.format("false")),
}
FRACTIONS, FROM_W_MAX, FROM_WINDOW = VARIANTS

#: Runs next to a TCP flow.
SHARING = (TCP, ENGINE, OWN, QUINN)

#: Metric → its name on the page.
METRICS = {
    "utilisation": "utilisation",
    "cwnd_mean": "mean window",
    "queue_delay_mean_s": "queueing delay",
    "loss_rate": "loss rate",
}

SCENARIO = """
duration = "{duration}"
warmup = "10s"
[network]
topology = "dumbbell"
rate = "20Mbit"
rtt = "{rtt}"
queue = {{ discipline = "pfifo", limit = "{buffer}" }}
"""

FLOW = """
[[flows]]
name = "{name}"
start = {{ jitter = "500ms" }}
{keys}"""

INTRODUCTION = """<!-- Made by docs/make_cubic_in_quic.py: edit that. -->

# Does CUBIC in QUIC behave as in Linux?

In the rate and the buffers below, yes: over a drop-tail queue its windows are those of Linux within a few percent.

The CUBIC of a QUIC stack differs from Linux's in two things: another implementation, and another transport with its
own loss detection, pacing and recovery. Here each is changed alone. The engine's CUBIC, which follows Linux's, runs
over TCP and, with [`controller = "engine"`](../guides/quic.md#congestion-control-of-the-engine), in the QUIC stack noq;
noq's own CUBIC runs in noq; quinn, of which noq is a fork, runs with its own behind
[`ackclock.h`](../guides/own-stack.md); and a guest with Linux 6.1 is the reference.

## One flow

One endless flow for 60 s, the first 10 s left out; 20 Mbit/s, a pfifo; {seeds} seeds, from which the start is drawn.
Each number is the mean over the seeds. Windows are in segments of 1448 bytes over TCP, in datagrams of 1472 bytes in
QUIC.

"""

BETWEEN = """
The transport changes little: with the same CUBIC the mean window in QUIC is within {transport} of that over TCP in
every cell, <!-- so: {largest}("| QUIC, engine's CUBIC |", "| TCP, engine |") < {transport_limit} --> and over TCP the
engine's is within {model} of Linux's. <!-- so: {largest}("| TCP, engine |", "| TCP, Linux 6.1 |") < {model_limit} -->

The implementation shows in the losses: noq's CUBIC has mean windows within {implementation} of the engine's in the same
stack, <!-- so: {largest}("| QUIC, noq's CUBIC |", "| QUIC, engine's CUBIC |") < {implementation_limit} --> but
{less_least} to {less_most} fewer losses. <!-- so: all(a < b for a, b in zip(values("loss rate", "| QUIC, noq's CUBIC
|"), values("loss rate", "| QUIC, engine's CUBIC |"))) --> quinn's loss rates are within {quinn} of noq's. <!-- so:
{rates}("| QUIC, quinn's CUBIC |", "| QUIC, noq's CUBIC |") < {quinn_limit} -->

## Why noq and quinn lose less

Both follow RFC 8312 where the engine follows Linux and RFC 9438. The table has the engine's CUBIC, a variant of it that
counts fractions of segments instead of whole ones, and a prototype (`docs/cubic_rfc8312.py`) with the Reno estimate
W_est of RFC 8312, and with the start that RFC 9438 gives that estimate, all in noq with `controller = "engine"`. Link
and duration are those above.

{variants}
- **20 ms: where the Reno estimate begins.** In RFC 8312 W_est begins at β W_max. Fast convergence lowers W_max after
  every loss below the last one, so that W_est begins below the window and does not move it for a while: recovery
  periods are longer, and there are fewer of them. RFC 9438 begins at the window. The change of this start alone
  raises the loss rate by up to {start_most}, <!-- so: all(1.1 < b / a < 1.25 for a, b in zip(values("loss
  rate", "| 20ms", "| RFC 8312, W_est from β W_max |"), values("loss rate", "| 20ms", "| RFC 8312, W_est from the window
  |"))) --> and as RFC 8312 has it the rate is within {start_left} of noq's. <!-- so: {rates}("| 20ms", "| RFC 8312,
  W_est from β W_max |", "| QUIC, noq's CUBIC |") < {start_left_limit} -->
- **80 ms: whole segments.** There the cubic curve is above W_est, and its start has no effect. <!-- so:
  {rates}("| 80ms", "| RFC 8312, W_est from β W_max |", "| RFC 8312, W_est from the window |") == 0 --> In fractions
  of segments the engine's rate is within {fractions} of noq's. <!-- so: {rates}("| 80ms", "| engine's, in fractions of
  segments |", "| QUIC, noq's CUBIC |") < {fractions_limit} --> In whole segments, as in Linux, it is {whole_least} to
  {whole_most} above noq's.

## Next to a TCP flow

Each of the four in the packet engine for 120 s next to a flow of TCP with CUBIC, both from the beginning: its share of
the goodput of both, the mean over the seeds.

"""

#: The largest relative difference of two flows' mean windows, in a claim.
LARGEST = """(lambda own, other: max(abs(a / b - 1) for a, b in zip(values("mean window", own), values("mean window",
other))))"""

#: The largest relative difference of two flows' loss rates, in a claim; a third argument chooses rows.
RATES = """(lambda *words: max(abs(a / b - 1) for a, b in zip(values("loss rate", *words[:-2], words[-2]), values("loss
rate", *words[:-2], words[-1]))))"""

SHARES = """
Every mean is between 43 % and 57 %, that of TCP next to itself included; <!-- so: all(43 < share < 57 for share in
values("share")) --> whether the four differ in this is undecided with three seeds.
"""

END = """
## What this does not show

Nothing here has random loss, reordering, AQM or ECN; the applications always have data, and hosts take no time. The
rest of the difference between the prototype and the engine's CUBIC at 20 ms is undecided. Nothing was compared over
real sockets.
"""


def scenario(flows: Sequence[tuple[str, str]], duration: str, rtt: str, buffer: str) -> str:
    """Return a scenario of flows, each a name and its keys."""
    text = SCENARIO.format(duration=duration, rtt=rtt, buffer=buffer)
    return text + "".join(FLOW.format(name=name, keys=keys) for name, keys in flows)


def record() -> Iterator[dict[str, object]]:
    """Make all runs; yield a row for each."""
    for (name, (_, keys)), (rtt, buffer) in itertools.product({**RUNS, **VARIANTS}.items(), CELLS):
        cell = {"run": name, "rtt": rtt, "buffer": buffer}
        for seed in SEEDS:
            share = goodput_share(keys, rtt, buffer, seed) if name in SHARING else None
            yield {**cell, "seed": seed, **measure(name, rtt, buffer, seed), "share": share}


def measure(run: str, rtt: str, buffer: str, seed: int) -> dict[str, object]:
    """Return the metrics of one flow."""
    engine, keys = {**RUNS, **VARIANTS}[run]
    plan = planning.loads(scenario([("flow", keys)], "60s", rtt, buffer)).plan()
    (view,) = metrics.runs(ac.run(plan, engine, seeds=[seed]))
    return {metric: metrics.value(view, metric) for metric in METRICS}


def goodput_share(keys: str, rtt: str, buffer: str, seed: int) -> float:
    """Return the share of the goodput that a flow has next to TCP with CUBIC."""
    flows = [("flow", keys), ("tcp", RUNS[TCP][1])]
    (view,) = metrics.runs(ac.run(planning.loads(scenario(flows, "120s", rtt, buffer)).plan(), seeds=[seed]))
    own, other = (metrics.value(view, f"goodput_bps[{name}]") for name, _ in flows)
    assert isinstance(own, float) and isinstance(other, float)
    return own / (own + other)


def page(table: pl.DataFrame) -> str:
    """Return the page in Markdown."""
    pairs = {"transport": (ENGINE, TCP), "model": (TCP, LINUX), "implementation": (OWN, ENGINE)}
    limits = {name: _largest(table, *pair) for name, pair in pairs.items()}
    short, long = CELLS[:2], CELLS[2:]
    for name, pair, cells in (
        ("quinn", (QUINN, OWN), CELLS),
        ("start_left", (FROM_W_MAX, OWN), short),
        ("fractions", (FRACTIONS, OWN), long),
    ):
        limits[name] = max(abs(rise) for rise in _rises(table, *pair, cells))
    between = BETWEEN.format(
        largest=LARGEST,
        rates=RATES,
        variants="".join(_rows(table, (ENGINE, *VARIANTS, OWN), {"loss_rate": "loss rate"})),
        **_ends("less", [-rise for rise in _rises(table, OWN, ENGINE, CELLS)]),
        **_ends("start", _rises(table, FROM_WINDOW, FROM_W_MAX, short)),
        **_ends("whole", _rises(table, ENGINE, OWN, long)),
        **{name: f"{math.ceil(100 * limit)} %" for name, limit in limits.items()},
        **{f"{name}_limit": (math.ceil(100 * limit) + 0.5) / 100 for name, limit in limits.items()},
    )
    lone, shares = _rows(table, RUNS, METRICS), _rows(table, SHARING, {"share": "share"})
    return "".join([INTRODUCTION.format(seeds=len(SEEDS)), *lone, between, *shares, SHARES, END])


def _rises(table: pl.DataFrame, run: str, other: str, cells: Sequence[tuple[str, str]]) -> list[float]:
    """Return by how much a run's loss rate is above another's, relative to it, in each cell."""
    return [_mean(table, run, cell, "loss_rate") / _mean(table, other, cell, "loss_rate") - 1 for cell in cells]


def _ends(name: str, found: Sequence[float]) -> dict[str, str]:
    """Return the least and the greatest of some shares in percent, by name."""
    return {f"{name}_least": f"{100 * min(found):.0f} %", f"{name}_most": f"{100 * max(found):.0f} %"}


def _mean(table: pl.DataFrame, run: str, cell: tuple[str, str], metric: str) -> float:
    return statistics.fmean(table.filter(run=run, rtt=cell[0], buffer=cell[1])[metric])


def _largest(table: pl.DataFrame, run: str, other: str) -> float:
    """Return the largest relative difference of two mean windows over the cells."""
    pairs = ((_mean(table, run, cell, "cwnd_mean"), _mean(table, other, cell, "cwnd_mean")) for cell in CELLS)
    return max(abs(own / of_other - 1) for own, of_other in pairs)


def _rows(table: pl.DataFrame, runs: Sequence[str] | Mapping[str, object], shown: Mapping[str, str]) -> Iterator[str]:
    """Yield a table: a row for each cell and run."""
    yield _row(["RTT", "buffer", "flow", *shown.values()])
    yield _row(["---"] * (3 + len(shown)))
    for cell, run in itertools.product(CELLS, runs):
        values = (_value(_mean(table, run, cell, metric), metric) for metric in shown)
        yield _row([*cell, run, *values])


def _value(found: float, metric: str) -> str:
    return numbers.value(found, "share" if metric == "share" else metrics.METRICS[metric].unit)


def _row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |\n"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        prototype.load(DOCS / "cubic_rfc8312.py")
        stacks.register(f"quinn={sys.argv[2]}")
        pl.DataFrame(list(record())).write_csv(TABLE)
    claims.write(DOCS / "concepts" / "cubic-in-quic.md", page(pl.read_csv(TABLE)))
