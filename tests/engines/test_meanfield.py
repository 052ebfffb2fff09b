"""The mean-field engine: the dataset that it makes, what views read off it, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from small_networks import dumbbell

import ackclock as ac
from ackclock import engines, metrics
from ackclock.engines.meanfield import model_input
from ackclock.errors import UnsupportedError
from ackclock.metrics import epoch, oscillation

FTTH = f"""
name = "FTTH clients"
duration = "40s"
warmup = "20s"
seeds = [1]
{dumbbell("1Gbit", "20ms", "500p")}
frame_overhead = "0B"
[[flows]]
count = 10
congestion = {{ kind = "cubic", beta = 0.8, fast_convergence = false }}
tcp = {{ mtu = "1480B" }}
"""


def plan(text: str = FTTH, more: str = "") -> ac.plan.Plan:
    return ac.loads(text + more).plan()


def run(text: str = FTTH, more: str = "", seed: int = 1) -> ac.Dataset:
    return engines.engine("meanfield").run(plan(text, more), seed)


@pytest.fixture(scope="module")
def limit():
    return run()


def test_ftth_has_the_windows_that_were_computed_apart(limit):
    """One reduction per RTT in TCP mode: mean 210.9, queue 42 packets a flow, period 1.35 s, deviation 42.3."""
    view = next(metrics.runs(run(more='[meanfield]\nmode = "tcp"\nrecovery = false\n')))
    samples = view.measured_samples
    means = samples.group_by("time_s").agg(pl.col("cwnd").mean(), pl.col("cwnd").std(ddof=0).alias("sd"))
    assert means["cwnd"].mean() == pytest.approx(210.9, rel=0.01)
    assert means["cwnd"].min() == pytest.approx(201.9, rel=0.01)
    assert view.links["backlog_mean_p"][0] == pytest.approx(420, rel=0.01)
    assert oscillation.cwnd_period_s(view) == pytest.approx(1.35, rel=0.02)
    assert 0.9 * 42.3 < means["sd"].mean() < 42.3  # ten parts have less spread than the whole


def test_what_a_run_delivers_is_what_the_link_carries(limit):
    link, flows = limit.links.row(0, named=True), limit.flows
    assert flows.height == 10
    assert flows["measured_bytes"].sum() == pytest.approx(link["departed_p"] * 1428, rel=1e-6)
    samples = limit.queue_samples.filter(pl.col("time_s") > 20)
    assert samples["departures_p"].sum() == pytest.approx(link["departed_p"], rel=1e-3)
    assert samples["drops_p"].sum() == pytest.approx(link["dropped_p"], abs=2)
    assert sum(link["sojourn_counts"]) == pytest.approx(link["departed_p"], rel=1e-4)
    assert link["departed_bytes"] * 8 <= 1e9 * 20 * (1 + 1e-9)


def test_events_report_the_share_of_the_model(limit):
    view = next(metrics.runs(limit))
    given, drops = view.given["synchronisation"], view.drops.height
    assert 0.25 < given < 0.4
    epochs = epoch.congestion_epochs(view)
    assert drops / epochs / 10 == pytest.approx(given, rel=0.1)
    assert limit.events.filter(pl.col("kind") == "recovery").height == limit.flows["recoveries"].sum()


def test_the_limit_is_the_same_for_all_seeds_and_particles_are_not(limit):
    assert_frame_equal(limit.flow_samples, run(seed=2).flow_samples)
    particles = [run(more="[meanfield]\nparticles = true\n", seed=seed) for seed in (1, 1, 2)]
    assert_frame_equal(particles[0].flow_samples, particles[1].flow_samples)
    assert not particles[0].flow_samples.equals(particles[2].flow_samples)
    assert particles[0].manifest["model"] == "particles"
    assert "metrics" not in particles[0].runs[0]


def test_flows_of_two_controls_and_round_trips_are_classes():
    more = '[[flows]]\ncount = 5\ncongestion = "reno"\nrtt = "40ms"\ntcp = { mtu = "1480B" }\n'
    given = model_input(plan(more=more))
    assert [len(item["flows"]) for item in given["classes"]] == [10, 5]
    reno = {"flows": (10, 11, 12, 13, 14), "base_rtt_s": 0.04, "control": {"kind": "reno"}, "opening": None}
    assert given["classes"][1] == reno
    data = run(more=more)
    rates = data.flows.group_by("congestion").agg(pl.col("measured_bytes").mean()).sort("congestion")
    cubic, reno = rates["measured_bytes"].to_list()
    assert cubic > 1.5 * reno


def test_rates_and_buffers_become_packets():
    red = FTTH.replace('"pfifo", limit = "500p"', '"red", limit = "740KB", probability = 0.1')
    given = model_input(plan(red))
    assert given["rate_pps"] == pytest.approx(1e9 / 8 / 1480)
    assert given["buffer_p"] == 500
    assert given["policy"]["max_p"] == pytest.approx(125)
    assert given["policy"]["min_p"] == pytest.approx(125 / 3)
    assert given["policy"]["probability"] == 0.1
    data = engines.engine("meanfield").run(plan(red), 1)
    assert 0 < data.queue_samples["backlog_p"].tail(100).mean() < 250


def test_bytes_are_packets_of_the_full_size():
    given = model_input(plan(FTTH.replace('"pfifo", limit = "500p"', '"bfifo", limit = "148KB"')))
    assert given["buffer_p"] == 100


#: The engines that have what this one lacks.
PACKET = ("packet", "linux")
NS2_TOO = ("packet", "linux", "ns2")
HYBRID_TOO = ("packet", "hybrid", "fluid", "linux")
FLUID_TOO = ("packet", "fluid", "linux")
NOT_LINUX = ("packet", "fluid")


@pytest.mark.parametrize(
    ("text", "what", "others"),
    [
        (
            FTTH.replace("count = 10", 'count = 10\nsize = "1MB"'),
            "finite transfers",
            ("packet", "hybrid", "linux", "ns2", "ns3"),
        ),
        (
            FTTH.replace('"cubic", beta = 0.8, fast_convergence = false', '"vegas"'),
            'congestion control "vegas"',
            (*FLUID_TOO, "ns2", "ns3"),
        ),
        (FTTH.replace('"pfifo", limit = "500p"', '"fq_codel", limit = "500p"'), 'queue discipline "fq_codel"', PACKET),
        (FTTH.replace("count = 10", 'count = 10\nstart = "30s"'), "flows that start after the warm-up", HYBRID_TOO),
        (FTTH.replace('{ mtu = "1480B" }', '{ receive_window = "64KB" }'), "limited receive windows", HYBRID_TOO),
        (FTTH.replace("beta = 0.8", "reno_catch_up = true"), "a Reno estimate that catches up", HYBRID_TOO[:3]),
        (FTTH.replace("beta = 0.8", "delayed_ack_correction = false"), "growth that counts ACKs", NOT_LINUX),
        (FTTH + "[meanfield]\nscale = 2.0\n", "scaling of flows in several modes", HYBRID_TOO),
        (FTTH + '[[flows]]\ncongestion = "reno"\n', "packets of several sizes", NS2_TOO),
        (FTTH.replace('"pfifo", limit = "500p"', '"red", limit = "1MB", adaptive = true'), "RED with adaptive", PACKET),
    ],
)
def test_unsupported_features_of_the_model_are_reported(text, what, others):
    (reason,) = engines.unsupported(engines.engine("meanfield"), plan(text))
    assert (reason.what, reason.available_in) == (what, others)
    with pytest.raises(UnsupportedError):
        engines.engine("meanfield").run(plan(text), 1)


@pytest.mark.parametrize("name", ["meanfield", "fluid"])
def test_a_testbed_that_adds_no_delay_is_unsupported_by_models(name):
    testbed = ac.load(Path(__file__).parents[2] / "scenarios" / "testbed.toml").plan()
    (reason,) = engines.unsupported(engines.engine(name), testbed)
    others = ("packet", "hybrid", "linux", "ns2", "ns3")
    assert (reason.what, reason.available_in) == ("flows without propagation delay", others)


def test_scaling_down_in_cubic_mode_gives_a_warning(limit):
    with pytest.warns(UserWarning, match="hides synchronisation"):
        run(more='[meanfield]\nmode = "cubic"\nscale = 4.0\n')
    scaled = run(more='[meanfield]\nmode = "tcp"\nscale = 2.0\nrecovery = false\n')
    assert scaled.flow_samples["time_s"].max() == pytest.approx(40.0)
    mean = scaled.flow_samples.filter(pl.col("time_s") > 20)["cwnd"].mean()
    assert mean == pytest.approx(210.9, rel=0.02)


def test_parts_of_the_population_are_in_ascending_order(limit):
    windows = limit.flow_samples["cwnd"].to_numpy().reshape(-1, 10)
    assert np.all(np.diff(windows, axis=1) >= -1e-9)
    assert windows[-1, 0] < 0.8 * windows[-1, -1]


def test_in_slow_start_windows_double_until_the_queue_is_full():
    """From ten packets at 20 ms: 10 × 2ⁿ; a flow holds 169 packets in flight and 50 in the queue."""
    samples = run(more="[meanfield]\nslow_start = true\n").flow_samples.group_by("time_s").agg(pl.col("cwnd").mean())
    at = dict(samples.iter_rows())
    assert at[0.04] == pytest.approx(40, rel=0.01)
    assert at[0.08] == pytest.approx(160, rel=0.01)
    assert max(window for time_s, window in at.items() if time_s < 0.3) > 250
    assert 150 < at[1.0] < 250


def test_hystart_threshold_is_an_eighth_of_the_rtt_with_a_minimum_of_4_ms():
    text = FTTH.replace("beta = 0.8", 'beta = 0.8, slow_start = "hystart"')
    (only,) = model_input(plan(text, "[meanfield]\nslow_start = true\n"))["classes"]
    assert only["opening"]["leave_delay_s"] == 0.004


def test_starts_that_are_drawn_are_spread_evenly():
    text = FTTH.replace("count = 10", 'count = 10\nstart = { jitter = "1.6s" }')
    (only,) = model_input(plan(text, "[meanfield]\nslow_start = true\n"))["classes"]
    assert only["opening"]["starts_s"] == pytest.approx([0.05 + 0.1 * part for part in range(16)])


def test_the_first_loss_may_be_given():
    small = run(more='[meanfield]\nfirst_loss = "5p"\n').flow_samples["cwnd"][0]
    assert small == pytest.approx(4.0, abs=0.5)
