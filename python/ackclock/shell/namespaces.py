"""The namespaces of `ackclock shell`: one for each end, without root, which end with the process that made them."""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ackclock.errors import InputError
from ackclock.shell.addresses import Subnet
from ackclock.shell.relay import has_ipv6_route

#: Programs that make the namespaces: util-linux and iproute2.
PROGRAMS = ("unshare", "nsenter", "setpriv", "mount", "ip")

TUN = Path("/dev/net/tun")

#: User, network, mount and process namespaces; all is killed with the first process, and that with us.
UNSHARE = (
    *("setpriv", "--pdeathsig", "SIGKILL", "unshare", "--user", "--map-current-user", "--keep-caps"),
    *("--net", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--"),
)

#: Switches by which Debian and Ubuntu forbid user namespaces to users, with the value that allows them.
SWITCHES = {
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "0",
    "/proc/sys/kernel/unprivileged_userns_clone": "1",
}

#: A report of sockets begins with its time; the longest.
CLOCK, MAX_REPORT_BYTES = struct.Struct("=d"), 1 << 17

#: File descriptors of an end: its device, and sockets of TCP and UDP for two versions of IP.
MAX_DEVICES = 5

#: Longest time until an end is there, in seconds.
PATIENCE_S = 30.0

#: States of a socket that waits for others, in /proc/net/tcp and /proc/net/udp.
LISTENING = {"tcp": "0A", "udp": "07"}

#: Longest time until a server listens, and the interval of looks, in seconds.
LISTENING_S, LOOK_S = 5.0, 0.01


def check() -> None:
    """Raise `InputError` if there can be no namespaces with TUN devices here."""
    if missing := [name for name in PROGRAMS if not shutil.which(name)]:
        raise InputError(f"shell: found no {', '.join(missing)}; expected util-linux and iproute2")
    try:
        os.close(os.open(TUN, os.O_RDWR))
    except OSError as error:
        expected = "a device that its user may open (modprobe tun; in a container: --device /dev/net/tun)"
        raise InputError(f"shell: {TUN}: found {error.strerror}; expected {expected}") from None
    tried = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        said = tried.stderr.strip().removeprefix("unshare: ") or f"status {tried.returncode}"
        raise InputError(f"shell: no namespaces: found {said}; expected {_permission()}")


def _permission() -> str:
    """Return what would allow user namespaces."""
    for switch, value in SWITCHES.items():
        with suppress(OSError):
            if Path(switch).read_text().strip() != value:
                return f"user namespaces for users (sysctl {'.'.join(Path(switch).parts[3:])}={value})"
    return "user namespaces for users (in a container: --security-opt seccomp=unconfined)"


class End:
    """An end of the network: namespaces with a device, in which programs run."""

    def __init__(
        self,
        name: str,
        names: Sequence[str],
        place: Path,
        mtu: int,
        interval_s: float,
        *,
        internet: bool = False,
        subnet: Subnet = Subnet(),  # noqa: B008 (a constant)
    ) -> None:
        self.name = name
        all_addresses = {each: subnet.end(number) for number, each in enumerate(names, 1)}
        hosts, resolver = place / "hosts", place / "resolv.conf"
        lines = [f"{address} {each}" for each, both in all_addresses.items() for address in both]
        is_relay = internet and name == names[0]  # its own programs cannot reach the internet
        lines += [f"{subnet.host} host", f"{subnet.host6} host6"] if internet and not is_relay else []
        hosts.write_text("\n".join(["127.0.0.1 localhost", "::1 localhost", *lines, ""]))
        # At its own address nobody answers, which is known at once.
        resolver.write_text(f"nameserver {subnet.name_server if internet and not is_relay else '127.0.0.1'}\n")
        #: Its IPv4 and its IPv6 address.
        self.addresses = ipv4, ipv6 = all_addresses[name]
        files = {"/etc/hosts": str(hosts), "/etc/resolv.conf": str(resolver)}
        addresses = {"ipv4": ipv4, "ipv6": ipv6}
        # A relay's responses go to addresses outside; elsewhere a route promises that the servers can be reached.
        ways = {"has_ipv6_outside": not internet or is_relay or has_ipv6_route(), "has_relay": is_relay}
        settings = {**addresses, **ways, "mtu": mtu, "files": files, "interval_s": interval_s}
        #: Environment variables of its programs.
        self.variables = {"ACKCLOCK_PEER": all_addresses[names[0]][0], "no_proxy": "*", "NO_PROXY": "*"}
        self._start(settings)

    def _start(self, settings: Mapping[str, object]) -> None:
        """Make the namespaces, and take the device. Raises `InputError`."""
        self._reports, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        script = Path(__file__).with_name("host.py")
        with theirs:
            words = [*UNSHARE, sys.executable, "-I", "-S", str(script), str(theirs.fileno()), json.dumps(settings)]
            self._process = subprocess.Popen(words, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
            theirs.close()
            self._reports.settimeout(PATIENCE_S)
            try:
                said, self._devices, _, _ = socket.recv_fds(self._reports, 4096, MAX_DEVICES)
            except OSError as error:
                said, self._devices = str(error).encode(), []
        if not self._devices:
            self.kill()
            raise InputError(f"shell: no network: found {said.decode() or 'an end that died'}; expected a TUN device")
        #: Sockets for a relay, if it has one: of TCP and UDP, for IPv4 and then for IPv6.
        self.relay_sockets = [socket.socket(fileno=number) for number in self._devices[1:]]
        del self._devices[1:]
        self._reports.settimeout(None)

    @property
    def device(self) -> int:
        """The file descriptor of its TUN device."""
        return self._devices[0]

    def reports(self) -> Iterator[tuple[float, bytes]]:
        """Yield the reports of the TCP sockets here, with their times, until the end or `finish_reports`."""
        while content := self._reports.recv(MAX_REPORT_BYTES):
            (time_s,) = CLOCK.unpack_from(content)
            yield time_s, content[CLOCK.size :]

    def finish_reports(self) -> None:
        """Ask for the last reports."""
        with suppress(OSError):
            self._reports.shutdown(socket.SHUT_WR)

    def enter(self, command: Sequence[str], directory: str | os.PathLike[str]) -> list[str]:
        """Return the words that run a command in the namespaces; it ends with the process that runs them.

        `nsenter` waits for the command, and takes its end upon itself: its status, or the same signal.
        """
        spaces = Path("/proc") / str(self._process.pid) / "ns"
        entered = {"user": "user", "net": "net", "mount": "mnt", "pid": "pid_for_children"}
        return [
            *("nsenter", "--preserve-credentials", *(f"--{name}={spaces / file}" for name, file in entered.items())),
            *("--", "env", f"--chdir={os.fspath(directory)}", "--default-signal=INT,QUIT,TSTP"),
            *("setpriv", "--pdeathsig", "SIGKILL", "--", *command),
        ]

    def wait_listening(self, server: subprocess.Popen[bytes], end_s: float) -> None:
        """Wait until a socket listens, the server has ended, or a time by the monotonic clock has come."""
        while time.monotonic() < end_s and server.poll() is None and not self._listens():
            time.sleep(LOOK_S)

    def _listens(self) -> bool:
        own = {f"{each.getsockname()[1]:04X}" for each in self.relay_sockets}
        for protocol, state in LISTENING.items():
            for version in ("", "6"):
                with suppress(OSError):
                    table = Path(f"/proc/{self._process.pid}/net/{protocol}{version}").read_text()
                    rows = [line.split() for line in table.splitlines()[1:]]
                    if any(row[3] == state and row[1].rpartition(":")[2] not in own for row in rows):
                        return True
        return False

    def kill_programs(self) -> None:
        """End all that runs in the namespaces."""
        self._process.kill()

    def kill(self) -> None:
        """End all that runs in the namespaces; the device goes with them."""
        self.kill_programs()
        self._process.wait()
        self._reports.close()
        while self._devices:
            os.close(self._devices.pop())
