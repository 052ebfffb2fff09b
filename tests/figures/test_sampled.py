"""Many samples as curves and distributions: what is thinned keeps what can be seen."""

from __future__ import annotations

import numpy as np
import pytest
import synthetic

from ackclock.figures import curves
from ackclock.metrics import rows, runs


@pytest.fixture
def dataset():
    return synthetic.sawtooth(flow_count=3, seeds=2, duration_s=40.0)


@pytest.fixture
def in_blocks(monkeypatch):
    """All tables are read in small blocks."""
    monkeypatch.setattr(rows, "BLOCK_ROWS", 100)


def view_of(dataset):
    return next(iter(runs(dataset)))


def test_in_blocks_the_curves_are_the_same(dataset, monkeypatch):
    complete = view_of(dataset)
    monkeypatch.setattr(rows, "BLOCK_ROWS", 100)
    parts = view_of(dataset)
    assert not parts.rows("flow_samples").is_small
    for curve in (curves.windows, curves.goodputs):
        one, other = curve(complete), curve(parts)
        assert np.array_equal(one.times_s, other.times_s)
        assert np.array_equal(one.values, other.values, equal_nan=True)
        assert (one.labels, one.groups) == (other.labels, other.groups)
    assert np.array_equal(curves.queue(complete).backlog_p, curves.queue(parts).backlog_p)


def test_what_is_thinned_has_the_extremes_of_each_curve_and_of_the_sum(dataset, in_blocks, monkeypatch):
    complete = curves.windows(view_of(dataset))
    monkeypatch.setattr(curves, "CELLS", complete.values.size // 4)
    some = curves.windows(view_of(dataset))
    assert some.values.size < complete.values.size / 2
    assert set(some.times_s) < set(complete.times_s)
    assert (some.times_s[0], some.times_s[-1]) == (complete.times_s[0], complete.times_s[-1])
    for extreme in (np.nanmin, np.nanmax):
        assert np.array_equal(extreme(some.values, axis=0), extreme(complete.values, axis=0))
        assert extreme(some.total()) == extreme(complete.total())


@pytest.mark.parametrize("count", [1, 99, 100, 101, 12_345])
def test_memory_does_not_grow_with_the_instants(count, monkeypatch):
    monkeypatch.setattr(curves, "CELLS", 2000)
    blocks = (
        (np.arange(first, min(first + 70, count)).astype(float), np.full((min(70, count - first), 5), np.nan))
        for first in range(0, count, 70)
    )
    times_s, values = curves.thinned_blocks(blocks, count, 5)
    assert values.shape == (times_s.size, 5)
    assert times_s.size <= 2000 / 5 + 14
    assert (times_s[0], times_s[-1]) == (0.0, count - 1.0)
    assert (np.diff(times_s) > 0).all()


def test_curves_without_samples_are_empty():
    times_s, values = curves.thinned_blocks(iter(()), 0, 3)
    assert times_s.size == 0
    assert values.shape == (0, 3)


def test_a_distribution_of_many_values_is_exact_at_the_bins_it_has(monkeypatch):
    values = np.random.default_rng(1).exponential(size=5000)
    exact = curves.distribution_of_blocks(lambda: np.array_split(values, 7))
    assert np.array_equal(exact[0], np.sort(values))
    assert exact[1][-1] == 1.0
    monkeypatch.setattr(curves, "SORTED", 1000)
    monkeypatch.setattr(curves, "BINS", 300)
    at, share = curves.distribution_of_blocks(lambda: np.array_split(values, 7))
    assert at.size <= 300
    assert share == pytest.approx([(values <= x * (1 + 1e-12)).mean() for x in at])


def test_a_distribution_of_one_value_and_of_none():
    at, share = curves.distribution_of_blocks(lambda: [np.full(3, 2.0)])
    assert (at.tolist(), share[-1]) == ([2.0, 2.0, 2.0], 1.0)
    at, share = curves.distribution_of_blocks(list)
    assert at.size == share.size == 0
