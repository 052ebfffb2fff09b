"""One end of `ackclock shell`, in namespaces of its own: a TUN device, and a command whose packets pass it.

It runs as a script, with the standard library alone, as process 1 of its namespace:

    python host.py SOCKET SETTINGS

It sends the device over the socket, waits for a byte, runs the command, and ends with its status. Whatever the command
has started ends with it, as its namespace does.
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
import time
from pathlib import Path
from typing import Any

#: linux/if_tun.h: the request that makes a device, a device of IP packets, without information before each.
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000

#: Name of the device, and packets that may wait in it until the simulation reads them.
DEVICE, QUEUE_P = "path0", 10_000

#: States of a socket that waits for others, in /proc/net/tcp and /proc/net/udp.
LISTENING = {"tcp": "0A", "udp": "07"}

#: Longest time until a server listens, and the interval of looks, in seconds.
PATIENCE_S, LOOK_S = 5.0, 0.01

#: Status of a shell whose command is not found.
NO_PROGRAM = 127


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


def mount(settings: dict[str, Any]) -> None:
    """Let the namespace see its own processes, and no names but those of both ends, where that is permitted."""
    files = (("--bind", path, target) for target, path in settings["files"].items())
    for words in (("-t", "proc", "proc", "/proc"), *files):
        subprocess.run(["mount", *words], check=False, capture_output=True)


def wait_listening(child: int) -> None:
    """Wait until a socket listens, the command has ended, or patience has."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and not _listens():
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return
        time.sleep(LOOK_S)


def _listens() -> bool:
    for protocol, state in LISTENING.items():
        for version in ("", "6"):
            try:
                lines = Path(f"/proc/net/{protocol}{version}").read_text().splitlines()[1:]
            except OSError:
                continue
            if any(line.split()[3] == state for line in lines):
                return True
    return False


def run(command: list[str], variables: dict[str, str], *, quiet: bool) -> int:
    """Start the command, without rights over the namespace but those of its user; return its process."""
    child = os.fork()
    if child:
        return child
    for each in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
        signal.signal(each, signal.SIG_DFL)
    if quiet:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
    if os.getuid() != 0:
        command = ["setpriv", "--ambient-caps=-all", "--inh-caps=-all", "--", *command]
    try:
        os.execvpe(command[0], command, {**os.environ, **variables})
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(NO_PROGRAM)


def reap(child: int) -> int:
    """Wait for the command, and for what it has left; return its status as a shell does."""
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def main() -> int:
    """Be an end."""
    for each in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):  # they are for the command
        signal.signal(each, signal.SIG_IGN)
    settings = json.loads(sys.argv[2])
    with socket.socket(fileno=int(sys.argv[1])) as outside:
        try:
            mount(settings)
            tun = device(settings)
        except (OSError, subprocess.CalledProcessError) as error:
            said = error.stderr.decode().strip() if isinstance(error, subprocess.CalledProcessError) else ""
            outside.send(f"{said or error}".encode())
            return 1
        socket.send_fds(outside, [b"device"], [tun])
        os.close(tun)
        if outside.recv(1) != b"g":
            return 1
        child = run(settings["command"], settings["variables"], quiet=settings["server"])
        if settings["server"]:
            wait_listening(child)
            outside.send(b"listening")
    return reap(child)


if __name__ == "__main__":
    sys.exit(main())
