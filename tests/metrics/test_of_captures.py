"""Tables of the studies of traces: epochs by three rules, falls of the window, shared bottlenecks, Braud's table."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import synthetic

from ackclock import metrics
from ackclock.capture import tables as capture_tables
from ackclock.capture import trace_statistics
from ackclock.capture.trace_statistics import floods
from ackclock.dataset import Dataset, Spool
from ackclock.errors import InputError


def losing(times_s: list[float], flows: list[int]) -> Dataset:
    """Two flows with an RTT of 100 ms for 10 s, and these drops."""
    rows = {"flows": synthetic.flows(2), "links": synthetic.link(), "events": synthetic.drops(times_s, flows)}
    return synthetic.dataset(synthetic.plan(rate_bps=1e7, duration_s=10), rows)


def by_rule(data: Dataset) -> dict[str, dict]:
    return {row["rule"]: row for row in metrics.epochs_by_rule(data).iter_rows(named=True)}


def test_the_rules_part_where_losses_go_on_for_longer_than_an_rtt():
    outcome = by_rule(losing([1.0, 1.06, 1.12, 1.18, 5.0], [0, 1, 0, 0, 1]))
    assert outcome["gap"]["epochs"] == 2  # each follows the one before within an RTT
    assert outcome["first"]["epochs"] == 3  # 1.12 is more than an RTT behind 1.0
    assert outcome["per RTT"]["epochs"] == 3
    assert outcome["gap"]["synchronisation"] == pytest.approx((1 + 0.5) / 2)
    assert outcome["first"]["synchronisation"] == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert outcome["first"]["losses_per_epoch"] == pytest.approx(5 / 3)
    assert outcome["gap"]["duration_mean_s"] == pytest.approx(0.09)


def test_per_rtt_cuts_where_the_others_do_not():
    outcome = by_rule(losing([1.0, 1.09, 1.15], [0, 0, 1]))
    assert {rule: row["epochs"] for rule, row in outcome.items()} == {"gap": 1, "first": 2, "per RTT": 2}
    outcome = by_rule(losing([1.0, 1.25, 1.31], [0, 0, 1]))  # 1.25 and 1.31 are an epoch, but for the cut at 1.3
    assert {rule: row["epochs"] for rule, row in outcome.items()} == {"gap": 2, "first": 2, "per RTT": 3}


def test_the_rule_gap_is_that_of_the_metrics():
    data = synthetic.sawtooth(flow_count=4, seeds=1, duration_s=20, warmup_s=5, step_s=0.05)
    row, (view,) = by_rule(data)["gap"], metrics.runs(data)
    assert row["epochs"] == metrics.value(view, "congestion_epochs") > 0
    assert row["synchronisation"] == pytest.approx(metrics.value(view, "synchronisation"))


def test_without_losses_present_are_no_epochs():
    for row in by_rule(losing([], [])).values():
        assert row["epochs"] == 0
        assert row["synchronisation"] is None


def test_the_fall_is_from_before_the_epoch_to_the_minimum_within_two_rtts():
    times_s = np.arange(0, 2, 0.05)
    pipe = np.where(times_s < 1.1, 50.0, np.where(times_s < 1.3, 30.0, 10.0))
    both = np.column_stack([pipe, pipe])
    rows = {
        "flows": synthetic.flows(2),
        "links": synthetic.link(),
        "flow_samples": synthetic.samples(times_s, in_flight=both, srtt_s=np.full_like(both, 0.1)),
        "events": synthetic.drops([1.02, 1.03], [0, 1]),
    }
    data = synthetic.dataset(synthetic.plan(rate_bps=1e7, duration_s=2), rows)
    (row,) = metrics.window_reductions(data).iter_rows(named=True)
    assert (row["window_before"], row["window_after"]) == (100.0, 60.0)  # what comes after 1.23 s is another story
    assert row["fall"] == pytest.approx(0.4)
    assert (row["flows_hit"], row["losses"]) == (2, 2)


def test_flows_of_one_queue_go_jointly():
    draw = np.random.default_rng(1)
    times_s = np.arange(0, 10, 0.1)
    one, other = 0.05 + 0.01 * np.sin(times_s), 0.05 + 0.01 * np.sin(3 * times_s)
    noise = 1e-4 * draw.normal(size=(times_s.size, 4))
    rtts_s = np.column_stack([one, other, one + 0.1, other + 0.02]) + noise
    lonely = 0.1 + 1e-3 * draw.normal(size=times_s.size)
    rows = {
        "flows": synthetic.flows(5),
        "flow_samples": synthetic.samples(times_s, srtt_s=np.column_stack([rtts_s, lonely])),
    }
    data = synthetic.dataset(synthetic.plan(rate_bps=1e7, duration_s=10), rows)
    outcome = metrics.shared_bottlenecks(data)
    assert outcome["bottleneck"].to_list() == [0, 1, 0, 1, None]
    assert outcome["correlation"][0] > 0.9


def captured(rows: list[dict], **tables: dict) -> Dataset:
    """A captured result with these directions."""
    spool = Spool(names=capture_tables.NAMES)
    valid = {"vantage": "middle", "closed": True, "reset": False, "sack": True}
    valid |= {"timestamps": True, "ecn": False, "opened": True, "client": "10.0.0.1:1", "server": "10.0.0.2:80"}
    flow = {"group": 0, "congestion": "unknown", "start_s": 0.0, "sent_packets": 100, "retransmissions": 0}
    flow |= {"syn_retransmissions": 0, "sent_bytes": 150_000}
    counts = {"payload_bytes": 1000, "synack_retransmissions": 0, "received_packets": 50, "received_bytes": 2_600}
    counts |= {"data_segments": 90, "lost": 8, "lost_upstream": 10, "goodput_bps": 1e6, "rtt_mean_s": 0.05}
    for row in rows:
        every = {**valid, **flow, **counts, **row}
        every |= {"connection": every["flow"] // 2, "sender": ("client", "server")[every["flow"] % 2]}
        for table, names in (
            ("flows", ("flow", *flow)),
            ("captured", ("flow", "connection", "sender", *valid, *counts)),
        ):
            spool.append(table, {name: [every[name]] for name in names})
    for table, columns in tables.items():
        spool.append(table, columns)
    return spool.dataset({"runs": [{"run": 0}], "capture": {}})


def traced(data: Dataset, **more: int) -> dict[tuple[str, str], dict]:
    return {(row["sender"], row["what"]): row for row in trace_statistics.trace(data, **more).iter_rows(named=True)}


def test_a_direction_has_its_own_packets_and_its_own_openings():
    data = captured(
        [
            {
                "flow": 0,
                "retransmissions": 4,
                "syn_retransmissions": 1,
            },  # 100 packets from the client, 50 from the server
            {"flow": 3, "retransmissions": 2, "synack_retransmissions": 3, "syn_retransmissions": 0},
        ]
    )
    outcome = traced(data)
    assert outcome["client", "retransmission"]["value"] == pytest.approx((4 + 1) / (100 + 50))
    assert outcome["server", "retransmission"]["value"] == pytest.approx((2 + 3) / (100 + 50))
    assert outcome["client", "syn_share"]["value"] == pytest.approx(1 / 5)
    assert outcome["server", "syn_packets"]["value"] == pytest.approx(3 / (4 + 1))
    assert outcome["server", "syn_connections"]["value"] == pytest.approx(1 / 2)
    assert outcome["server", "syn_connections"]["n"] == 2


def test_connections_without_a_syn_in_the_trace_do_not_count():
    data = captured([{"flow": 0, "retransmissions": 4}, {"flow": 2, "retransmissions": 50, "opened": False}])
    assert traced(data)["client", "retransmission"]["value"] == pytest.approx(4 / 100)


def segments(copies: list[tuple[float, int, int]]) -> dict:
    """Copies by time, flow and first byte."""
    times_s, flows, offsets = (list(column) for column in zip(*copies, strict=True))
    fixed = {
        "payload_bytes": 1000,
        "segments": 1,
        "seen": True,
        "fate": "delivered",
        "cause": "unknown",
        "confidence": 1.0,
    }
    columns = {"time_s": times_s, "flow": flows, "offset_bytes": offsets}
    return columns | {name: [value] * len(copies) for name, value in fixed.items()}


def test_the_retransmission_time_is_from_copy_to_copy_with_the_syn():
    data = captured(
        [{"flow": 0, "syn_retransmissions": 1, "retransmissions": 1}, {"flow": 2, "retransmissions": 2}],
        segments=segments([(5.0, 0, 0), (5.2, 0, 0), (1.0, 2, 0), (1.1, 2, 1000), (2.0, 2, 0), (4.0, 2, 0)]),
        events={"time_s": [3.0], "flow": [0], "kind": ["syn_retransmission"]},
    )
    outcome = traced(data)
    assert outcome["client", "retransmission_time_s_with_syn_loss"]["value"] == pytest.approx((3.0 + 0.2) / 2)
    assert outcome["client", "retransmission_time_s_without_syn_loss"]["value"] == pytest.approx((1.0 + 2.0) / 2)
    assert outcome["client", "retransmission_time_s"]["n"] == 2
    assert outcome["server", "retransmission_time_s"]["value"] is None


def test_who_waited_longer_than_four_syns_is_left_out():
    again = [{"flow": 0, "retransmissions": 1}, {"flow": 2, "retransmissions": 9}]
    data = captured(again, segments=segments([(0.0, 0, 0), (1.0, 0, 0), (0.0, 2, 0), (46.0, 2, 0)]))
    assert traced(data)["client", "retransmission"]["value"] == pytest.approx(1 / 100)


def test_an_address_that_only_floods_is_left_out_with_all_its_connections():
    flood = [{"flow": 2 * n, "payload_bytes": 0, "client": f"10.9.9.9:{n}", "syn_retransmissions": 1} for n in range(6)]
    data = captured([*flood, {"flow": 12, "client": "10.0.0.1:6", "server": "10.0.0.3:80"}])
    assert traced(data, flood=5)["client", "syn_connections"]["n"] == 1
    assert traced(data, flood=5)["client", "syn_connections"]["value"] == 0
    assert traced(data, flood=7)["client", "syn_connections"]["value"] == pytest.approx(6 / 7)


def test_an_address_with_enough_data_does_not_flood():
    rows = pl.DataFrame(
        {
            "connection": range(7),
            "client": [f"10.9.9.9:{n}" for n in range(7)],
            "server": [f"10.0.0.{n}:80" for n in range(7)],
            "empty": [True] * 5 + [False] * 2,
        }
    )
    assert not floods(rows, 4).len()
    assert floods(rows.with_columns(empty=pl.lit(value=True)), 4).len() == 7


def test_a_run_is_no_trace():
    with pytest.raises(InputError, match="expected a captured one"):
        trace_statistics.trace(losing([], []))


def test_the_rate_is_of_all_packets_of_a_direction_and_its_share_of_the_link():
    """The first connection has data both ways, the second from the client alone, and no SYN."""
    rows = [{"flow": 0}, {"flow": 1}, {"flow": 2, "opened": False}]
    data = captured(rows, flow_samples={"time_s": [2.0], "flow": [0], "in_flight": [4.0]})
    outcome = {
        (row["sender"], row["what"]): row["value"]
        for row in trace_statistics.trace(data, link_bps=1e7).iter_rows(named=True)
    }
    assert outcome["client", "rate_bps"] == pytest.approx(8 * 300_000 / 2.0)
    assert outcome["server", "rate_bps"] == pytest.approx(8 * (150_000 + 2_600) / 2.0)
    assert outcome["client", "utilisation"] == pytest.approx(0.12)
    assert traced(data)["client", "utilisation"]["value"] is None


def test_means_of_flows():
    data = captured(
        [{"flow": 0, "data_segments": 5_000, "payload_bytes": 5_000_000}, {"flow": 1}, {"flow": 2}],
        flow_samples={"time_s": [1.0, 2.0], "flow": [0, 0], "in_flight": [4.0, 8.0]},
    )
    outcome = metrics.flow_means(data)
    assert outcome["flow"].to_list() == [0, 2]  # the other direction of the first carries requests
    assert outcome["loss"].to_list() == pytest.approx([18 / 5_010, 18 / 100])
    assert outcome["window"].to_list() == [6.0, None]
    assert outcome.row(0, named=True)["goodput_bps"] == 1e6


def test_means_of_simulated_flows():
    rows = {
        "flows": synthetic.flows(2, start_s=[0.0, 5.0], delivered_bytes=[10_000, 20_000]),
        "flow_samples": synthetic.samples(np.array([6.0, 8.0]), cwnd=np.array([[4.0, 1.0], [6.0, 1.0]])),
    }
    outcome = metrics.flow_means(synthetic.dataset(synthetic.plan(rate_bps=1e7, duration_s=10), rows))
    assert outcome["goodput_bps"].to_list() == pytest.approx([8_000.0, 32_000.0])
    assert outcome["window"].to_list() == [5.0, 1.0]
    assert metrics.flow_means(losing([], []), between=(1.0, 2.0)).height == 2


def test_losses_count_until_the_capture_misses_something():
    rows = segments([(1.0, 0, 0), (2.0, 0, 1000), (3.0, 2, 0), (4.0, 0, 2000), (5.0, 0, 3000)])
    rows["fate"] = ["delivered", "lost", "lost_upstream", "not_captured", "lost"]
    outcome = trace_statistics.losses_before_capture_loss(captured([{"flow": 0}, {"flow": 2}], segments=rows))
    assert outcome.select("flow", "until_s", "segments", "lost", "share").rows() == [
        (0, 4.0, 2, 1, 0.5),
        (2, 4.0, 1, 1, 1.0),
    ]
    rows["fate"] = ["delivered", "lost", "delivered", "delivered", "lost"]
    outcome = trace_statistics.losses_before_capture_loss(captured([{"flow": 0}, {"flow": 2}], segments=rows))
    assert outcome["until_s"].null_count() == 2
    assert outcome["share"].to_list() == [0.5, 0.0]
    with pytest.raises(InputError, match="expected a captured one"):
        trace_statistics.losses_before_capture_loss(losing([], []))
