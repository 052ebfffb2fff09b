"""The average window under periodic loss: the packet engine in the cells of RFC 9438's tables 1 and 2.

Each 1/p-th data packet is lost, on a link where nothing queues; ACKs are not delayed; HyStart is off, as there is no
queue that could end the slow start before the first loss. The average window is what is delivered per round trip.

The first slow start would overshoot by far. A receive window of 1.27 times the table's window bounds it: the window
then comes with 1/0.85 of the stationary W_max into the first losses, fast convergence takes it down by 0.85, and the
bound does not act any more. `whole_segments` says why the start matters.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
from oracle import formulas, lab

#: Receive window, in the table's average windows.
BOUND = 1.27
SKIPPED_EPOCHS, EPOCHS = 12, 20

RTTS_S = (0.1, 0.01)
CONSTANTS = (None, 0.04, 0.4, 4.0)


@dataclass(frozen=True)
class Cell:
    """A cell of the tables: loss rate 10^-`exponent`, RTT, and CUBIC's C (None: Reno)."""

    exponent: int
    rtt_s: float
    c: float | None

    @property
    def period(self) -> int:
        """Data packets per loss."""
        return 10**self.exponent

    @property
    def published(self) -> int:
        """What the table says, in segments."""
        return int(formulas.table_window(1 / self.period, self.rtt_s, self.c) + 0.5)

    @property
    def mixed(self) -> bool:
        """Whether Reno's and the cubic window are within a fifth of each other.

        The table takes the larger of the two averages; the RFC's window is the larger of the two at each moment,
        whose average is above both.
        """
        if self.c is None:
            return False
        loss = 1 / self.period
        reno, cubic = self.published, formulas.cubic_window(loss, self.rtt_s, self.c)
        reno = formulas.mathis_window(loss, formulas.RENO_TABLE)
        return max(reno, cubic) < 1.2 * min(reno, cubic)

    def __str__(self) -> str:
        name = "reno" if self.c is None else f"cubic-{self.c:g}"
        return f"1e-{self.exponent}-{self.rtt_s:g}s-{name}"


@dataclass(frozen=True)
class Measured:
    """What the packet engine made of a cell."""

    cell: Cell
    window: float
    epochs: float
    largest_window: float

    @property
    def difference(self) -> float:
        """Relative to the table."""
        return self.window / self.cell.published - 1


def cells(exponents: range) -> list[Cell]:
    """All cells of the tables with these loss rates."""
    return [Cell(exponent, rtt_s, c) for exponent in exponents for rtt_s in RTTS_S for c in CONSTANTS]


def measure(cell: Cell, bound: float = BOUND, variant: str = "") -> Measured:
    """Runs a cell."""
    epoch_s = cell.period / cell.published * cell.rtt_s
    duration_s, warmup_s = (SKIPPED_EPOCHS + EPOCHS + 1) * epoch_s, SKIPPED_EPOCHS * epoch_s
    window_bytes = int(bound * cell.published * lab.MSS_BYTES)
    data = lab.run(
        duration_s,
        cell.rtt_s,
        _congestion(cell, variant),
        warmup_s=warmup_s,
        network=f"loss = {{ every = {cell.period} }}",
        tcp=f'delayed_ack = false\nreceive_window = "{window_bytes}B"',
        interval_s=max(cell.rtt_s, duration_s / 20_000),
    )
    segments = data.flows["measured_bytes"][0] / lab.MSS_BYTES
    late = data.flow_samples.filter(pl.col("time_s") >= warmup_s)
    return Measured(
        cell=cell,
        window=segments / (duration_s - warmup_s) * cell.rtt_s,
        epochs=segments / cell.period,
        largest_window=float(late["cwnd"].max()),  # type: ignore[arg-type]
    )


def _congestion(cell: Cell, variant: str) -> str:
    if cell.c is None:
        return '"reno"'
    chosen = f', variant = "{variant}"' if variant else ""
    return f'{{ kind = "cubic", c = {cell.c}, hystart = false{chosen} }}'
