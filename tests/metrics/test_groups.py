"""Groups, like flows and max-min fair shares: against textbook examples, and on runs of the packet engine."""

import math
from collections.abc import Mapping

import numpy as np
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from small_networks import dumbbell

import ackclock as ac
from ackclock import metrics
from ackclock.errors import InputError
from ackclock.figures import summary_text
from ackclock.metrics import METRICS, full_name, groups
from ackclock.metrics.groups import Demand, max_min_shares

MIX = """
name = "bulk flows beside web pages"
duration = "12s"
warmup = "4s"
repeats = 2
[network]
topology = "dumbbell"
rate = "40Mbit"
rtt = "60ms"
queue = { discipline = "DISCIPLINE" LIMIT }
[[flows]]
count = 4
congestion = "cubic"
start = { jitter = "1s" }
[[flows]]
name = "video"
congestion = "bbr"
start = { jitter = "1s" }
[[traffic]]
kind = "poisson"
load = 0.1
size = { distribution = "exponential", mean = "30KB", max = "1MB", truncation = "redraw" }
[[traffic]]
kind = "udp"
packet = "200B"
rate = "50/s"
"""

LINE = """
duration = "8s"
warmup = "2s"
[network]
topology = "asymmetric"
down = { rate = "20Mbit", delay = "10ms", queue = { discipline = "pfifo", limit = "60p" } }
up = { rate = "5Mbit", delay = "10ms", queue = { discipline = "pfifo", limit = "60p" } }
[[flows]]
[[flows]]
name = "upload"
direction = "up"
"""


def mix(discipline: str, limit: str = "") -> ac.Dataset:
    text = MIX.replace("DISCIPLINE", discipline).replace("LIMIT", limit)
    return ac.run(ac.loads(text).plan())


@pytest.fixture(scope="module")
def starving() -> ac.Dataset:
    """BBR of 2016 takes nearly all of a buffer that is shallow for it (Hock et al. 2017)."""
    return mix("pfifo", ', limit = "0.2bdp"')


@pytest.fixture(scope="module")
def fair() -> ac.Dataset:
    return mix("fq_codel")


# ---- shares ----


def test_progressive_filling_gives_the_textbook_shares():
    """Two links of 1 and 2: one flow over both, one over each (Bertsekas and Gallager 1992, section 6.5.2)."""
    both, first, second = (Demand(links, math.inf, 1.0) for links in ((0, 1), (0,), (1,)))
    shares = max_min_shares({both: 1, first: 1, second: 1}, {0: 1.0, 1: 2.0})
    assert shares == pytest.approx({both: 0.5, first: 0.5, second: 1.5})


def test_a_small_demand_leaves_the_rest_to_the_others():
    """10 is shared by 2, 2.6, 4 and 5: they get 2, 2.6, 2.7 and 2.7 (the textbook example of max-min fairness)."""
    demands = [Demand((0,), demand, 1.0) for demand in (2.0, 2.6, 4.0, 5.0)]
    assert list(max_min_shares(dict.fromkeys(demands, 1), {0: 10.0}).values()) == pytest.approx([2, 2.6, 2.7, 2.7])


links = st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True).map(tuple)
kinds = st.builds(Demand, links, st.one_of(st.just(math.inf), st.floats(0.1, 50)), st.sampled_from([1.0, 1.1]))


@given(
    st.dictionaries(kinds, st.integers(1, 5), min_size=1, max_size=6),
    st.lists(st.floats(1, 100), min_size=4, max_size=4),
)
def test_shares_are_max_min_fair(demands: Mapping[Demand, int], rates: list[float]) -> None:
    """No link carries more than its rate, and each flow has its demand or a full link on which nobody has more."""
    shares = max_min_shares(demands, dict(enumerate(rates)))
    loads = [sum(n * d.cost * shares[d] for d, n in demands.items() if link in d.links) for link in range(4)]
    assert all(load <= rate * (1 + 1e-9) for load, rate in zip(loads, rates, strict=True))
    for demand in demands:
        full = [link for link in demand.links if loads[link] >= rates[link] * (1 - 1e-9)]
        most = [max(shares[other] for other in demands if link in other.links) for link in full]
        is_bounded = any(shares[demand] >= others * (1 - 1e-9) for others in most)
        assert is_bounded or shares[demand] == pytest.approx(demand.demand_bps)


# ---- like flows ----


def plan(*flows: dict, count: int = 1) -> dict:
    return {
        **synthetic.plan(rate_bps=1e7, duration_s=8),
        "flows": list(flows),
        "groups": [{"name": "a"}, {"name": "b"}][:count],
    }


def jain_of(plan: dict, rates: list[float], **columns: object) -> float | None:
    counted = [round(rate * 1e6) for rate in rates]
    (view,) = metrics.runs(
        synthetic.dataset(plan, {"flows": synthetic.flows(len(rates), measured_bytes=counted, **columns)})
    )
    return metrics.value(view, "jain")


def test_fairness_is_between_flows_of_one_group():
    """Two groups share equally within themselves, and 1 : 3 with each other."""
    flows = [{"group": group, "base_rtt_s": 0.1} for group in (0, 0, 1, 1)]
    assert jain_of(plan(*flows, count=2), [1, 1, 3, 3], group=np.array([0, 0, 1, 1], np.uint32)) == pytest.approx(1)
    assert jain_of(plan(*flows, count=2), [1, 3, 3, 3], group=np.array([0, 0, 1, 1], np.uint32)) == pytest.approx(0.8)


@pytest.mark.parametrize(("rtts", "expected"), [((0.1, 0.105), 0.8), ((0.1, 0.12), None)])
def test_fairness_is_between_flows_of_one_rtt(rtts: tuple[float, float], expected: float | None) -> None:
    flows = [{"group": 0, "base_rtt_s": rtt} for rtt in rtts]
    assert jain_of(plan(*flows), [1, 3]) == (None if expected is None else pytest.approx(expected))


def test_transfers_of_different_sizes_are_not_alike():
    generated = {**plan(), "traffic": [{"group": 0}]}
    assert jain_of(generated, [1, 3], size_bytes=[1000, 2000]) is None
    assert jain_of(generated, [1, 3], size_bytes=[1000, 1000]) == pytest.approx(0.8)


# ---- one group ----


def test_the_groups_of_a_run_add_up(starving: ac.Dataset) -> None:
    for view in metrics.runs(starving):
        parts = [
            metrics.value(view, f"goodput[{name}]".replace("goodput", "goodput_bps"))
            for name in ("cubic", "video", "poisson")
        ]
        assert sum(parts) == pytest.approx(metrics.value(view, "goodput_bps"))
        assert metrics.value(view, "goodput_bps[*]") == metrics.value(view, "goodput_bps")
        assert metrics.value(view, "flows_active[cubic]") == 4
        assert metrics.value(view, "fct_mean_s[video]") is None
        assert metrics.value(view, "fct_mean_s[cubic poisson]") == metrics.value(view, "fct_mean_s")
        assert metrics.value(view, "udp_goodput_bps[udp]") == metrics.value(view, "udp_goodput_bps")
        assert metrics.value(view, "goodput_bps[nobody]") is None
        assert metrics.value(view, "rtt_mean_s[video]") != metrics.value(view, "rtt_mean_s[cubic]")


def test_names_of_metrics_of_groups():
    assert full_name("goodput[web]") == "goodput_bps[web]"
    assert full_name("fct_p95[a b]", ["fct_p95_s"]) == "fct_p95_s[a b]"
    assert full_name("queue_delay_p95[up]") == "queue_delay_p95_s[up]", "a link's"
    assert full_name("nothing[web]") is None
    assert "jain[web]" in METRICS
    assert "jain[web]" not in list(METRICS)
    assert METRICS["goodput_bps[web]"].unit == "bit/s"
    with pytest.raises(InputError, match='found no group "up"; expected "web"'):
        metrics.check_names(["goodput_bps[up]"], ["web"], ["up"])
    with pytest.raises(InputError, match='found no bottleneck "web"; expected one of "up", "down"'):
        metrics.check_names(["utilisation[web]"], ["web"], ["up", "down"])
    metrics.check_names(["utilisation[up]", "goodput_bps[web]", "jain[*]", "jain"], ["web"], ["up"])


def test_metrics_of_one_of_two_bottlenecks() -> None:
    """Against the counters of the links, and the mean over all packets."""
    data = ac.run(ac.loads(LINE).plan())
    (view,) = metrics.runs(data)
    links = {row["name"]: row for row in data.links.iter_rows(named=True)}
    for name, rate_bps in (("down", 20e6), ("up", 5e6)):
        counts = links[name]
        assert metrics.value(view, f"utilisation[{name}]") == pytest.approx(
            8 * counts["departed_bytes"] / rate_bps / 6.0
        )
        lost = counts["dropped_p"] / counts["arrived_p"]
        assert metrics.value(view, f"loss_rate[{name}]") == pytest.approx(lost)
    delays_s = [metrics.value(view, f"queue_delay_mean_s[{name}]") for name in links]
    assert min(delays_s) < metrics.value(view, "queue_delay_mean_s") < max(delays_s)
    assert metrics.value(view, "utilisation[sideways]") is None
    table = metrics.table(data)["links"]
    assert table["up"]["utilisation"]["mean"] == metrics.value(view, "utilisation[up]")
    assert metrics.table(mix("fq_codel"))["links"] == {}, "one bottleneck is what the table is of"


def test_the_table_has_who_got_what(starving: ac.Dataset) -> None:
    table = metrics.table(starving)["groups"]
    assert list(table) == ["cubic", "video", "cubic poisson", "udp"]
    heads, rows = summary_text.group_table(table)
    assert heads[:3] == ["group", "flows", "goodput"]
    assert [row[0] for row in rows] == list(table)
    assert rows[3][2].endswith("kb/s"), "datagrams have a goodput, too"


def test_the_summary_is_a_long_frame(starving: ac.Dataset) -> None:
    frame = starving.summary()
    assert frame.columns == ["metric", "group", "mean", "ci95_low", "ci95_high", "n"]
    of = {(row["metric"], row["group"]): row["mean"] for row in frame.iter_rows(named=True)}
    parts = [of["goodput_bps", group] for group in ("cubic", "video", "cubic poisson")]
    assert sum(parts) == pytest.approx(of["goodput_bps", None])
    assert ("fct_mean_s", "video") not in of


# ---- starvation ----


def test_a_starving_group_is_reported(starving: ac.Dataset) -> None:
    sentences = summary_text.starvation(metrics.runs(starving))
    assert list(sentences) == ["cubic"]
    assert sentences["cubic"].startswith("Starved: 4 of 4 flows of cubic got ")
    assert all(metrics.value(view, "min_group_share") < groups.STARVED for view in metrics.runs(starving))


def test_fair_shares_make_no_warning(fair: ac.Dataset) -> None:
    assert summary_text.starvation(metrics.runs(fair)) == {}
    assert all(metrics.value(view, "min_share") > 0.8 for view in metrics.runs(fair))


def test_one_flow_does_not_starve_however_much_it_loses() -> None:
    lossy = f"""
duration = "10s"
{dumbbell("100Mbit", "50ms")}
loss = {{ probability = 0.01 }}
[[flows]]
congestion = "reno"
"""
    data = ac.run(ac.loads(lossy).plan())
    assert all(metrics.value(view, "utilisation") < groups.STARVED for view in metrics.runs(data))
    assert [metrics.value(view, "min_share") for view in metrics.runs(data)] == [None]
    assert summary_text.starvation(metrics.runs(data)) == {}


def test_quic_flows_have_shares_as_those_of_tcp_do() -> None:
    """Fair queueing gives all four flows the same packets on the wire; their headers differ by a few percent."""
    text = MIX.partition("[[flows]]")[0].replace("DISCIPLINE", "fq_codel").replace(" LIMIT", "")
    two = '[[flows]]\ncount = 2\ncongestion = "cubic"\n'
    data = ac.run(ac.loads(f'{text}{two}{two}transport = "quic"\n').plan())
    for view in metrics.runs(data):
        shares = groups.fair_shares(view)
        assert [share.flow for share in shares] == [0, 1, 2, 3]
        assert all(0.9 < share.part < 1.05 for share in shares)
        of_tcp, of_quic = shares[0].fair_bps, shares[2].fair_bps
        assert of_quic == pytest.approx(of_tcp)  # max-min fairness is of goodput
        total_bps = sum(share.goodput_bps for share in shares)
        assert sum(share.fair_bps for share in shares) == pytest.approx(total_bps, rel=0.05)


def test_a_quic_window_bounds_its_share() -> None:
    """A stream's receive window of 20 kB per RTT of at least 20 ms is 8 Mbit/s at most; the rest is TCP's."""
    text = f"""
duration = "8s"
warmup = "2s"
{dumbbell("20Mbit", "20ms")}
[[flows]]
[[flows]]
transport = "quic"
receive_window = "20KB"
"""
    (view,) = metrics.runs(ac.run(ac.loads(text).plan()))
    tcp, quic = groups.fair_shares(view)
    assert quic.fair_bps == pytest.approx(8e6)
    assert tcp.fair_bps > quic.fair_bps


def test_a_share_is_of_what_a_token_bucket_lets_through() -> None:
    text = (
        MIX.partition("[[flows]]")[0].replace("DISCIPLINE", "tbf").replace(" LIMIT", ', rate = "3Mbit", limit = "60KB"')
    )
    data = ac.run(ac.loads(text + '[[flows]]\ncount = 2\ncongestion = "reno"\n').plan())
    assert all(metrics.value(view, "min_share") > 0.8 for view in metrics.runs(data))


def test_slow_applications_and_small_windows_are_no_starvation() -> None:
    text = MIX.partition("[[traffic]]")[0].replace("DISCIPLINE", "fq_codel").replace(" LIMIT", "")
    slow = text.replace('congestion = "bbr"', 'congestion = "bbr"\napplication_rate = "100kbit"')
    data = ac.run(ac.loads(slow).plan())
    (first, _) = metrics.runs(data)
    assert metrics.value(first, "goodput_bps[video]") < 0.1 * 4e6
    assert metrics.value(first, "min_share") > 0.8
    small = text.replace('name = "video"', 'name = "video"\ntcp = { receive_window = "3000B" }')
    (first, _) = metrics.runs(ac.run(ac.loads(small).plan()))
    assert metrics.value(first, "min_share") > 0.5
