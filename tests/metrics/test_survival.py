"""The Kaplan–Meier estimate against a published example, and the metrics made of it."""

import math

import numpy as np
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st

from ackclock import metrics
from ackclock.metrics import quantiles
from ackclock.metrics.distributions import cdf

#: Weeks of remission with 6-mercaptopurine (Freireich et al. 1963); a negative number was still in remission.
REMISSION = [6, 6, 6, -6, 7, -9, 10, -10, -11, 13, 16, -17, -19, -20, 22, 23, -25, -32, -32, -34, -35]

#: The estimate as textbooks print it (Kleinbaum and Klein, Survival Analysis, table of group 1).
PUBLISHED = {6: 0.8571, 7: 0.8067, 10: 0.7529, 13: 0.6902, 16: 0.6275, 22: 0.5378, 23: 0.4482}

PLAN = synthetic.plan(rate_bps=1e7, duration_s=20, warmup_s=5)


def remission() -> tuple[np.ndarray, np.ndarray]:
    weeks = np.array(REMISSION, dtype=float)
    return np.abs(weeks), weeks > 0


def test_the_published_example() -> None:
    times, lasting = quantiles.kaplan_meier(*remission())
    assert list(times) == list(PUBLISHED)
    assert lasting == pytest.approx(list(PUBLISHED.values()), abs=5e-5)
    assert quantiles.median(lambda: [remission()]) == 23


def test_the_median_is_reached_when_exactly_half_are_over() -> None:
    assert quantiles.median(lambda: [(np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4, dtype=bool))]) == 2


def test_the_area_under_the_published_example() -> None:
    """Steps of the table times their lengths, to 35 weeks; R's survfit prints 23.3 as the restricted mean."""
    edges = [0, *PUBLISHED, 35]
    area = sum((b - a) * s for a, b, s in zip(edges, edges[1:], [1.0, *PUBLISHED.values()], strict=False))
    assert quantiles.restricted_mean(lambda: [remission()]) == pytest.approx(area, abs=2e-3)
    assert quantiles.restricted_mean(lambda: [remission()]) == pytest.approx(23.3, abs=0.05)


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=50))
def test_without_censoring_it_is_the_plain_mean(times: list[float]) -> None:
    ended = np.ones(len(times), dtype=bool)
    assert quantiles.restricted_mean(lambda: [(np.array(times), ended)]) == pytest.approx(np.mean(times))
    _, lasting = quantiles.kaplan_meier(np.array(times), ended)
    assert lasting[-1] == pytest.approx(0, abs=1e-9)


def test_nothing_given() -> None:
    nothing, none = np.empty(0), np.empty(0, dtype=bool)
    assert quantiles.restricted_mean(lambda: [(nothing, none)]) is None
    assert quantiles.median(lambda: [(nothing, none)]) is None
    assert quantiles.median(lambda: [(np.array([1.0, 2.0]), np.array([False, False]))]) is None


def transfers(**more: object) -> dict[str, float]:
    """Begun at 6, 10, 12 and 18 s, done in 2 s, 4 s, never and never by 20 s; one more began in the warm-up."""
    columns = {
        "start_s": [1.0, 6.0, 10.0, 12.0, 18.0],
        "fct_s": [math.nan, 2.0, 4.0, math.nan, math.nan],
        "size_bytes": np.full(5, 1000, np.uint64),
    }
    flows = synthetic.flows(5, **(columns | more))
    return metrics.of_run(next(metrics.runs(synthetic.dataset(PLAN, {"flows": flows}))))  # type: ignore[return-value]


def test_unfinished_transfers_are_counted_and_estimated() -> None:
    """Watched 2, 4, 8+ and 2+ s: S is 3/4 from 2 s, 3/8 from 4 s, to 8 s: 2 + 2 · 3/4 + 4 · 3/8 = 5 s."""
    result = transfers()
    assert (result["unfinished"], result["unfinished_share"]) == (2, 0.5)
    assert result["fct_mean_s"] == pytest.approx(3.0)
    assert result["fct_km_mean_s"] == pytest.approx(5.0)
    assert result["fct_km_median_s"] == pytest.approx(4.0)


def test_endless_flows_are_no_transfers() -> None:
    result = metrics.of_run(
        next(metrics.runs(synthetic.dataset(PLAN, {"flows": synthetic.flows(3, start_s=[6.0] * 3)})))
    )
    assert {result[name] for name in ("unfinished", "unfinished_share", "fct_km_mean_s")} == {None}


def test_a_transfer_done_after_the_part_is_unfinished_in_it() -> None:
    rows = {"flows": synthetic.flows(2, start_s=[6.0, 7.0], fct_s=[1.0, 5.0])}
    data = synthetic.dataset(PLAN, rows)
    run = metrics.table(data, between=(5, 10))["runs"][0]["metrics"]
    assert (run["unfinished"], run["fct_mean_s"]) == (1, 1.0)
    assert metrics.table(data)["runs"][0]["metrics"]["unfinished"] == 0


def test_transfers_with_and_without_a_lost_syn() -> None:
    result = transfers(fct_s=[9.0, 1.0, 4.0, 2.0, math.nan], syn_retransmissions=np.array([1, 0, 2, 0, 1], np.uint64))
    assert result["fct_syn_lost_s"] == pytest.approx(4.0)
    assert result["fct_syn_kept_s"] == pytest.approx(1.5)
    assert result["syn_retransmission_probability"] == pytest.approx(2 / 4)
    assert result["syn_retransmission_rate"] == pytest.approx(3 / 7)


def test_the_distribution_of_completion_times_ends_below_one() -> None:
    columns = {"start_s": [6.0, 10.0, 12.0, 18.0], "fct_s": [2.0, 4.0, math.nan, math.nan]}
    sizes = np.full(4, 1000, np.uint64)
    data = synthetic.dataset(PLAN, {"flows": synthetic.flows(4, size_bytes=sizes, **columns)}, seed=7)
    result = cdf(data, "fct_s")
    assert result.columns == ["run", "seed", "fct_s", "share"]
    assert result.rows() == [(0, 7, 2.0, 0.25), (0, 7, 4.0, 0.625)]
