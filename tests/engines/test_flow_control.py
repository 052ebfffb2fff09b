"""Slow readers, send buffers and messages: which engines have them, and what they make of a flow."""

from __future__ import annotations

import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock import engines

TEXT = f"""
duration = "20s"
warmup = "5s"
repeats = 1
{dumbbell("10Mbit", "40ms", "100p")}
[tcp]
stack = "rfc"
"""
READER = '[[flows]]\ntcp = { receive_window = "64KiB" }\nslow_reader = { rate = "2Mbit" }'
WRITES = '[[flows]]\nwrites = { size = "100B", every = "10ms" }'
BUFFER = '[[flows]]\ntcp = { send_buffer = "14480B" }'


def goodput_bps(flows):
    data = ac.run(ac.loads(TEXT + flows).plan())
    return 8 * data.flows["measured_bytes"].sum() / 15


def test_the_goodput_is_the_readers_rate():
    assert goodput_bps(READER) == pytest.approx(2e6, rel=0.01)


def test_the_goodput_is_a_send_buffer_per_round_trip():
    """Ten segments of 1448 bytes leave in pairs, and are acknowledged a base RTT after both are transmitted."""
    rtt_s = 40e-3 + 2 * 8 * 1514 / 10e6
    assert goodput_bps(BUFFER) == pytest.approx(8 * 14480 / rtt_s, rel=0.005)


@pytest.mark.parametrize("name", ["fluid", "meanfield", "theory", "ns2", "ns3"])
@pytest.mark.parametrize(
    ("flows", "what"),
    [
        (READER, "slow readers (slow_reader)"),
        (BUFFER, "limited send buffers (tcp.send_buffer)"),
        (WRITES, "messages of small writes (writes)"),
    ],
)
def test_other_engines_report_them_as_unsupported(name, flows, what):
    reasons = engines.unsupported(engines.engine(name), ac.loads(TEXT + flows).plan())
    assert any(what in str(reason) for reason in reasons)
