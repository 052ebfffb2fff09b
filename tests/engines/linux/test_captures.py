"""Packet captures of a guest: each packet of a flow once at its sender, or its receiver, in the order of time."""

from __future__ import annotations

from collections import Counter

import pytest
from pcaps import frames
from small_networks import dumbbell, leaf_spine

import ackclock as ac
from ackclock.errors import UnsupportedError

pytestmark = pytest.mark.usefixtures("guest_kernel")


def captured(text, folder, engine="linux"):
    data = ac.run(ac.loads(text).plan(), engine, seeds=[1], captures=folder)
    return data, frames(folder / "seed-1.pcap")


DUMBBELL = f"""
duration = "2s"
{dumbbell("10Mbit", "20ms", "10p")}
[[flows]]
congestion = "cubic"
size = "500KB"
count = 2
start = {{ every = "100ms" }}
[record]
pcap = true
"""


def test_every_packet_at_a_sender_is_captured_exactly_one_time(tmp_path):
    data, found = captured(DUMBBELL, tmp_path)
    times = [frame.time_s for frame in found]
    assert times == sorted(times)
    assert times[0] == pytest.approx(0.0, abs=1e-6), "the first SYN leaves as the run begins"
    data_sent = [frame for frame in found if frame.payload_bytes > 0]
    senders = sorted({frame.source for frame in data_sent})
    heard = [frame for frame in found if frame.source not in senders]
    assert {frame.destination for frame in heard} == set(senders)
    assert len({(frame.source, frame.sequence) for frame in data_sent}) == 2 * -(-500_000 // 1448)
    assert len(data_sent) - 2 * -(-500_000 // 1448) == data.flows["retransmissions"].sum() > 0
    sent = Counter(frame.source for frame in found)
    for sender, counted in zip(senders, data.flows["sent_packets"], strict=True):
        assert sent[sender] - counted in (0, 1), "the ACK of the receiver's FIN may come after the count"


def test_it_begins_as_the_packet_engines_does(tmp_path):
    """The handshake and the initial window of ten: the same kinds of packets, within the time that one takes."""
    _, theirs = captured(DUMBBELL, tmp_path / "packet", "packet")
    _, ours = captured(DUMBBELL, tmp_path / "linux")
    for mine, other in zip(ours[:13], theirs[:13], strict=True):
        assert (mine.flags & 0x17, mine.payload_bytes) == (other.flags & 0x17, other.payload_bytes)
        assert mine.time_s == pytest.approx(other.time_s, abs=1.3e-3)


BOTH_WAYS = f"""
duration = "500ms"
{leaf_spine(2, 1, 1)}
[[flows]]
from = "h0"
to = "h1"
size = "50KB"
[[flows]]
from = "h1"
to = "h0"
size = "60KB"
request = "100B"
[record]
pcap = true
"""


def test_hosts_that_send_to_each_other_write_down_their_own_flows(tmp_path):
    data, found = captured(BOTH_WAYS, tmp_path)
    packets = Counter((frame.source, frame.destination) for frame in found)
    assert len(packets) == 4, "two connections, both ways"
    opened = [frame for frame in found if frame.flags & 0x3F == 0x02]
    assert len(opened) == 2, "each SYN once"
    assert data.flows["fct_s"].null_count() == 0
    full = [frame for frame in found if frame.payload_bytes > 1000]
    assert len(full) >= 110_000 // 1448
    assert len({(frame.source, frame.sequence) for frame in full}) == len(full) - data.flows["retransmissions"].sum()


def test_a_datagram_is_captured(tmp_path):
    text = DUMBBELL.split("[[flows]]", maxsplit=1)[0] + '[[traffic]]\nkind = "udp"\nrate = "100/s"\npacket = "500B"\n'
    data, found = captured(text + "[record]\npcap = true\n", tmp_path)
    assert len(found) == data.flows["sent_packets"].sum() > 100


def test_a_periodic_writer_begins_at_its_first_check(tmp_path):
    """The connection is open after a round trip of 20 ms; the application looks every 50 ms."""
    _, found = captured(DUMBBELL + '[linux]\nwriter = "periodic"\napp_interval = "50ms"\n', tmp_path)
    first = next(frame for frame in found if frame.payload_bytes > 0)
    assert first.time_s == pytest.approx(0.05, abs=1e-4)


def test_senders_and_receivers_capture_the_same_packets_one_path_delay_apart(tmp_path):
    text = DUMBBELL.replace("pcap = true", 'pcap = ["senders", "receivers"]')
    data = ac.run(ac.loads(text).plan(), "linux", seeds=[1], captures=tmp_path)
    at_senders, at_receivers = (frames(tmp_path / f"seed-1-{end}.pcap") for end in ("senders", "receivers"))
    servers = {frame.source for frame in at_senders if frame.payload_bytes > 0}
    seen_s = {frame.key: frame.time_s for frame in at_senders}
    both = [frame for frame in at_receivers if frame.key in seen_s]
    assert len(both) > 0.95 * len(at_receivers)
    for frame in both:
        way_s = frame.time_s - seen_s[frame.key] if frame.source in servers else seen_s[frame.key] - frame.time_s
        assert way_s > 9.9e-3, "half the RTT, and what waits"
    counted = [sum(frame.payload_bytes > 0 for frame in found) for found in (at_senders, at_receivers)]
    assert 0 < counted[0] - counted[1] <= data.flows["dropped_packets"].sum()


def test_links_are_rejected():
    text = DUMBBELL.replace("pcap = true", 'pcap = ["link:bottleneck"]')
    with pytest.raises(UnsupportedError, match='engine "linux" has no packet captures at links'):
        ac.run(ac.loads(text).plan(), "linux", seeds=[1])
