"""Connections with the outside: from an end's sockets to servers of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest
from shell.test_shell import CLIENT, PYTHON, SERVER, in_namespaces
from small_networks import dumbbell

import ackclock as ac
from ackclock.shell.addresses import Subnet
from ackclock.shell.echo import VERSIONS, Echo, Request, _open, parse, reply
from ackclock.shell.relay import Relay

HOST, HOST_6 = Subnet().host, Subnet().host6

SCENARIO = f'duration = "1s"\n{dumbbell("20Mbit", "40ms", "100p")}\n'

#: Bytes that a server sends.
LENGTH = 300_000

#: A program: TCP and UDP with a server of this machine, and a port at which nobody listens.
PROGRAM = """
import socket, sys
tcp, udp, closed = map(int, sys.argv[1:])
with socket.create_connection(("host", tcp)) as stream:
    stream.sendall(b"please")
    stream.shutdown(socket.SHUT_WR)
    print(sum(iter(lambda: len(stream.recv(65536)), 0)))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
    datagrams.settimeout(5)
    for count in range(3):
        datagrams.sendto(b"%d" % count, ("host", udp))
        print(datagrams.recv(99).decode())
try:
    with socket.create_connection(("host", closed)) as stream:
        stream.recv(1)
except ConnectionError as error:
    print(type(error).__name__)
"""


@contextlib.contextmanager
def servers(address: str = "127.0.0.1") -> Iterator[tuple[int, int]]:
    """Ports of a server of TCP, which sends `LENGTH` bytes after the last of a request, and of one that echoes UDP."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as tcp, socket.socket(family, socket.SOCK_DGRAM) as udp:
        udp.bind((address, 0))

        def stream() -> None:
            accepted, _ = tcp.accept()
            with accepted:
                while accepted.recv(100):
                    pass
                accepted.sendall(bytes(LENGTH))

        def echo() -> None:
            for _ in range(3):
                udp.sendto(*udp.recvfrom(100))

        for each in (stream, echo):
            threading.Thread(target=each, daemon=True).start()
        yield tcp.getsockname()[1], udp.getsockname()[1]


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as once:
        return int(once.getsockname()[1])


@in_namespaces
def test_programs_reach_servers_of_this_machine_across_the_network():
    with servers() as ports, ac.shell(SCENARIO, internet=True) as net:
        words = [PYTHON, "-c", PROGRAM, *map(str, ports), str(closed_port())]
        done = net.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [str(LENGTH), "0", "1", "2", "ConnectionResetError"]
    data = net.dataset()
    tcp, udp, refused = data.manifest["shell"]["connections"]
    assert [each["ends"]["peer"] for each in (tcp, udp)] == [(HOST, port) for port in ports]
    assert tcp["tcp"]["peer"]["acknowledged_bytes"] >= LENGTH  # of the socket at the network's end
    assert tcp["tcp"]["peer"]["min_rtt_s"] == pytest.approx(0.04, abs=0.02)
    assert udp["to"]["program"]["delivered_packets"] == 3
    assert refused["is_closed"]
    assert data.manifest["shell"]["unknown_packets"] == 0
    assert data.manifest["shell"]["relay_lost_datagrams"] == 0


@in_namespaces
def test_a_server_at_the_peer_is_awaited():
    with ac.shell(SCENARIO, peer=f"sleep 0.5; {SERVER}", internet=True) as net:
        assert net.run([PYTHON, "-c", CLIENT], stdout=-1, text=True, check=True).stdout == "300000\n"
    assert net.dataset().manifest["shell"]["connections"][0]["ends"]["peer"] == ("10.77.0.1", 5000)


@in_namespaces
def test_without_it_nothing_is_reached():
    with servers() as ports, ac.shell(SCENARIO) as net:
        done = net.run([PYTHON, "-c", PROGRAM, *map(str, ports), "9"], stdout=-1, stderr=subprocess.PIPE, text=True)
    assert "socket.gaierror" in done.stderr
    assert done.stdout == ""


def test_an_address_that_names_no_connection_is_reset():
    tcp, udp = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    port = tcp.getsockname()[1]
    bridge, icmp = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    relay = Relay([tcp], [udp], lambda _: None, icmp)
    try:
        with pytest.raises(ConnectionResetError), socket.create_connection(("127.0.0.1", port), timeout=5) as stream:
            stream.recv(1)
    finally:
        relay.stop()
        bridge.close()
        icmp.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_datagrams_that_a_full_buffer_loses_are_counted():
    """A relay that is held up reads nothing: its buffer keeps some of 500 datagrams, and the rest is lost."""
    tcp, udp = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    udp.bind(("127.0.0.1", 0))
    relayed: list[str] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as program:
        for _ in range(500):
            program.sendto(bytes(1000), udp.getsockname())
    bridge, icmp = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    relay = Relay([tcp], [udp], relayed.append, icmp)  # no destination is known: each is dropped
    end_s = time.monotonic() + 30
    while not relayed and time.monotonic() < end_s:
        time.sleep(0.01)
    relay.stop()  # after the datagrams that it is reading
    bridge.close()
    icmp.close()
    assert len(relayed) + relay.lost_datagrams == 500
    assert 0 < len(relayed) < 500


#: A program: TCP and UDP over IPv6 with a server of this machine, and echo requests to it over both versions.
SIX = """
import socket, subprocess, sys
tcp, udp = map(int, sys.argv[1:3])
with socket.create_connection(("host6", tcp)) as stream:
    stream.sendall(b"please")
    stream.shutdown(socket.SHUT_WR)
    print(sum(iter(lambda: len(stream.recv(65536)), 0)))
with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as datagrams:
    datagrams.settimeout(5)
    datagrams.sendto(b"six", ("host6", udp))
    print(datagrams.recv(99).decode())
for family, protocol, name, kind in ((2, 1, "host", 8), (10, 58, "host6", 128)):
    with socket.socket(family, socket.SOCK_DGRAM, protocol) as echo:
        echo.settimeout(5)
        for count in range(2):
            echo.sendto(bytes([kind, 0, 0, 0, 0, 0, 0, count]) + b"payload", (name, 0))
            content = echo.recv(99)
            print(content[0], content[7], content[8:].decode())
"""


def pings_are_permitted() -> bool:
    try:
        for version in VERSIONS.values():
            _open(version).close()
    except PermissionError:
        return False
    return True


@in_namespaces
@pytest.mark.skipif(not pings_are_permitted(), reason="this machine forbids its users ping")
def test_ipv6_and_ping_reach_this_machine_across_the_network():
    with servers("::1") as ports, ac.shell(SCENARIO, internet=True) as net:
        done = net.run([PYTHON, "-c", SIX, *map(str, ports)], capture_output=True, text=True, timeout=60, check=True)
    pings = ["0 0 payload", "0 1 payload", "129 0 payload", "129 1 payload"]
    assert done.stdout.splitlines() == [str(LENGTH), "six", *pings]
    shell = net.dataset().manifest["shell"]
    assert [each["ends"]["peer"][0] for each in shell["connections"]] == [HOST_6, HOST_6, HOST, HOST_6]
    for each in shell["connections"]:
        assert each["to"]["program"]["delay_mean_s"] > 0.02
    assert (shell["unknown_packets"], shell["relay_forbidden_echoes"]) == (0, 0)


#: A program in a network in a network: it reaches the outer one's peer through both.
OUTER_CLIENT = CLIENT.replace('os.environ["ACKCLOCK_PEER"]', '"10.77.0.1"')
INNER = f"""
import sys
import ackclock as ac
scenario = {SCENARIO!r}
with ac.shell(scenario, internet=True) as net:
    net.run([sys.executable, "-c", {OUTER_CLIENT!r}], check=True)
(one,) = net.dataset().manifest["shell"]["connections"]
print(one["ends"]["program"][0], one["ends"]["peer"][0])
"""


@in_namespaces
def test_a_network_inside_another_reaches_its_peer():
    with ac.shell(SCENARIO, peer=SERVER) as net:
        done = net.run([PYTHON, "-c", INNER], capture_output=True, text=True, timeout=100)
    assert (done.stdout, done.returncode) == ("300000\n10.77.1.2 10.77.0.1\n", 0), done.stderr
    (outer,) = net.dataset().manifest["shell"]["connections"]
    assert outer["ends"]["peer"][0] == "10.77.0.1"
    assert outer["to"]["program"]["delivered_bytes"] == 300_000


@in_namespaces
def test_programs_at_hosts_reach_servers_behind_the_first_host():
    words = [PYTHON, "-c", PROGRAM]
    with servers() as ports, ac.shell("scenarios/leaf-spine.toml", at=["h0", "h3", "h5"], internet=True) as net:
        done = net.run([*words, *map(str, ports), str(closed_port())], stdout=-1, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [str(LENGTH), "0", "1", "2", "ConnectionResetError"]
    ends = [each["ends"] for each in net.dataset().manifest["shell"]["connections"]]
    assert [sorted(each) for each in ends] == [["h0", "h5"]] * 3
    assert ends[0]["h0"] == (HOST, ports[0])


def test_what_is_no_echo_request_is_dropped():
    request = Request(4, b"\x0a\x4d\x00\x02", b"\xc6\x33\x64\x01", 7, bytes([8, 0, 0, 0, 0, 7, 0, 1]) + b"x")
    packet = reply(request, request.message)
    assert parse(packet) is None
    asked = packet[:20] + b"\x08" + packet[21:]
    assert parse(asked) == Request(4, packet[12:16], packet[16:20], 7, asked[20:])
    for length in range(len(asked)):
        assert parse(asked[:length]) is None or length >= 28
    assert parse(asked[:6] + b"\x20" + asked[7:]) is None


def test_a_broadcast_is_not_counted_as_forbidden_to_this_user():
    """connect(2) fails with EACCES for a broadcast address, as socket(2) for a user without the right to ping."""
    loop, (bridge, ours) = asyncio.new_event_loop(), socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with bridge, ours, contextlib.closing(loop):
        bridge.setblocking(False)
        try:
            _open(VERSIONS[4]).close()
        except PermissionError:
            pytest.skip("this user may not ping")
        request = Request(4, b"\xff" * 4, b"\x0a\x4d\x00\x02", 7, bytes([8, 0, 0, 0, 0, 7, 0, 1]))
        packet = bytearray(reply(request, request.message))
        packet[20] = 8
        ours.send(packet)
        echo = Echo(loop, bridge, str)
        loop.call_later(0.1, loop.stop)
        loop.run_forever()
        assert echo.forbidden == 0
        echo.close()


#: A program that ends with downloads on their way.
LEAVES = """
import os, socket, sys
streams = [socket.create_connection(("host", int(sys.argv[1]))) for _ in range(5)]
for stream in streams:
    stream.recv(1000)
os._exit(3)
"""


@in_namespaces
def test_connections_that_are_open_at_the_end_are_reset(capfd: pytest.CaptureFixture[str]):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def stream() -> None:
            for _ in range(5):
                accepted, _ = server.accept()
                threading.Thread(target=send, args=(accepted,), daemon=True).start()

        def send(accepted: socket.socket) -> None:
            with accepted, contextlib.suppress(OSError):
                accepted.sendall(bytes(10 * LENGTH))

        threading.Thread(target=stream, daemon=True).start()
        with ac.shell(SCENARIO, internet=True) as net:
            words = [PYTHON, "-c", LEAVES, str(server.getsockname()[1])]
            assert net.run(words, timeout=60).returncode == 3
    assert len(net.dataset().manifest["shell"]["connections"]) == 5
    assert "Traceback" not in capfd.readouterr().err


@in_namespaces
def test_the_smallest_mtu_has_no_ipv6():
    with ac.shell(SCENARIO, peer=SERVER, mtu=576) as net:
        assert net.run([PYTHON, "-c", CLIENT], stdout=-1, text=True, check=True).stdout == "300000\n"
