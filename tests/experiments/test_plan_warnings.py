"""Validity range of models of many flows, and the warning outside it."""

from __future__ import annotations

from pathlib import Path

import pytest

import ackclock as ac
from ackclock.experiments import plan_warnings

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
[fluid]
synchronisation = "{synchronisation}"
"""


def doubt(engine: str = "fluid", **changed: object) -> str | None:
    usual = {"rate": "200Mbit", "queue": "pfifo", "limit": "0.5bdp", "count": 20, "control": "cubic"}
    usual["synchronisation"] = "normal"
    return plan_warnings.model_doubt(ac.loads(LINE.format(**(usual | changed))).plan(), engine)


@pytest.mark.parametrize("limit", ["0.3bdp", "0.5bdp", "0.7bdp"])
def test_what_was_compared_is_not_doubted_but_for_who_loses(limit):
    assert doubt(limit=limit, synchronisation="losses") is None
    for engine, more in (("fluid", {}), ("meanfield", {"control": "reno"})):
        said = doubt(engine, limit=limit, **more)
        assert said is not None
        assert said.startswith(f"engine {engine}: utilisation and mean queue agreed")
        assert said.endswith("the synchronisation may be off by more than 0.1")


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
        ({"limit": "0.9bdp"}, "a queue of 0.9 bdp"),
        ({"rate": "1Gbit", "limit": "3bdp"}, "a queue of 3 bdp"),
    ],
)
def test_each_dimension_counts(changed, what):
    said = doubt(**changed)
    assert said is not None
    assert what in said


def test_codel_is_in_the_mean_fields_band_and_not_in_the_fluid_models():
    assert "the synchronisation was not compared" in (doubt("meanfield", queue="codel") or "")
    assert "this has codel" in (doubt("fluid", queue="codel") or "")
    assert "bdp, CoDel and PIE; this has fq_codel" in (doubt("meanfield", queue="fq_codel") or "")


def test_several_queues_are_not_checked():
    several = Path(__file__).parents[2] / "scenarios" / "parking-lot.toml"
    assert plan_warnings.model_doubt(ac.load(several).plan(), "fluid") is None
