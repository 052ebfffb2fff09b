"""RED in the models: parameters as the packet engine fills them in, and one queue in the fluid and the mean field."""

from __future__ import annotations

from dataclasses import replace

import pytest

import ackclock as ac
from ackclock import engines
from ackclock.engines import red
from ackclock.engines.fluid import plans
from ackclock.engines.meanfield import model_input
from ackclock.errors import InputError, ScenarioError

TEXT = """
duration = "30s"
warmup = "10s"
[network]
topology = "dumbbell"
rate = "400Mbit"
rtt = "50ms"
frame_overhead = "0B"
queue = {{ discipline = "red", {queue} }}
[[flows]]
count = 40
congestion = "reno"
"""
SPACED = 'limit = "3MB", min = "75KB", max = "750KB", probability = 0.004, gentle = true, avpkt = "1500B"'


def plan(queue):
    return ac.loads(TEXT.format(queue=queue)).plan()


@pytest.mark.parametrize(
    ("queue", "thresholds_p", "weight"),
    [
        # Bursts of the packet engine's `the_weight_follows_from_the_burst`, given and not.
        ('limit = "400KB", min = "30KB", max = "90KB", avpkt = "1500B"', (20, 60), 0.0625),
        ('limit = "600KB", min = "15KB", max = "45KB", avpkt = "1500B"', (10, 30), 0.125),
        ('limit = "600KB", min = "30KB", max = "90KB", avpkt = "1500B", burst = "20p"', (20, 60), 0.5),
        # A quarter of the limit and a third of that: a burst of (2 × 30 + 90) / 3 = 50 packets over 30.
        ('limit = "360KB", avpkt = "1000B"', (20, 60), 0.03125),
        # A burst of 1.5 packets is one, and the threshold counts as no more than that.
        ('limit = "600KB", min = "1500B", max = "1600B", avpkt = "1000B"', (1, 16 / 15), 0.5),
        # A quarter of the limit and a third of that are less than a packet: the average follows the queue.
        ('limit = "6KB", avpkt = "1000B"', (1 / 3, 1), 0.5),
        ('limit = "600KB", min = "15KB", max = "45KB", weight = 0.002', (10, 30), 0.002),
    ],
)
def test_what_is_not_given_is_filled_in_alike(queue, thresholds_p, weight):
    made = plan(queue)
    (link,) = made.links
    fluid, meanfield = plans.queue_in_packets(link.queue, 1500), model_input(made)
    assert fluid == {"limit_p": meanfield["buffer_p"], **meanfield["policy"]}
    assert (fluid["min_p"], fluid["max_p"]) == pytest.approx(thresholds_p)
    assert fluid["weight"] == weight


def test_packets_may_be_counted_as_average_ones():
    (link,) = plan('limit = "100500B", min = "10KB", max = "30KB", avpkt = "1000B", bytes = false').links
    found = plans.queue_in_packets(link.queue, 1500)
    assert (found["limit_p"], found["min_p"], found["max_p"]) == (100, 10, 30)


INVALID = [
    ({"min": "30KB", "max": "90KB", "burst": "19p"}, "burst must be at least min/avpkt = 20 packets, found 19"),
    ({"min": "90KB", "max": "30KB"}, "thresholds must be 0 < min < max, found 90000 and 30000"),
]


@pytest.mark.parametrize(("values", "line"), INVALID)
def test_meaningless_parameters_are_rejected_at_their_line(values, line):
    given = ", ".join(f'{key} = "{value}"' for key, value in values.items())
    with pytest.raises(ScenarioError) as refused:
        plan(f'limit = "600KB", avpkt = "1500B", {given}')
    (problem,) = refused.value.problems
    assert (problem.key, problem.found) == ("network.queue", 'parameters that "red" cannot work with')
    assert line in problem.expected


@pytest.mark.parametrize(("values", "line"), INVALID)
def test_a_meaningless_plan_is_rejected_with_the_same_message(values, line):
    made = plan('limit = "600KB", avpkt = "1500B", min = "30KB", max = "90KB", burst = "80p"')
    queue, own = made.links[0].queue, {"min": "min_bytes", "max": "max_bytes", "burst": "burst_packets"}
    numbers = {own[key]: int(value.rstrip("KBp")) * (1 if key == "burst" else 1000) for key, value in values.items()}
    queue = replace(queue, parameters={**queue.parameters, **numbers})
    with pytest.raises(InputError, match=f"^{line}$"):
        red.in_packets(queue.parameters, 1500)
    with pytest.raises(InputError, match=line):
        engines.engine("packet").run(replace(made, links=(replace(made.links[0], queue=queue),)), 1)


def test_the_fluid_drops_as_the_mean_field_and_the_packet_engine_do():
    """Reno's window is √(2/k) at a share k = 2p/(1 + p): a queue that drops p itself is half as long again."""
    waiting = {name: _mean_queue_p(name) for name in ("packet", "fluid", "meanfield")}
    assert waiting["fluid"] == pytest.approx(waiting["meanfield"], rel=0.1)
    assert waiting["fluid"] == pytest.approx(waiting["packet"], rel=0.2)


def _mean_queue_p(name: str) -> float:
    data = engines.engine(name).run(plan(SPACED), 1)
    return float(data.links["backlog_mean_p"][0])
