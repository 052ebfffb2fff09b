"""Plans: defaults filled in, values spread over flows, sizes resolved, and what the packet engine reads."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackclock.errors import InputError, ScenarioError
from ackclock.partial_plan import PartialPlan
from ackclock.plan import Plan
from ackclock.scenario import planning

ROOT = Path(__file__).parents[3]
SCENARIOS = sorted((ROOT / "scenarios").glob("*.toml"))


def plan(network: str = "", flows: str = "[[flows]]\ncongestion = 'cubic'", top: str = "", **given: str) -> Plan:
    values = {"rate": "100Mbit", "rtt": '"100ms"', "queue": '{ discipline = "pfifo", limit = "1bdp" }'} | given
    return planning.loads(
        f"""
duration = "60s"
{top}
[network]
topology = "dumbbell"
rate = "{values["rate"]}"
rtt = {values["rtt"]}
queue = {values["queue"]}
{network}
{flows}
""",
        "by-hand.toml",
    ).plan()


def rejection(**given: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        plan(**given)
    return str(caught.value)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_example_has_a_plan(path):
    for point in planning.load(path).points():
        made = point.plan
        assert made.scenario_name == path.name
        assert made.scenario_text.startswith(path.read_text(encoding="utf-8"))  # traces stand behind it
        assert json.loads(made.to_json()) == json.loads(json.dumps(made.to_dict()))
        assert Plan.from_dict(made.to_dict()) == made
        assert Plan.from_dict(json.loads(made.to_json())) == made


def test_an_incomplete_plan_is_rejected():
    values = plan().to_dict()
    del values["seeds"], values["flows"][0]["priority"]
    with pytest.raises(InputError, match="plan: found a Plan without seeds; expected all of it"):
        Plan.from_dict(values)
    with pytest.raises(InputError, match="plan: found a FlowPlan without priority; expected all of it"):
        Plan.from_dict(values | {"seeds": [1]})


def test_views_read_their_parts_of_a_complete_plan():
    made = plan()
    known = PartialPlan.from_dict(json.loads(made.to_json()))
    assert (known.name, known.duration_s, known.mean_base_rtt_s) == (made.name, made.duration_s, made.mean_base_rtt_s)
    assert (known.packet_bytes, known.record, known.options) == (made.packet_bytes, made.record, made.options)
    assert known.links[0].queue == made.links[0].queue
    assert known.bottlenecks == [0]
    assert known.groups[0].congestion == made.groups[0].congestion
    assert known.groups[0].tcp.mss_bytes == made.groups[0].tcp.mss_bytes
    assert known.flows[0].base_rtt_s == made.flows[0].base_rtt_s


def test_the_demo_is_the_one_of_the_documents():
    made = planning.load(ROOT / "scenarios" / "dumbbell.toml").plan()
    assert (made.duration_s, made.warmup_s, made.seeds) == (60.0, 10.0, (1, 2, 3, 4, 5))
    assert len(made.flows) == 10
    assert {group.congestion.kind for group in made.groups} == {"cubic"}
    assert [flow.start_s for flow in made.flows] == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert made.bottleneck_link.rate_bps == 100e6
    assert made.bdp_bytes == pytest.approx(1.25e6)
    # 1,250,000 B ÷ 1514 B (1448 payload + 12 timestamps + 40 headers + 14 Ethernet) = 825.6
    assert made.bottleneck_link.queue.parameters == {"limit_packets": 825}


#: The TCP of a plan that says nothing of it.
LINUX = {
    "mss_bytes": 1448,
    "header_bytes": 40,
    "sack": True,
    "timestamps": True,
    "delayed_ack": "quick",
    "delayed_ack_timeout_s": 0.04,
    "initial_window": 10,
    "initial_rto_s": 1.0,
    "min_rto_s": 0.2,
    "max_rto_s": 120.0,
    "rto_floor_on_variance": True,
    "rto_slop_s": 0.0,
    "timer_tick_s": 0.004,
    "rtt_sampling": "each_ack",
    "rtt_tick_s": 0.0,
    "impatient": False,
    "receive_window_bytes": None,
    "send_buffer_bytes": None,
    "loss_detection": "rack",
    "tail_loss_probe": True,
    "undo_spurious": True,
    "frto": True,
    "adaptive_reordering": True,
    "limited_transmit": True,
    "recovery_reduction": "prr",
    "pacing": False,
    "tso_batching": True,
    "window_validation": True,
    "byte_counting": True,
    "ecn": "off",
    "processing": {"kind": "uniform", "from_s": 0.0, "to_s": 20e-6},
}


def test_what_the_engine_reads_has_the_fields_of_the_contract():
    made = plan(network='reverse = { rate = "10Mbit", queue = { discipline = "pfifo", limit = "100p" } }')
    made = json.loads(json.dumps(made.engine_input()))
    assert set(made) >= {"duration_s", "warmup_s", "links", "flows", "record"}
    flow = made["flows"][0]
    assert set(flow) == {
        "group",
        "start_s",
        "start_jitter_s",
        "stop_s",
        "size_bytes",
        "request_bytes",
        "application_rate_bps",
        "priority",
        "ends",
        "forward",
        "reverse",
    }
    group = made["groups"][flow["group"]]
    assert group["congestion"] == {
        "kind": "cubic",
        "parameters": {
            "c": 0.4,
            "beta": 0.7,
            "fast_convergence": True,
            "reno_friendly": True,
            "reno_catch_up": False,
            "slow_start": "hystart",
            "delayed_ack_correction": True,
            "whole_segments": True,
            "tick_s": 0.004,
        },
    }
    assert group["tcp"] == LINUX
    assert flow["forward"] == {"hops": [{"delay_s": 0.0, "link": 0}], "delay_s": 0.05}
    assert flow["reverse"] == {"hops": [{"delay_s": 0.0, "link": 1}], "delay_s": 0.05}
    assert made["links"][1] == {
        "name": "reverse",
        "ends": None,
        "rate_bps": 10e6,
        "delay_s": 0.0,
        "weight": 1.0,
        "burst_bytes": None,
        "frame_overhead_bytes": 14,
        "loss": None,
        "medium": None,
        "trace": None,
        "bottleneck": False,
        "queue": {"discipline": "pfifo", "parameters": {"limit_packets": 100}},
    }
    asked = dict.fromkeys(("packets", "pcap", "traffic", "delays", "cubic_state", "paths"), False)
    assert made["record"] == {"interval_s": 0.01, "all_links": True, **asked}


def test_ten_thousand_flows_share_what_is_equal():
    made = plan(flows="[[flows]]\ncount = 10000\ncongestion = 'reno'").engine_input()
    assert (len(made["flows"]), len(made["groups"])) == (10000, 1)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [("1bdp", 825), ("0.5bdp", 412), ("2bdp", 1651), ("0.001bdp", 1), ("50p", 50)],
)
def test_packets_of_a_bdp_are_full_data_packets_with_a_minimum_of_one(limit, expected):
    made = plan(queue=f'{{ discipline = "pfifo", limit = "{limit}" }}')
    assert made.links[0].queue.parameters == {"limit_packets": expected}


def test_bytes_of_a_bdp_with_a_minimum_of_one_packet():
    sizes = {"1bdp": 1_250_000, "0.3bdp": 375_000, "0.001bdp": 1514, "36KB": 36_000}
    for limit, expected in sizes.items():
        made = plan(queue=f'{{ discipline = "bfifo", limit = "{limit}" }}')
        assert made.links[0].queue.parameters == {"limit_bytes": expected}


def test_a_queue_below_one_packet_is_rejected():
    found = rejection(queue='{ discipline = "bfifo", limit = "1500B" }')
    assert found == (
        "by-hand.toml:8: network.queue.limit: found 1500B; expected at least one full data packet (1514 B on the wire)"
    )


def test_the_bdp_is_that_of_the_mean_rtt_and_of_each_link():
    made = plan(
        network='access_rate = "1Gbit"\naccess_queue = { discipline = "bfifo", limit = "1bdp" }\n'
        'reverse = { rate = "10Mbit", queue = { discipline = "bfifo", limit = "1bdp" } }',
        rtt='["40ms", "80ms"]',
        queue='{ discipline = "bfifo", limit = "1bdp" }',
        flows="[[flows]]\ncount = 2\ncongestion = 'cubic'",
    )
    assert made.mean_base_rtt_s == pytest.approx(0.06)
    found = {link.name: link.queue.parameters["limit_bytes"] for link in made.links}
    assert found == {"bottleneck": 750_000, "reverse": 75_000, "access-0": 7_500_000, "access-1": 7_500_000}


def test_the_access_queue_is_visible_if_not_given():
    made = plan(network='access_rate = "10Gbit"', flows="[[flows]]\ncount = 2\ncongestion = 'cubic'")
    assert [link.name for link in made.links] == ["bottleneck", "access-0", "access-1"]
    assert made.links[2].queue.parameters == {"limit_packets": 1000}
    assert [[hop.link for hop in flow.forward.hops] for flow in made.flows] == [[1, 0], [2, 0]]
    assert [link.bottleneck for link in made.links] == [True, False, False]


def test_a_range_is_spread_evenly_and_a_list_in_turn():
    flows = "[[flows]]\ncount = 4\ncongestion = 'cubic'\nsize = ['10KB', '2p']"
    made = plan(rtt='{ from = "80ms", to = "260ms" }', flows=flows)
    assert [flow.base_rtt_s for flow in made.flows] == pytest.approx([0.08, 0.14, 0.20, 0.26])
    assert [flow.size_bytes for flow in made.flows] == [10_000, 2 * 1448, 10_000, 2 * 1448]
    assert made.mean_base_rtt_s == pytest.approx(0.17)


def test_the_shared_rtts_go_to_the_flows_without_their_own():
    flows = """
[[flows]]
count = 2
congestion = "reno"
[[flows]]
congestion = "cubic"
rtt = "7ms"
name = "near"
[[flows]]
congestion = "cubic"
"""
    made = plan(rtt='["10ms", "20ms", "30ms"]', flows=flows)
    assert [flow.base_rtt_s for flow in made.flows] == pytest.approx([0.01, 0.02, 0.007, 0.03])
    assert [flow.group for flow in made.flows] == [0, 0, 1, 2]
    assert [group.name for group in made.groups] == ["reno", "near", "cubic"]


def test_starts():
    flows = "[[flows]]\ncount = 3\ncongestion = 'cubic'\nstart = { at = '5s', every = '1s', jitter = '200ms' }"
    made = plan(flows=flows)
    assert [(flow.start_s, flow.start_jitter_s) for flow in made.flows] == [(5.0, 0.2), (6.0, 0.2), (7.0, 0.2)]
    assert plan(flows="[[flows]]\ncongestion = 'cubic'\nstart = '2s'").flows[0].start_s == 2.0


def test_stacks_and_their_overrides():
    flows = """
[tcp]
stack = "rfc"
initial_window = 4
[[flows]]
congestion = "reno"
[[flows]]
congestion = "reno"
tcp = { timestamps = false, delayed_ack = false, receive_window = "64KiB" }
[[flows]]
congestion = "reno"
tcp = { stack = "linux", mss = "536B" }
"""
    rfc, own, linux = (group.tcp for group in plan(flows=flows).groups)
    assert (rfc.min_rto_s, rfc.delayed_ack, rfc.initial_window, rfc.mss_bytes) == (1.0, "on", 4, 1448)
    assert (own.mss_bytes, own.delayed_ack, own.receive_window_bytes, own.min_rto_s) == (1460, "off", 65536, 1.0)
    assert (linux.min_rto_s, linux.delayed_ack, linux.initial_window, linux.mss_bytes) == (0.2, "quick", 4, 536)


def test_a_full_packet_fills_the_mtu_whatever_the_options():
    for timestamps in ("true", "false"):
        made = plan(flows=f"[tcp]\nmtu = '9000B'\ntimestamps = {timestamps}\n[[flows]]\ncongestion = 'cubic'")
        assert made.packet_bytes == 9014


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("mss = '1449B'", "tcp.mss: found 1449 B; expected at most 1448 B, what the MTU leaves"),
        ("min_rto = '3s'\nmax_rto = '2s'", "tcp.min_rto: found 3 s; expected at most max_rto (2 s)"),
        ("receive_window = '1000B'", "tcp.receive_window: found 1000 B; expected one segment (1448 B) or more"),
        ("send_buffer = '1000B'", "tcp.send_buffer: found 1000 B; expected one segment (1448 B) or more"),
    ],
)
def test_inconsistent_tcp_values(keys, expected):
    assert f": {expected}" in rejection(flows=f"[tcp]\n{keys}\n[[flows]]\ncongestion = 'cubic'")


def test_a_flows_own_mistake_is_reported_at_the_flow():
    found = rejection(flows="[[flows]]\ncongestion = 'cubic'\ntcp = { mss = '9000B' }")
    assert found.startswith("by-hand.toml:12: flows[0].tcp.mss: found 9000 B; expected at most 1448 B")


def test_parameters_and_variants_of_a_congestion_control():
    flows = """
[[flows]]
congestion = { kind = "cubic", variant = "2008" }
[[flows]]
congestion = { kind = "cubic", beta = 0.8, fast_convergence = false }
[[flows]]
congestion = "reno"
"""
    old, own, reno = (group.congestion.parameters for group in plan(flows=flows).groups)
    assert (old["beta"], old["slow_start"], old["c"]) == (0.8, "standard", 0.4)
    assert (own["beta"], own["slow_start"], own["fast_convergence"]) == (0.8, "hystart", False)
    assert reno == {"slow_start": "standard"}


def test_loss_of_the_bottleneck():
    assert plan(network="loss = { every = 1000 }").links[0].loss == {"kind": "every", "packets": 1000}
    assert plan(network="loss = { probability = 1e-3 }").links[0].loss == {"kind": "bernoulli", "probability": 1e-3}


def test_seeds():
    assert plan().seeds == (1,)
    assert plan(top="repeats = 3").seeds == (1, 2, 3)
    assert plan(top="seeds = [7, 5]").seeds == (7, 5)


def test_a_plan_is_frozen():
    made = plan()
    with pytest.raises(AttributeError):
        made.duration_s = 1.0  # type: ignore[misc]
    with pytest.raises(AttributeError):
        made.links[0].rate_bps = 1.0  # type: ignore[misc]


@given(
    st.integers(1, 10_000),
    st.integers(1, 500),
    st.integers(48, 1448),
    st.integers(0, 100),
    st.sampled_from([True, False]),
)
def test_a_bdp_in_packets_never_exceeds_it_and_one_more_would(rate, rtt, mss, overhead, timestamps):
    flows = f"[tcp]\nmss = '{mss}B'\ntimestamps = {str(timestamps).lower()}\n[[flows]]\ncongestion = 'reno'"
    made = plan(network=f"frame_overhead = '{overhead}B'", rate=f"{rate}Mbit", rtt=f'"{rtt}ms"', flows=flows)
    packets = made.links[0].queue.parameters["limit_packets"]
    wire = mss + 40 + 12 * timestamps + overhead
    assert made.packet_bytes == wire
    assert packets == max(1, rate * 1000 * rtt // (8 * wire))


@given(st.integers(1, 30), st.floats(0.001, 1.0), st.floats(0.001, 1.0))
def test_a_range_reaches_both_ends(count, low, high):
    made = plan(
        rtt=f'{{ from = "{low!r}s", to = "{high!r}s" }}',
        flows=f"[[flows]]\ncount = {count}\ncongestion = 'cubic'",
    )
    rtts = [flow.base_rtt_s for flow in made.flows]
    assert rtts[0] == low
    assert count == 1 or math.isclose(rtts[-1], high)
    assert all(flow.forward.delay_s + flow.reverse.delay_s == pytest.approx(flow.base_rtt_s) for flow in made.flows)


@pytest.mark.parametrize(
    ("stack", "expected"),
    [("linux", "cubic"), ("rfc", "reno"), ("freebsd", "reno"), ("windows", "compound"), ("ns2", "reno")],
)
def test_flows_that_name_no_congestion_control_have_that_of_their_stack(stack, expected):
    made = plan(flows=f'[[flows]]\ntcp = {{ stack = "{stack}" }}')
    assert made.groups[0].congestion.kind == expected


def test_ecn_is_what_the_congestion_control_lives_on_unless_it_is_given():
    made = plan(flows='[[flows]]\n[[flows]]\ncongestion = "reno"\ntcp = { ecn = "classic" }')
    assert [group.tcp.ecn for group in made.groups] == ["off", "classic"]


def test_each_flow_has_the_priority_of_its_group():
    made = plan(flows="[[flows]]\ncount = 2\npriority = 6\n[[flows]]")
    assert [flow.priority for flow in made.flows] == [6, 6, 0]


def test_upward_flows_send_over_the_reverse_link_and_their_acks_meet_the_bottleneck():
    reverse = 'reverse = { rate = "10Mbit", queue = { discipline = "pfifo", limit = "100p" } }'
    made = plan(network=f'{reverse}\naccess_rate = "1Gbit"', flows='[[flows]]\n[[flows]]\ndirection = "up"')
    assert [link.name for link in made.links] == ["bottleneck", "reverse", "access-0", "access-1"]
    down, up = ([[hop.link for hop in way.hops] for way in (flow.forward, flow.reverse)] for flow in made.flows)
    assert (down, up) == ([[2, 0], [1]], [[3, 1], [0]])


def test_the_streams_of_a_source_share_its_access_link():
    flows = '[[flows]]\ncount = 2\nstreams = 3\nstart = { every = "1s" }\nstop = "9s"\nrequest = "300B"'
    made = plan(network='access_rate = "1Gbit"', flows=flows)
    assert [flow.forward.hops[0].link for flow in made.flows] == [1, 1, 1, 2, 2, 2]
    assert [flow.start_s for flow in made.flows] == [0, 0, 0, 1, 1, 1]
    assert {(flow.stop_s, flow.request_bytes) for flow in made.flows} == {(9.0, 300)}


def test_changes_are_sorted_by_time_and_name_links():
    changes = """changes = [
        { at = "20s", link = "bottleneck", up = true },
        { at = "10s", link = "bottleneck", rate = "1Mbit", up = false },
    ]"""
    first, second = plan(network=changes).changes
    assert (first.at_s, first.link, first.rate_bps, first.delay_s, first.up) == (10.0, 0, 1e6, None, False)
    assert (second.at_s, second.up, second.rate_bps) == (20.0, True, None)
    found = rejection(network='changes = [{ at = "1s", link = "reverse", up = false }]')
    assert found == 'by-hand.toml:9: network.changes[0].link: found "reverse"; expected "bottleneck"'


GRID = 'access_rate = "1Gbit"\nreverse = { rate = "5Gbit", queue = { discipline = "pfifo", limit = "1bdp" } }'


@pytest.mark.parametrize("access", ['access_rate = "1Gbit"', "aggregation = 10"])
def test_a_congestion_factor_is_a_number_of_sources(access):
    """K = C/C_a = 10, so a factor of 1.5 is 15 sources; 80 % of 5 Gb/s on the way back are 4."""
    network = GRID.replace('access_rate = "1Gbit"', access)
    flows = '[[flows]]\ncongestion_factor = 1.5\nstreams = 2\n[[flows]]\ncongestion_factor = 0.8\ndirection = "up"'
    made = plan(network=network, rate="10Gbit", flows=flows)
    assert [flow.group for flow in made.flows] == 30 * [0] + 4 * [1]
    assert {link.rate_bps for link in made.links[2:]} == {1e9}
    assert len(made.links) == 2 + 15 + 4
    load = made.load
    assert (load.aggregation, load.multiplexing) == (10, 15)
    assert (load.congestion_factor, load.reverse_factor) == pytest.approx((1.5, 0.8))
    assert "load" in made.to_dict() and "load" not in made.engine_input()


def test_a_congestion_factor_of_0_leaves_a_group_without_a_source():
    flows = '[[flows]]\ncongestion_factor = 1.5\n[[flows]]\ncongestion_factor = 0\ndirection = "up"'
    made = plan(network=GRID, rate="10Gbit", flows=flows)
    assert [flow.group for flow in made.flows] == 15 * [0]
    assert made.load.reverse_factor == 0
    assert len(made.groups) == 2


def test_without_any_source_nothing_is_sent():
    found = rejection(network=GRID, rate="10Gbit", flows="[[flows]]\ncongestion_factor = 0")
    assert ".congestion_factor: found 0.0; expected a factor above 0 in some group" in found


def test_generated_transfers_have_a_source():
    traffic = '[[traffic]]\nkind = "poisson"\nrate = "1/s"\nsize = "10KB"\ncongestion_factor = 0'
    found = rejection(network=GRID, rate="10Gbit", flows=f"[[flows]]\n{traffic}")
    assert ".congestion_factor: found 0.0; expected a factor above 0: transfers" in found


@pytest.mark.parametrize(
    ("keys", "network", "expected"),
    [
        (
            "congestion_factor = 1.55",
            GRID,
            "found 1.55, which makes 15.5 sources; expected a factor that makes a whole",
        ),
        ("congestion_factor = 0.05", GRID, "found 0.05, which makes 0.5 sources; expected a factor that makes a whole"),
        ("congestion_factor = 1", "", "found 1.0; expected network.access_rate or network.aggregation beside it"),
        ("congestion_factor = 1\ncount = 2", GRID, "found both count and congestion_factor; expected one of count and"),
    ],
)
def test_a_congestion_factor_that_cannot_be(keys, network, expected):
    found = rejection(network=network, rate="10Gbit", flows=f"[[flows]]\n{keys}")
    assert f".congestion_factor: {expected}" in found


def test_the_access_rate_is_given_a_single_time():
    found = rejection(network='access_rate = "1Gbit"\naggregation = 10')
    assert found.endswith(
        "network.aggregation: found both access_rate and aggregation; expected one of access_rate and aggregation"
    )


def test_a_request_is_one_segment():
    found = rejection(flows='[[flows]]\nrequest = "2KB"')
    assert found.endswith("flows[0].request: found 2000 B; expected at most 1448 B: a request is one segment")


@pytest.mark.parametrize(
    ("given", "place", "reason"),
    [
        (
            {"queue": '{ discipline = "sfq", divisor = 3 }'},
            'by-hand.toml:8: network.queue: found parameters that "sfq"',
            "divisor must be a power of two up to 65536",
        ),
        (
            {"flows": '[[flows]]\ncongestion = { kind = "vegas", alpha = 5, beta = 2 }'},
            'by-hand.toml:11: flows[0].congestion: found parameters that "vegas"',
            "alpha, the least number of packets in the queue, must not be above beta, the largest",
        ),
    ],
)
def test_inconsistent_parameters_are_a_mistake_at_their_key(given, place, reason):
    line = rejection(**given)
    assert line.startswith(place)
    assert line.endswith(f"expected others ({reason})")
