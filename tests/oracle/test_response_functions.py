"""Response functions under periodic loss: the average window is c/p^d, and its slope d sets the algorithms apart.

Each 1/p-th data packet is lost on a link where nothing queues; every segment is acknowledged (`response.measure` does
the same for RFC 9438's tables). The published slopes (Guillier 2008, table of response functions; RFC 3649 section 5):
Reno 1/2, HighSpeed 0.835, Scalable 1, BIC 1/2, H-TCP 0.835.

Two of them are not those of the algorithms as they are run. BIC's 1/2 is that of its additive part, which a small
`max_increment` and a large decrease make nearly the whole of it; with Linux's 16 segments the binary search, whose
length does not grow with the window, lasts most of an epoch up to windows of thousands, and the slope is between 1
and 1/2. H-TCP's increase is α = 1 + 10 (Δ − 1) + (Δ − 1)²/4 segments per round trip at Δ seconds after a loss: while
the middle term rules, the window grows as T² and 1/p as T³, which is a slope of 2/3 that rises towards 3/4. 0.835 is
HighSpeed's.
"""

from __future__ import annotations

import math
from functools import cache

import polars as pl
import pytest
from oracle import lab

RTT_S = 0.1
EPOCHS = 12
#: Losses after which the first window is forgotten: where each leaves half of the distance, and where it leaves 7/8.
HALVING, SLOWLY = 12, 40


@cache
def window(congestion: str, period: int, expected: float, skipped: int = HALVING) -> float:
    """The average congestion window, of epochs that last about as long as the `expected` window says."""
    epoch_s = period / expected * RTT_S
    data = lab.run(
        (skipped + EPOCHS) * epoch_s,
        RTT_S,
        congestion,
        warmup_s=skipped * epoch_s,
        network=f"loss = {{ every = {period} }}",
        tcp=f'delayed_ack = false\ntso_batching = false\nreceive_window = "{int(3 * expected * lab.MSS_BYTES)}B"',
        interval_s=max(RTT_S, epoch_s / 200),
    )
    windows = data.flow_samples.filter(pl.col("time_s") >= skipped * epoch_s)["cwnd"]
    return float(windows.mean())  # type: ignore[arg-type]


def slope(congestion: str, constant: float, exponent: float, periods: tuple[int, int], skipped: int = HALVING) -> float:
    """d between two loss rates; `constant`/p^`exponent` only says how long to simulate."""
    low, high = (window(congestion, period, constant * period**exponent, skipped) for period in periods)
    return math.log(high / low) / math.log(periods[1] / periods[0])


@pytest.mark.parametrize(
    ("congestion", "constant", "exponent", "periods", "skipped"),
    [
        ('"reno"', 1.22, 0.5, (1_000, 30_000), HALVING),
        ('{ kind = "highspeed", variant = "rfc3649" }', 0.12, 0.835, (10_000, 100_000), SLOWLY),
        ('"scalable"', 0.08, 1.0, (10_000, 100_000), SLOWLY),
        (
            '{ kind = "bic", max_increment = 1, beta = 0.5, ack_ratio = false }',
            1.22,
            0.5,
            (100_000, 1_000_000),
            HALVING,
        ),
    ],
    ids=["reno", "highspeed", "scalable", "bic"],
)
def test_the_slope_is_the_published_one(
    congestion: str, constant: float, exponent: float, periods: tuple[int, int], skipped: int
) -> None:
    assert slope(congestion, constant, exponent, periods, skipped) == pytest.approx(exponent, rel=0.05)


@pytest.mark.parametrize(
    ("congestion", "constant", "exponent", "period", "skipped"),
    [
        ('"reno"', 1.22, 0.5, 10_000, HALVING),
        ('{ kind = "highspeed", variant = "rfc3649" }', 0.12, 0.835, 100_000, SLOWLY),
    ],
    ids=["reno", "highspeed"],
)
def test_and_so_is_the_constant(congestion: str, constant: float, exponent: float, period: int, skipped: int) -> None:
    expected = constant * period**exponent
    assert window(congestion, period, expected, skipped) == pytest.approx(expected, rel=0.1)


def test_scalable_s_constant_counts_the_round_trip_of_recovery() -> None:
    """A hundred ACKs add a segment, so from 7/8 W to W an epoch sends 12.5 W; that is the published W = 0.08/p. It then
    sends most of a window more while the loss is repaired, and the average of the window is 0.936 of its maximum.
    """
    period = 100_000
    assert window('"scalable"', period, 0.08 * period, SLOWLY) == pytest.approx(
        0.936 / (12.5 + 0.94) * period, rel=0.03
    )


def test_htcp_s_slope_is_that_of_its_own_increase() -> None:
    """Between 2/3 and 3/4, and not HighSpeed's 0.835."""
    result = slope('{ kind = "htcp", adaptive_backoff = false }', 0.25, 0.7, (100_000, 1_000_000))
    assert result == pytest.approx(0.71, rel=0.05)
