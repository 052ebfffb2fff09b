"""Planned traffic of other simulators: the packet engine's own draws."""

from __future__ import annotations

import numpy as np
import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock import _core, engines
from ackclock.engines.external.planned_traffic import Stream, draw_traffic
from ackclock.plan import PathPlan

TEXT = f"""
name = "Drawn"
duration = "5s"
seeds = [3]
{dumbbell("10Mbit", "20ms")}
[[flows]]
count = 3
congestion = "reno"
start = {{ jitter = "1s" }}
[[traffic]]
kind = "udp"
packet = "500B"
rate = "10/s"
stop = "4s"
[[traffic]]
kind = "poisson"
rate = "20/s"
congestion = "reno"
size = {{ distribution = "pareto", shape = 1.5, mean = "5KB" }}
[[traffic]]
kind = "sources"
transfers = 2
think = "100ms"
congestion = "reno"
size = "3KB"
"""


def test_they_get_the_draws_of_the_packet_engine():
    plan = ac.loads(TEXT).plan()
    flows, sent = engines.engine("packet").run(plan, 3).flows, draw_traffic(plan, 3)
    timed = {each.number: each for each in sent.connections if each.start_s is not None}
    of_ours = flows.filter(flows["flow"].is_in([*timed]))
    assert of_ours.height == len(timed) > 50
    assert [timed[number].start_s for number in of_ours["flow"]] == of_ours["start_s"].to_list()
    assert [timed[number].size_bytes for number in of_ours["flow"]] == of_ours["size_bytes"].to_list()
    (stream,) = sent.streams
    assert (stream.number, stream.departures_s.size) == (3, flows["sent_packets"][3])


def test_a_loop_waits_for_its_own_transfers():
    sent = draw_traffic(ac.loads(TEXT).plan(), 3)
    first, second = sent.connections[-2:]
    assert first.completes == second.waits == 0
    assert (sent.gates[0].awaits, sent.gates[0].delay_s) == (1, 0.1)


def test_datagrams_leave_in_periods_of_equal_distances():
    path = PathPlan((), 0.0)
    times_s = np.array([0.0, 0.1, 0.2, 1.0, 1.1, 3.0])
    stream = Stream(0, 0, 528, 10.0, times_s, path, path, 0.0)
    assert np.concatenate([*stream.periods]) == pytest.approx([0.0, 0.25, 1.0, 1.15, 3.0, 3.05])
    assert [*Stream(0, 0, 528, 10.0, times_s[:0], path, path, 0.0).periods] == []


def test_a_plan_that_cannot_be_is_an_error():
    with pytest.raises(ValueError, match="plan: "):
        _core.drawn("{}", 1)
