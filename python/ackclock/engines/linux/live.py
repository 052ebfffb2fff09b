"""The kernel that is there: the same run spec as in a guest, in private namespaces of this machine, in real time.

`unshare` makes a network, mounts and processes of its own, as root or in a user namespace; nothing of the machine's own
network is touched, and all is gone when the process ends, however it ends. What the kernel lacks is found out
beforehand, in namespaces that are thrown away.
"""

from __future__ import annotations

import os
import platform
import re
import select
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path

from ackclock.engines import features
from ackclock.engines.linux import stack
from ackclock.errors import AckclockError, InputError
from ackclock.plan import Plan
from ackclock.system import signals

#: Programs, and the Debian packages that have them.
PROGRAMS = {"unshare": "util-linux", "setpriv": "util-linux", "ip": "iproute2", "tc": "iproute2", "ethtool": "ethtool"}

#: Seconds between two checks whether to go on.
POLL_INTERVAL_S = 0.2

#: Folders of system programs that may be missing in PATH.
SYSTEM = "/usr/local/sbin:/usr/sbin:/sbin"

#: Discipline → the least words with which tc can add it.
MINIMAL = {
    "pfifo": "pfifo limit 1", "bfifo": "bfifo limit 3000", "htb": "htb", "netem": "netem", "prio": "prio",
    "red": "red limit 60000 min 5000 max 15000 avpkt 1000 burst 20 bandwidth 1mbit", "codel": "codel",
    "fq_codel": "fq_codel", "sfq": "sfq", "pie": "pie", "fq_pie": "fq_pie", "cake": "cake",
    "tbf": "tbf rate 1mbit burst 3000 limit 3000",
}  # fmt: skip

#: A word of the setup → what of the kernel it needs, in words, and how it is tried.
DEVICE = ("veth devices", "ip link add probe0 type veth peer name probe1")
FILTER = (
    "u32 filters",
    "tc qdisc add dev lo root handle 1: htb && tc filter add dev lo parent 1: u32 match u8 0 0 at 0",
)


class LiveError(AckclockError):
    """The run on the kernel that is there failed."""


def missing(plan: Plan, setup: Iterable[str]) -> Iterator[str]:
    """Yield what the running kernel lacks for a plan and the commands of its network, in words.

    Raises `InputError` if a program is missing or no namespaces can be made.
    """
    coming = {plan.options["linux"].get("module", {}).get("name")}
    wanted = sorted({group.congestion.kind for group in plan.groups if group.congestion} - coming)
    there, lacking = _tried(tuple(_requirements(setup)))
    for kind in wanted:
        if kind not in there:
            yield f"{features.congestion(kind)} in the running kernel {platform.release()}"
    for what in lacking:
        yield f"{what} in the running kernel {platform.release()}"
    for name, value in stack.knobs(plan).items():
        module, parameter = name.split(".")
        file = Path("/sys/module") / module / "parameters" / parameter
        if file.exists() and int(file.read_text()) != value:
            yield f"{name} = {value} in the running kernel {platform.release()}, where it is {int(file.read_text())}"


def _requirements(setup: Iterable[str]) -> list[tuple[str, str]]:
    """Return the kernel features that the commands use, each with the command that tests it."""
    lines = list(setup)
    kinds = {kind for line in lines for kind in MINIMAL if re.search(rf" qdisc add .*\b{kind}\b", line)}
    tries = [(features.queue(kind), f"tc qdisc add dev lo root {MINIMAL[kind]}") for kind in sorted(kinds)]
    if any(" filter add " in line for line in lines):
        tries.append(FILTER)
    return [DEVICE, *tries]


@cache
def _tried(tries: tuple[tuple[str, str], ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """The congestion controls that there are, and what of the tried there is not."""
    lines = ["cat /proc/sys/net/ipv4/tcp_available_congestion_control"]
    for number, (_, command) in enumerate(tries):
        lines.append(f"({command}) >/dev/null 2>&1 || echo missing {number}")
        lines.append("tc qdisc del dev lo root 2>/dev/null")
    done = subprocess.run(
        private(["sh", "-c", "\n".join([*lines, "true"])]),
        capture_output=True,
        text=True,
        check=False,
        env=_environment(),
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no reason given"]
        raise InputError(
            f"--kernel live: found no private namespaces ({said[-1]}); expected root, or a kernel that lets users make "
            "them (kernel.unprivileged_userns_clone = 1, user.max_user_namespaces above 0)"
        )
    controls, *rest = done.stdout.splitlines()
    numbers = [int(line.split()[1]) for line in rest]
    return frozenset(controls.split()), tuple(tries[number][0] for number in numbers)


def private(command: Sequence[str]) -> list[str]:
    """A command in namespaces of its own, which end with it, and it with us. Raises `InputError`."""
    needed = {package for program, package in PROGRAMS.items() if not shutil.which(program, path=_path())}
    if needed:
        raise InputError(f"--kernel live: found no {', '.join(sorted(needed))}; expected these Debian packages")
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    inside = f"mount -t tmpfs tmpfs /run && exec {shlex.join(command)}"
    namespaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return ["setpriv", "--pdeathsig", "KILL", "unshare", *user, *namespaces, "sh", "-c", inside]


def run(command: Sequence[str], progress: Callable[[float], None]) -> None:
    """Runs a command in private namespaces and follows its progress; whatever happens, nothing of it remains.

    `progress` may raise to end it. Raises `InputError` if a program is missing, `LiveError` if the command fails.
    """
    with _started(private(command)) as process:
        assert process.stdout is not None
        said = _follow(process.stdout.fileno(), progress)
        process.wait()
    errors = [line.removeprefix("error ") for line in said if line.startswith("error ")]
    if errors:
        raise LiveError(f"On the running kernel: {errors[-1]}")
    if process.returncode:
        last = said[-1] if said else "it said nothing"
        raise LiveError(f"On the running kernel: the run ended with status {process.returncode}: {last}")


@contextmanager
def _started(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_environment(),
        start_new_session=True,
    )
    with signals.cleanup(partial(_end, process)):
        yield process


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _follow(output: int, progress: Callable[[float], None]) -> list[str]:
    """The lines that are not progress, to the end; `progress` hears the last share again and again."""
    said: list[str] = []
    share, rest = 0.0, b""
    while True:
        progress(share)
        if not select.select([output], [], [], POLL_INTERVAL_S)[0]:
            continue
        read = os.read(output, 1 << 16)
        *lines, rest = (rest + read).split(b"\n") if read else (rest, b"")
        for line in (line.decode(errors="replace").rstrip() for line in lines):
            if found := re.fullmatch(r"progress ([0-9.]+)", line):
                share = float(found[1])
                progress(share)
            elif line:
                said.append(line)
        if not read:
            return said


def _environment() -> dict[str, str]:
    package = Path(__file__).parents[2]
    return os.environ | {"PATH": _path(), "PYTHONPATH": str(package.parent), "LC_ALL": "C.UTF-8"}


def _path() -> str:
    return f"{os.environ.get('PATH', os.defpath)}:{SYSTEM}"
