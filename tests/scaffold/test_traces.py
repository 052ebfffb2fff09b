"""Models of links: published figures, and that every engine's reader takes what they write."""

from __future__ import annotations

import csv
import io
import statistics
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

import ackclock as ac
from ackclock.cli import new
from ackclock.cli.program import application
from ackclock.scaffold import traces
from ackclock.scaffold.traces import Settings


def lines(model: str, settings: Settings) -> list[dict[str, float]]:
    """The lines of a trace; the last has a time alone."""
    reader = csv.DictReader(io.StringIO(traces.csv(model, settings)))
    return [{name: float(value) for name, value in row.items() if value} for row in reader]


def test_the_command_has_every_model() -> None:
    assert sorted(traces.MODELS) == list(new.MODELS)


@pytest.mark.parametrize(
    ("frames", "rate_bps", "published_mbps"), [(18.44, 144.4e6, 126.7), (4.47, 144.4e6, 97.3), (1.89, 7.2e6, 6.5)]
)
def test_an_aggregates_rate_is_the_published_one(frames: float, rate_bps: float, published_mbps: float) -> None:
    """Høiland-Jørgensen et al., Ending the Anomaly (USENIX ATC 2017), table 1: rates of a station alone, rounded."""
    time_s = traces.data_s(frames, rate_bps) + traces.overhead_s(rate_bps)
    assert 8e-6 * 1500 * frames / time_s == pytest.approx(published_mbps, abs=0.05)


def test_contending_stations_share_the_medium() -> None:
    """A station among n others that always have data has a share of 1/(n + 1)."""

    def mean_bps(stations: int) -> float:
        found = lines("wifi", Settings(600.0, seed=1, stations=stations))
        spans = ((one["rate_bps"], after["time_s"] - one["time_s"]) for one, after in pairwise(found))
        return sum(rate_bps * span_s for rate_bps, span_s in spans) / found[-1]["time_s"]

    alone_bps = mean_bps(0)
    # The walk's stationary mean is 46.5 Mb/s, of which the times around aggregates leave 95 %; 600 s are 1500 steps.
    assert alone_bps == pytest.approx(0.95 * 46.5e6, rel=0.1)
    for stations in (1, 4):
        assert mean_bps(stations) == pytest.approx(alone_bps / (stations + 1), rel=0.1)  # rates differ in time


def test_leo_delays_agree_with_published_quartiles() -> None:
    """Quartiles of the RTT by Michel et al. (IMC 2022), of 4000 slots of 15 s, and no less than the least."""
    found = lines("leo", Settings(60_000.0))
    starts = found[:-1:2]
    assert [one["time_s"] for one in starts] == [15.0 * slot for slot in range(4000)]
    rtts_ms = [2e3 * one["delay_s"] for one in starts]
    assert min(rtts_ms) >= 20
    assert statistics.quantiles(rtts_ms, n=4) == pytest.approx([40, 50, 60], abs=1)
    assert found[-1] == {"time_s": 60_000.0}


def test_a_cable_modem_waits_for_grants(tmp_path: Path) -> None:
    """Datagrams of a slow source cross an idle upstream in the 2 to 8 ms of CableLabs' paper, and never reorder."""
    (tmp_path / "up.csv").write_text(traces.csv("docsis", Settings(4.0)))
    scenario = tmp_path / "up.toml"
    scenario.write_text(
        'duration = "4s"\n[network]\ntopology = "dumbbell"\nrate = { trace = "up.csv" }\nrtt = "2us"\n'
        'queue = { discipline = "pfifo", limit = "100p" }\n'
        '[[traffic]]\nkind = "udp"\npacket = "100B"\nrate = "333/s"\n[record]\npackets = true\n'
    )
    data = ac.run(scenario)
    (flow,) = data.flows.iter_rows(named=True)
    assert flow["delivered_bytes"] >= 1300 * 100
    assert 0.004 < flow["delay_mean_s"] < 0.0065
    wait_s = data.links["sojourn_max_s"][0]
    assert traces.INTERVALS * traces.MAP_S + wait_s < 0.008


@pytest.mark.parametrize("model", new.MODELS)
def test_a_link_follows_it(tmp_path: Path, model: str) -> None:
    """The command writes the same bytes twice and others for another seed, which a link of the packet engine takes."""
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        words = ["new", "trace", model, str(tmp_path / f"{name}.csv"), "--duration", "2s", "--seed", seed]
        assert CliRunner().invoke(application, words).exit_code == 0
    first, again, other = ((tmp_path / f"{name}.csv").read_text() for name in "abc")
    assert first == again != other
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        'duration = "3s"\n[network]\ntopology = "dumbbell"\nrate = { trace = "a.csv" }\nrtt = "20ms"\n'
        'queue = { discipline = "pfifo", limit = "200p" }\n[[flows]]\ncongestion = "cubic"\n'
    )
    assert ac.run(scenario).flows["delivered_bytes"][0] > 1_000_000


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--rate", "1Tbit"], "--rate: found 1Tbit; expected 100kbit to 500Mbit"),
        (["--duration", "5"], "--duration: found 5; expected"),
        (["--stations", "2"], "--stations: found docsis; expected wifi"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, words: list[str], found: str) -> None:
    result = CliRunner().invoke(application, ["new", "trace", "docsis", str(tmp_path / "a.csv"), *words])
    assert found in str(result.output) + str(result.exception)
    assert not (tmp_path / "a.csv").exists()
