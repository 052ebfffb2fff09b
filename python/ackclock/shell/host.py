"""One end of `ackclock shell`, in namespaces of its own: a TUN device, through which the packets of its programs pass.

It runs as a script, with the standard library alone, as process 1 of its namespace:

    python host.py SOCKET SETTINGS

It sends the device over the socket, then what the kernel says of the namespace's TCP sockets (`report`), and waits for
processes that others have left. Programs enter the namespaces by `nsenter`; all of them end with this process.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

#: linux/if_tun.h: the request that makes a device, a device of IP packets, without information before each.
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000

#: Name of the device, and packets that may wait in it until the simulation reads them.
DEVICE, QUEUE_P = "path0", 10_000

#: Settings of the namespace by which programs without rights may listen at all ports, and send ICMP echo requests.
PERMITTED = {"ip_unprivileged_port_start": "0", "ping_group_range": f"{os.getgid()} {os.getgid()}"}

#: Datagrams that wait for the relay, in bytes; the system's limit may be less.
UDP_BUFFER_BYTES = 1 << 22

#: sock_diag(7): the protocol, a request about sockets, its flags for all of them, and the types that end an answer.
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, REQUEST_ALL, NLMSG_ERROR, NLMSG_DONE = 4, 20, 0x301, 2, 3

#: Attributes asked for: TCP_INFO and the name of the algorithm. States that are not: TIME-WAIT and LISTEN.
ATTRIBUTES, STATES = 1 << 1 | 1 << 3, 0xFFF & ~(1 << 6 | 1 << 10)

#: Groups that are told of TCP sockets which end, of IPv4 and IPv6.
ENDED = 1 << 0 | 1 << 2

#: A netlink header, and the longest datagram of the kernel.
HEADER, LONGEST = struct.Struct("=IHHII"), 1 << 16


def device(settings: dict[str, Any]) -> int:
    """Make the device with its addresses and routes; return its file descriptor."""
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    commands = [
        "link set lo up",
        f"link set {DEVICE} addrgenmode none",  # while it may have IPv6, which a small MTU ends
        f"link set {DEVICE} mtu {settings['mtu']} txqueuelen {QUEUE_P}",
        f"link set {DEVICE} up",
        f"addr add {settings['ipv4']}/24 dev {DEVICE}",
        f"route add default dev {DEVICE}",
    ]
    if has_ipv6(settings):
        commands.append(f"-6 addr add {settings['ipv6']}/64 dev {DEVICE} nodad")
        if settings["has_ipv6_outside"]:  # without a route programs know at once that there is none
            commands.append(f"-6 route add default dev {DEVICE}")
    for words in commands:
        subprocess.run(["ip", *words.split()], check=True, capture_output=True)
    return tun


def has_ipv6(settings: dict[str, Any]) -> bool:
    """Return whether the end has IPv6, whose least MTU is 1280 (RFC 8200 section 5)."""
    return Path("/proc/sys/net/ipv6").exists() and settings["mtu"] >= 1280


def permit() -> None:
    """Allow programs without rights all ports and ping, which harm no other network, where that can be set."""
    for name, value in PERMITTED.items():
        with suppress(OSError):
            (Path("/proc/sys/net/ipv4") / name).write_text(value)


def relay_sockets(settings: dict[str, Any]) -> list[socket.socket]:
    """Return, for each version of IP, a socket of TCP and one of UDP for connections with the outside (`relay`)."""
    found = []
    for family, name in ((socket.AF_INET, "ipv4"), (socket.AF_INET6, "ipv6"))[: 1 + has_ipv6(settings)]:
        udp = socket.socket(family, socket.SOCK_DGRAM)
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, UDP_BUFFER_BYTES)
        udp.bind((settings[name], 0))
        found += [socket.create_server((settings[name], 0), family=family, backlog=1024), udp]
    return found


def mount(settings: dict[str, Any]) -> None:
    """Let the namespace see its own processes, and no names but those of the ends, where that is permitted."""
    files = (("--bind", path, target) for target, path in settings["files"].items())
    for words in (("-t", "proc", "proc", "/proc"), *files):
        subprocess.run(["mount", *words], check=False, capture_output=True)


def send_device(outside: socket.socket, settings: dict[str, Any]) -> bool:
    """Send the device, and sockets of a relay if there is one; or the reason why there is none."""
    try:
        mount(settings)
        permit()
        tun = device(settings)
        sockets = relay_sockets(settings) if settings["has_relay"] else []
    except (OSError, subprocess.CalledProcessError) as error:
        said = error.stderr.decode().strip() if isinstance(error, subprocess.CalledProcessError) else ""
        outside.send(f"{said or error}".encode())
        return False
    socket.send_fds(outside, [b"device"], [tun, *(each.fileno() for each in sockets)])
    os.close(tun)
    for each in sockets:
        each.close()
    return True


def report(outside: socket.socket, interval_s: float) -> None:
    """Send the kernel's messages about TCP sockets: of all at an interval, and of each when it ends.

    A report is the time by the monotonic clock (a double) and a datagram of sock_diag(7). When the other side closes
    its half of the connection, the last reports are sent.
    """
    netlink = socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG
    with socket.socket(*netlink) as asked, socket.socket(*netlink) as ended:
        ended.bind((0, ENDED))
        due_s = time.monotonic()
        is_over = False
        while not is_over:
            wait_s = max(0.0, due_s - time.monotonic())
            ready, _, _ = select.select([outside, ended], [], [], wait_s)
            is_over = outside in ready
            if ended in ready:
                with suppress(OSError):  # more than the kernel keeps
                    outside.send(stamped(ended.recv(LONGEST)))
            if is_over or time.monotonic() >= due_s:
                due_s += interval_s * max(1.0, (time.monotonic() - due_s) // interval_s)
                for datagram in responses(asked):
                    outside.send(stamped(datagram))


def stamped(datagram: bytes) -> bytes:
    """Return a report: the time by the monotonic clock (a double), then the datagram."""
    return struct.pack("=d", time.monotonic()) + datagram


def responses(asked: socket.socket) -> Iterator[bytes]:
    """Yield the kernel's datagrams about all TCP sockets that are connected."""
    for family in (socket.AF_INET, socket.AF_INET6):
        body = struct.pack("=BBBBI48x", family, socket.IPPROTO_TCP, ATTRIBUTES, 0, STATES)
        asked.send(HEADER.pack(HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, REQUEST_ALL, 0, 0) + body)
        kinds: set[int] = set()
        while not kinds & {NLMSG_DONE, NLMSG_ERROR}:
            datagram = asked.recv(LONGEST)
            kinds = set(message_kinds(datagram))
            if SOCK_DIAG_BY_FAMILY in kinds:
                yield datagram


def message_kinds(datagram: bytes) -> Iterator[int]:
    """Yield the types of the messages in a datagram of netlink."""
    place = 0
    while place + HEADER.size <= len(datagram):
        length, kind, *_ = HEADER.unpack_from(datagram, place)
        yield kind
        place += max(HEADER.size, (length + 3) & ~3)  # NLMSG_ALIGN


def main() -> int:
    """Run an end until it is killed."""
    for each in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):  # they are for the programs
        signal.signal(each, signal.SIG_IGN)
    settings = json.loads(sys.argv[2])
    with socket.socket(fileno=int(sys.argv[1])) as outside:
        if not send_device(outside, settings):
            return 1
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nothing is left of processes without a parent
        with suppress(OSError):  # a kernel that reports no sockets, or nobody who reads
            report(outside, settings["interval_s"])
        with suppress(OSError):  # closing it is not enough: `unshare` has it, too
            outside.shutdown(socket.SHUT_RDWR)
    while True:
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
