"""Convergence, smoothness and responsiveness of curves made by hand."""

from dataclasses import replace

import numpy as np
import pytest
import synthetic

from ackclock import metrics
from ackclock.metrics import RunView

PLAN = synthetic.plan(rate_bps=1e7, duration_s=100, warmup_s=5)
TIMES = np.arange(1, 1001) * 0.1


def view(rates_bps: np.ndarray, flows: dict | None = None, **matrices: np.ndarray) -> RunView:
    """Flows whose rates (times × flows) are given; base RTT 0.1 s, so the averaging window is 2 s."""
    delivered = np.cumsum(rates_bps / 8 * 0.1, axis=0)
    rows = {
        "flows": flows or synthetic.flows(rates_bps.shape[1]),
        "flow_samples": synthetic.samples(TIMES, delivered_bytes=delivered, **matrices),
    }
    return next(metrics.runs(synthetic.dataset(PLAN, rows)))


def of(name: str, observed: RunView):  # type: ignore[no-untyped-def]
    return metrics.METRICS[name].function(observed)


def test_flows_that_meet_at_a_given_time() -> None:
    """9:1 until 50 s, then equal: the 2 s average is within 30 % of the mean when 5/8 of the window is equal."""
    shares = np.where(TIMES[:, None] <= 50, np.array([9e6, 1e6]), np.array([5e6, 5e6]))
    assert of("convergence_s", view(shares)) == pytest.approx(50 + 2 * 5 / 8, abs=0.11)


def test_convergence_in_a_part_counts_from_its_start_and_ends_with_it() -> None:
    shares = np.where(TIMES[:, None] <= 50, np.array([9e6, 1e6]), np.array([5e6, 5e6]))
    complete = view(shares)
    assert of("convergence_s", replace(complete, between=(20.0, 90.0), _cache={})) == pytest.approx(31.25, abs=0.11)
    assert of("convergence_s", replace(complete, between=(20.0, 45.0), _cache={})) is None


def test_convergence_counts_from_the_last_start() -> None:
    shares = np.full((1000, 2), 5e6)
    shares[:300, 1] = 0
    result = view(shares, synthetic.flows(2, start_s=[0.0, 30.0]))
    assert of("convergence_s", result) == pytest.approx(2.0, abs=0.11)


def test_flows_that_never_meet_and_one_single_have_none() -> None:
    assert of("convergence_s", view(np.full((1000, 2), [9e6, 1e6]))) is None
    assert of("convergence_s", view(np.full((1000, 1), 9e6))) is None


def test_smoothness_is_the_deepest_cut_in_an_rtt() -> None:
    halves = np.where((TIMES * 10).round() % 100 < 50, 40.0, 20.0)
    gentle = np.where((TIMES * 10).round() % 100 < 50, 40.0, 28.0)
    rates = np.full((1000, 2), 5e6)
    assert of("smoothness", view(rates, cwnd=np.column_stack([halves, halves]))) == pytest.approx(0.5)
    assert of("smoothness", view(rates, cwnd=np.column_stack([halves, gentle]))) == pytest.approx(0.6)
    growing = np.column_stack([TIMES, TIMES])
    assert of("smoothness", view(rates, cwnd=growing)) == 1.0


def test_aggressiveness_is_the_greatest_growth_in_an_rtt() -> None:
    """One segment in each RTT of 0.1 s; the other flow doubles from 10 to 20 once; what shrinks does not grow."""
    reno, jump = 10 + TIMES * 10, np.where(TIMES < 50, 10.0, 20.0)
    rates = np.full((1000, 2), 5e6)
    result = view(rates, cwnd=np.column_stack([reno, jump]))
    assert of("aggressiveness", result) == pytest.approx((1 + 10) / 2)
    slow = view(rates, cwnd=np.column_stack([reno, jump]), srtt_s=np.full((1000, 2), 0.4))
    assert of("aggressiveness", slow) == pytest.approx((4 + 10) / 2)
    assert of("aggressiveness", view(rates, cwnd=np.column_stack([-reno + 2000, -reno + 2000]))) == 0


def test_flows_without_samples_change_nothing() -> None:
    """Two sampled flows and a hundred generated ones that come and go: the two are judged as if alone."""
    shares = np.where(TIMES[:, None] <= 50, np.array([9e6, 1e6]), np.array([5e6, 5e6]))
    windows = np.column_stack([np.where(TIMES < 50, 40.0, 20.0)] * 2)
    alone = view(shares, cwnd=windows)
    crowd = synthetic.flows(102, start_s=np.append([0.0, 0.0], np.linspace(1, 99, 100)))
    for name in ("convergence_s", "smoothness", "aggressiveness", "cov_goodput_time"):
        assert of(name, view(shares, crowd, cwnd=windows)) == of(name, alone) is not None


def test_an_unsampled_flow_takes_no_part_in_the_result_to_a_change() -> None:
    stays = np.interp(TIMES, [50, 60], [5e6, 10e6])
    leaves = np.where(TIMES <= 50, 5e6, 0)
    flows = synthetic.flows(3, fct_s=[np.nan, 50.0, np.nan])
    result = of("responsiveness_s", view(np.column_stack([stays, leaves]), flows))
    assert result == pytest.approx(5.1, abs=0.25)


def test_a_cut_in_the_warm_up_does_not_count() -> None:
    window = np.where(TIMES < 3, 40.0, 4.0)
    assert of("smoothness", view(np.full((1000, 1), 5e6), cwnd=window[:, None])) == 1.0


def test_responsiveness_to_a_flow_that_leaves() -> None:
    """The other flow leaves at 50 s; the one that stays goes from 5 to 10 Mb/s in 10 s: half the way takes 5 s."""
    stays = np.interp(TIMES, [50, 60], [5e6, 10e6])
    leaves = np.where(TIMES <= 50, 5e6, 0)
    flows = synthetic.flows(2, fct_s=[np.nan, 50.0])
    result = of("responsiveness_s", view(np.column_stack([stays, leaves]), flows))
    assert result == pytest.approx(5.1, abs=0.25)


def test_responsiveness_to_a_flow_that_joins() -> None:
    gives = np.interp(TIMES, [40, 48], [10e6, 5e6])
    takes = np.interp(TIMES, [40, 48], [0, 5e6])
    result = of("responsiveness_s", view(np.column_stack([gives, takes]), synthetic.flows(2, start_s=[0.0, 40.0])))
    assert result == pytest.approx(4.1, abs=0.25)


def test_no_change_or_ordinary_traffic_is_nothing_to_respond_to() -> None:
    assert of("responsiveness_s", view(np.full((1000, 2), 5e6))) is None
    many = synthetic.flows(40, start_s=np.linspace(10, 90, 40))
    assert of("responsiveness_s", view(np.full((1000, 40), 2e5), many)) is None
