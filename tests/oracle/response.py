"""The average window under periodic loss: the packet engine in the cells of RFC 9438's tables 1 and 2.

Each 1/p-th data packet is lost on a link where nothing queues; every segment is acknowledged; HyStart is off, as no
queue could end the slow start before the first loss. The average is that of cwnd over time, without the first epochs.

The tables come from a deterministic model (RFC 9438 section 5 and appendix C), in which each epoch ends where the curve
is flat, at t = K. Reno comes to its stationary window within a few losses. CUBIC hardly does: where the curve is flat,
an epoch that starts from a somewhat larger window also ends at that window. So there are two ways to measure it:

- *fractions* (`variant = "rfc9438"`): the distance to the stationary window falls as one over the number of losses, so
  a run has 600 of them, of which the second half counts; fast convergence is off, as the model has none.
- *whole segments* (as Linux, the default): within a segment of the last maximum the curve counts as flat, so any window
  within about a fifth is stationary. The receive window bounds the first slow start at 1.27 of the table's window: the
  flow then comes with 1/0.85 of the table's maximum into its first losses and fast convergence takes it down by 0.85.
  From there on the bound does not act. `whole_segments` reckons the same without a network.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl
from oracle import lab

from ackclock import theory

#: Tables 1 and 2 of RFC 9438: RTT in s → loss rate 10^-exponent → Reno, and CUBIC with C = 0.04, 0.4 and 4.
TABLES = {
    0.1: {
        2: (12, 12, 12, 12),
        3: (38, 38, 38, 59),
        4: (120, 120, 187, 333),
        5: (379, 593, 1054, 1874),
        6: (1200, 3332, 5926, 10538),
        7: (3795, 18740, 33325, 59261),
        8: (12000, 105383, 187400, 333250),
    },
    0.01: {
        2: (12, 12, 12, 12),
        3: (38, 38, 38, 38),
        4: (120, 120, 120, 120),
        5: (379, 379, 379, 379),
        6: (1200, 1200, 1200, 1874),
        7: (3795, 3795, 5926, 10538),
        8: (12000, 18740, 33325, 59261),
    },
}
#: The columns of the tables: Reno, and CUBIC's C.
CONSTANTS = (None, 0.04, 0.4, 4.0)

#: Epochs that count, at least.
EPOCHS = 20


@dataclass(frozen=True)
class Method:
    """Measurement of a cell: the CCA's further keys, the receive window, and the epochs that count."""

    name: str
    keys: str
    bound: float
    skipped: int
    epochs: int


RENO = Method("reno", "", bound=3.0, skipped=10, epochs=EPOCHS)
FRACTIONS = Method(
    "fractions",
    ', slow_start = "standard", variant = "rfc9438", fast_convergence = false',
    bound=30.0,
    skipped=300,
    epochs=300,
)
WHOLE_SEGMENTS = Method("whole segments", ', slow_start = "standard"', bound=1.27, skipped=10, epochs=EPOCHS)


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
        """Return the table's value, in segments."""
        return TABLES[self.rtt_s][self.exponent][CONSTANTS.index(self.c)]

    @property
    def mixed(self) -> bool:
        """Return True if Reno's and the cubic average are within a fifth of each other.

        The table takes the larger of the two averages. The RFC's window is the larger of the two at each moment, and
        its average is above both.
        """
        if self.c is None:
            return False
        cubic = theory.cubic_window(1 / self.period, self.rtt_s, c=self.c, friendly=False)
        pair = TABLES[self.rtt_s][self.exponent][0], cubic
        return max(pair) < 1.2 * min(pair)

    def __str__(self) -> str:
        name = "reno" if self.c is None else f"cubic-{self.c:g}"
        return f"1e-{self.exponent}-{self.rtt_s * 1e3:g}ms-{name}"


@dataclass(frozen=True)
class Measured:
    """Result of a cell in the packet engine; `epochs` of them count."""

    cell: Cell
    window: float
    epochs: float

    @property
    def difference(self) -> float:
        """Relative to the table."""
        return self.window / self.cell.published - 1


def cells(exponents: Iterable[int], *, reno: bool) -> list[Cell]:
    """The cells of the tables with these loss rates: Reno's, or CUBIC's."""
    chosen = CONSTANTS[:1] if reno else CONSTANTS[1:]
    return [Cell(exponent, rtt_s, c) for exponent in exponents for rtt_s in TABLES for c in chosen]


def measure(cell: Cell, method: Method) -> Measured:
    """Runs a cell. Raises `AssertionError` if the part that counts holds fewer than `EPOCHS` epochs."""
    epoch_s = cell.period / cell.published * cell.rtt_s
    duration_s, warmup_s = (method.skipped + 1.2 * method.epochs) * epoch_s, method.skipped * epoch_s
    window_bytes = int(min(method.bound * cell.published * lab.MSS_BYTES, 2**30))
    data = lab.run(
        duration_s,
        cell.rtt_s,
        '"reno"' if cell.c is None else f'{{ kind = "cubic", c = {cell.c}{method.keys} }}',
        warmup_s=warmup_s,
        network=f"loss = {{ every = {cell.period} }}",
        tcp=f'delayed_ack = false\ntso_batching = false\nreceive_window = "{window_bytes}B"',
        interval_s=max(cell.rtt_s, duration_s / 20_000),
    )
    epochs = data.flows["measured_sent_packets"][0] / cell.period
    assert epochs >= EPOCHS, f"{cell}: {epochs:.1f} epochs"
    windows = data.flow_samples.filter(pl.col("time_s") >= warmup_s)["cwnd"]
    return Measured(cell, float(windows.mean()), epochs)  # type: ignore[arg-type]
