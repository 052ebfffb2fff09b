"""A machine with netem, for tests of hosts where the kernel that is there has none: the guest's kernel in real time.

It is User-Mode Linux as engine `linux` starts it, but its clock is everybody's. It sees this machine's files, may do in
it what root may, and has a network of its own. Programs are several times as slow there, so rates are to be low.

    python tests/realtime.py COMMAND…      # in this folder, as root there; its output at the end
"""

from __future__ import annotations

import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ackclock.engines.linux import guest
from ackclock.engines.linux.kernel import cache

#: The memory of such a machine.
MEMORY_BYTES = 1 << 30

#: Before this machine's other work, where that is allowed, or packets are late by 0.1 s.
FIRST = ("chrt", "--rr", "1")

#: Gives a kernel without devices, which has nothing random, the bits that it would else collect for minutes: random(4),
#: RNDADDENTROPY. It imports nothing that waits for them.
RANDOM = """
import fcntl, struct
given = open({file!r}, "rb").read()
fcntl.ioctl(open("/dev/random", "wb"), 0x40085203, struct.pack("ii", 8 * len(given), len(given)) + given)
"""


class Machine(guest.Guest):
    """A guest whose time is the world's."""

    __slots__ = ()

    def arguments(self) -> list[str]:
        """Return a guest's arguments, without virtual time, and with high priority if permitted."""
        tried = shutil.which(FIRST[0]) and subprocess.run([*FIRST, "true"], capture_output=True, check=False)
        kernel = [word for word in guest.Guest.arguments(self) if not word.startswith("time-travel")]
        return [*(FIRST if tried and tried.returncode == 0 else ()), *kernel]


def run(kernel: Path, command: Sequence[str]) -> tuple[int, str]:
    """Return a command's status and output in the machine. Raises `GuestError` if the machine fails."""
    with tempfile.TemporaryDirectory(prefix="ackclock-realtime-") as name:
        folder = Path(name)
        (folder / "random").write_bytes(secrets.token_bytes(64))
        begin = shlex.join([sys.executable, "-I", "-S", "-c", RANDOM.format(file=str(folder / "random"))])
        there = f"cd {shlex.quote(str(Path.cwd()))}"
        script = f"{begin}\n{there}\n{shlex.join(command)} > {name}/said 2>&1\necho $? > {name}/status"
        guest.run(Machine(kernel, MEMORY_BYTES), folder / "order", lambda share: None, ["sh", "-c", script])
        said = folder / "said"
        return int((folder / "status").read_text()), said.read_text() if said.exists() else ""


def main(*words: str) -> int:
    """Runs a command there."""
    kept = cache.taken(cache.every())
    if not words or kept is None:
        sys.exit("no guest kernel: `make kernel`" if words else __doc__)
    status, said = run(kept.kernel, words)
    print(said, end="")
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
