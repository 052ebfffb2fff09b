"""Transfers in captures: what was not over at the end is counted as far as it was watched; requests are no flows."""

from __future__ import annotations

import math

import polars as pl
import pytest
from small_networks import dumbbell

import ackclock
from ackclock import capture, metrics
from ackclock.capture import trace_statistics
from ackclock.metrics import epoch

SCENARIO = f"""\
name = "downloads"
duration = "8s"
repeats = 1
{dumbbell("4Mbit", "40ms", "30p")}
[[flows]]
count = 2
request = "300B"
congestion = "cubic"
[[flows]]
size = "20MB"
request = "300B"
[[traffic]]
kind = "poisson"
rate = "4/s"
size = {{ distribution = "zipf", exponent = 1.4, max = "400p" }}
request = "300B"
[record]
pcap = true
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("transfers")
    return ackclock.run(ackclock.loads(SCENARIO).plan(), captures=place, seeds=[5]), next(place.iterdir())


@pytest.fixture(scope="module")
def observed(made):
    return capture.read([made[1]]).data


def one(data):
    return next(iter(metrics.runs(data)))


def test_what_is_open_at_the_end_is_unfinished(made, observed):
    """The two endless downloads, and what had begun; also one that is all acknowledged and not closed yet."""
    run, view = one(made[0]), one(observed)
    own = metrics.value(run, "unfinished")
    assert own >= 1
    assert own + 2 <= metrics.value(view, "unfinished") <= own + 4
    left = run.flows.filter(pl.col("size_bytes").is_not_null())
    assert metrics.response_times(observed, by="group")["unfinished"].sum() == metrics.value(view, "unfinished")
    assert left.height + 2 == metrics.response_times(observed)[["n", "unfinished"]].sum_horizontal().sum()


def test_response_times_are_those_of_the_run(made, observed):
    """Compare the transfers; a capture does not know the size of those without data at its end."""
    valid = pl.col("size_low_bytes") > 0, pl.col("size_high_bytes") < 16384
    own, reported = (metrics.response_times(data).filter(*valid) for data in (made[0], observed))
    for theirs, ours in zip(reported.iter_rows(named=True), own.iter_rows(named=True), strict=False):
        assert theirs["size_low_bytes"] == pytest.approx(ours["size_low_bytes"], rel=0.01)
        assert theirs["mean_s"] == pytest.approx(ours["mean_s"], rel=0.1)


def test_what_began_before_the_capture_is_no_transfer(made, tmp_path):
    """Half of the file: nobody knows when the first of it began, so nobody knows how long it took."""
    from ackclock.reproductions import pcap

    records = [record for record in pcap.read(made[1]) if record.time_ns > 4_000_000_000]
    pcap.write(tmp_path / "half.pcap", records)
    data = capture.read([tmp_path / "half.pcap"]).data
    rows = data.flows.join(data.scan("captured").collect(), on="flow")
    before = rows.filter(~pl.col("opened"))
    assert before.height >= 2
    assert before["size_bytes"].null_count() == before["fct_s"].null_count() == before.height
    assert rows.filter("opened", pl.col("payload_bytes") > 0)["size_bytes"].null_count() == 0


def test_a_download_is_not_compared_with_its_requests(observed):
    view = one(observed)
    rows = observed.scan("captured").collect()
    assert rows.filter(pl.col("payload_bytes") == 300).height > 5
    assert sorted(view.requests) == sorted(rows.filter(sender="client")["flow"])
    assert set(view.flows["flow"]) == set(rows.filter(sender="server")["flow"])
    assert not set(view.flow_samples["flow"]) & set(view.requests)
    endless = view.flows.sort("delivered_bytes")["flow"].to_list()[-2:]
    assert set(metrics.shared_bottlenecks(observed)["flow"]) <= set(view.flows["flow"])
    assert set(view.cached(epoch.drops_by_epoch)["flow"]) >= set(endless)


def test_two_ways_of_much_data_are_two_flows(observed):
    """Ten segments, and a tenth of the other way's data, make a flow; of a run there are no requests."""
    view = one(observed)
    rows = observed.scan("captured").collect()
    both = rows.with_columns(payload_bytes=pl.lit(20_000, pl.UInt64), data_segments=pl.lit(14, pl.UInt64))
    one_way = pl.when(pl.col("sender").cast(pl.String) == "client")
    for payload, segments, counts in ((15_000, 10, True), (15_000, 9, False), (1_999, 10, False)):
        smaller = both.with_columns(
            payload_bytes=one_way.then(payload).otherwise("payload_bytes").cast(pl.UInt64),
            data_segments=one_way.then(segments).otherwise("data_segments").cast(pl.UInt64),
        )
        data = ackclock.Dataset(
            observed.manifest, {**observed.parts, "captured": (type(observed.parts["flows"][0])(smaller),)}
        )
        assert len(one(data).requests) == (0 if counts else len(view.requests))


def test_jain_of_a_download_is_one(made):
    data = capture.read([made[1]], "host 10.0.0.1").data
    result = metrics.value(one(data), "jain")
    assert result == pytest.approx(1.0) and not math.isnan(result)


def test_what_arrived_the_other_way_is_counted_in_bytes(observed):
    """The rates of both directions are what the capture has of IP packets, ACKs included."""
    rates = {
        row["sender"]: row["value"]
        for row in trace_statistics.trace(observed).iter_rows(named=True)
        if row["what"] == "rate_bps"
    }
    rows = observed.flows.join(observed.scan("captured").collect(), on="flow")
    assert rows["received_bytes"].null_count() == 0
    client = rows.filter(sender="client")
    assert rates["client"] == pytest.approx(8 * client["sent_bytes"].sum() / one(observed).run_end_s)
    assert rates["server"] == pytest.approx(8 * client["received_bytes"].sum() / one(observed).run_end_s)
    assert 3.5e6 < rates["server"] < 4.5e6  # before the queue
