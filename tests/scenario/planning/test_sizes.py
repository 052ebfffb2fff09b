"""Buffers by rule, and thresholds in packets."""

from __future__ import annotations

import json

import pytest

from ackclock.errors import ScenarioError
from ackclock.plan import Plan
from ackclock.scenario import planning

CUBIC = "[[flows]]\ncongestion = 'cubic'"


def plan(queue: str = '{ discipline = "pfifo", limit = "1bdp" }', network: str = "", flows: str = CUBIC) -> Plan:
    link = f'topology = "dumbbell"\nrate = "100Mbit"\nrtt = "100ms"\nqueue = {queue}'
    return planning.loads(f'duration = "60s"\n[network]\n{link}\n{network}\n{flows}\n').plan()


def rejection(**given: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        plan(**given)
    return str(caught.value)


@pytest.mark.parametrize(
    ("limit", "expected", "rule"),
    [
        ("bdp/sqrt(n)", 82, "1bdp/sqrt(n), n = 100"),
        ("0.5bdp/sqrt(n)", 41, "0.5bdp/sqrt(n), n = 100"),
        ("0.5 BDP / sqrt(N)", 41, "0.5bdp/sqrt(n), n = 100"),
        ("wischik-mckeown", 52, "wischik-mckeown: 0.63bdp/sqrt(n), n = 100"),
        ("hassayoun-ros", 82, "hassayoun-ros: 0.1bdp"),
    ],
)
def test_a_buffer_rule_is_shown_with_the_number_it_gave(limit, expected, rule):
    flows = "[[flows]]\ncongestion = 'cubic'\ncount = 60\n[[flows]]\ncongestion = 'reno'\ncount = 20\nstreams = 2"
    made = plan(queue=f'{{ discipline = "pfifo", limit = "{limit}" }}', flows=flows)
    assert made.links[0].queue.parameters == {"limit_packets": expected}
    assert made.links[0].queue.rules == {"limit_packets": rule}
    assert rule in made.to_json()
    assert "rules" not in json.dumps(made.engine_input())
    assert Plan.from_dict(json.loads(made.to_json())) == made


def test_n_counts_the_data_flows_of_the_link_else_its_ack_flows():
    reverse = 'reverse = { rate = "100Mbit", queue = { discipline = "pfifo", limit = "bdp/sqrt(n)" } }'
    up = "[[flows]]\ncongestion = 'cubic'\ncount = 16\n[[flows]]\ncongestion = 'cubic'\ndirection = 'up'\ncount = 4"
    assert plan(network=reverse, flows=up).links[1].queue.rules["limit_packets"].endswith("n = 4")
    down = "[[flows]]\ncongestion = 'cubic'\ncount = 16"
    assert plan(network=reverse, flows=down).links[1].queue.rules["limit_packets"].endswith("n = 16")


def test_a_rule_without_a_definite_number_of_flows_is_rejected():
    traffic = "[[traffic]]\nkind = 'poisson'\nrate = '10/s'\nsize = '10KB'\ncongestion = 'cubic'"
    found = rejection(queue='{ discipline = "pfifo", limit = "0.5bdp/sqrt(n)" }', flows=traffic)
    assert "network.queue.limit: found 0.5bdp/sqrt(n) where n is not known (no [[flows]] pass the link)" in found
    assert "such as 1bdp" in found
    found = rejection(queue='{ discipline = "pfifo", limit = "stanford" }')
    assert 'found "stanford"' in found and "or a rule such as bdp/sqrt(n)" in found


@pytest.mark.parametrize(("counted", "each"), [("", 1514), (", bytes = false, avpkt = '1000B'", 1000)])
def test_thresholds_of_red_in_packets(counted, each):
    queue = f'{{ discipline = "red", min = "5p", max = "15p", limit = "50p"{counted} }}'
    given = plan(queue=queue).links[0].queue.parameters
    assert [given[key] // each for key in ("min_bytes", "max_bytes", "limit_bytes")] == [5, 15, 50]
    assert not any(given[key] % each for key in ("min_bytes", "max_bytes", "limit_bytes"))
