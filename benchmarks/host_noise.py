"""Processing delay of this machine's kernel between a TCP packet's arrival and its response, over the loopback.

    sudo python benchmarks/host_noise.py [SECONDS]

A transfer with a window of a few segments runs over 127.0.0.1, and a packet socket, which is why root is needed, sees
each packet leave one end and reach the other, with the kernel's timestamps. Printed are quantiles of two delays, in µs:
from data to the ACK that leaves next (receiver), from an ACK to the data that leave next (sender). There is no network
card in it: what that waits before it interrupts (`ethtool -c`, rx-usecs) comes on top.
"""

from __future__ import annotations

import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np

#: socket(7), packet(7): names that Python does not have.
SO_TIMESTAMPNS, ETH_P_ALL, PACKET_OUTGOING = 35, 3, 4

MSS_BYTES, WINDOW_SEGMENTS, LOOPBACK_HEADER = 1448, 8, 14

#: An answer that comes later waited for something else.
LONGEST_S = 1e-3

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)

CapturedPacket = tuple[float, bool, int, bool]


def watch(port: int, stop: threading.Event) -> Iterator[CapturedPacket]:
    """Yield each packet of a transfer to `port`: time, direction, destination port and whether it has data."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as raw:
        raw.bind(("lo", 0))
        raw.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        raw.settimeout(0.2)
        while not stop.is_set():
            try:
                frame, control, _, address = raw.recvmsg(96, 64)
            except TimeoutError:
                continue
            packet = frame[LOOPBACK_HEADER:]
            if packet[9] != socket.IPPROTO_TCP or port not in struct.unpack("!HH", packet[20:24]):
                continue
            seconds, nanoseconds = struct.unpack("qq", control[0][2][:16])
            length = struct.unpack("!H", packet[2:4])[0] - 20 - (packet[32] >> 4) * 4
            yield seconds + nanoseconds * 1e-9, address[2] == PACKET_OUTGOING, *_of(packet, length)


def _of(packet: bytes, length: int) -> tuple[int, bool]:
    return struct.unpack("!H", packet[22:24])[0], length > 0


def send(listener: socket.socket, seconds: float) -> None:
    """A transfer of `seconds` to the listener, which reads all of it."""
    port = listener.getsockname()[1]
    with socket.socket() as sender:
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, MSS_BYTES)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, WINDOW_SEGMENTS * MSS_BYTES)
        sender.connect(("127.0.0.1", port))
        reader, _ = listener.accept()
        threading.Thread(target=_drain, args=(reader,), daemon=True).start()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            sender.sendall(bytes(MSS_BYTES))


def _drain(reader: socket.socket) -> None:
    with reader:
        while reader.recv(1 << 16):
            pass


def delays(packets: list[CapturedPacket], port: int, *, data: bool) -> np.ndarray:
    """From a packet with data (or without) that arrives to the next one that its host sends, in seconds."""
    found, arrived = [], None
    for when, leaves, to, has_data in packets:
        kinds = {has_data, to == port}
        if not leaves and kinds == {data}:
            arrived = when if arrived is None else arrived
        elif leaves and arrived is not None and kinds == {not data}:
            found.append(when - arrived)
            arrived = None
    times = np.array(found)
    return times[times < LONGEST_S]


def main(seconds: float = 2.0) -> None:
    """Prints both distributions."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, MSS_BYTES)
        port, stop = listener.getsockname()[1], threading.Event()
        packets: list[CapturedPacket] = []
        watcher = threading.Thread(target=lambda: packets.extend(watch(port, stop)))
        watcher.start()
        time.sleep(0.3)
        send(listener, seconds)
        stop.set()
        watcher.join()
    packets.sort(key=lambda seen: seen[0])
    print("µs".ljust(10), *(f"{share:>7.0%}" for share in QUANTILES), "   mean      n")
    for name, data in (("receiver", True), ("sender", False)):
        times_us = 1e6 * delays(packets, port, data=data)
        row = (f"{value:7.1f}" for value in np.quantile(times_us, QUANTILES)) if times_us.size else ()
        print(name.ljust(10), *row, f"{times_us.mean():7.1f} {times_us.size:6d}")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
