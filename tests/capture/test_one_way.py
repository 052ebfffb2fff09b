"""Captures of the data alone, as on asymmetric routes: what passed is counted, each byte once; no more is claimed."""

from __future__ import annotations

import pytest
from small_networks import dumbbell

import ackclock
from ackclock import capture

SIZES = (2_000_000, 1_234_567, 14_480)

SCENARIO = f"""
duration = "30s"
repeats = 1
{dumbbell("10Mbit", "40ms", "30p")}
loss = {{ probability = 0.01 }}
[record]
pcap = ["senders", "receivers"]
""" + "".join(f'[[flows]]\ncongestion = "cubic"\nsize = "{size}B"\n' for size in SIZES)


@pytest.fixture(scope="module", params=["senders", "receivers"])
def observed(request, tmp_path_factory):
    """Return the analysis of the senders' packets alone, and of all packets."""
    place = tmp_path_factory.mktemp("one-way")
    ackclock.run(ackclock.loads(SCENARIO).plan(), captures=place, seeds=[3])
    path = place / f"seed-3-{request.param}.pcap"
    return capture.read([path], "dst port 5001").analysis, capture.read([path]).analysis


def test_what_passed_is_counted_each_byte_one_time(observed):
    data, both = observed
    assert [flow["bytes"] for flow in data["flows"]] == [flow["bytes"] for flow in both["flows"]] == list(SIZES)
    for flow in data["flows"]:
        duration_s = flow["last_data_s"] - flow["first_data_s"]
        assert flow["goodput_bps"] == pytest.approx(8 * flow["bytes"] / duration_s)


def test_nothing_is_reported_that_only_acknowledgements_report(observed):
    data, both = observed
    assert data["path"]["limiter"] == "undecided"
    assert both["path"]["limiter"] != "undecided"
    assert data["vantage"] is None
    for flow in data["flows"]:
        assert flow["limited"] is flow["rtt_min_s"] is flow["handshake_s"] is flow["congestion"] is None


def test_samples_grow_to_what_passed(tmp_path):
    ackclock.run(ackclock.loads(SCENARIO).plan(), captures=tmp_path, seeds=[3])
    data = capture.read([tmp_path / "seed-3-senders.pcap"], "dst port 5001").data
    assert data.flows["delivered_bytes"].to_list() == list(SIZES)
    for flow, size in enumerate(SIZES):
        sofar = data.flow_samples.filter(data.flow_samples["flow"] == 2 * flow)["delivered_bytes"].drop_nulls()
        assert sofar.is_sorted()
        assert sofar[-1] <= size
