"""Mean completion times by size in blocks: those of the whole table."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import synthetic
from polars.testing import assert_frame_equal

from ackclock.metrics import completion, quantiles, response_times, rows, runs
from ackclock.metrics.completion import SCHEMA


@pytest.fixture(autouse=True)
def in_blocks(monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_ROWS", 64)


@pytest.mark.parametrize("most_sizes", [16, 2], ids=["by size", "by octave"])
@pytest.mark.parametrize("seeds", [1, 3])
def test_they_are_those_of_response_times(seeds, most_sizes, monkeypatch):
    monkeypatch.setattr(completion, "MAX_SIZES", most_sizes)
    data = synthetic.transfers(count=200, seeds=seeds)
    assert not next(iter(runs(data))).rows("flows").is_small
    result, expected = completion.response_means(data), response_times(data)
    assert result["unfinished"].sum() > 0
    valid = [name for name in SCHEMA if name not in ("median_s", "p95_s", "km_mean_s")]
    assert_frame_equal(result.select(valid), expected.select(valid), rel_tol=1e-12)
    assert result.select(pl.exclude(valid)).null_count().row(0) == (result.height,) * 3


def test_without_transfers_present_are_no_rows():
    data = synthetic.sawtooth(flow_count=2, seeds=1, duration_s=20.0)
    assert completion.response_means(data).height == 0


def test_the_share_that_has_ended_is_that_of_kaplan_and_meier():
    random = np.random.default_rng(3)
    times_s, ended = random.exponential(size=500).round(2), random.random(500) < 0.7
    at_s, lasting = quantiles.kaplan_meier(times_s, ended)
    blocks = list(zip(np.array_split(times_s, 9), np.array_split(ended, 9), strict=True))
    assert quantiles.ended_by(lambda: blocks, at_s) == pytest.approx(1 - lasting, rel=1e-9)
    assert quantiles.ended_by(lambda: blocks, np.array([-1.0, 1e9])) == pytest.approx([0.0, 1 - lasting[-1]])


def test_completions_at_some_times_are_those_of_all():
    view = next(iter(runs(synthetic.transfers(count=200, seeds=1))))
    at_s, share = completion.ended_by(view, 50)
    times_s, lasting = quantiles.kaplan_meier(*completion.watched(completion.transfers(view)))
    expected = np.append(0.0, 1 - lasting)[np.searchsorted(times_s, at_s, side="right")]
    assert share == pytest.approx(expected, abs=1e-9)
