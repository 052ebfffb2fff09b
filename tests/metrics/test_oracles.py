"""Each metric against a truth that was made by hand."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st

from ackclock import metrics
from ackclock.dataset import Dataset
from ackclock.metrics import RunView
from ackclock.metrics.delay import weighted_quantile
from ackclock.metrics.fairness import jain_index

PLAN = synthetic.plan(rate_bps=1e7, duration_s=20, warmup_s=5)
TIMES = np.arange(1, 201) * 0.1


def view(tables: dict[str, dict], plan: dict = PLAN) -> RunView:
    return next(metrics.runs(synthetic.dataset(plan, tables)))


def value(name: str, tables: dict[str, dict], plan: dict = PLAN):  # type: ignore[no-untyped-def]
    return metrics.of_run(view(tables, plan))[name]


# --- throughput and fairness


def test_two_flows_of_six_and_two_megabits() -> None:
    """15 measured seconds at 6 and 2 Mb/s are 11.25 and 3.75 MB."""
    result = metrics.of_run(view({"flows": synthetic.flows(2, measured_bytes=[11_250_000, 3_750_000])}))
    assert result["goodput_flow_bps"] == pytest.approx([6e6, 2e6])
    assert result["goodput_bps"] == pytest.approx(8e6)
    assert result["jain"] == pytest.approx(64 / (2 * 40))
    assert result["cov_goodput"] == pytest.approx(0.5)
    assert result["jain"] == pytest.approx(1 / (1 + result["cov_goodput"] ** 2))


def test_goodput_from_samples_where_the_receiver_does_not_count() -> None:
    delivered = np.column_stack([TIMES * 750_000, TIMES * 250_000])
    rows = {"flows": synthetic.flows(2), "flow_samples": synthetic.samples(TIMES, delivered_bytes=delivered)}
    assert value("goodput_flow_bps", rows) == pytest.approx([6e6, 2e6])


def test_goodput_between_samples_is_interpolated() -> None:
    times = np.array([4.0, 8.0, 24.0])
    delivered = np.column_stack([[0.0, 4e6, 20e6]])
    rows = {"flows": synthetic.flows(1), "flow_samples": synthetic.samples(times, delivered_bytes=delivered)}
    assert value("goodput_bps", rows) == pytest.approx(8 * (16e6 - 1e6) / 15)


def test_a_flow_that_was_over_before_the_measured_part_does_not_count() -> None:
    rows = {"flows": synthetic.flows(2, measured_bytes=[15_000_000, 0], fct_s=[math.nan, 3.0])}
    assert value("goodput_flow_bps", rows) == pytest.approx([8e6])
    assert value("jain", rows) == 1.0


def test_a_short_transfer_is_judged_by_its_rate_and_not_by_its_size() -> None:
    """1 MB in the two seconds from 10 to 12 s is 4 Mb/s, as is 7.5 MB in the 15 s of the measured part."""
    rows = {
        "flows": synthetic.flows(2, start_s=[0.0, 10.0], fct_s=[math.nan, 2.0], measured_bytes=[7_500_000, 1_000_000])
    }
    assert value("jain", rows) == pytest.approx(1.0)
    assert value("cov_goodput", rows) == pytest.approx(0.0)
    assert value("goodput_bps", rows) == pytest.approx(8 * 8.5e6 / 15)


def test_a_starved_flow_does_count() -> None:
    assert value("jain", {"flows": synthetic.flows(2, measured_bytes=[15_000_000, 0])}) == pytest.approx(0.5)
    assert value("jain", {"flows": synthetic.flows(2, measured_bytes=[0, 0])}) is None


def test_utilisation() -> None:
    assert value("utilisation", {"links": synthetic.link(departed_bytes=9_375_000)}) == pytest.approx(0.5)
    samples = {"time_s": [4.0, 10.0, 15.0], "link": [0, 0, 0], "utilisation": [0.0, 0.4, 0.8]}
    assert value("utilisation", {"queue_samples": samples}) == pytest.approx(0.6)
    assert value("utilisation", {}) is None


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=50).filter(lambda shares: sum(shares) > 0))
def test_jain_is_between_one_over_n_and_one(shares: list[float]) -> None:
    index = jain_index(np.array(shares))
    assert index is not None
    assert 1 / len(shares) - 1e-9 <= index <= 1 + 1e-9


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=50), st.floats(1e-6, 1e6))
def test_jain_does_not_depend_on_the_unit(shares: list[float], scale: float) -> None:
    assert jain_index(np.array(shares) * scale) == pytest.approx(jain_index(np.array(shares)))


@pytest.mark.parametrize(
    ("shares", "index"),
    [([1, 1, 1, 1], 1.0), ([1, 0, 0, 0], 0.25), ([50, 30, 50], 130**2 / (3 * 5900)), ([4, 3, 2, 1], 100 / 120)],
)
def test_jain_of_given_vectors(shares: list[float], index: float) -> None:
    assert jain_index(np.array(shares, dtype=float)) == pytest.approx(index)


# --- loss


def test_loss_rate_counts_drops_and_random_losses() -> None:
    assert value("loss_rate", {"links": synthetic.link(arrived_p=1000, dropped_p=7, lost_p=3)}) == pytest.approx(0.01)
    assert value("loss_rate", {"links": synthetic.link(arrived_p=0, dropped_p=0, lost_p=0)}) is None
    assert value("loss_rate", {"links": synthetic.link(arrived_p=1000)}) is None


def test_mark_rate() -> None:
    assert value("mark_rate", {"links": synthetic.link(arrived_p=1000, marked_p=25)}) == pytest.approx(0.025)
    assert value("mark_rate", {"links": synthetic.link(arrived_p=1000)}) is None


def test_retransmissions_and_timeouts() -> None:
    rows = {
        "flows": synthetic.flows(
            2, measured_retransmissions=[3, 1], measured_sent_packets=[100, 300], measured_timeouts=[2, 0]
        )
    }
    assert value("retransmission_rate", rows) == pytest.approx(0.01)
    assert value("timeouts", rows) == 2
    assert value("timeouts", {"flows": synthetic.flows(2)}) is None


def test_syn_retransmissions_of_connections_begun_in_the_measured_part() -> None:
    rows = {"flows": synthetic.flows(4, start_s=[0.0, 6.0, 7.0, 8.0], syn_retransmissions=[5, 1, 0, 0])}
    assert value("syn_retransmission_rate", rows) == pytest.approx(0.25)
    assert value("syn_retransmission_rate", {"flows": synthetic.flows(2, syn_retransmissions=[1, 1])}) is None


# --- delay


def test_rtt_of_the_measured_part_only() -> None:
    srtt = np.where(TIMES < 5, 9.0, np.where(TIMES < 19.05, 0.1, 0.5))[:, None]
    rows = {"flow_samples": synthetic.samples(TIMES, srtt_s=srtt)}
    assert value("rtt_mean_s", rows) == pytest.approx((141 * 0.1 + 10 * 0.5) / 151)
    assert value("rtt_p95_s", rows) == pytest.approx(0.5)


def test_queue_delay_from_the_histogram() -> None:
    row = synthetic.link(
        sojourn_mean_s=0.0123, departed_p=100, sojourn_edges_s=[0.01, 0.02, 0.05], sojourn_counts=[90, 5, 5]
    )
    assert value("queue_delay_mean_s", {"links": row}) == pytest.approx(0.0123)
    assert value("queue_delay_p95_s", {"links": row}) == pytest.approx(0.02)


def test_queue_delay_from_samples_is_weighted_by_departures() -> None:
    samples = {
        "time_s": [1.0, 6.0, 7.0, 8.0],
        "link": [0, 0, 0, 0],
        "sojourn_s": np.array([9.0, 0.01, 0.03, math.nan]),
        "departures_p": [5, 30, 10, 0],
    }
    assert value("queue_delay_mean_s", {"queue_samples": samples}) == pytest.approx(0.6 / 40)
    assert value("queue_delay_p95_s", {"queue_samples": samples}) == pytest.approx(0.03)


def test_queue_length_and_emptiness() -> None:
    link = {"links": synthetic.link(backlog_mean_p=12.5, empty_s=3.0)}
    assert value("queue_mean_p", link) == 12.5
    assert value("queue_empty_share", link) == pytest.approx(0.2)
    samples = {"queue_samples": {"time_s": [6.0, 7.0], "link": [0, 0], "backlog_p": [0.0, 4.0]}}
    assert value("queue_mean_p", samples) == 2.0
    assert value("queue_empty_share", samples) == 0.5


def test_other_links_are_not_the_bottleneck() -> None:
    both = {
        "link": [0, 1],
        "name": ["access", "bottleneck"],
        "bottleneck": [False, True],
        "rate_bps": [1e9, 1e7],
        "departed_bytes": [1, 18_750_000],
        "arrived_p": [10, 10],
        "dropped_p": [9, 1],
        "lost_p": [0, 0],
    }
    result = metrics.of_run(view({"links": both}))
    assert result["utilisation"] == pytest.approx(1.0)
    assert result["loss_rate"] == pytest.approx(0.1)


@given(st.lists(st.tuples(st.floats(0, 10), st.integers(0, 50)), min_size=1, max_size=30), st.floats(0.01, 1))
def test_weighted_quantile_is_the_quantile_of_the_spread_out_values(pairs: list, share: float) -> None:  # type: ignore[type-arg]
    pairs = sorted(pairs)
    values, weights = np.array([p[0] for p in pairs]), np.array([float(p[1]) for p in pairs])
    spread = np.repeat(values, weights.astype(int))
    result = weighted_quantile(values, weights, share)
    if spread.size == 0:
        assert result is None
    else:
        at = max(math.ceil(share * spread.size * (1 - 1e-12)) - 1, 0)
        assert result in (spread[at], spread[min(at + 1, spread.size - 1)], spread[max(at - 1, 0)])
        assert (spread <= result).sum() >= share * spread.size * (1 - 1e-9)


# --- completion


def test_completion_of_transfers_that_ended_in_the_measured_part() -> None:
    rows = {
        "flows": synthetic.flows(
            4, start_s=[0.0, 4.0, 10.0, 19.0], fct_s=[2.0, 2.0, 4.0, math.nan], size_bytes=[1, 1, 1, 1]
        )
    }
    assert value("fct_mean_s", rows) == pytest.approx(3.0)
    assert value("fct_p95_s", rows) == pytest.approx(3.9)
    assert value("fct_p99_s", rows) == pytest.approx(3.98)
    assert value("fct_mean_s", {"flows": synthetic.flows(1)}) is None


# --- the whole list


def test_every_metric_of_the_design_is_present_and_reports_what_it_is() -> None:
    promised = [
        "utilisation",
        "goodput_bps",
        "goodput_flow_bps",
        "jain",
        "cov_goodput",
        "loss_rate",
        "retransmission_rate",
        "timeouts",
        "rtt_mean_s",
        "rtt_p95_s",
        "queue_delay_mean_s",
        "queue_delay_p95_s",
        "queue_mean_p",
        "queue_empty_share",
        "congestion_epochs",
        "synchronisation",
        "fct_mean_s",
        "fct_p95_s",
        "syn_retransmission_rate",
        "convergence_s",
        "smoothness",
        "responsiveness_s",
        "losses_per_epoch",
        "throughput_bps",
        "efficiency",
        "cwnd_mean",
        "cwnd_flow",
        "mark_rate",
        "aggressiveness",
        "sd_goodput_bps",
        "sd_goodput_time_bps",
        "cov_goodput_time",
        "max_min_fairness",
        "proportional_fairness",
        "epsilon_fairness",
        "syn_retransmission_probability",
        "unfinished",
        "unfinished_share",
        "fct_km_mean_s",
        "flows_per_epoch",
    ]
    assert set(promised) <= set(metrics.METRICS)
    for name, metric in metrics.METRICS.items():
        assert metric.name == name
        assert metric.label
        assert len(metric.definition) > 40


def test_the_page_of_the_metrics_lists_them_all() -> None:
    page = (Path(__file__).parents[2] / "docs" / "concepts" / "metrics.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[`(\w+)`\]\(\.\./reference/metrics\.md#(\w+)\)", page, re.M)
    assert [name for name, _ in listed] == [anchor for _, anchor in listed] == list(metrics.METRICS)


def test_an_engine_that_uses_nothing_gives_nulls_only() -> None:
    assert set(metrics.of_run(view({})).values()) <= {None, 0.0}
    result = metrics.of_run(view({"flows": synthetic.flows(2)}))
    assert {name for name, valid in result.items() if valid is not None} <= {"congestion_epochs", "flows_active"}


def test_table_is_what_json_prints() -> None:
    rows = {"flows": synthetic.flows(2, measured_bytes=[11_250_000, 3_750_000])}
    more = {"flows": synthetic.flows(2, measured_bytes=[11_250_000, 11_250_000])}
    table = metrics.table(Dataset.concat([synthetic.dataset(PLAN, rows, 3), synthetic.dataset(PLAN, more, 4)]))
    assert list(table) == ["scenario", "engine", "runs", "summary", "groups", "links"]
    assert (table["scenario"], table["engine"]) == ("made by hand", "packet")
    assert [run["seed"] for run in table["runs"]] == [3, 4]
    assert table["runs"][0]["metrics"]["goodput_flow_bps"] == pytest.approx([6e6, 2e6])
    assert table["summary"]["goodput_bps"]["mean"] == pytest.approx(10e6)
    assert table["summary"]["goodput_bps"]["n"] == 2
    assert list(table["summary"]["jain"]) == ["mean", "ci95_low", "ci95_high", "n"]
    assert "goodput_flow_bps" not in table["summary"]
