"""The namespaces of `ackclock shell`: one for each end, without root, which end with the process that made them."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ackclock.errors import InputError

#: Programs that make the namespaces: util-linux and iproute2.
PROGRAMS = ("unshare", "setpriv", "mount", "ip")

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

#: Longest time until an end is there, in seconds.
PATIENCE_S = 30.0


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
    """An end of the network: namespaces with a device and a command that waits."""

    def __init__(self, command: Sequence[str], settings: Mapping[str, object]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        script = Path(__file__).with_name("host.py")
        told = json.dumps({**settings, "command": list(command)})
        with theirs:
            words = [*UNSHARE, sys.executable, "-I", "-S", str(script), str(theirs.fileno()), told]
            self._process = subprocess.Popen(words, pass_fds=[theirs.fileno()])
        self._socket = ours
        ours.settimeout(PATIENCE_S)
        try:
            said, self._devices, _, _ = socket.recv_fds(ours, 4096, 1)
        except OSError as error:
            said, self._devices = str(error).encode(), []
        if not self._devices:
            self.kill()
            raise InputError(f"shell: no network: found {said.decode() or 'an end that died'}; expected a TUN device")

    @property
    def device(self) -> int:
        """The file descriptor of its TUN device."""
        return self._devices[0]

    def start(self) -> None:
        """Start the command."""
        self._socket.send(b"g")

    def wait_listening(self) -> None:
        """Wait until a server listens."""
        with suppress(OSError):
            self._socket.recv(16)

    def wait(self, timeout_s: float) -> int | None:
        """Wait for the command's end; return its status as a shell tells it, None if it still runs."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        code = self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    def kill(self) -> None:
        """End the command and all that it has started; the device goes with them."""
        self._process.kill()
        self._process.wait()
        self._socket.close()
        while self._devices:
            os.close(self._devices.pop())
