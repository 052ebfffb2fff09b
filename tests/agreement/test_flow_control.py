"""Flow control in the packet engine and in the real kernel: slow readers and send buffers of a given size.

A receive buffer in the kernel is charged the memory of each packet, so it closes the window later than ours: behind a
pause the kernel's congestion window has been idle for less time, and restarts larger.
"""

from __future__ import annotations

import pytest
from pcaps import frames
from small_networks import dumbbell

import ackclock as ac

pytestmark = pytest.mark.usefixtures("guest_kernel")


def scenario(tcp, flow):
    return f"""
duration = "20s"
warmup = "2s"
repeats = 1
{dumbbell("20Mbit", "40ms", "100p")}
[tcp]
{tcp}
[[flows]]
congestion = "cubic"
{flow}
[record]
pcap = ["senders"]
"""


#: Port of the packet engine's receivers, and the first port of the kernel's.
PORTS = {"packet": 5001, "linux": 1024}


def run(engine, folder, tcp, flow=""):
    """Goodput in bit/s, and the smallest window field of the receiver's packets."""
    folder.mkdir()
    data = ac.run(ac.loads(scenario(tcp=tcp, flow=flow)).plan(), engine=engine, captures=folder)
    (path,) = folder.iterdir()
    windows = [frame.window for frame in frames(path) if frame.source[1] == PORTS[engine]]
    return 8 * data.flows["measured_bytes"].sum() / 18, min(windows)


WINDOW = 'receive_window = "128KiB"'


@pytest.mark.parametrize("reads", ['rate = "2Mbit"', 'rate = "4Mbit", chunk = "16KiB"'])
def test_a_slow_reader_is_as_fast(tmp_path, reads):
    flow = f"slow_reader = {{ {reads} }}"
    ours, theirs = (run(engine, tmp_path / engine, WINDOW, flow)[0] for engine in ("packet", "linux"))
    assert ours == pytest.approx(theirs, rel=0.01)


def test_a_pause_closes_the_window(tmp_path):
    flow = 'slow_reader = { pause = { at = "2s", for = "1s", every = "2s" } }'
    found = {engine: run(engine, tmp_path / engine, WINDOW, flow) for engine in PORTS}
    (ours, our_window), (theirs, their_window) = found["packet"], found["linux"]
    assert our_window == their_window == 0
    assert ours == pytest.approx(theirs, rel=0.2)


@pytest.mark.parametrize("size", ["32KiB", "64KiB"])
def test_a_send_buffer_limits_as_much(tmp_path, size):
    found = {engine: run(engine, tmp_path / engine, f'send_buffer = "{size}"')[0] for engine in PORTS}
    assert found["packet"] == pytest.approx(found["linux"], rel=0.05)
    assert found["packet"] < 0.95 * 20e6
