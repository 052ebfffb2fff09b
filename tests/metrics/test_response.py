"""Response times by size and group."""

import math
import tracemalloc

import numpy as np
import pytest
import synthetic

from ackclock import metrics
from ackclock.dataset import Dataset
from ackclock.errors import InputError

PLAN = synthetic.plan(rate_bps=1e7, duration_s=100, warmup_s=5)


def made(sizes: list[int], times_s: list[float], seed: int = 1, **more: object) -> Dataset:
    columns = {
        "start_s": np.full(len(sizes), 10.0),
        "size_bytes": np.array(sizes, np.uint64),
        "fct_s": np.array(times_s),
    }
    return synthetic.dataset(PLAN, {"flows": synthetic.flows(len(sizes), **(columns | more))}, seed)


def test_each_size_has_its_row_with_students_interval() -> None:
    """1, 2 and 3 s: mean 2, s = 1, t(0.975, 2) = 4.303; 95th percentile between 2 and 3 s at nine tenths."""
    result = metrics.response_times(made([100, 100, 100, 5000, 5000], [1.0, 2.0, 3.0, 8.0, math.nan]))
    small, large = result.rows(named=True)
    assert (small["size_low_bytes"], small["size_high_bytes"], small["n"], small["unfinished"]) == (100, 100, 3, 0)
    half = 4.303 / math.sqrt(3)
    assert small["mean_s"] == pytest.approx(2.0)
    assert small["ci95_high_s"] == pytest.approx(2 + half, abs=1e-3)
    assert small["ci95_low_s"] == 0.0
    assert (small["median_s"], small["p95_s"]) == (2.0, pytest.approx(2.9))
    assert (large["n"], large["unfinished"], large["mean_s"]) == (1, 1, 8.0)
    assert large["ci95_low_s"] is None
    assert large["km_mean_s"] == pytest.approx(8 + 0.5 * (90 - 8))


def test_several_runs_are_averaged_over_the_runs() -> None:
    """Means of 2 s (two transfers) and 4 s (one): 3 ± t(0.975, 1) · 1 s, not the 2.67 s of all three together."""
    data = Dataset.concat([made([100, 100], [1.0, 3.0], 1), made([100], [4.0], 2)])
    row = metrics.response_times(data).row(0, named=True)
    assert (row["n"], row["mean_s"]) == (3, pytest.approx(3.0))
    assert row["ci95_high_s"] == pytest.approx(3 + 12.706, abs=1e-2)
    assert row["median_s"] == 3.0


def test_many_sizes_are_put_into_octaves() -> None:
    sizes = list(range(1000, 4000, 100))
    result = metrics.response_times(made(sizes, [1.0] * len(sizes)))
    rows = result.select("size_low_bytes", "size_high_bytes", "n").rows()
    assert rows == [(1000, 1000, 1), (1100, 2000, 10), (2100, 3900, 19)]


def test_groups_are_apart_and_named() -> None:
    plan = PLAN | {"groups": [{"name": "page"}, {"name": None}]}
    rows = synthetic.flows(
        4,
        start_s=np.full(4, 10.0),
        size_bytes=np.array([10, 20, 20, 20], np.uint64),
        fct_s=[1.0, 2.0, 3.0, 5.0],
        group=np.array([0, 0, 1, 1], np.uint32),
    )
    data = synthetic.dataset(plan, {"flows": rows})
    result = metrics.response_times(data, by="group")
    assert result.select("group", "name", "n", "mean_s").rows() == [(0, "page", 2, 1.5), (1, "cubic", 2, 4.0)]
    assert metrics.response_times(data).height == 3


def test_what_is_not_present() -> None:
    assert metrics.response_times(synthetic.dataset(PLAN, {"flows": synthetic.flows(2)})).height == 0
    with pytest.raises(InputError, match='by: found "colour"; expected one of "size", "group"'):
        metrics.response_times(made([1], [1.0]), by="colour")
    with pytest.raises(InputError, match='expected one of "fct_s", "cwnd", "rtt_s", "queue_delay_s", '):
        metrics.cdf(made([1], [1.0]), "size")


def test_distributions_of_samples_and_packets() -> None:
    samples = synthetic.samples(np.array([6.0, 7.0]), cwnd=np.array([[4.0], [2.0]]), srtt_s=np.array([[0.2], [0.1]]))
    row = synthetic.link(sojourn_edges_s=[0.01, 0.02], sojourn_counts=[1, 3])
    data = synthetic.dataset(PLAN, {"flows": synthetic.flows(1), "flow_samples": samples, "links": row})
    assert metrics.cdf(data, "cwnd").select("cwnd", "share").rows() == [(2.0, 0.5), (4.0, 1.0)]
    assert metrics.cdf(data, "rtt_s")["rtt_s"].to_list() == [0.1, 0.2]
    assert metrics.cdf(data, "queue_delay_s")["share"].to_list() == [0.25, 1.0]


@pytest.mark.parametrize("sampled", [False, True])
def test_sixty_thousand_transfers_need_no_matrix(sampled: bool) -> None:
    """A matrix of instants × flows would have 7 · 10^9 cells with two samples each."""
    data = synthetic.transfers(count=60_000, seeds=1, duration_s=1000, sampled=sampled)
    tracemalloc.start()
    try:
        metrics.table(data)
        metrics.table(data, between=(100, 500))
        metrics.response_times(data)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1e9
