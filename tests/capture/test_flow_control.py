"""Captures of runs that one end of a connection limits: `doctor` names that end."""

from __future__ import annotations

import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock import capture
from ackclock.capture.diagnosis import diagnose
from ackclock.capture.findings import Cause


def scenario(tcp, flow):
    return f"""\
duration = "20s"
repeats = 1
{dumbbell("20Mbit", "40ms", "100p")}
[tcp]
{tcp}
[[flows]]
congestion = "cubic"
{flow}
[record]
pcap = ["senders", "receivers"]
"""


READ_SLOWLY = ('receive_window = "64KiB"', 'slow_reader = { rate = "2Mbit" }')
READ_IN_PIECES = ('receive_window = "128KiB"', 'slow_reader = { rate = "4Mbit", chunk = "64KiB" }')
STOPPED = ('receive_window = "64KiB"', 'slow_reader = { pause = { at = "2s", for = "1s", every = "2s" } }')
#: Without batches a send buffer holds exactly so many bytes; Linux fills what it has begun, and writes in bursts.
SENT_FROM_LITTLE = ('send_buffer = "32KiB"\ntso_batching = false', "")


def verdict(tcp, flow, folder, vantage):
    ac.run(ac.loads(scenario(tcp=tcp, flow=flow)).plan(), captures=folder)
    (file,) = folder.glob(f"*{vantage}*")
    return diagnose(capture.read([file]).analysis)


@pytest.mark.parametrize("vantage", ["senders", "receivers"])
@pytest.mark.parametrize(
    ("tcp", "flow"),
    [READ_SLOWLY, READ_IN_PIECES, STOPPED],
    ids=["slow reader", "large reads", "reader that stops"],
)
def test_a_slow_reader_is_the_receivers(tcp, flow, vantage, tmp_path):
    assert verdict(tcp, flow, tmp_path, vantage).verdict is Cause.RECEIVER


def test_a_small_send_buffer_is_the_hosts(tmp_path):
    assert verdict(*SENT_FROM_LITTLE, tmp_path, "senders").verdict is Cause.HOST
