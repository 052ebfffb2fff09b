"""Windows and queues as distributions over flows and time."""

from __future__ import annotations

import numpy as np
import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock import metrics

SCENARIO = f"""
duration = "20s"
warmup = "5s"
{dumbbell("20Mbit", "40ms", "60p")}
[[flows]]
count = 4
congestion = "cubic"
start = {{ every = "100ms" }}
[record]
interval = "50ms"
"""


@pytest.fixture(scope="module")
def data():
    return ac.run(ac.loads(SCENARIO).plan(), engine="packet")


def test_the_coefficient_of_variation_at_each_instant(data):
    result = metrics.windows_over_time(data, between=(10, 15))
    assert result["time_s"].is_sorted() and result["time_s"].min() >= 10 and result["time_s"].max() <= 15
    row = result.row(7, named=True)
    at_once = data.flow_samples.filter(data.flow_samples["time_s"] == row["time_s"])["cwnd"].to_numpy()
    assert row["mean"] == pytest.approx(at_once.mean())
    assert row["cov"] == pytest.approx(at_once.std() / at_once.mean()) and row["cov"] > 0


def test_the_distribution_of_the_queue(data):
    result = metrics.cdf(data, "queue_p")
    backlogs = data.queue_samples.filter(data.queue_samples["time_s"] >= 5)["backlog_p"].to_numpy()
    assert result["queue_p"].max() == backlogs.max() <= 60
    median = np.floor(np.median(backlogs))
    assert np.interp(median, result["queue_p"], result["share"]) == pytest.approx((backlogs <= median).mean(), abs=0.01)
