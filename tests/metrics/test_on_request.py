"""Data recorded on request: one-way delays, CUBIC's state, paths; in metrics, tables and figures."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from small_networks import dumbbell, leaf_spine

import ackclock as ac
from ackclock import metrics, theory
from ackclock.capture import match
from ackclock.errors import InputError, ScenarioError, UnsupportedError
from ackclock.figures import plots
from ackclock.metrics import delay
from ackclock.scenario import planning

ONE_FLOW = f"""
name = "one CUBIC flow"
duration = "30s"
warmup = "5s"
{dumbbell("5Mbit", "100ms")}
[[flows]]
congestion = "cubic"
[record]
delays = true
cubic_state = true
"""

LEAVES = f"""
duration = "1s"
{leaf_spine(4, 2, 2)}
[[traffic]]
kind = "poisson"
between = "all"
rate = "100/s"
size = "20KB"
[record]
paths = true
delays = true
"""


@pytest.fixture(scope="module")
def data():
    return ac.run(planning.loads(ONE_FLOW).plan())


@pytest.fixture(scope="module")
def leaves():
    return ac.run(planning.loads(LEAVES).plan())


def measured(data, name):
    (view,) = metrics.runs(data)
    return metrics.value(view, name)


def of_one_run(data, function):
    (view,) = metrics.runs(data)
    return function(view)


# --- one-way delay -----------------------------------------------------------------------------------


def test_the_one_way_delay_is_half_the_rtt_the_queue_and_the_transmission(data):
    packet_s = 1514 * 8 / 5e6
    expected_s = 0.05 + packet_s + measured(data, "queue_delay_mean_s")
    # The queue's mean is over the packets that leave it, ours over those that arrive 50 ms later.
    assert measured(data, "one_way_delay_mean_s") == pytest.approx(expected_s, rel=1e-3)
    assert measured(data, "one_way_delay_flow_s") == [pytest.approx(expected_s, rel=1e-3)]
    most_s = 0.05 + packet_s * 41  # a full queue of 41 packets
    assert measured(data, "one_way_delay_mean_s") < measured(data, "one_way_delay_p95_s") <= most_s + packet_s
    assert measured(data, "one_way_delay_p95_s") == pytest.approx(
        0.05 + packet_s + measured(data, "queue_delay_p95_s"), rel=0.02
    )


def test_the_one_way_delay_of_a_group_of_udp_flows_is_that_of_its_datagrams():
    voice = '[[traffic]]\nname = "voice"\nkind = "udp"\nrate = "50/s"\npacket = "160B"\n'
    both = ac.run(planning.loads(ONE_FLOW + voice).plan())
    (view,) = metrics.runs(both)
    group = view.of_group("voice")
    column = both.flows.filter(pl.col("congestion") == "udp")["measured_delay_p95_s"].to_list()
    assert metrics.value(group, "one_way_delay_flow_p95_s") == column
    assert metrics.value(group, "one_way_delay_p95_s") == column[0]
    queue_s = metrics.value(view, "queue_delay_mean_s")
    assert metrics.value(group, "one_way_delay_mean_s") == pytest.approx(0.05 + queue_s, rel=0.02)
    assert set(delay.one_way_series(group)["flow"]) == {1}
    assert set(delay.one_way_series(view)["flow"]) == {0}


def test_the_series_counts_each_packet_that_arrived_in_its_interval(data):
    rows = data.frame("delays")
    flows = data.flows.row(0, named=True)
    # What opens the connection is no data, and what the last 50 ms brought to the far end's wire is still to come.
    under_way = int(0.05 * 5e6 / (1514 * 8)) + 1
    assert flows["received_packets"] - 2 - under_way <= rows["packets"].sum() <= flows["received_packets"] - 2
    assert (rows["delay_min_s"] <= rows["delay_mean_s"]).all()
    assert (rows["delay_mean_s"] <= rows["delay_max_s"]).all()
    assert rows["time_s"].is_sorted()
    assert np.allclose(rows["time_s"] / 0.01, (rows["time_s"] / 0.01).round())
    (view,) = metrics.runs(data, between=(10, 20))
    assert delay.one_way_series(view)["time_s"].min() >= 10
    assert metrics.value(view, "one_way_delay_mean_s") > 0.05
    assert metrics.value(view, "one_way_delay_p95_s") is None


def test_delays_of_short_transfers_are_each_their_own(leaves):
    means_s = leaves.flows["measured_delay_mean_s"].drop_nulls()
    packet_s = 1514 * 8 / 100e6
    assert means_s.len() > 50
    assert means_s.min() >= 2 * packet_s  # two hops or four


def test_two_captures_of_both_ends_report_the_same_delays(tmp_path):
    text = ONE_FLOW.replace("30s", "8s").replace('warmup = "5s"', "") + 'pcap = ["senders", "receivers"]'
    plan = planning.loads(text).plan()
    complete = ac.run(plan, captures=tmp_path)
    files = [tmp_path / f"seed-1-{end}.pcap" for end in ("senders", "receivers")]
    joined = match.read(*files).data
    # The join counts what opens the connection too, and knows the clocks to some microseconds.
    expected_s = measured(complete, "one_way_delay_mean_s")
    assert measured(joined, "one_way_delay_mean_s") == pytest.approx(expected_s, rel=2e-3)
    assert measured(joined, "one_way_delay_p95_s") is None


def test_nothing_is_recorded_unasked():
    quiet = ac.run(planning.loads(ONE_FLOW.partition("[record]")[0].replace("30s", "6s")).plan())
    for table in ("delays", "cubic_samples", "paths"):
        assert quiet.frame(table).is_empty()
    for name in ("one_way_delay_mean_s", "one_way_delay_flow_s", "path_flows_max"):
        assert measured(quiet, name) is None
    for draw in plots.ON_REQUEST.values():
        with pytest.raises(InputError, match=r"expected a run with \[record\]"):
            draw(quiet)


@pytest.mark.parametrize(
    ("key", "words"), [("delays", "one-way delays"), ("cubic_state", "CUBIC's inside"), ("paths", "paths of flows")]
)
def test_engines_that_cannot_report_so_report_that(key, words):
    text = ONE_FLOW.partition("[record]")[0] + f"[record]\n{key} = true"
    with pytest.raises(UnsupportedError, match=f'engine "fluid" has no {words} \\(record.{key}\\)'):
        ac.run(planning.loads(text).plan(), engine="fluid")


# --- CUBIC's inside ----------------------------------------------------------------------------------


def test_cubics_inside_is_the_curve_of_the_closed_form(data):
    rows = data.frame("cubic_samples").filter(pl.col("w_max").is_not_null())
    assert rows.height > 1000
    # The curve is flat K after the epoch's start: W(t) - origin = C (t - K)^3, so its cube root grows by one a second.
    cell = rows.filter(pl.col("origin") == rows["origin"][0])
    root = np.cbrt((cell["w_cubic"] - cell["origin"]).to_numpy() / 0.4)
    assert np.allclose(np.diff(root), np.diff(cell["time_s"].to_numpy()), atol=1e-6)
    assert (rows["count"] >= 2).all()
    assert rows["delay_min_s"].is_between(0.1, 0.2).all()


def test_the_window_follows_its_curve_and_stays_on_the_plateau(data):
    result = metrics.cubic_epochs(data)
    assert 0 < result["tracking_error"].mean() < 1
    # Rounded towards the flat, the curve is there for twice the cube root of 1/C; an increment may take an RTT.
    assert result["plateau_s"].mean() == pytest.approx(2 * theory.time_after_plateau(1.0), abs=0.2)
    complete = ac.run(planning.loads(ONE_FLOW.replace('"cubic"', '"accucubic"')).plan())
    assert metrics.cubic_epochs(complete)["plateau_s"].mean() == pytest.approx(theory.time_after_plateau(1.0), abs=0.1)
    other = ac.run(planning.loads(ONE_FLOW.replace('"cubic"', '"reno"').replace("30s", "6s")).plan())
    assert other.frame("cubic_samples").is_empty()


@pytest.mark.parametrize("kind", plots.ON_REQUEST)
def test_figures_name_their_units_and_the_scenario(data, kind, tmp_path):
    figure = plots.ON_REQUEST[kind](data)
    words = " ".join(axes.get_xlabel() + axes.get_ylabel() for axes in figure.axes)
    assert "(s)" in words or "(ms)" in words
    figure.savefig(tmp_path / "figure.svg")
    assert "one CUBIC flow" in (tmp_path / "figure.svg").read_text()


def test_a_crowd_of_delays_has_a_short_legend(leaves):
    (legend,) = plots.ON_REQUEST["delay"](leaves).legends
    assert len(legend.get_texts()) <= 4


# --- paths -------------------------------------------------------------------------------------------


def test_flows_share_paths_from_switch_to_switch(leaves):
    links = {number: link.name for number, link in enumerate(leaves.plan.links)}
    result = metrics.shared_paths(leaves)
    names = [[links[link] for link in path] for path in result["path"]]
    assert all(len(path) == 2 for path in names)
    assert all("spine" in path[0].split(">")[1] and "leaf" in path[1].split(">")[1] for path in names)
    assert result["flows"].to_list() == [len(numbers) for numbers in result["numbers"]]
    hops = leaves.frame("paths").group_by("flow").len()["len"]
    assert result["flows"].sum() == (hops > 2).sum()
    assert measured(leaves, "path_flows_max") == result["flows"].max()
    assert 1 <= measured(leaves, "path_flows_mean") <= result["flows"].max()


@pytest.mark.parametrize(("routing", "valid"), [("valiant", True), ("flowlet", False), ("ecmp-packet", False)])
def test_other_routing_arrives_and_reports_its_paths_if_flows_have_one(routing, valid):
    text = LEAVES.replace('topology = "leaf-spine"', f'topology = "leaf-spine"\nrouting = "{routing}"')
    result = ac.run(planning.loads(text.replace('"1s"', '"200ms"')).plan())
    assert result.flows["fct_s"].drop_nulls().len() > 10
    assert result.frame("paths").is_empty() != valid
    assert result.flows["path_rate_bps"].unique().to_list() == [1e8]
    if valid:  # by a leaf that is drawn: up, down, up and down again
        assert result.frame("paths").group_by("flow").len()["len"].max() == 6


def test_a_gap_that_no_packet_reaches_is_one_flowlet_a_flow():
    text = LEAVES.replace('topology = "leaf-spine"', 'topology = "leaf-spine"\nrouting = "flowlet"\nflowlet_gap = "1h"')
    plan = planning.loads(text).plan()
    assert (plan.routing, plan.flowlet_gap_s) == ("flowlet", 3600.0)
    assert ac.run(plan).frame("events").filter(pl.col("kind") == "spurious_retransmission").is_empty()


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ('flowlet_gap = "1ms"', 'network.flowlet_gap: found a gap with routing = "ecmp"; expected routing = "flowlet"'),
        (
            'routing = "valiant"\nchanges = [{ at = "10ms", link = "leaf-0>spine-0", up = false }]',
            'network.routing: found "valiant"; expected another one where links fail',
        ),
    ],
)
def test_what_does_not_go_with_the_routing_is_rejected(keys, expected):
    with pytest.raises(ScenarioError) as caught:
        planning.loads(LEAVES.replace('topology = "leaf-spine"', f'topology = "leaf-spine"\n{keys}')).plan()
    assert expected in str(caught.value)


# --- slowdown and deadlines --------------------------------------------------------------------------


def test_a_transfer_single_has_a_slowdown_of_one():
    text = ONE_FLOW.partition("[record]")[0].replace('congestion = "cubic"', 'congestion = "cubic"\nsize = "2MB"')
    text = text.replace('limit = "1bdp"', 'limit = "10000p"').replace('warmup = "5s"', "")
    alone = ac.run(planning.loads(text.replace("30s", "10s")).plan())
    assert measured(alone, "slowdown_p50") == pytest.approx(1.0, abs=0.03)
    wire_bytes = 2e6 + np.ceil(2e6 / 1448) * 66
    expected_s = theory.ideal_fct_s(wire_bytes, 5e6, 0.1, 1514.0, 10.0)
    assert alone.flows["fct_s"][0] == pytest.approx(expected_s, rel=0.03)


def test_the_empty_network_by_hand():
    # 30 packets of 0.1 s, a window of 10, an RTT of 2 s: 10, then 20; the link waits 0.1 + 2 - 1 s after the first.
    result = theory.ideal_fct_s(30 * 1000.0, 80e3, 2.0, 1000.0, 10.0)
    assert result == pytest.approx(2 * 2.0 + 3.0 + 1.1)
    assert theory.ideal_fct_s(10 * 1000.0, 80e3, 2.0, 1000.0, 10.0) == pytest.approx(4.0 + 1.0)
    assert theory.ideal_fct_s([1e4, 3e4], 80e3, 2.0, 1000.0, 10.0) == pytest.approx([5.0, 8.1])


def test_slowdowns_by_size_and_deadlines(leaves):
    result = metrics.slowdowns(leaves)
    assert result["n"].sum() == leaves.flows["fct_s"].drop_nulls().len()
    (row,) = result.iter_rows(named=True)  # all are of one size
    assert row["size_low_bytes"] == row["size_high_bytes"] == 20_000
    assert 0.9 < row["p50"] <= row["p99"]
    assert row["p50"] == pytest.approx(measured(leaves, "slowdown_p50"))
    met = metrics.within_deadline(leaves, [0.0001, 0.5])
    assert met["share"].to_list() == [0.0, 1.0]
    assert met["n"][1] < met["n"][0] <= leaves.flows.height
    with pytest.raises(InputError, match="deadlines"):
        metrics.within_deadline(leaves, [])


# --- robustness --------------------------------------------------------------------------------------


def test_robustness_is_what_random_loss_leaves():
    text = (
        ONE_FLOW.partition("[record]")[0].replace("30s", "15s").replace('warmup = "5s"', 'warmup = "5s"\nrepeats = 2')
    )
    lossy = text.replace('topology = "dumbbell"', 'topology = "dumbbell"\nloss = { probability = 0.01 }')
    hard, easy = (ac.run(planning.loads(each).plan()) for each in (lossy, text))
    result = {row["metric"]: row for row in metrics.robustness(hard, easy).iter_rows(named=True)}
    row = result["goodput_bps"]
    assert 0.1 < row["robustness"] < 0.9
    assert row["n"] == 2
    assert row["ci95_low"] <= row["robustness"] <= row["ci95_high"]
    assert row["challenged"] < row["baseline"]
    assert all(row["robustness"] == 1 for row in metrics.robustness(easy, easy).iter_rows(named=True) if row["n"])
    other = ac.run(planning.loads(text.replace("repeats = 2", "seeds = [7]")).plan())
    with pytest.raises(InputError, match="the same seeds"):
        metrics.robustness(hard, other)


# --- the rules of what an epoch is -------------------------------------------------------------------


def test_metrics_take_the_rule_that_is_named(data):
    by_name = {row["rule"]: row for row in metrics.epochs_by_rule(data).iter_rows(named=True)}
    for rule, row in by_name.items():
        (run,) = metrics.table(data, epochs=rule)["runs"]
        assert run["metrics"]["congestion_epochs"] == row["epochs"] == metrics.epochs(data, rule=rule).height
        assert run["metrics"]["epoch_duration_mean_s"] == pytest.approx(row["duration_mean_s"])
    assert measured(data, "congestion_epochs") == by_name["gap"]["epochs"]
    with pytest.raises(InputError, match="per RTT"):
        metrics.table(data, epochs="loss")


def test_a_scenario_may_name_the_rule():
    planned = planning.loads(ONE_FLOW + 'epochs = "first"').plan()
    assert planned.epochs == "first"
    assert "epochs" not in planned.engine_input()
    result = ac.run(planned)
    assert measured(result, "congestion_epochs") == metrics.epochs(result, rule="first").height


def test_the_curves_plateau_is_in_the_figure_however_short_the_windows_is():
    two = ONE_FLOW.replace("30s", "10s").replace("5Mbit", "20Mbit").replace("100ms", "40ms").replace("1bdp", "46p")
    short = ac.run(planning.loads(two.replace("[[flows]]", '[[flows]]\ncount = 2\nstart = { every = "1s" }')).plan())
    plateau_s = float(theory.time_after_plateau(1.0))
    assert metrics.cubic_epochs(short)["plateau_s"].drop_nulls().to_numpy().max() < plateau_s / 2
    above, _ = plots.ON_REQUEST["tracking"](short).axes
    assert above.get_ylim()[1] > plateau_s
