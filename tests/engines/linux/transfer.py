"""Sends bytes through a router of 100 Mb/s and 100 packets between two private namespaces; prints what the socket says.

Run under `unshare --mount --net` with the congestion control and the number of bytes. Prints JSON: `congestion`,
`received_bytes`, `retransmissions`, and samples of `[cwnd, ssthresh]`.
"""

import ctypes
import json
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

TCP_INFO, TCP_CONGESTION = 11, 13
SHAPE = ("htb default 1", "htb rate 100mbit burst 3000", "pfifo limit 100")


def sh(*lines):
    for line in lines:
        subprocess.run(line.split(), check=True, stderr=subprocess.DEVNULL)


def cable(left, right, net):
    sh(f"ip link add to-{right} netns {left} type veth peer name to-{left} netns {right}")
    for host, other, number in ((left, right, 1), (right, left, 2)):
        sh(f"ip -n {host} addr add 10.9.{net}.{number}/24 dev to-{other}")
        sh(f"ip -n {host} link set dev to-{other} gso_max_segs 1 up")


def network():
    sh("mount -t tmpfs tmpfs /run", *(f"ip netns add {name}" for name in ("tx", "router", "rx")))
    cable("tx", "router", 1)
    cable("router", "rx", 2)
    sh("ip -n tx route add default via 10.9.1.2", "ip -n rx route add default via 10.9.2.1")
    sh("ip netns exec router sysctl -qw net.ipv4.ip_forward=1")
    tree, rate, queue = SHAPE
    sh(
        f"tc -n router qdisc add dev to-rx root handle 1: {tree}",
        f"tc -n router class add dev to-rx parent 1: classid 1:1 {rate}",
        f"tc -n router qdisc add dev to-rx parent 1:1 {queue}",
    )


def inside(name, make):
    """Makes a socket in a namespace; it stays there."""
    made = []

    def work():
        with Path(f"/run/netns/{name}").open() as namespace:
            assert ctypes.CDLL(None).setns(namespace.fileno(), 0) == 0
        made.append(make())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return made[0]


def transfer(congestion, size):
    server = inside("rx", lambda: socket.create_server(("10.9.2.2", 5000)))
    client = inside("tx", socket.socket)
    client.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, congestion.encode())
    client.connect(("10.9.2.2", 5000))
    peer, _ = server.accept()
    received = []
    reader = threading.Thread(target=lambda: received.append(sum(map(len, iter(lambda: peer.recv(1 << 20), b"")))))
    reader.start()
    samples, left = [], size
    while left > 0:
        left -= client.send(bytes(min(left, 1 << 16)))
        ssthresh, cwnd = struct.unpack_from("II", client.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 256), 76)
        samples.append([cwnd, ssthresh])
    client.shutdown(socket.SHUT_WR)
    reader.join()
    info = client.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 256)
    return {
        "congestion": client.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b"\0").decode(),
        "received_bytes": received[0],
        "retransmissions": struct.unpack_from("I", info, 100)[0],
        "samples": samples,
    }


if __name__ == "__main__":
    network()
    print(json.dumps(transfer(sys.argv[1], int(sys.argv[2]))))
