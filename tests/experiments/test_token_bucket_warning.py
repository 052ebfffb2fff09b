"""Token buckets with room for one packet."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

import ackclock as ac
from ackclock.cli.program import application
from ackclock.experiments import guards

POLICED = """
duration = "6s"
warmup = "1s"
[network]
topology = "dumbbell"
rate = "100Mbit"
rtt = "20ms"
queue = { discipline = "tbf", rate = "8Mbit", burst = "100KB", limit = "1600B", per_flow = false }
[[flows]]
congestion = "cubic"
"""

MENDS = [{"network.access_rate": "100Mbit"}, {"network.queue.limit": "6400B"}]
DOES_NOT = [{}, {"network.access_rate": "1Gbit"}, {"network.queue.limit": "3000B"}]


def goodput_bps(loaded) -> float:
    return ac.run(loaded.plan(), seeds=[1]).metrics()["summary"]["goodput_bps"]["mean"]


@pytest.mark.parametrize("values", MENDS)
def test_what_mends_it_is_not_warned_of_and_gives_the_rate(values):
    loaded = ac.loads(POLICED).with_(values)
    assert guards.token_bucket_doubt(loaded.plan()) is None
    assert goodput_bps(loaded) > 0.9 * 8e6


@pytest.mark.parametrize("values", DOES_NOT)
def test_what_is_warned_of_gives_a_fraction(values):
    loaded = ac.loads(POLICED).with_(values)
    assert "access_rate" in (guards.token_bucket_doubt(loaded.plan()) or "")
    assert goodput_bps(loaded) < 0.5 * 8e6


def test_run_prints_a_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policed.toml").write_text(POLICED)
    done = CliRunner().invoke(application, ["run", "policed.toml", "--seed", "1", "--no-report"])
    lines = [line for line in done.stdout.splitlines() if line.startswith("Warning: The tbf of bottleneck")]
    assert len(lines) == 1
    assert "has room for fewer than three packets" in lines[0]
