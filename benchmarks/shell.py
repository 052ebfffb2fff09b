"""Throughput and lateness of `ackclock shell`: one TCP download through links of several rates.

    .venv/bin/python benchmarks/shell.py [--seconds 5] [--mtu 1500] [--rtt 10ms] [RATE…]
    .venv/bin/python benchmarks/shell.py --soak --seconds 3600 [10Mbit]

A row for each rate: the program's goodput, packets a second of both directions and for each CPU second of the thread
that carries them, and the lateness of packets, of which the guide says what it means. Sender, receiver and simulation
share this machine, so its load is part of the result. With `--soak` one download goes on, and ten rows have the memory
of the process, which must not grow after the first.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import ackclock as ac

#: A server that sends without end to each who connects, and a client that prints what it gets, in Mbit/s.
SERVER = """import socket
with socket.create_server(("", 5000)) as listener:
    while True:
        connection, _ = listener.accept()
        try:
            while True: connection.sendall(bytes(1 << 20))
        except OSError: pass
"""
CLIENT = """import socket, sys, time
connection, buffer = socket.create_connection((sys.argv[1], 5000)), bytearray(1 << 20)
start, received = time.monotonic(), 0
while time.monotonic() < start + float(sys.argv[2]): received += connection.recv_into(buffer)
print(8e-6 * received / (time.monotonic() - start))
"""


def measured(rate: str, arguments: argparse.Namespace) -> str:
    """Run a download through a link; return a row."""
    queue = {"discipline": "pfifo", "limit": "2000p"}
    network = {"topology": "dumbbell", "rate": rate, "rtt": arguments.rtt, "queue": queue}
    with ac.shell({"duration": "1s", "network": network}, mtu=arguments.mtu) as net:
        net.serve([("peer", [sys.executable, "-c", SERVER])])
        words = [sys.executable, "-c", CLIENT, "10.77.0.1", str(arguments.seconds)]
        done = net.run(words, capture_output=True, text=True, check=True)
        cpu_s = thread_cpu_s()
    data = net.dataset()
    late = data.manifest["shell"]["lateness"]
    times = " ".join(f"{1e6 * late[name]:9.0f}" for name in ("p50_s", "p99_s", "p999_s", "worst_s"))
    packets = late["packets"] / data.plan.duration_s if data.plan.duration_s else 0.0
    per_cpu = late["packets"] / cpu_s / 1000
    return f"{rate:>8} {float(done.stdout):9.0f} {packets / 1000:8.1f} {per_cpu:10.0f} {times}"


def thread_cpu_s() -> float:
    """The CPU time of the thread that carries packets, in seconds (proc(5), schedstat)."""
    threads = Path("/proc/self/task").iterdir()
    (bridge,) = (each for each in threads if (each / "comm").read_text().strip() == "bridge")
    return 1e-9 * float((bridge / "schedstat").read_text().split()[0])


def soak(rate: str, arguments: argparse.Namespace) -> None:
    """Print the resident memory of this process in ten rows while a download goes on."""
    queue = {"discipline": "pfifo", "limit": "1bdp"}
    network = {"topology": "dumbbell", "rate": rate, "rtt": "40ms", "queue": queue}
    print("       s   resident MiB")
    with ac.shell({"duration": "1s", "network": network, "record": {"interval": "1ms"}}) as net:
        net.serve([("peer", [sys.executable, "-c", SERVER])])
        client = net.popen([sys.executable, "-c", CLIENT, "10.77.0.1", str(arguments.seconds)], stdout=-1, text=True)
        start_s = time.monotonic()
        for row in range(1, 11):
            time.sleep(max(0.0, start_s + row * arguments.seconds / 10 - time.monotonic()))
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            print(f"{time.monotonic() - start_s:8.0f} {pages * os.sysconf('SC_PAGE_SIZE') / 2**20:14.1f}", flush=True)
        print(f"{float(client.communicate()[0]):.2f} Mbit/s")
    sentence, warnings = net.time_kept
    print(sentence, *warnings)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("rates", nargs="*", metavar="RATE")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--mtu", type=int, default=1500)
    parser.add_argument("--rtt", default="10ms")
    parser.add_argument("--soak", action="store_true", help="the memory during one download (10Mbit)")
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    if arguments.soak:
        soak((arguments.rates or ["10Mbit"])[0], arguments)
        return
    print("    rate    Mbit/s   kpkt/s  per CPU s  late µs: 50 %     99 %    99.9 %     worst")
    for rate in arguments.rates or ["100Mbit", "500Mbit", "1Gbit", "10Gbit"]:
        print(measured(rate, arguments), flush=True)


if __name__ == "__main__":
    main()
