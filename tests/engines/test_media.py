"""Real-time media in the packet engine: the test cases of RFC 8867 that one bottleneck can express, and their metrics.

What the cases expect is qualitative (section 5): the rate converges to the capacity before that changes again, flows of
one algorithm share, and neither side starves next to TCP. Bounds are stated with their reasons.
"""

from __future__ import annotations

import numpy as np
import pytest

import ackclock as ac
from ackclock import _core, algorithms, metrics
from ackclock.engines import engine
from ackclock.errors import ScenarioError, UnsupportedError
from ackclock.figures import summary_text
from ackclock.metrics.groups import STARVED, fair_shares
from ackclock.metrics.media import frozen_s
from ackclock.scenario import planning

CONTROLS = algorithms.names("realtime")

#: Bytes of a full RTP packet over its payload.
WIRE = 1240 / 1200

#: The default of `min_rate`, as in RFC 8867 section 4.3.
MIN_BPS = 150e3

NETWORK = """
duration = "{duration}"
warmup = "{warmup}"
[network]
topology = "dumbbell"
rate = "{rate}"
rtt = "100ms"
queue = {{ discipline = "{queue}", limit = "{limit}"{marks} }}
"""

MEDIA = """
[[traffic]]
name = "media"
kind = "media"
congestion = "{control}"
"""


def scenario(control: str, more: str = "", **network: str) -> str:
    """A video over a bottleneck; `more` are further keys and tables."""
    usual = {"duration": "60s", "warmup": "20s", "rate": "1Mbit", "queue": "pfifo", "limit": "3bdp", "marks": ""}
    return NETWORK.format(**(usual | network)) + MEDIA.format(control=control) + more


def run(text: str) -> ac.Dataset:
    return ac.run(planning.loads(text).plan(), seeds=[1])


def value(data: ac.Dataset, name: str) -> float | None:
    (view,) = metrics.runs(data)
    found = metrics.value(view, name)
    assert not isinstance(found, list)
    return found


def rates_bps(data: ac.Dataset, *times_s: float) -> np.ndarray:
    """Wire rates of each flow, a row each, between successive times."""
    samples = data.frame("flow_samples")
    rows = []
    for flow in sorted(samples["flow"].unique()):
        own = samples.filter(samples["flow"] == flow)
        delivered = np.interp(times_s, own["time_s"].to_numpy(), own["delivered_bytes"].to_numpy().astype(float))
        rows.append(8 * WIRE * np.diff(delivered) / np.diff(times_s))
    return np.array(rows)


CHANGES = """max_rate = "2.5Mbit"
[[network.changes]]
at = "40s"
link = "bottleneck"
rate = "2.5Mbit"
[[network.changes]]
at = "60s"
link = "bottleneck"
rate = "600kbit"
[[network.changes]]
at = "80s"
link = "bottleneck"
rate = "1Mbit"
"""


@pytest.mark.parametrize("control", CONTROLS)
def test_the_rate_follows_a_variable_capacity(control):
    """RFC 8867 section 5.1: 1, 2.5, 0.6 and 1 Mbit/s; judged in the last 5 s before each change.

    At most the capacity, and at least 80 %: GCC's decrease is to 85 % of what arrives, NADA's fixed point is the
    capacity.
    """
    data = run(scenario(control, CHANGES, duration="100s", warmup="10s"))
    (rates,) = rates_bps(data, 35, 40, 55, 60, 75, 80, 95, 100)[:, ::2]
    shares = rates / np.array([1e6, 2.5e6, 0.6e6, 1e6])
    assert (shares > 0.8).all() and (shares <= 1.001).all(), shares


VARIATION = "".join(
    f'[[network.changes]]\nat = "{at}s"\nlink = "bottleneck"\nrate = "{rate}kbit"\n'
    for at, rate in ((25, 2000), (50, 3500), (75, 1000), (100, 2000))
)


@pytest.mark.parametrize("control", CONTROLS)
def test_two_flows_follow_a_variable_capacity(control):
    """RFC 8867 section 5.2: two flows, and 4, 2, 3.5, 1 and 2 Mbit/s; judged in the last 5 s before each change.

    The bounds are those of a single flow; where the capacity is above both maximum rates, 1.5 Mbit/s each, these count,
    with three standard errors of 300 frame sizes: 0.15 √2 / √300 = 1.2 %.
    """
    more = f"count = 2\n{VARIATION}"
    data = run(scenario(control, more, rate="4Mbit", limit="100p", duration="125s", warmup="10s"))
    rates = rates_bps(data, 20, 25, 45, 50, 70, 75, 95, 100, 120, 125)[:, ::2].sum(axis=0)
    capacities = np.array([4e6, 2e6, 3.5e6, 1e6, 2e6])
    shares = rates / np.minimum(capacities, 2 * 1.5e6)
    assert (shares > 0.8).all() and (shares <= np.where(capacities > 2 * 1.5e6, 1.037, 1.001)).all(), shares


def test_flows_of_nada_with_different_round_trip_times_share():
    """RFC 8867 section 5.5: one-way delays of 10 to 150 ms. The fixed point knows no RTT.

    The ratio between flows of one algorithm is at most 3 (RFC 8868 section 3, for similar RTTs).
    """
    more = 'count = 5\nstart = { every = "10s" }\nrtt = ["20ms", "50ms", "100ms", "200ms", "300ms"]\n'
    data = run(scenario("nada", more, rate="4Mbit", limit="121p", duration="300s", warmup="100s"))
    rates = rates_bps(data, 200, 300)[:, 0]
    assert rates.sum() > 0.9 * 4e6
    assert rates.max() < 3 * rates.min(), rates


@pytest.mark.parametrize(("control", "used"), [("nada", 0.9), ("scream", 0.8)])
def test_flows_of_one_control_converge_to_equal_shares(control, used):
    """RFC 8867 section 5.4. All flows see one queue.

    NADA's fixed point PRIO · XREF · RMAX / r is the same for each; SCReAM's windows grow by MSS in a round trip and
    shrink by the same share. Its target is at most 1/1.2 of window over RTT.
    """
    more = 'count = 3\nmax_rate = "2Mbit"\nstart = { every = "20s" }\n'
    data = run(scenario(control, more, rate="3.5Mbit", duration="180s", warmup="90s"))
    rates = rates_bps(data, 150, 180)[:, 0]
    assert rates.sum() > used * 3.5e6
    assert np.abs(rates / rates.mean() - 1).max() < 0.1, rates


def test_no_flow_of_scream_starves_for_its_round_trip_time():
    """RFC 8867 section 5.5. Windows favour short RTTs; below a tenth of the fair share a flow starves."""
    more = 'count = 5\nstart = { every = "10s" }\nrtt = ["20ms", "50ms", "100ms", "200ms", "300ms"]\n'
    data = run(scenario("scream", more, rate="4Mbit", limit="121p", duration="300s", warmup="100s"))
    rates = rates_bps(data, 200, 300)[:, 0]
    assert rates.sum() > 0.8 * 4e6
    assert rates.min() > 0.1 * 4e6 / 5 and (np.diff(rates) < 0).all(), rates


def test_weights_of_nada_set_its_shares():
    """RFC 8867 section 6.1: with PRIO 2 and 1 the fixed points are equal delays at rates of 2 to 1."""
    weighted = MEDIA.format(control="nada").replace('"nada"', '{ kind = "nada", priority = 2 }')
    text = scenario("nada", "", rate="1.5Mbit", duration="150s", warmup="50s") + weighted
    rates = rates_bps(run(text), 100, 150)[:, 0]
    assert rates[1] / rates[0] == pytest.approx(2, rel=0.15)


def test_no_flow_of_gcc_starves_next_to_others():
    """RFC 8867 section 5.4: the fair share is 1.17 Mbit/s; below a tenth of it a flow starves (`groups.STARVED`)."""
    more = 'count = 3\nmax_rate = "2Mbit"\nstart = { every = "20s" }\n'
    data = run(scenario("gcc", more, rate="3.5Mbit", duration="120s", warmup="60s"))
    rates = rates_bps(data, 90, 120)[:, 0]
    assert rates.sum() > 0.85 * 3.5e6
    assert rates.min() > 0.1 * 3.5e6 / 3, rates


@pytest.mark.parametrize("limit", ["3bdp", "10bdp"])
@pytest.mark.parametrize("control", CONTROLS)
def test_neither_media_nor_tcp_starves_next_to_the_other(control, limit):
    """RFC 8867 section 5.6: a long TCP flow, and queues of 300 and 1000 ms.

    At worst the media falls to its minimum rate, 150 kbit/s. GCC's threshold and NADA's warping exist for this case.
    """
    flow = '[[flows]]\nname = "tcp"\ncongestion = "reno"\n'
    data = run(scenario(control, f'start = "5s"\n{flow}', rate="2Mbit", limit=limit, duration="120s", warmup="30s"))
    media_bps, tcp_bps = value(data, "udp_goodput_bps[media]"), value(data, "goodput_bps[tcp]")
    assert media_bps is not None and WIRE * media_bps > MIN_BPS, media_bps
    assert tcp_bps is not None and tcp_bps > 0.1 * 2e6, tcp_bps


@pytest.mark.parametrize("control", CONTROLS)
def test_short_tcp_flows_do_not_starve_media(control):
    """RFC 8867 section 5.7: two videos and ten sources of short transfers, which RFC 8868 section 5.1 describes.

    In each 10 s both videos get at least their minimum rate.
    """
    short = '[[traffic]]\nkind = "sources"\ncount = 10\ncongestion = "reno"\njitter = "10s"\n'
    short += 'size = { distribution = "empirical", points = [["30KB", 0], ["50KB", 1]] }\n'
    short += 'think = { distribution = "exponential", mean = "10s" }\n'
    media = f'count = 2\nstart = "5s"\n{short}'
    data = run(scenario(control, media, rate="2Mbit", limit="3bdp", duration="300s", warmup="20s"))
    rates = rates_bps(data, *range(20, 301, 10))
    assert rates.min() > MIN_BPS, rates.min(axis=1)


def test_nada_reacts_to_marks_instead_of_losses():
    codel = {"queue": "codel", "limit": "200p", "marks": ", ecn = true"}
    with_marks, without = (run(scenario("nada", f"ecn = {word}\n", **codel)) for word in ("true", "false"))
    marked = with_marks.frame("links").filter("bottleneck")["marked_p"].sum()
    assert marked > 0 and value(with_marks, "udp_loss_rate") == 0
    assert without.frame("links").filter("bottleneck")["marked_p"].sum() == 0


@pytest.mark.parametrize(("ecn", "queue"), [("true", "dualpi2"), ('"classic"', "codel")])
def test_scream_reacts_to_both_kinds_of_marks(ecn, queue):
    marks = ", ecn = true" if queue == "codel" else ""
    data = run(scenario("scream", f"ecn = {ecn}\n", queue=queue, limit="200p", marks=marks))
    (rate_bps,) = rates_bps(data, 20, 60)[:, 0]
    links = data.frame("links").filter("bottleneck")
    assert links["marked_p"].sum() > 0 and value(data, "udp_loss_rate") == 0
    assert rate_bps > 0.6 * 1e6
    # The targets: 1 ms of the L queue (RFC 9332), 5 ms of CoDel, with an interval of 100 ms.
    assert links["sojourn_mean_s"][0] < {"dualpi2": 0.001, "codel": 0.015}[queue]


def test_scream_and_cubic_share_a_dual_queue():
    """RFC 9332 aims at rates of the same order for scalable and classic flows; at equal RTTs 20 ms and 50 Mbit/s.

    The bound is RFC 8868's for fairness to TCP, a factor of 3 in either direction.
    """
    flow = '[[flows]]\nname = "tcp"\ncongestion = "cubic"\n'
    network = {"queue": "dualpi2", "limit": "500p", "rate": "50Mbit"}
    text = scenario("scream", 'ecn = true\nmax_rate = "40Mbit"\n' + flow, **network).replace('"100ms"', '"20ms"')
    tcp_bps, media_bps = rates_bps(run(text), 20, 60)[:, 0]
    assert 1 / 3 < media_bps / tcp_bps < 3, (media_bps, tcp_bps)


def test_without_feedback_scream_sends_at_its_minimum_rate():
    """The window limits what is in flight. In an outage, packets leave at 150 kbit/s: 15.1 of 1240 bytes a second."""
    outage = '[[network.changes]]\nat = "40s"\nlink = "bottleneck"\nup = false\n'
    events = run(scenario("scream", outage, rate="10Mbit")).frame("events")
    lost_s = events.filter((events["kind"] == "loss") & (events["time_s"] > 45))["time_s"].to_numpy()
    # Packets of a frame are of equal size, so those of a smaller frame leave more often.
    assert 15 * MIN_BPS / 8 / 1240 <= lost_s.size <= 1.5 * 15 * MIN_BPS / 8 / 1240


def test_the_controls_show_their_variables():
    for control in CONTROLS:
        simulation = _core.Simulation(planning.loads(scenario(control)).plan().engine_json, 1)
        simulation.advance(30.0)
        shown = simulation.control_variables(0)
        assert shown is not None and all(np.isfinite(number) for number in shown[1].values())
        names = {"gcc": "A_hat", "nada": "r_ref", "scream": "target_bitrate"}
        assert 0.5e6 < shown[1][names[control]] < 1.2e6


def ceased(data: ac.Dataset) -> list[tuple[float, float]]:
    """Times and causes of the circuit breakers; the flow ends then."""
    events = data.frame("events")
    found = events.filter(events["kind"] == "circuit_breaker")
    rows = list(zip(found["time_s"].to_list(), found["value"].to_list(), strict=True))
    ends = data.frame("flows")["end_s"].drop_nulls().to_list()
    assert [time_s for time_s, _ in rows] == ends
    return rows


BREAKER = "circuit_breaker = true\n"
STUBBORN = 'min_rate = "5Mbit"\nstart_rate = "5Mbit"\nmax_rate = "6Mbit"\n'
REVERSE = 'reverse = { rate = "1Mbit", queue = { discipline = "pfifo", limit = "100p" } }\nqueue ='
DOWN = '[[network.changes]]\nat = "20s"\nlink = "{link}"\nup = false\n'


@pytest.mark.parametrize("control", CONTROLS)
def test_a_circuit_breaker_ends_a_flow_on_a_failed_path(control):
    """RFC 8083 section 4.2: five reports, one each 5 s, without progress. The first may lie in the interval of 20 s."""
    ((time_s, cause),) = ceased(run(scenario(control, BREAKER + DOWN.format(link="bottleneck"))))
    assert cause == 2 and 45 <= time_s <= 50
    assert ceased(run(scenario(control, DOWN.format(link="bottleneck")))) == []


def test_a_circuit_breaker_ends_a_flow_without_reports():
    """RFC 8083 section 4.1: three intervals of 5 s, after the one in which the last report came."""
    text = scenario("gcc", BREAKER + DOWN.format(link="reverse")).replace("queue =", REVERSE, 1)
    ((time_s, cause),) = ceased(run(text))
    assert cause == 1 and 35 <= time_s <= 40


@pytest.mark.parametrize("control", CONTROLS)
def test_a_circuit_breaker_ends_a_flow_that_cannot_go_below_ten_times_tcp(control):
    """RFC 8083 section 4.3 with p = 0.3 and 100 ms: X = 1240 · 8 / (0.1 √0.2) = 222 kbit/s.

    A flow of at least 5 Mbit/s is above 10 X and ceases after 15 s; one that may fall to 150 kbit/s is not.
    """
    lossy = scenario(control, BREAKER, rate="20Mbit").replace("rtt =", "loss = { probability = 0.3 }\nrtt =")
    assert ceased(run(lossy)) == []
    ((time_s, cause),) = ceased(run(lossy.replace(BREAKER, BREAKER + STUBBORN)))
    assert (time_s, cause) == (15, 3)


def test_goodput_leaves_duplicates_out():
    double = scenario("gcc", rate="10Mbit").replace("rtt =", "duplicate = { probability = 1 }\nrtt =")
    once, twice = (value(run(text), "udp_goodput_bps") for text in (scenario("gcc", rate="10Mbit"), double))
    assert once is not None and twice == pytest.approx(once, rel=0.02)


def test_an_outage_is_one_freeze_of_its_length():
    outage = '[[network.changes]]\nat = "40s"\nlink = "bottleneck"\nup = false\n'
    outage += '[[network.changes]]\nat = "43s"\nlink = "bottleneck"\nup = true\n'
    data = run(scenario("gcc", outage, rate="10Mbit"))
    assert value(data, "freezes") == 1
    # The first frame after the outage is complete within an interval of frames and its delay, and one that has lost a
    # packet is left out: three intervals at most.
    frozen = value(data, "freeze_share[media]")
    assert frozen is not None and 3 / 40 <= frozen <= 3.2 / 40
    assert value(data, "freezes[media]") == 1


def test_a_video_without_congestion_has_the_delay_of_its_path():
    data = run(scenario("gcc", 'max_rate = "400kbit"\n', rate="50Mbit"))
    mean_s, p95_s = value(data, "frame_delay_mean_s"), value(data, "frame_delay_p95_s")
    # 50 ms, and the pacer: 1667 bytes at 2.5 · 400 kbit/s take 13 ms, of which the last packet waits one transmission
    # less.
    assert mean_s is not None and p95_s is not None and 0.050 < mean_s < p95_s < 0.070
    assert value(data, "freezes") == value(data, "freeze_share") == 0
    frames = data.frame("frames")
    assert frames["frame"].to_list() == list(range(frames.height)) and abs(frames.height - 1798) <= 2


def test_results_without_media_have_no_metrics_of_it():
    text = NETWORK.format(duration="5s", warmup="1s", rate="5Mbit", queue="pfifo", limit="1bdp", marks="")
    data = run(text + '[[flows]]\ncongestion = "reno"\n')
    assert value(data, "frame_delay_p95_s") is None and value(data, "freezes") is None


def test_freezes_by_hand():
    """Intervals of 40 ms: δ + 150 ms = 190 ms is a freeze, 189 ms is none. Of 100 ms: 3 δ = 300 ms is one."""
    steady = np.arange(31) * 0.04
    assert frozen_s(np.append(steady, steady[-1] + 0.189)).size == 0
    assert frozen_s(np.append(steady, steady[-1] + 0.1901)) == pytest.approx([0.1901])
    slow = np.arange(31) * 0.1
    assert frozen_s(np.append(slow, slow[-1] + 0.299)).size == 0
    assert frozen_s(np.append(slow, slow[-1] + 0.301)) == pytest.approx([0.301])
    assert frozen_s(np.array([1.0, 9.0])).size == 0, "no average before the first interval"


def test_the_same_seed_gives_the_same_frames():
    first, again, other = (ac.run(planning.loads(scenario("nada")).plan(), seeds=[seed]) for seed in (1, 1, 2))
    assert first.frame("frames").equals(again.frame("frames"))
    assert not first.frame("frames").equals(other.frame("frames"))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('control = "gcc"', 'congestion = "…"'),
        ('rate = "1Mbit"', "min_rate, start_rate and max_rate"),
        (
            'max_rate = "200kbit"',
            "traffic[0].max_rate: found 200000 bit/s; expected at least start_rate (300000 bit/s)",
        ),
        ('start_rate = "100kbit"', "traffic[0].start_rate: found 100000 bit/s; expected at least min_rate"),
        (
            'max_rate = "10Gbit"\npacket = "100B"',
            "traffic[0].max_rate: found 1e+10 bit/s, 297619 packets in each frame; expected at most 32768",
        ),
        ("ecn = true", "traffic[0].ecn: found true; expected false: gcc does not react to marks"),
        ('frame_rate = "0.1/s"', "traffic[0].frame_rate: "),
        ("size_variation = 2", "traffic[0].size_variation: found 2; expected"),
    ],
)
def test_a_mistake_is_one_line_with_its_key(more, message):
    with pytest.raises(ScenarioError) as error:
        planning.loads(scenario("gcc", more)).plan()
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("congestion", "message"),
    [
        ('"cubic"', 'traffic[0].congestion: found "cubic"; expected'),
        ('{ kind = "gcc", priority = 2 }', "traffic[0].congestion.priority"),
        ('{ kind = "gcc", min_threshold = "2s" }', "min_threshold must be above 0 and at most max_threshold"),
    ],
)
def test_a_mistake_in_the_congestion_control_is_one_line(congestion, message):
    text = scenario("gcc").replace('congestion = "gcc"', f"congestion = {congestion}")
    with pytest.raises(ScenarioError) as error:
        planning.loads(text).plan()
    assert message in str(error.value)


@pytest.mark.parametrize("name", ["linux", "ns2", "ns3", "fluid", "meanfield"])
def test_other_engines_reject_media(name):
    plan = planning.loads(scenario("gcc")).plan()
    reasons = [each.what for each in engine(name).unsupported(plan)]
    assert 'real-time media (kind = "media")' in reasons
    with pytest.raises(UnsupportedError):
        engine(name).run(plan, 1)


def test_a_circuit_breaker_is_reported_with_the_flow_the_time_and_the_cause():
    data = run(scenario("gcc", BREAKER + "count = 2\n" + DOWN.format(link="bottleneck")))
    (sentence,) = summary_text.ended_flows(metrics.runs(data)).values()
    assert sentence.startswith(
        "Circuit breaker: 2 of 2 flows of media ended for good, the first, flow 0, at 50.0 s: the "
    )
    assert summary_text.ended_flows(metrics.runs(run(scenario("gcc", BREAKER)))) == {}


FLOWS = '[[flows]]\nname = "tcp"\ncongestion = "cubic"\n'


def test_the_shares_of_media_are_judged():
    """A flow that its circuit breaker ends gets nothing for the rest of the time that it was planned for."""
    lossy = scenario("gcc", BREAKER + STUBBORN + FLOWS, rate="20Mbit")
    lossy = lossy.replace("rtt =", "loss = { probability = 0.3 }\nrtt =")
    for text, starves in ((scenario("gcc", FLOWS), False), (lossy, True)):
        data = run(text)
        shares = {share.group: share.part for view in metrics.runs(data) for share in fair_shares(view)}
        assert shares.keys() == {"tcp", "media"}
        assert (shares["media"] < STARVED) == starves, shares
        names = [sentence.split(" got ")[0] for sentence in summary_text.starvation(metrics.runs(data)).values()]
        assert ("Starved: the only flow of media" in names) == starves


def test_lost_reports_are_no_lost_datagrams():
    """The way back loses half of the reports, and the path of the data nothing."""
    lossy = REVERSE.replace("} }", "}, loss = { probability = 0, ack = 0.5 } }")
    data = run(scenario("gcc", rate="10Mbit").replace("queue =", lossy, 1))
    assert (data.frame("events")["kind"] == "loss").sum() > 100
    assert value(data, "udp_loss_rate") == 0
