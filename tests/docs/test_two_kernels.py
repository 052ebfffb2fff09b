"""The page that compares two kernels: which differences count, and that the kept runs are what it says."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

import claims  # noqa: E402 (it is no package)
import make_two_kernels as page  # noqa: E402

from ackclock.scenario import planning  # noqa: E402
from ackclock.scenario.points import label  # noqa: E402

QUEUE = '{ discipline = "pfifo", limit = "1bdp" }'


def table(old: list[float], new: list[float]) -> pl.DataFrame:
    """One cell whose delay is this in the seeds; the goodput is the same, and nothing is lost."""
    rows = [
        {"kernel": kernel, "flows": 1, "congestion": "reno", "queue": QUEUE, "seed": seed}
        | {"goodput_bps": 9e6, "queue_delay_mean_s": delay_s, "loss_rate": 0.0}
        for kernel, delays_s in ((page.OLD, old), (page.NEW, new))
        for seed, delay_s in enumerate(delays_s, 1)
    ]
    return pl.DataFrame(rows)


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ([0.010, 0.011, 0.012], [0.012, 0.013, 0.014], True),  # 2 ms more with each seed
        ([0.010, 0.011, 0.012], [0.014, 0.011, 0.014], False),  # more on average, but not surely
        ([0.010, 0.011, 0.012], [0.0101, 0.0111, 0.0121], False),  # surely, but less than a twentieth
        ([0.010, 0.011, 0.012], [0.010, 0.011, 0.012], False),
    ],
)
def test_a_difference_counts_that_is_sure_and_large(old, new, counts):
    goodput, delay = page.differences(table(old, new))
    assert (goodput.relative, goodput.half_width, goodput.counts) == (0, 0, False)
    assert delay.counts == counts


def test_intervals_are_student_s():
    """Differences of 1, 2 and 3 ms on 10: 20 % ± 4.303 · 10 % / √3."""
    _, delay = page.differences(table([0.01, 0.01, 0.01], [0.011, 0.012, 0.013]))
    assert (delay.relative, delay.half_width) == pytest.approx((0.2, 0.248), abs=1e-3)
    assert not delay.is_sure


def test_the_page_has_a_row_for_what_differs():
    text = page.page(table([0.010, 0.011, 0.012], [0.012, 0.013, 0.014]), 100)
    assert "| reno | 1 | pfifo 1bdp | queueing delay | 11.0 ms | 13.0 ms | +18.2% ± 0.0% |" in text
    assert "| goodput | 1 | 1 | 0 |" in text


def test_both_kernels_have_run_the_same_cells_of_the_scenario():
    kept = pl.read_csv(page.TABLE, schema_overrides={"kernel": pl.String})
    loaded = planning.load(page.SCENARIO)
    cells = {tuple(map(label, loaded.sweep.values(number).values())) for number in range(loaded.count)}
    old, new = (set(kept.filter(kernel=kernel).select(*page.CELL, "seed").rows()) for kernel in (page.OLD, page.NEW))
    assert old == new
    assert {tuple(map(str, cell)) for *cell, _ in old} <= cells


def test_what_the_page_states_is_true_of_the_kept_runs():
    kept = pl.read_csv(page.TABLE, schema_overrides={"kernel": pl.String})
    text = page.page(kept, planning.load(page.SCENARIO).count)
    assert claims.CLAIM.search(text)
    assert claims.untrue(text) == []
