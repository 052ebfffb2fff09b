"""Sharing, ways, workloads, the machine's speed, and the words of a forecast."""

from __future__ import annotations

import itertools
import json
import math
import os

import pytest

from ackclock.experiments.cost import Cost, arrivals, forecast, speed
from ackclock.experiments.cost.sharing import Claim, Span, over_time, shares_bps
from ackclock.experiments.cost.ways import Ways
from ackclock.scenario import planning
from ackclock.scenario.traffic import moments


def test_shares_are_max_min_fair():
    """Bertsekas and Gallager, section 6.5.2: who crosses the narrow link has its share, the rest is the others'."""
    claims = [
        Claim((0, 1), 1, math.inf),
        Claim((0,), 1, math.inf),
        Claim((1,), 2, math.inf),
        Claim((1,), 1, 1.0),
        Claim((), 1, 7.0),
    ]
    assert shares_bps(claims, [100.0, 31.0]) == pytest.approx([10.0, 90.0, 10.0, 1.0, 7.0])


def test_a_way_through_a_graph_is_a_shortest_one():
    plan = planning.loads(
        'duration = "1s"\n[network]\ntopology = "fat-tree"\nlevels = 3\nports = 4\nrate = "1Gbit"\ndelay = "1us"\n'
        'queue = { discipline = "pfifo", limit = "9p" }\n[[flows]]\nbetween = "permutation"\n'
    ).plan()
    ways = Ways(plan.nodes, plan.links)
    hosts = [number for number, node in enumerate(plan.nodes) if node.host]
    lengths = {ways.between(hosts[0], other, which) for other in hosts[1:] for which in range(4)}
    assert {len(way) for way in lengths} == {2, 4, 6}
    for way in lengths:
        ends = [plan.links[link].ends for link in way]
        assert all(one.destination == two.source for one, two in itertools.pairwise(ends))


def test_distributions_are_restored_from_a_plan():
    every = [
        moments.Fixed(100),
        moments.Zipf(1.5, 100, 10),
        moments.Empirical(((10, 0.5), (20, 1.0))),
        moments.Truncated(moments.Exponential(1e4), None, None),
        moments.Truncated(moments.Lognormal(1e4, 1.0), 10**6, "redraw"),
        moments.Truncated(moments.Pareto(1.2, 1e3), 10**6, "clip"),
    ]
    for law in every:
        assert moments.planned(law.planned()) == law


@pytest.mark.parametrize(
    ("source", "per_s"),
    [
        ({"kind": "constant", "per_s": 9.0}, 9.0),
        ({"kind": "bursts", "per_s": 1e3, "packets": 5, "every_s": 0.5}, 10.0),
        ({"kind": "adaptive", "target_s": 0.1, "min_per_s": 10.0, "max_per_s": 30.0}, 20.0),
        (
            {"kind": "on_off", "per_s": 9.0, "on": {"kind": "fixed", "s": 1.0}, "off": {"kind": "fixed", "s": 2.0}},
            3.0,
        ),
    ],
)
def test_datagrams_leave_at_their_mean_rate(source, per_s):
    assert arrivals.datagrams_per_s(source) == pytest.approx(per_s)


def test_runs_share_the_cores_and_the_longest_bounds_the_time():
    found = forecast.forecast([(Cost(10, 100.0, 1e6, 0, 5e6), 3), (Cost(1, 1000.0, 1e6, 0, 1e6), 1)], 4, 2.0)
    assert (found.runs, found.jobs, found.events, found.cpu_s, found.wall_s) == (4, 4, 31, 650.0, 500.0)
    assert (found.bytes, found.memory_bytes) == (4e6, 2e7)


def test_sources_share_while_they_are_active():
    """One that asks for a tenth all the time, and two that come at half time and take what is left of the rest."""
    claims = [Claim((0,), 1, 10.0), Claim((0,), 2, 50.0)]  # each of the two: 100 in half of the time
    spans = [Span(0.0, 8.0), Span(4.0, 8.0)]
    one, two = over_time(claims, spans, [100.0], 8.0)
    assert one.mean_bps == pytest.approx(10.0)
    assert two.mean_bps == pytest.approx((100 - 10) / 2 / 2)
    assert one.crowded == pytest.approx((0.1 + 1.0) / 2)
    assert two.crowded == pytest.approx(1.0)


def test_very_many_starts_are_grouped():
    count = 200
    claims = [Claim((0,), 1, 1.0 * (count - number) / count) for number in range(count)]
    spans = [Span(number / 10, count / 10) for number in range(count)]
    found = over_time(claims, spans, [1e9], count / 10)
    assert [share.mean_bps for share in found] == pytest.approx([claim.max_bps for claim in claims])


def test_a_run_of_a_sweep_has_no_folder_of_its_own():
    found = Cost(cpu_s=0.05, bytes=9e4, kept_bytes=7e2, folder_s=0.03)
    assert found.in_sweep().cpu_s == pytest.approx(0.02)
    assert found.at(2.0).in_sweep().cpu_s == found.in_sweep().at(2.0).cpu_s == pytest.approx(0.01)
    assert (found.in_sweep().bytes, found.in_sweep(samples=True).bytes) == (7e2, 9e4)


def test_text_of_a_forecast():
    found = forecast.forecast([(Cost(1.55e8, 48.0, 2.1e7, 0, 0), 200)], 2, 1.0)
    assert str(found) == "about 1 h 20 min of work on 2 cores (200 runs, 3.1e10 events), 4.2 GB on disk"
    tiny = forecast.forecast([(Cost(5, 0.1, 999, 0, 0), 1)], 2, 1.0)
    assert str(tiny) == "less than a second of work on 1 core (1 run, 5.0e0 events), 999 B on disk"
    assert [forecast.amount(size) for size in (999, 4200, 12e6)] == ["999 B", "4.2 kB", "12 MB"]
    assert [forecast.duration(s) for s in (59, 61, 3600, 90000)] == ["59 s", "1 min 1 s", "1 h", "1 day 1 h"]


def test_too_little_disk_space_is_reported(tmp_path, monkeypatch):
    found = forecast.forecast([(Cost(1, 1, 5e9, 0, 8e9), 1)], 1, 1.0)
    monkeypatch.setattr(forecast, "_free_bytes", lambda folder: 10**9)
    monkeypatch.setattr(forecast, "_available_bytes", lambda: 2 * 10**9)
    folder = tmp_path / "to" / "come"
    assert list(found.shortages(folder)) == [
        f"{folder}: about 5.0 GB will be written, and 1.0 GB are free",
        "about 8.0 GB of memory will be needed, and 2.0 GB are free",
    ]
    monkeypatch.undo()
    assert forecast._free_bytes(folder) > 0
    assert not list(forecast.forecast([(Cost(1, 1, 1, 0, 1), 1)], 1, 1.0).shortages(folder))


def test_the_speed_is_cached_per_version_and_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(speed, "measured", iter([2.0, 3.0, 4.0, 5.0]).__next__)
    assert (speed.speed(), speed.speed()) == (2.0, 2.0)
    kept = json.loads(speed.place().read_text())
    speed.place().write_text(json.dumps({**kept, "ackclock": "0.0.0"}))
    assert speed.speed() == 3.0
    speed.place().write_text("no JSON")
    assert speed.speed() == 4.0
    os.utime(speed.place(), (0, 0))
    assert speed.speed() == 5.0


def test_a_cache_that_cannot_be_written_is_none(tmp_path, monkeypatch):
    (tmp_path / "ackclock").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(speed, "measured", lambda: 2.0)
    assert speed.speed() == 2.0


def test_the_speed_is_a_positive_number():
    assert 0.01 < speed.measured() < 100
