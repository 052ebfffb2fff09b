"""Prague through DualPI2: reduced RTT-dependence, coexistence with CUBIC, and the delay of the L4S queue."""

from __future__ import annotations

import math
from functools import cache

import polars as pl
import pytest

import ackclock as ac

DURATION_S, WARMUP_S = 60, 30

TEXT = """duration = "{duration}s"
warmup = "{warmup}s"
repeats = 1
[network]
topology = "dumbbell"
rate = "100Mbit"
rtt = "20ms"
queue = {{ {queue} }}
[tcp]
{tcp}
{flows}
"""
DUAL = 'discipline = "dualpi2"'
FLOW = '[[flows]]\ncongestion = {kind}\nrtt = "{rtt}"\nstart = {{ jitter = "200ms" }}\n'

#: Delay above which DualPI2 marks every L4S packet: `step_thresh`, RFC 9332 appendix A.1.
STEP_S = 1e-3


@cache
def run(*flows: tuple[str, str], tcp: str = "", queue: str = DUAL) -> ac.Dataset:
    text = TEXT.format(
        duration=DURATION_S,
        warmup=WARMUP_S,
        tcp=tcp,
        queue=queue,
        flows="".join(FLOW.format(kind=kind if "{" in kind else f'"{kind}"', rtt=rtt) for kind, rtt in flows),
    )
    return ac.run(ac.loads(text).plan(), engine="packet", jobs=1)


def ratio(data: ac.Dataset) -> float:
    """The rate of the first flow over that of the second."""
    first, second = data.flows.sort("flow")["measured_bytes"]
    return float(first / second)


def test_rates_of_unequal_rtts_are_closer_than_with_dctcp():
    """Section 2.4.4 of the draft: rates of RTTs below 25 ms converge, where DCTCP's are as the inverse of the RTT."""
    flows = ("5ms", "20ms")
    prague = ratio(run(*(("prague", rtt) for rtt in flows)))
    dctcp = ratio(run(*(("dctcp", rtt) for rtt in flows), tcp='ecn = "l4s"'))
    assert dctcp > 2
    assert abs(math.log(prague)) < 0.5 * math.log(dctcp)


def test_cubic_and_prague_have_roughly_equal_rates():
    """RFC 9332 section 2.1: the coupling by k = 2 gives both roughly the same rate.

    By its equations, with p' the base probability, Prague has 2/(2 p') and CUBIC in its Reno-friendly region 1.22/p'
    segments per round trip. CUBIC's is longer by the target of 15 ms: 35 ms to Prague's reference of 25 ms. So Prague's
    rate is 1/1.22 × 35/25 = 1.15 of CUBIC's; "roughly" is within a factor of two.
    """
    assert 0.5 < ratio(run(("prague", "20ms"), ("cubic", "20ms"))) < 2


def test_prague_has_1_plus_root_3_marks_in_a_round():
    """At 40 ms M is 1: reductions are 1 + 1/x rounds apart, and x/2 = 1 + 1/x for x = p cwnd (see `prague.rs`)."""
    data = run(("prague", "40ms"), ("cubic", "40ms"))
    measured = pl.col("time_s") > WARMUP_S
    marks = data.frame("events").filter(measured & (pl.col("flow") == 0) & (pl.col("kind") == "mark")).height
    window = data.frame("flow_samples").filter(measured & (pl.col("flow") == 0))["cwnd"].mean()
    share = marks / data.flows.sort("flow")["measured_sent_packets"][0]
    # About 2000 marks: a standard error of 2 %.
    assert share * window == pytest.approx(1 + math.sqrt(3), rel=0.08)


def test_many_flows_of_cubic_have_two_thirds_of_the_rate_of_prague():
    """With 1 + √3 instead of 2 marks in a round: 1.15 × 1.366 = 1.57, where several flows keep p' steady."""
    flows = (("prague", "20ms"),) * 5 + (("cubic", "20ms"),) * 5
    bytes_of = run(*flows).flows.sort("flow")["measured_bytes"]
    assert bytes_of[:5].sum() / bytes_of[5:].sum() == pytest.approx(1.57, rel=0.1)


def test_the_l4s_queue_waits_about_the_step():
    """RFC 9332 section 2.4: the L queue is kept near its shallow threshold, and the link is full."""
    data = run(("prague", "20ms"), ("prague", "20ms"))
    link = data.links.filter(pl.col("bottleneck")).row(0, named=True)
    assert 0.2 * STEP_S < link["sojourn_mean_s"] < 1.5 * STEP_S
    assert link["dropped_total_p"] == 0
    assert link["busy_s"] > 0.95 * (DURATION_S - WARMUP_S)


FALL_BACK = '{ kind = "prague", classic_ecn_fallback = true }'
CUBIC = '"cubic"\ntcp = { ecn = "classic" }'


@pytest.mark.parametrize(
    "queue",
    [
        'discipline = "codel", ecn = true',
        'discipline = "pie", ecn = true',
        'discipline = "red", limit = "2bdp", ecn = true',
    ],
)
def test_the_fall_back_leaves_cubic_its_share_in_a_classic_ecn_aqm(queue):
    """Without it Prague starves CUBIC, to which a mark costs 30 % of its window (RFC 9438 section 4.6)."""
    assert ratio(run(("prague", "20ms"), (CUBIC, "20ms"), queue=queue)) > 10
    assert 0.5 < ratio(run((FALL_BACK, "20ms"), (CUBIC, "20ms"), queue=queue)) < 2


@pytest.mark.parametrize("rtt", ["5ms", "20ms", "80ms"])
def test_the_fall_back_does_not_engage_in_a_dual_queue(rtt):
    with_it, without = (run((kind, rtt), ("cubic", rtt)) for kind in (FALL_BACK, "prague"))
    assert with_it.flows["measured_bytes"].to_list() == without.flows["measured_bytes"].to_list()
