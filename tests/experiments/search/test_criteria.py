"""Constraints as the user writes them."""

import pytest
from small_networks import dumbbell

from ackclock.errors import InputError
from ackclock.experiments.search import criteria
from ackclock.experiments.search.criteria import missing_metric, parse_constraint, parse_objective
from ackclock.scenario import planning


@pytest.mark.parametrize(
    ("text", "metric", "is_lower_bound", "bound"),
    [
        ("utilisation >= 99%", "utilisation", True, 0.99),
        ("utilisation>=0.99", "utilisation", True, 0.99),
        ("queue_delay_p95_s <= 20ms", "queue_delay_p95_s", False, 0.02),
        ("queue_delay_p95 ≤ 20 ms", "queue_delay_p95_s", False, 0.02),
        ("goodput >= 90Mbit", "goodput_bps", True, 90e6),
        ("queue_mean_p <= 20p", "queue_mean_p", False, 20.0),
        ("queue_mean_p <= 20 packets", "queue_mean_p", False, 20.0),
        ("jain >= .9", "jain", True, 0.9),
        ("timeouts <= 3", "timeouts", False, 3.0),
    ],
)
def test_a_need_is_a_metric_and_a_bound_in_its_unit(text, metric, is_lower_bound, bound):
    found = parse_constraint(text)
    assert (found.metric, found.is_lower_bound) == (metric, is_lower_bound)
    assert found.bound == pytest.approx(bound)
    assert found.margin(bound + 1) == pytest.approx(1 if is_lower_bound else -1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("utilisation", "expected a metric and its bound"),
        ("utilisation > 3", "expected a metric and its bound"),
        ("utilization >= 99%", 'expected "utilisation"'),
        ("utilisation >= 20ms", "expected a share such as 99% or 0.99"),
        ("queue_delay_p95 <= 20", "a number needs its unit"),
        ("goodput >= fast", "expected a rate such as 100Mbit"),
        ("utilisation >= 99", "expected a share such as 99% or 0.99"),
        ("loss_rate <= 150%", "expected a share such as 99% or 0.99"),
        ("jain >= 1e999", "expected a number"),
        ("jain >= 5", "expected a number of at most 1"),
        ("cwnd_flow >= 3", "expected a metric with one value a run"),
    ],
)
def test_an_invalid_constraint_is_reported_in_one_line(text, said):
    with pytest.raises(InputError) as caught:
        parse_constraint(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("--require: ")


def test_a_goal_has_a_direction():
    assert parse_objective("min:queue_delay_mean").cost(2.0) == 2.0
    assert parse_objective("max:utilisation").cost(2.0) == -2.0
    assert str(parse_objective("max: utilisation")) == "max:utilisation"
    with pytest.raises(InputError, match="expected min:METRIC or max:METRIC"):
        parse_objective("utilisation")


def test_fairness_without_like_flows_names_the_metric_of_all_flows():
    text = "max_min_fairness: found no two flows that are alike; expected some, or max_min_fairness[*], of all flows"
    assert str(missing_metric("max_min_fairness")) == text
    assert "expected a scenario that has a mean completion time" in str(missing_metric("fct_mean_s"))


def test_a_metric_that_must_be_recorded_names_the_key():
    assert "expected delays = true in the table [record]" in str(missing_metric("one_way_delay_p95_s[call]"))


GROUPS = f"""\
name = "groups"
duration = "4s"
{dumbbell("10Mbit", "20ms", "50p")}
[[flows]]
name = "bulk"
[[flows]]
name = "short"
size = "100KB"
"""


def test_metrics_of_transfers_need_a_group_with_transfers():
    plan = planning.loads(GROUPS, "groups.toml").plan()
    criteria.check_groups(["fct_p95_s", "fct_p95_s[short]", "fct_mean_s[*]", "goodput_bps[bulk]"], [plan])
    with pytest.raises(InputError) as error:
        criteria.check_groups(["fct_p95_s[bulk]"], [plan])
    assert str(error.value) == (
        'fct_p95_s[bulk]: found no transfers (flows with a size) in the group "bulk"; expected a group that has some, '
        'such as "short"'
    )
    with pytest.raises(InputError, match="udp_loss_rate: found no datagrams in the scenario"):
        criteria.check_groups(["udp_loss_rate"], [plan])
