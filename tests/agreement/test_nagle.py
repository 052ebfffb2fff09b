"""Nagle's algorithm against delayed ACKs: the packet engine and the real kernel, packet by packet.

A client writes a message in two parts, and a server reads whole messages. The kernel acknowledges the first 16 segments
of a connection at once; from then on the second part waits for the delayed ACK of the first.
"""

from __future__ import annotations

import pytest
from pcaps import frames
from small_networks import dumbbell

import ackclock as ac

pytestmark = pytest.mark.usefixtures("guest_kernel")

#: Addresses of the senders of both engines.
SENDERS = ("10.0.0.1", "10.1.0.1")
#: The packet engine adds its hosts' processing delay to each packet.
TOLERANCE_S = 1e-3


def scenario(writes, reader):
    return f"""
duration = "4s"
{dumbbell("20Mbit", "20ms", "100p")}
[tcp]
receive_window = "64KiB"
timer_tick = "10ms"
[[flows]]
congestion = "cubic"
writes = {{ {writes} }}
{reader}
[record]
pcap = ["senders"]
"""


def conversation(engine, folder, writes, reader):
    """Times, directions and lengths of the packets at the sender."""
    folder.mkdir()
    ac.run(ac.loads(scenario(writes, reader)).plan(), engine=engine, captures=folder)
    (path,) = folder.iterdir()
    return [(frame.time_s, frame.source[0] in SENDERS, frame.payload_bytes) for frame in frames(path)]


def waits_s(packets):
    """Return how long the second part of each message was sent after the first, from the first second on."""
    sent = [time_s for time_s, is_sent, payload_bytes in packets if is_sent and payload_bytes]
    return [second - first for first, second in zip(sent[::2], sent[1::2], strict=False) if first > 1]


@pytest.mark.parametrize(
    ("size", "count", "nodelay", "reader"),
    [
        ("100B", 2, False, 'slow_reader = { chunk = "200B" }'),
        ("100B", 2, True, 'slow_reader = { chunk = "200B" }'),
        ("100B", 2, False, ""),
        ("700B", 3, False, 'slow_reader = { chunk = "2100B" }'),
        ("700B", 3, True, 'slow_reader = { chunk = "2100B" }'),
        ("2000B", 3, False, 'slow_reader = { chunk = "6000B" }'),
    ],
)
def test_messages_are_sent_and_acknowledged_alike(tmp_path, size, count, nodelay, reader):
    writes = f'size = "{size}", count = {count}, every = "100ms", nodelay = {str(nodelay).lower()}'
    ours, theirs = (conversation(engine, tmp_path / engine, writes, reader) for engine in ("packet", "linux"))
    assert [packet[1:] for packet in ours] == [packet[1:] for packet in theirs]
    assert [packet[0] for packet in ours] == pytest.approx([packet[0] for packet in theirs], abs=TOLERANCE_S)


@pytest.mark.parametrize("engine", ["packet", "linux"])
def test_the_second_part_waits_for_a_delayed_ack_unless_nodelay_is_set(tmp_path, engine):
    """A round trip of 20 ms, and a delayed ACK of 40 ms in ticks of 10 ms."""
    reader = 'slow_reader = { chunk = "200B" }'
    writes = 'size = "100B", count = 2, every = "100ms"'
    held = waits_s(conversation(engine, tmp_path / "held", writes, reader))
    direct = waits_s(conversation(engine, tmp_path / "direct", f"{writes}, nodelay = true", reader))
    assert len(held) > 15 and min(held) >= 0.06 and max(held) <= 0.08
    assert len(direct) > 15 and max(direct) < 1e-4
