"""Plans of generated traffic: arrivals, sizes, loads, UDP."""

from __future__ import annotations

import json
import math

import pytest

from ackclock.errors import ScenarioError
from ackclock.plan import Plan
from ackclock.scenario import planning
from ackclock.scenario.traffic import moments

HEAD = """
duration = "60s"
[network]
topology = "asymmetric"
down = { rate = "10Mbit", delay = "21ms", queue = { discipline = "pfifo", limit = "250p" } }
up = { rate = "2Mbit", delay = "21ms", queue = { discipline = "bfifo", limit = "36KB" } }
"""


def plan(traffic: str, head: str = HEAD) -> Plan:
    return planning.loads(head + traffic, "x.toml").plan()


def rejection(traffic: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        plan(traffic)
    return str(caught.value)


def test_the_example_of_poisson_downloads_and_timed_bursts():
    made = plan("""
[[traffic]]
kind = "poisson"
rate = "1/s"
size = { distribution = "zipf", exponent = 1.7, max = "10000p" }
congestion = "cubic"
direction = "down"

[[traffic]]
kind = "udp"
direction = "up"
packet = "1B"
rate = "250/s"
burst = { packets = 100, every = "1s" }
""")
    made = json.loads(json.dumps(made.engine_input()))
    (transfers,) = made["traffic"]
    assert transfers["workload"] == {
        "start_s": 0.0,
        "stop_s": None,
        "arrivals": {"kind": "poisson", "per_s": 1.0},
        "size": {"kind": "zipf", "exponent": 1.7, "most": 10_000, "unit_bytes": 1448},
    }
    down = {"hops": [{"delay_s": 0.0, "link": 0}], "delay_s": 0.021}
    up = {"hops": [{"delay_s": 0.0, "link": 1}], "delay_s": 0.021}
    assert transfers["population"] == {"kind": "paths", "paths": [{"forward": down, "reverse": up}]}
    (datagrams,) = made["datagrams"]
    assert datagrams == {
        "group": 1,
        "start_s": 0.0,
        "stop_s": None,
        "priority": 0,
        "ends": None,
        "forward": up,
        "reverse": down,
        "payload_bytes": 1,
        "header_bytes": 28,
        "source": {"kind": "bursts", "per_s": 250.0, "packets": 100, "every_s": 1.0},
    }
    nothing = {**dict.fromkeys(("congestion", "tcp", "slow_reader", "writes", "misbehaviour")), "dscp": 0}
    assert made["groups"][1] == {"name": "udp", **nothing}


def test_a_load_counts_the_headers_of_every_segment():
    made = plan('[[traffic]]\nkind = "poisson"\nload = 0.5\nsize = "10p"\n')
    # Ten full segments are 10 × 1514 B on the wire; half of 10 Mb/s is 625,000 B/s.
    assert made.traffic[0].workload["arrivals"]["per_s"] == pytest.approx(625_000 / 15_140)


def test_the_load_is_that_of_the_link_that_the_data_goes_over():
    made = plan('[[traffic]]\nkind = "poisson"\nload = 0.5\nsize = "100B"\ndirection = "up"\n')
    # One segment of 100 B + 52 B of headers and timestamps + 14 B: 166 B.
    assert made.traffic[0].workload["arrivals"]["per_s"] == pytest.approx(125_000 / 166)


def test_a_load_of_sizes_without_a_mean_is_rejected():
    found = rejection(
        '[[traffic]]\nkind = "poisson"\nload = 0.5\nsize = { distribution = "pareto", shape = 1, min = "1KB" }'
    )
    assert (
        found
        == 'x.toml:9: traffic[0].load: found sizes with an infinite mean; expected a rate = "…", or a max of the sizes'
    )


def test_a_truncation_that_discards_the_majority_is_rejected():
    size = '{ distribution = "exponential", mean = "100KB", max = "10KB", truncation = "redraw" }'
    found = rejection(f'[[traffic]]\nkind = "poisson"\nrate = "1/s"\nsize = {size}')
    assert found.startswith("x.toml:10: traffic[0].size.max: found 10000B; expected at least the median (69315 B)")


@pytest.mark.parametrize(
    ("traffic", "arrivals"),
    [
        ('kind = "periodic"\nevery = "2s"', {"kind": "periodic", "every_s": 2.0}),
        ('kind = "once"\njitter = "1s"', {"kind": "once", "jitter_s": 1.0}),
        (
            'kind = "sources"\ncount = 3\nthink = "5s"',
            {"kind": "sources", "jitter_s": 0.0, "think": {"kind": "fixed", "s": 5.0}, "transfers": None},
        ),
        (
            'kind = "sources"\ntransfers = 4\nthink = { distribution = "pareto", shape = 1.5, min = "1s" }',
            {
                "kind": "sources",
                "jitter_s": 0.0,
                "think": {"kind": "pareto", "shape": 1.5, "least_s": 1.0},
                "transfers": 4,
            },
        ),
        (
            'kind = "web"\nusers = 2\nthink = { distribution = "exponential", mean = "5s" }\nobjects = 4\nmain = "2p"',
            {
                "kind": "web",
                "jitter_s": 0.0,
                "think": {"kind": "exponential", "mean_s": 5.0},
                "pages": None,
                "size_main": {"kind": "fixed", "bytes": 2896},
                "objects": {"kind": "fixed", "n": 4},
                "parallel": 6,
            },
        ),
        (
            'kind = "incast"\nsenders = 5\nrounds = 3',
            {"kind": "incast", "senders": 5, "every_s": None, "rounds": 3},
        ),
    ],
)
def test_arrivals(traffic, arrivals):
    (made,) = plan(f'[[traffic]]\nsize = "64KB"\n{traffic}\n').traffic
    assert made.workload["arrivals"] == arrivals
    assert made.workload["size"] == {"kind": "fixed", "bytes": 64_000}


def test_each_source_user_and_sender_has_a_way():
    for keys, ways in (
        ('kind = "sources"\ncount = 3\nthink = "1s"', 3),
        ('kind = "web"\nusers = 4\nthink = "1s"\nobjects = 1', 4),
        ('kind = "incast"\nsenders = 5\nevery = "1s"', 5),
    ):
        (made,) = plan(f'[[traffic]]\nsize = "1KB"\nrtt = {{ from = "50ms", to = "90ms" }}\n{keys}').traffic
        assert len(made.population.paths) == ways
        assert made.population.paths[-1].base_rtt_s == pytest.approx(0.09)


@pytest.mark.parametrize(
    ("size", "planned"),
    [
        ('"10p"', {"kind": "fixed", "bytes": 14_480}),
        (
            '{ distribution = "exponential", mean = "10p", max = "1MB", truncation = "clip" }',
            {"kind": "exponential", "mean_bytes": 14_480, "truncation": {"kind": "clip", "most_bytes": 1_000_000}},
        ),
        (
            '{ distribution = "lognormal", mean = "10KB", sigma = 1 }',
            {
                "kind": "lognormal",
                "median_bytes": pytest.approx(10_000 * math.exp(-0.5)),
                "sigma": 1.0,
                "truncation": None,
            },
        ),
        (
            '{ distribution = "pareto", shape = 1.25, mean = "10KB" }',
            {"kind": "pareto", "shape": 1.25, "least_bytes": pytest.approx(2000), "truncation": None},
        ),
        (
            '{ distribution = "zipf", exponent = 1.2, max = "1MB" }',
            {"kind": "zipf", "exponent": 1.2, "most": 1_000_000, "unit_bytes": 1},
        ),
        (
            '{ distribution = "empirical", points = [["1KB", 0.5], ["1MB", 1]] }',
            {"kind": "empirical", "points": [[1000, 0.5], [1_000_000, 1.0]]},
        ),
    ],
)
def test_sizes(size, planned):
    (made,) = plan(f'[[traffic]]\nkind = "poisson"\nrate = "1/s"\nsize = {size}').traffic
    assert made.workload["size"] == planned


def test_udp_sources():
    made = plan("""
[[traffic]]
kind = "udp"
packet = "100B"
rate = "50/s"
count = 2
start = { at = "1s", every = "2s" }
stop = "9s"
priority = 3
[[traffic]]
kind = "udp"
packet = "1B"
rate_adaptation = { target = "20ms", min = "10/s", max = "500/s" }
[[traffic]]
kind = "on-off"
packet = "1B"
rate = "50/s"
on = "1s"
off = { distribution = "uniform", from = "1s", to = "3s" }
""")
    first, second, adaptive, on_off = made.datagrams
    assert (first.start_s, second.start_s) == (1.0, 3.0)
    assert (first.stop_s, first.priority, first.group, adaptive.group) == (9.0, 3, 0, 1)
    assert first.source == {"kind": "constant", "per_s": 50.0}
    assert adaptive.source == {"kind": "adaptive", "target_s": 0.02, "min_per_s": 10.0, "max_per_s": 500.0}
    assert on_off.source == {
        "kind": "on_off",
        "per_s": 50.0,
        "on": {"kind": "fixed", "s": 1.0},
        "off": {"kind": "uniform", "from_s": 1.0, "to_s": 3.0},
    }
    # Without TCP a full packet is the largest datagram: 100 + 28 + 14 bytes.
    assert made.packet_bytes == 142


def test_the_bdp_is_that_of_the_flows_whatever_the_traffic():
    traffic = '[[traffic]]\nkind = "poisson"\nrate = "1/s"\nsize = "1KB"\nrtt = "80ms"\n'
    assert plan(f"[[flows]]\n{traffic}").mean_base_rtt_s == pytest.approx(0.042)
    assert plan(traffic).mean_base_rtt_s == pytest.approx(0.08)


def test_what_is_sampled():
    record = '[[flows]]\n[record]\ntraffic = true\nlinks = "bottlenecks"'
    assert (plan(record).record.traffic, plan(record).record.all_links) == (True, False)
    assert (plan("[[flows]]").record.traffic, plan("[[flows]]").record.all_links) == (False, True)


# --- the laws ----------------------------------------------------------------------------------------


def test_the_pareto_of_the_data_centre_has_its_mean_and_its_median():
    """Le 2011 section 5.2: shape 1.16, at least 1.37 KB, mean 10 KB, median 2.5 KB, all rounded there."""
    pareto = moments.Pareto(1.16, 1370)
    assert pareto.mean_bytes == pytest.approx(10_000, rel=0.01)
    assert pareto.quantile(0.5) == pytest.approx(2500, rel=0.01)


LAWS = [
    moments.Fixed(1000),
    moments.Truncated(moments.Exponential(1000), None, None),
    moments.Truncated(moments.Exponential(1000), 1500, "redraw"),
    moments.Truncated(moments.Exponential(1000), 1500, "clip"),
    moments.Truncated(moments.Lognormal(1000, 1.0), None, None),
    moments.Truncated(moments.Lognormal(1000, 1.0), 3000, "redraw"),
    moments.Truncated(moments.Lognormal(1000, 1.0), 3000, "clip"),
    moments.Truncated(moments.Pareto(3.0, 1000), None, None),
    moments.Truncated(moments.Pareto(1.0, 1000), 5000, "redraw"),
    moments.Truncated(moments.Pareto(1.16, 1000), 5000, "clip"),
    moments.Zipf(1.7, 50, 100),
    moments.Empirical(((100, 0.25), (500, 0.5), (1000, 1.0))),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_mean_is_that_of_the_quantiles(law):
    """The mean is the integral of the quantile function; 100,000 midpoints, the tail being the error."""
    steps = 100_000
    mean = math.fsum(law.quantile((number + 0.5) / steps) for number in range(steps)) / steps
    assert law.mean_bytes == pytest.approx(mean, rel=2e-3)


@pytest.mark.parametrize("exponent", [0.0, 0.7, 1.0, 1.7, 3.0])
def test_harmonic_numbers_above_the_summed_terms(exponent):
    most = 20_000
    added = math.fsum(number**-exponent for number in range(1, most + 1))
    assert moments.harmonic(most, exponent) == pytest.approx(added, rel=1e-12)


def test_the_segments_of_a_transfer():
    assert moments.mean_segments(moments.Fixed(1), 1448) == pytest.approx(1)
    assert moments.mean_segments(moments.Fixed(1449), 1448) == pytest.approx(2)
    # k segments with probability proportional to 1/k, k = 1 … 3: 3 ÷ (1 + 1/2 + 1/3)
    assert moments.mean_segments(moments.Zipf(1.0, 3, 1448), 1448) == pytest.approx(3 / (11 / 6))
    # Geometric: the sum over k of P(S > k m) is 1 ÷ (1 − exp(−m/mean)).
    exponential = moments.Truncated(moments.Exponential(2000), None, None)
    assert moments.mean_segments(exponential, 1448) == pytest.approx(1 / (1 - math.exp(-1448 / 2000)), rel=1e-3)


@pytest.mark.parametrize(
    "keys",
    [
        'kind = "poisson"\nrate = "1000000/s"',
        'kind = "periodic"\nevery = "1us"',
        'kind = "sources"\nthink = "1us"',
        'kind = "web"\nthink = "1us"\nobjects = 1',
        'kind = "incast"\nsenders = 1000\nevery = "1ms"',
    ],
)
def test_more_transfers_than_can_be_drawn_are_rejected(keys):
    assert "transfers; expected at most 1e+07 in a run" in rejection(f'[[traffic]]\nsize = "1KB"\n{keys}')
    assert plan(f'[[traffic]]\nsize = "1KB"\nstop = "1ms"\n{keys}').traffic
