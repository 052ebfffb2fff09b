"""One CUBIC flow in closed form: what the plan says becomes the model's, and its samples and counts agree."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from changed import changed
from small_networks import dumbbell

import ackclock as ac
from ackclock.engines.theory.single_cubic import SingleCubic, as_single_flow
from ackclock.errors import UnsupportedError
from ackclock.theory import single_flow

TEXT = f"""
name = "one flow"
duration = "100s"
warmup = "20s"
{dumbbell("100Mbit", "50ms", "50p")}
frame_overhead = "0B"
[tcp]
stack = "ns2"
mss = "1460B"
[theory]
model = "single-cubic"
[[flows]]
congestion = {{ kind = "cubic", beta = 0.8 }}
"""


def plan(*changes: tuple[str, str]) -> ac.Plan:
    return ac.loads(changed(TEXT, *changes), "one.toml").plan()


@pytest.fixture(scope="module")
def data() -> ac.Dataset:
    return ac.run(plan(), engine="theory")


def test_the_plan_becomes_the_flow() -> None:
    found = as_single_flow(plan())
    assert found.capacity_pps == pytest.approx(1e8 / 12_000)
    assert (found.rtt_s, found.buffer_p, found.c) == (0.05, 50, 0.4)
    assert found.beta == pytest.approx(0.2)
    assert (found.packets_per_ack, found.fast_convergence) == (1, True)
    assert (found.growth, found.rounding, found.loss_detection) == ("acks", "window", "rtt_later")


@pytest.mark.parametrize(
    ("change", "name", "value"),
    [
        (("beta = 0.8", "beta = 0.7"), "beta", pytest.approx(0.3)),
        (("beta = 0.8", "c = 1.5"), "c", 1.5),
        (("beta = 0.8", "fast_convergence = false"), "fast_convergence", False),
        (("beta = 0.8", "whole_segments = false"), "rounding", "nothing"),
        (('mss = "1460B"', 'mss = "1460B"\ndelayed_ack = true'), "packets_per_ack", 1.0),
        (("\n[theory]", '\n[theory]\nsingle_cubic = { growth = "rtt" }'), "growth", "rtt"),
        (("\n[theory]", '\n[theory]\nsingle_cubic = { rounding = "loss" }'), "rounding", "loss"),
        (("\n[theory]", '\n[theory]\nsingle_cubic = { loss_detection = "at_once" }'), "loss_detection", "at_once"),
        (('pfifo", limit = "50p"', 'bfifo", limit = "75KB"'), "buffer_p", 50),
        (('overhead = "0B"', 'overhead = "500B"'), "capacity_pps", pytest.approx(1e8 / 16_000)),
    ],
)
def test_each_key_counts(change: tuple[str, str], name: str, value: object) -> None:
    assert getattr(as_single_flow(plan(change)), name) == value


def test_acks_that_are_delayed_and_counted_are_two_packets_each() -> None:
    delayed = ('mss = "1460B"', 'mss = "1460B"\ndelayed_ack = true')
    counted = ("beta = 0.8", "beta = 0.8, delayed_ack_correction = false")
    assert as_single_flow(plan(delayed, counted)).packets_per_ack == 2.0
    assert as_single_flow(plan(counted)).packets_per_ack == 1.0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("[[flows]]", "[[flows]]\ncount = 2"), "window over time of more than one endless flow"),
        (("[[flows]]", '[[flows]]\nsize = "1MB"'), "finite transfers"),
        (('"cubic", beta = 0.8', '"reno"'), 'congestion control "reno"'),
        (('pfifo", limit', 'codel", limit'), 'queue discipline "codel"'),
        (("beta = 0.8", "reno_friendly = false"), "CUBIC with another estimate of Reno's window"),
        (("beta = 0.8", "reno_catch_up = true"), "CUBIC with another estimate of Reno's window"),
        (('mss = "1460B"', 'mss = "1460B"\nreceive_window = "600KB"'), "holds back"),
    ],
)
def test_what_it_cannot(change: tuple[str, str], reason: str) -> None:
    asked = plan(change)
    assert any(reason in what for what in SingleCubic().unsupported(asked))
    with pytest.raises(UnsupportedError, match="theory"):
        ac.run(asked, engine="theory")


def test_the_samples_are_the_trajectory(data: ac.Dataset) -> None:
    flow = as_single_flow(plan())
    seen = single_flow.trajectory(flow, 100.0, 0.01)
    samples = data.flow_samples
    assert samples.height == seen.times_s.size
    assert samples["cwnd"].to_list() == seen.windows.tolist()
    assert data.queue_samples["backlog_p"].to_list() == seen.queue.tolist()
    assert data.queue_samples["backlog_p"].max() == 50
    in_flight = np.minimum(seen.windows, flow.full_p)
    expected = np.maximum(0.05, in_flight / flow.capacity_pps)
    assert samples["srtt_s"].to_numpy() == pytest.approx(expected)


def test_events_are_the_losses(data: ac.Dataset) -> None:
    """A drop when the window is too large, the reduction an RTT later."""
    drops = data.events.filter(pl.col("kind") == "drop")
    cuts = data.events.filter(pl.col("kind") == "recovery")
    cycles = list(single_flow.timeline(as_single_flow(plan()), 100.0))
    assert drops["time_s"][0] == pytest.approx(cycles[0][1].lost_s)
    ends_s = [start_s + cycle.end_s for start_s, cycle in cycles]
    assert cuts["time_s"].to_list() == [end_s for end_s in ends_s if end_s <= 100]
    assert set(drops["link"]) == {0}
    measured = drops.filter(pl.col("time_s") >= 20).height
    assert 0 < measured < drops.height
    assert data.links["dropped_p"][0] == data.flows["measured_retransmissions"][0] == measured
    assert data.flows["retransmissions"][0] == drops.height
    assert cuts["link"].null_count() == cuts.height


def test_metrics_are_the_averages(data: ac.Dataset) -> None:
    """Over many cycles, what the tables give is what A.5–A.9 say."""
    longer = ac.run(plan(("100s", "3000s"), ("[[flows]]", '[record]\ninterval = "50ms"\n[[flows]]')), engine="theory")
    found = {name: value["mean"] for name, value in longer.metrics()["summary"].items()}
    expected = single_flow.averages(as_single_flow(plan()))
    assert found["utilisation"] == pytest.approx(expected.throughput_pps * 12_000 / 1e8, rel=2e-3)
    assert found["loss_rate"] == pytest.approx(expected.loss_rate, rel=0.01)
    assert found["rtt_mean_s"] == pytest.approx(expected.rtt_s, rel=2e-3)
    assert found["cwnd_mean"] == pytest.approx(expected.window_p, rel=2e-3)
    assert found["cwnd_period_s"] == pytest.approx(expected.period_s, rel=0.01)
    assert found["cwnd_peak"] == pytest.approx(expected.high_p, rel=2e-3)
    assert found["goodput_bps"] == pytest.approx(found["utilisation"] * 1e8 * 1460 / 1500, rel=1e-6)
    assert found["congestion_epochs"] == pytest.approx(2980 / expected.period_s, abs=2)
    assert found["queue_mean_p"] == pytest.approx(expected.queue_p - 1, abs=1), "the one in transmission is not in it"


def test_it_starts_when_the_flow_does() -> None:
    late = ac.run(plan(("[[flows]]", '[[flows]]\nstart = "30s"')), engine="theory")
    assert late.flow_samples["time_s"].min() == pytest.approx(30.01)
    assert late.flow_samples["cwnd"][0] == pytest.approx(375, abs=1)
    assert late.flows["measured_bytes"][0] == late.flows["delivered_bytes"][0]
    rate = late.flows["delivered_bytes"][0] / 70 * 8
    assert math.isclose(rate, 1e8 * 1460 / 1500, rel_tol=0.02)
    assert late.events["time_s"].min() > 30


def test_seeds_do_not_matter() -> None:
    one, two = (ac.run(plan(), engine="theory", seeds=[seed]) for seed in (1, 2))
    assert one.flow_samples["cwnd"].to_list() == two.flow_samples["cwnd"].to_list()


def test_windows_can_be_drawn(data: ac.Dataset) -> None:
    assert ac.plot.cwnd(data).axes
    assert ac.plot.queue(data).axes
