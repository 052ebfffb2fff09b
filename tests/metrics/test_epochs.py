"""Congestion epochs from drops made by hand: the RTT is 0.1 s unless a test says otherwise."""

import numpy as np
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st

from ackclock import metrics
from ackclock.dataset import Dataset
from ackclock.metrics import RunView, rows
from ackclock.metrics.epoch import drops_by_epoch, epochs, rtt_at

PLAN = synthetic.plan(rate_bps=1e7, duration_s=20, warmup_s=5)


def view(times_s: list[float], of_flows: list[int], count: int = 4, **tables: dict) -> RunView:
    rows = {"flows": synthetic.flows(count), "events": synthetic.drops(times_s, of_flows), **tables}
    return next(metrics.runs(synthetic.dataset(PLAN, rows)))


def test_drops_closer_than_an_rtt_belong_jointly() -> None:
    result = epochs(view([6.0, 6.05, 6.149, 7.0, 7.101], [0, 1, 0, 2, 2]))
    assert result["start_s"].to_list() == [6.0, 7.0, 7.101]
    assert result["end_s"].to_list() == [6.149, 7.0, 7.101]
    assert result["drops"].to_list() == [3, 1, 1]
    assert result["flows_hit"].to_list() == [2, 1, 1]
    assert result["share"].to_list() == [0.5, 0.25, 0.25]


def test_the_metrics_of_these_epochs() -> None:
    result = metrics.of_run(view([6.0, 6.05, 6.149, 7.0], [0, 1, 0, 2]))
    assert result["congestion_epochs"] == 2
    assert result["synchronisation"] == pytest.approx((0.5 + 0.25) / 2)
    assert result["losses_per_epoch"] == 2
    assert result["epoch_duration_mean_s"] == pytest.approx(0.149 / 2)


def test_spread_over_the_epochs() -> None:
    """Epochs with 4, 1 and 1 drops and 2, 1 and 1 flows hit, at 6, 8 and 12 s."""
    result = metrics.of_run(view([6.0, 6.05, 6.1, 6.15, 8.0, 12.0], [0, 1, 0, 1, 2, 2]))
    assert (result["losses_per_epoch"], result["losses_per_epoch_max"]) == (2, 4)
    assert result["losses_per_epoch_sd"] == pytest.approx(2**0.5)
    assert (result["flows_per_epoch"], result["flows_per_epoch_max"]) == (pytest.approx(4 / 3), 2)
    assert result["flows_per_epoch_sd"] == pytest.approx((2 / 9) ** 0.5)
    assert result["synchronisation_sd"] == pytest.approx((2 / 9) ** 0.5 / 4)
    assert result["epoch_interval_mean_s"] == pytest.approx(3.0)
    assert result["epoch_time_share"] == pytest.approx(0.15 / 15)


def test_the_epochs_of_all_runs_are_one_table() -> None:
    rows = {"flows": synthetic.flows(2), "events": synthetic.drops([6.0, 8.0], [0, 1])}
    data = Dataset.concat([synthetic.dataset(PLAN, rows, 3), synthetic.dataset(PLAN, rows, 4)])
    result = metrics.epochs(data)
    assert result.select("run", "seed", "epoch", "flows_hit").rows() == [
        (0, 3, 0, 1), (0, 3, 1, 1), (1, 4, 0, 1), (1, 4, 1, 1),
    ]  # fmt: skip


def test_sampled_counts_of_drops_report_that_present_were_none() -> None:
    samples = {"time_s": [6.0, 7.0], "link": [0, 0], "drops_p": np.zeros(2, np.uint64)}
    assert metrics.of_run(view([], [], queue_samples=samples))["congestion_epochs"] == 0


def test_drops_in_the_warm_up_and_on_other_links_do_not_count() -> None:
    events = synthetic.drops([4.99, 6.0, 6.5], [0, 1, 2])
    events["link"] = np.array([0, 0, 3], np.uint32)
    result = epochs(view([], [], events=events))
    assert result["start_s"].to_list() == [6.0]


def test_random_losses_open_no_epoch() -> None:
    events = synthetic.drops([6.0, 7.0], [0, 1])
    events["kind"] = np.array([1, 0], np.uint8)
    assert epochs(view([], [], events=events))["start_s"].to_list() == [7.0]


def test_the_rtt_is_the_one_of_the_moment() -> None:
    """The mean of two flows' RTTs: 0.1 and 0.3 s before 10 s, then 0.5 s: a gap of 0.3 s parts drops only before."""
    times = np.arange(1, 201) * 0.1
    srtt = np.where(times[:, None] < 9.95, np.array([0.1, 0.3]), 0.5)
    samples = synthetic.samples(times, srtt_s=srtt)
    result = epochs(view([6.0, 6.15, 6.45, 12.0, 12.3, 12.9], [0] * 6, flow_samples=samples))
    assert result["start_s"].to_list() == [6.0, 6.45, 12.0, 12.9]


def test_flows_that_are_not_present_are_not_counted() -> None:
    flows = synthetic.flows(4, start_s=[0.0, 0.0, 10.0, 15.0], fct_s=[np.nan, 8.0, np.nan, np.nan])
    result = epochs(view([6.0, 9.0, 16.0], [0, 0, 0], flows=flows))
    assert result["flows_active"].to_list() == [2, 1, 3]
    assert result["share"].to_list() == [0.5, 1.0, pytest.approx(1 / 3)]


@pytest.mark.parametrize("block_rows", [2, 1000])
def test_the_rtt_is_the_one_sampled_last(block_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Means of two flows at 1, 2, …, 9 s, of which none is known at 1, 4, 5 and 9 s."""
    monkeypatch.setattr(rows, "BLOCK_ROWS", block_rows)
    times_s, unknown = np.arange(1.0, 10.0), [0, 3, 4, 8]
    srtt_s = np.column_stack([times_s, times_s + 2])
    srtt_s[unknown] = np.nan
    sampled = synthetic.samples(times_s, srtt_s=srtt_s, cwnd=np.ones_like(srtt_s))
    asked_s = np.array([0.5, 1.5, 2.0, 2.5, 3.0, 4.5, 5.9, 6.0, 8.5, 9.5, 20.0])
    result = rtt_at(view([], [], flow_samples=sampled), asked_s)
    assert result.tolist() == [0.1, 0.1, 3.0, 3.0, 4.0, 4.0, 4.0, 7.0, 9.0, 9.0, 9.0]
    assert rtt_at(view([], []), asked_s[:2]).tolist() == [0.1, 0.1]


def test_no_drops_is_no_epoch_and_unrecorded_drops_are_unknown() -> None:
    quiet = metrics.of_run(view([], [], links=synthetic.link(dropped_p=0)))
    assert (quiet["congestion_epochs"], quiet["synchronisation"]) == (0, None)
    unrecorded = metrics.of_run(view([], [], links=synthetic.link(dropped_p=5)))
    assert unrecorded["congestion_epochs"] is None


@given(st.lists(st.floats(5, 20), min_size=1, max_size=40), st.floats(0.01, 2))
def test_epochs_are_a_partition_with_gaps_of_an_rtt(times: list[float], rtt_s: float) -> None:
    flows = synthetic.flows(3, base_rtt_s=np.full(3, rtt_s))
    result = view(times, [n % 3 for n in range(len(times))], flows=flows)
    each, together = drops_by_epoch(result), epochs(result)
    assert together["drops"].sum() == len(times)
    assert ((together["share"] > 0) & (together["share"] <= 1)).all()
    assert (together["start_s"].to_numpy()[1:] - together["end_s"].to_numpy()[:-1] >= rtt_s).all()
    for _, group in each.group_by("epoch"):
        assert (np.diff(np.sort(group["time_s"].to_numpy())) < rtt_s).all()
