"""Throughput, efficiency, windows, and the fairness indices against numbers worked out by hand."""

import math

import numpy as np
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st

from ackclock import metrics
from ackclock.metrics import RunView

PLAN = synthetic.plan(rate_bps=1e7, duration_s=20, warmup_s=5)
TIMES = np.arange(1, 201) * 0.1


def view(tables: dict[str, dict], plan: dict = PLAN) -> RunView:
    return next(metrics.runs(synthetic.dataset(plan, tables)))


def shared(*megabits: float) -> dict[str, float]:
    """The metrics of flows with these rates over 15 s."""
    counted = [round(rate * 1e6 * 15 / 8) for rate in megabits]
    rows = {"flows": synthetic.flows(len(megabits), measured_bytes=counted), "links": synthetic.link()}
    return metrics.of_run(view(rows))  # type: ignore[return-value]


def test_throughput_is_wire_bytes_and_efficiency_is_payload() -> None:
    """15 s at 10 Mb/s hold 18.75 MB: 15 MB of wire bytes are 8 Mb/s, 12 MB of payload are 6.4 Mb/s."""
    rows = {
        "flows": synthetic.flows(2, measured_bytes=[8_000_000, 4_000_000]),
        "links": synthetic.link(departed_bytes=15_000_000),
    }
    result = metrics.of_run(view(rows))
    assert result["throughput_bps"] == pytest.approx(8e6)
    assert result["utilisation"] == pytest.approx(0.8)
    assert result["efficiency"] == pytest.approx(0.64)


def test_efficiency_leaves_out_what_crosses_another_link() -> None:
    """Two flows of 6 and 4 Mb/s; the second goes the other way, over link 1, which is not sampled."""
    ways = [{"forward": {"hops": [{"link": link}]}} for link in (0, 1)]
    plan = {**PLAN, "flows": ways, "links": [{"bottleneck": True}, {"bottleneck": False}]}
    rows = {"flows": synthetic.flows(2, measured_bytes=[11_250_000, 7_500_000]), "links": synthetic.link()}
    result = metrics.of_run(view(rows, plan))
    assert result["efficiency"] == pytest.approx(0.6)
    assert result["goodput_bps"] == pytest.approx(1e7)


def test_efficiency_of_a_group_is_of_the_links_that_it_crosses() -> None:
    """5 Mb/s of a link of 10, and 1 Mb/s of one of 2: of all links together they would be 42 % and 8 %."""
    ways = [{"group": link, "forward": {"hops": [{"link": link}]}} for link in (0, 1)]
    plan = {**PLAN, "flows": ways, "links": [{"bottleneck": True}] * 2, "groups": [{"name": "down"}, {"name": "up"}]}
    links = {"link": [0, 1], "name": ["down", "up"], "bottleneck": [True, True], "rate_bps": [1e7, 2e6]}
    flows = synthetic.flows(2, measured_bytes=[9_375_000, 1_875_000], group=[0, 1])
    both = view({"flows": flows, "links": links}, plan)
    assert metrics.value(both, "efficiency[down]") == pytest.approx(0.5)
    assert metrics.value(both, "efficiency[up]") == pytest.approx(0.5)
    assert metrics.value(both, "efficiency") == pytest.approx(0.5)


def test_efficiency_counts_goodput_at_each_bottleneck_that_it_crosses() -> None:
    """5 Mb/s over links of 10 and 2 Mb/s are 10 of 12; where the paths of some flows are unknown so is the share."""
    groups = [{"name": "long"}, {"name": "web"}]
    plan = {**PLAN, "flows": [{"group": 0}], "links": [{"bottleneck": True}] * 2, "groups": groups}
    links = {"link": [0, 1], "name": ["a", "b"], "bottleneck": [True, True], "rate_bps": [1e7, 2e6]}
    flows = synthetic.flows(2, measured_bytes=[9_375_000, 1_875_000], group=[0, 1])
    rows = {"flows": flows, "links": links}
    recorded = {**rows, "paths": {"flow": [0, 0], "hop": [0, 1], "link": [0, 1]}}
    assert metrics.value(view(recorded, plan), "efficiency[long]") == pytest.approx(10 / 12)
    assert metrics.value(view(rows, plan), "efficiency[long]") is None
    paths = {"paths": [{"forward": {"hops": [{"link": 1}]}}] * 2}
    web = {**plan, "traffic": [{"group": 1, "population": paths}]}
    assert metrics.value(view(recorded, web), "efficiency[web]") == pytest.approx(0.5)
    assert metrics.value(view(recorded, web), "efficiency") == pytest.approx(11 / 12)
    assert metrics.value(view(recorded, {**plan, "traffic": [{"group": 1}]}), "efficiency[web]") is None


@pytest.mark.parametrize(("discipline", "key"), [("tbf", "rate_bps"), ("cake", "bandwidth_bps")])
def test_efficiency_is_relative_to_a_shapers_rate(discipline: str, key: str) -> None:
    """15 s at 2 Mb/s hold 3.75 MB, of which 3 MB arrive; the link of 10 Mb/s behind the shaper is not the measure."""
    queue = {"discipline": discipline, "parameters": {key: 2e6, "per_flow": False}}
    plan = {**PLAN, "links": [{"bottleneck": True, "rate_bps": 1e7, "queue": queue}]}
    rows = {"flows": synthetic.flows(1, measured_bytes=[3_000_000]), "links": synthetic.link()}
    assert metrics.of_run(view(rows, plan))["efficiency"] == pytest.approx(0.8)


def test_several_bottlenecks_add_up() -> None:
    two = {
        "link": [0, 1],
        "name": ["left", "right"],
        "bottleneck": [True, True],
        "rate_bps": [1e7, 3e7],
        "departed_bytes": [18_750_000, 18_750_000],
        "dropped_p": [1, 1],
    }
    result = metrics.of_run(view({"flows": synthetic.flows(1, measured_bytes=[18_750_000]), "links": two}))
    assert result["throughput_bps"] == pytest.approx(2e7)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, 0.75),  # neither is full: the one used most, of 13.3 Mb/s
        ({"dropped_p": [None, None]}, 20 / (30 + 40 / 3)),  # nobody counted
        ({"dropped_p": [0, 3]}, 10 / 30),  # only the right one lost packets
        ({"marked_p": [2, 3]}, 20 / (30 + 40 / 3)),
        ({"lost_p": [2, 0]}, 0.75),
    ],
)
def test_only_links_that_limited_flows_are_the_bottleneck(more: dict, expected: float) -> None:
    """10 Mb/s over a link of 13.3 Mb/s, and over one of 30 Mb/s."""
    two = {"link": [0, 1], "name": ["left", "right"], "bottleneck": [True, True], "rate_bps": [4e7 / 3, 3e7]}
    two |= {"departed_bytes": [18_750_000, 18_750_000], "dropped_p": [0, 0], **more}
    plan = {**synthetic.plan(rate_bps=1e7, duration_s=15), "links": [{}, {}]}
    assert metrics.value(view({"flows": synthetic.flows(1), "links": two}, plan), "utilisation") == pytest.approx(
        expected
    )


def test_a_token_bucket_is_what_a_link_can_carry() -> None:
    """A policer of 8 Mb/s before a link of 1 Gb/s."""
    bucket = {"discipline": "tbf", "parameters": {"rate_bps": 8e6, "per_flow": False}}
    plan = {**synthetic.plan(rate_bps=1e9, duration_s=20, warmup_s=5), "links": [{"bottleneck": True, "queue": bucket}]}
    rows = {"flows": synthetic.flows(1), "links": synthetic.link(rate_bps=1e9, departed_bytes=15_000_000)}
    result = metrics.of_run(view(rows, plan))
    assert result["utilisation"] == pytest.approx(1)
    assert result["throughput_bps"] == pytest.approx(8e6)


def test_a_rate_that_changes_counts_by_its_mean_in_the_measured_part() -> None:
    """From 5 s to 20 s: 4 Mb/s until 10 s, 1 Mb/s until 12 s, then 7 Mb/s: 78 Mbit."""
    changes = [
        {"at_s": 2, "link": 0, "rate_bps": 4e6},
        {"at_s": 12, "link": 0, "rate_bps": 7e6},
        {"at_s": 10, "link": 0, "rate_bps": 1e6},
        {"at_s": 11, "link": 0, "up": True},
    ]
    links = [{"bottleneck": True, "rate_bps": 9e6}]
    plan = {**synthetic.plan(rate_bps=9e6, duration_s=20, warmup_s=5), "links": links, "changes": changes}
    rows = {"flows": synthetic.flows(1), "links": synthetic.link(rate_bps=9e6, departed_bytes=78_000_000 // 16)}
    result = metrics.of_run(view(rows, plan))
    assert result["utilisation"] == pytest.approx(0.5)
    assert result["throughput_bps"] == pytest.approx(78e6 / 2 / 15)


def test_a_trace_counts_by_its_mean_in_the_measured_part() -> None:
    """The engine has computed it; the plan knows the mean of the whole trace."""
    trace = {"file": "t.csv", "sha256": "", "period_s": 60.0, "course": {"kind": "rates"}}
    links = [{"bottleneck": True, "rate_bps": 9e6, "trace": trace}]
    plan = {**synthetic.plan(rate_bps=9e6, duration_s=20, warmup_s=5), "links": links}
    rows = {"flows": synthetic.flows(1), "links": synthetic.link(rate_bps=1.2e7, departed_bytes=11_250_000)}
    assert metrics.of_run(view(rows, plan))["utilisation"] == pytest.approx(0.5)


def test_windows_of_the_measured_part() -> None:
    """Flow 0 has 10, flow 1 has 30 segments; 50 segments in the warm-up do not count; flow 2 has no samples."""
    windows = np.where(TIMES[:, None] < 5, 50.0, np.array([10.0, 30.0]))
    rows = {"flows": synthetic.flows(3), "flow_samples": synthetic.samples(TIMES, cwnd=windows)}
    result = metrics.of_run(view(rows))
    assert result["cwnd_mean"] == pytest.approx(20.0)
    assert result["cwnd_flow"] == pytest.approx([10.0, 30.0])


def test_indices_of_given_shares() -> None:
    """1, 2 and 4 Mb/s: mean 7/3, geometric mean 2, variance 14/9 (10^12 bit²/s²)."""
    result = shared(1, 2, 4)
    assert result["max_min_fairness"] == pytest.approx(3 / 7, rel=1e-6)
    assert result["proportional_fairness"] == pytest.approx(6 / 7, rel=1e-6)
    assert result["epsilon_fairness"] == pytest.approx(3 / 4, rel=1e-6)
    assert result["sd_goodput_bps"] == pytest.approx(math.sqrt(14 / 9) * 1e6, rel=1e-6)
    assert result["cov_goodput"] == pytest.approx(math.sqrt(14) / 7, rel=1e-6)
    assert shared(1, 1, 4)["proportional_fairness"] == pytest.approx(4 ** (1 / 3) / 2, rel=1e-6)


def test_indices_at_their_ends() -> None:
    even, starved = shared(2, 2, 2), shared(4, 0)
    names = ("max_min_fairness", "proportional_fairness", "epsilon_fairness", "cov_goodput")
    assert [even[name] for name in names] == pytest.approx([1, 1, 0, 0])
    assert [starved[name] for name in names] == pytest.approx([0, 0, 1, 1])
    assert {shared(0, 0)[name] for name in names} == {None}


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=20))
def test_the_indices_agree_on_order(shares: list[int]) -> None:
    """min ≤ geometric mean ≤ arithmetic mean, and ε compares with the largest share, which is no less than the mean."""
    result = shared(*[share / 1e3 for share in shares])
    assert 0 < result["max_min_fairness"] <= result["proportional_fairness"] + 1e-9 <= 1 + 2e-9
    assert 1 - result["epsilon_fairness"] <= result["max_min_fairness"] + 1e-9


def test_datagrams_and_flows_that_never_started_are_in_no_metric() -> None:
    tcp = {
        "congestion": ["cubic", "udp", "reno"],
        "start_s": [0.0, 0.0, math.nan],
        "measured_bytes": [15_000_000, 3_000_000, 0],
        "delivered_bytes": [20_000_000, 4_000_000, 0],
    }
    windows = np.column_stack([np.full(200, 10.0), np.full(200, 99.0), np.full(200, 99.0)])
    rows = {
        "flows": synthetic.flows(3, **tcp),
        "flow_samples": synthetic.samples(TIMES, cwnd=windows[:, :2]),
        "events": synthetic.drops([6.0, 6.01], [0, 1]),
    }
    observed = view(rows)
    assert observed.flows["flow"].to_list() == [0]
    result = metrics.of_run(observed)
    assert result["goodput_flow_bps"] == pytest.approx([8e6])
    assert result["jain"] == 1.0
    assert result["cwnd_mean"] == 10.0
    assert (result["losses_per_epoch"], result["flows_per_epoch"], result["synchronisation"]) == (2, 1, 1.0)


# --- variation over time


def moving(rates_bps: np.ndarray, **flows: object) -> dict[str, float]:
    """The metrics of flows with these rates (times × flows)."""
    delivered = np.cumsum(rates_bps / 8 * 0.1, axis=0)
    rows = {
        "flows": synthetic.flows(rates_bps.shape[1], **flows),
        "flow_samples": synthetic.samples(TIMES, delivered_bytes=delivered),
    }
    return metrics.of_run(view(rows))  # type: ignore[return-value]


def test_variation_over_time_is_of_each_flow_and_then_averaged() -> None:
    """From 5 s on, 14 whole pairs of seconds and one: 8 seconds at 6, 7 at 2 Mb/s; the other flow is steady."""
    second = np.ceil(TIMES - 1e-9)
    swings = np.where(second % 2 == 0, 6e6, 2e6)
    result = moving(np.column_stack([swings, np.full(200, 4e6)]))
    mean = (8 * 6 + 7 * 2) / 15
    deviation = math.sqrt((8 * (6 - mean) ** 2 + 7 * (2 - mean) ** 2) / 15)
    assert result["sd_goodput_time_bps"] == pytest.approx(deviation * 1e6 / 2, rel=1e-6)
    assert result["cov_goodput_time"] == pytest.approx(deviation / mean / 2, rel=1e-6)


def test_only_complete_seconds_in_which_the_flow_was_present() -> None:
    """Steady at 4 Mb/s from 7.5 s to 12.5 s: the two half seconds at the ends would show as a variation."""
    there = (TIMES > 7.5 + 1e-9) & (TIMES <= 12.5 + 1e-9)
    rates = np.where(there, 4e6, 0.0)[:, None]
    ended = {"start_s": [7.5], "fct_s": [5.0], "delivered_bytes": [2_500_000]}
    assert moving(rates, **ended)["cov_goodput_time"] == pytest.approx(0, abs=1e-9)
    assert moving(rates[:, :0])["cov_goodput_time"] is None


def test_a_swing_within_a_second_is_none() -> None:
    fast = np.where(np.arange(200) % 2 == 0, 6e6, 2e6)
    assert moving(fast[:, None])["cov_goodput_time"] == pytest.approx(0, abs=1e-9)


def test_a_run_of_datagrams_only_has_no_tcp_metrics() -> None:
    rows = {
        "flows": synthetic.flows(2, congestion=["udp", "udp"], delivered_bytes=[1000, 1000]),
        "flow_samples": synthetic.samples(TIMES, delivered_bytes=np.cumsum(np.ones((200, 2)), axis=0)),
        "links": synthetic.link(departed_bytes=3_750_000),
    }
    data = synthetic.dataset(PLAN, rows)
    assert {name for name, valid in metrics.of_run(view(rows)).items() if valid} == {"utilisation", "throughput_bps"}
    assert not metrics.epochs(data).height
    assert metrics.responsiveness_at(data, [5.0]).row(0)[4:] == (None, None, None)
