"""Captures behind policers whose bucket has room for two packets, and of applications with losses, at the receiver."""

from __future__ import annotations

import pytest

import ackclock as ac
from ackclock import capture
from ackclock.capture.diagnosis import diagnose
from ackclock.capture.findings import Cause

SCENARIO = """\
duration = "15s"
repeats = 1
[network]
topology = "dumbbell"
rate = "{link}"
rtt = "{rtt}"
queue = {queue}
{loss}
[[flows]]
congestion = "{congestion}"
{flow}
[record]
pcap = ["receivers"]
"""
POLICER = '{{ discipline = "tbf", rate = "{rate}", burst = "3KB", limit = "1514B", per_flow = false }}'
FIFO = '{ discipline = "pfifo", limit = "100p" }'


def verdict(folder, **given):
    ac.run(ac.loads(SCENARIO.format(**given)).plan(), captures=folder)
    (file,) = folder.glob("*receivers*")
    return diagnose(capture.read([file]).analysis).verdict


@pytest.mark.parametrize(
    ("rate", "rtt", "congestion"),
    [
        ("1500kbit", "40ms", "cubic"),
        ("3Mbit", "25ms", "cubic"),
        ("2500kbit", "50ms", "cubic"),
        ("1200kbit", "80ms", "reno"),
    ],
)
def test_a_small_window_behind_a_policer_is_no_application(tmp_path, rate, rtt, congestion):
    queue = POLICER.format(rate=rate)
    found = verdict(tmp_path, link="100Mbit", rtt=rtt, queue=queue, loss="", congestion=congestion, flow="")
    assert found is Cause.SHAPER


@pytest.mark.parametrize(
    ("rate", "rtt", "loss"), [("500kbit", "30ms", 0.01), ("2Mbit", "10ms", 0.01), ("600kbit", "12ms", 0.02)]
)
def test_an_application_with_a_rate_and_random_losses_is(tmp_path, rate, rtt, loss):
    given = {"loss": f"loss = {{ probability = {loss} }}", "flow": f'application_rate = "{rate}"'}
    found = verdict(tmp_path, link="20Mbit", rtt=rtt, queue=FIFO, congestion="reno", **given)
    assert found is Cause.APPLICATION
