"""One end of `ackclock shell`, in namespaces of its own: a TUN device, through which the packets of its programs pass.

It runs as a script, with the standard library alone, as process 1 of its namespace:

    python host.py SOCKET SETTINGS

It sends the device over the socket and then waits for processes that others have left. Programs enter the namespaces by
`nsenter`; all of them end with this process.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

#: linux/if_tun.h: the request that makes a device, a device of IP packets, without information before each.
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000

#: Name of the device, and packets that may wait in it until the simulation reads them.
DEVICE, QUEUE_P = "path0", 10_000

#: Settings of the namespace by which programs without rights may listen at all ports, and send ICMP echo requests.
PERMITTED = {"ip_unprivileged_port_start": "0", "ping_group_range": f"{os.getgid()} {os.getgid()}"}


def device(settings: dict[str, Any]) -> int:
    """Make the device with its addresses and routes; return its file descriptor."""
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    commands = [
        "link set lo up",
        f"link set {DEVICE} mtu {settings['mtu']} txqueuelen {QUEUE_P} addrgenmode none",
        f"link set {DEVICE} up",
        f"addr add {settings['ipv4']}/24 dev {DEVICE}",
        f"route add default dev {DEVICE}",
    ]
    if Path("/proc/sys/net/ipv6").exists() and settings["mtu"] >= 1280:  # the least of IPv6: RFC 8200 section 5
        commands += [
            f"-6 addr add {settings['ipv6']}/64 dev {DEVICE} nodad",
            f"-6 route add default dev {DEVICE}",
        ]
    for words in commands:
        subprocess.run(["ip", *words.split()], check=True, capture_output=True)
    return tun


def permit() -> None:
    """Let programs use what no other network is harmed by, where that can be set."""
    for name, value in PERMITTED.items():
        with suppress(OSError):
            (Path("/proc/sys/net/ipv4") / name).write_text(value)


def mount(settings: dict[str, Any]) -> None:
    """Let the namespace see its own processes, and no names but those of the ends, where that is permitted."""
    files = (("--bind", path, target) for target, path in settings["files"].items())
    for words in (("-t", "proc", "proc", "/proc"), *files):
        subprocess.run(["mount", *words], check=False, capture_output=True)


def send_device(outside: socket.socket, settings: dict[str, Any]) -> bool:
    """Send the device, or the reason why there is none."""
    try:
        mount(settings)
        permit()
        tun = device(settings)
    except (OSError, subprocess.CalledProcessError) as error:
        said = error.stderr.decode().strip() if isinstance(error, subprocess.CalledProcessError) else ""
        outside.send(f"{said or error}".encode())
        return False
    socket.send_fds(outside, [b"device"], [tun])
    os.close(tun)
    return True


def main() -> int:
    """Be an end."""
    for each in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):  # they are for the programs
        signal.signal(each, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[1])) as outside:
        if not send_device(outside, json.loads(sys.argv[2])):
            return 1
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nothing is left of processes without a parent
    while True:
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
