"""Where models of many flows were compared with packets, and what is said outside."""

from __future__ import annotations

import pytest

import ackclock as ac
from ackclock.campaigns import band

LINE = """
duration = "20s"
warmup = "5s"
[network]
topology = "dumbbell"
rate = "{rate}"
rtt = "40ms"
queue = {{ discipline = "{queue}", limit = "{limit}" }}
[[flows]]
count = {count}
congestion = "{control}"
"""


def doubt(engine: str = "fluid", **changed: object) -> str | None:
    usual = {"rate": "200Mbit", "queue": "pfifo", "limit": "0.5bdp", "count": 20, "control": "cubic"}
    return band.doubt(ac.loads(LINE.format(**(usual | changed))).plan(), engine)


@pytest.mark.parametrize("limit", ["0.3bdp", "0.5bdp", "1bdp"])
def test_what_was_compared_is_not_doubted(limit):
    assert doubt(limit=limit) is None
    assert doubt("meanfield", limit=limit, control="reno") is None


def test_many_flows_and_a_small_queue_are_named():
    """1 Gb/s, 40 ms, 50 flows, a tenth of a bandwidth-delay product: by default two points too low."""
    said = doubt(rate="1Gbit", limit="0.1bdp", count=50)
    assert said is not None
    assert "this has 50 flows, a queue of 0.1 bdp: --engine packet" in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"count": 1, "rate": "10Mbit"}, "1 flow:"),
        ({"control": "scalable"}, "scalable"),
        ({"rate": "10Gbit"}, "packets for each"),
        ({"limit": "3bdp"}, "a queue of 3 bdp"),
    ],
)
def test_each_dimension_counts(changed, what):
    said = doubt(**changed)
    assert said is not None
    assert what in said


def test_codel_is_in_the_mean_fields_band():
    assert doubt("meanfield", queue="codel") is None
