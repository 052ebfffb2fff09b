"""The page on CUBIC in QUIC and in Linux: its sentences, and that its command gives the kept runs."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

import claims  # noqa: E402 (it is no package)
import make_cubic_in_quic as page  # noqa: E402


def test_the_table_has_every_run_of_every_cell():
    kept = pl.read_csv(page.TABLE)
    runs = (*page.RUNS, *page.VARIANTS)
    expected = {(run, *cell, seed) for run, cell, seed in itertools.product(runs, page.CELLS, page.SEEDS)}
    assert set(kept.select("run", "rtt", "buffer", "seed").rows()) == expected


def test_what_the_page_states_is_true_of_the_kept_runs():
    text = page.page(pl.read_csv(page.TABLE))
    assert len(claims.CLAIM.findall(text)) == 10
    assert claims.untrue(text) == []


@pytest.mark.parametrize("run", [page.TCP, page.ENGINE, page.OWN, page.FRACTIONS])
def test_a_run_of_the_packet_engine_is_the_kept_one(run):
    (kept,) = pl.read_csv(page.TABLE).filter(run=run, rtt="20ms", buffer="0.5bdp", seed=1).iter_rows(named=True)
    for metric, value in page.measure(run, "20ms", "0.5bdp", 1).items():
        assert value == pytest.approx(kept[metric], rel=1e-9), metric
