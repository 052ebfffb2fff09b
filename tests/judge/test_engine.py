"""The judge of CUBIC and Reno against logs of the engine's controllers in a QUIC stack."""

from __future__ import annotations

from pathlib import Path

import pytest

import ackclock as ac
from ackclock import judge, qlog
from ackclock.scenario import planning


def connection(folder: Path, control: str, rate: str, rtt: str) -> qlog.Connection:
    """Return the log of a flow alone on a link whose buffer is one BDP."""
    text = f"""
duration = "12s"
[network]
topology = "dumbbell"
rate = "{rate}"
rtt = "{rtt}"
queue = {{ discipline = "pfifo", limit = "1bdp" }}
[[flows]]
transport = "quic"
controller = "engine"
congestion = "{control}"
[record]
qlog = true
"""
    ac.run(planning.loads(text).plan(), seeds=[1], captures=folder)
    (path,) = folder.iterdir()
    (found,) = qlog.connections(qlog.parse(path, path.read_text(encoding="utf-8")))
    return found


@pytest.mark.parametrize("control", ["cubic", "reno"])
@pytest.mark.parametrize(("rate", "rtt"), [("10Mbit", "40ms"), ("20Mbit", "100ms")])
def test_losses_at_the_same_window_leave_fast_convergence_in_doubt(tmp_path, control, rate, rtt):
    """Windows at losses are as large as the last one, but for rounding."""
    result = judge.judge_connection(connection(tmp_path, control, rate, rtt), control)
    assert result.deviations == []
    assert result.agreed > 20
