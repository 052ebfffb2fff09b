"""A guest: Linux as an ordinary process of the host (User-Mode Linux), in virtual time.

The guest sees the host's files as the user who started it. It is given a folder, runs one command there as root, and
switches itself off. Time in the guest stands still while it computes, so nothing that happens there depends on how
fast the host is. Neither does its randomness: it comes from the seed alone.

What could tell one host or run from another is kept away: the host's environment, addresses that the host chooses at
random, the host's clock, and the names of files, which are not on the command line.
"""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from pathlib import Path

from ackclock.errors import AckclockError, InputError
from ackclock.system import signals

PACKAGE = Path(__file__).parents[2]
HERE = Path(__file__).parent

#: The guest's clock at its start, nanoseconds since 1970: 1 January 2000.
START_NS = 946_684_800_000_000_000

#: Seconds between two checks of the guest's progress.
POLL_INTERVAL_S = 0.05

#: Console lines that an error message quotes.
QUOTED = 6

#: Messages of the guest's kernel, Python and Rust when memory runs out.
NO_MEMORY = (r"Out of memory: ", r"^MemoryError", r"memory allocation of \d+ bytes failed")

#: Programs that a guest needs on the host, and the Debian packages that have them.
PROGRAMS = {"ip": "iproute2", "ethtool": "ethtool", "mount": "mount", "setarch": "util-linux", "taskset": "util-linux"}

#: Environment of the programs in the guest.
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/",
    "LC_ALL": "C.UTF-8",
    "PYTHONPATH": str(PACKAGE.parent),
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}

_ADDR_NO_RANDOMIZE = 0x0040000
_READ_PERSONALITY = 0xFFFFFFFF


class GuestError(AckclockError):
    """The guest, or what ran in it, failed."""


@dataclass(frozen=True, slots=True)
class Guest:
    """Options of a guest's start: the kernel's file, its memory, the random seed, parameters of its modules."""

    kernel: Path
    memory_bytes: int
    seed: int = 1
    parameters: Mapping[str, int] = field(default_factory=dict)

    def arguments(self) -> list[str]:
        """The command line: the same on every host."""
        return [
            str(self.kernel),
            f"mem={self.memory_bytes >> 20}M",
            "time-travel=inf-cpu",
            f"time-travel-start={START_NS}",
            "root=/dev/root",
            "rootfstype=hostfs",
            "rootflags=/",
            "rw",
            "init=/proc/self/cwd/init",
            "uml_dir=./",
            "umid=uml",
            "con=null",
            "con0=null,fd:1",
            "quiet",
            "oops=panic",
            f"ackclock.seed={self.seed}",
            *(f"{name}={value}" for name, value in self.parameters.items()),
        ]


def inside(order: Path) -> list[str]:
    """Return the command that carries out a run spec in the guest."""
    return [sys.executable, "-s", "-c", f"from ackclock import _core; _core.execute_run_spec({str(order)!r})"]


def run(guest: Guest, order: Path, progress: Callable[[float], None], command: Sequence[str] | None = None) -> None:
    """Carry out a run spec in a guest, in the run spec's folder, where `console.log` is left.

    `progress` is called with the share that is done, and may raise to end the guest. `command` is what runs instead of
    `inside(order)`. Whatever happens, this process being killed included, no process of the guest remains.
    Raises `InputError` if this host lacks something, `GuestError` if the guest fails.
    """
    check(guest.kernel)
    order = order.absolute()
    folder = order.parent
    environment = {"PATH": os.environ.get("PATH", os.defpath), "TMPDIR": str(memory_folder(guest.memory_bytes))}
    shutil.copy(HERE / "init.sh", folder / "init")
    (folder / "init").chmod(0o755)
    (folder / "command").write_text(_script(command or inside(order)), encoding="utf-8")
    log = folder / "console.log"
    with log.open("wb") as console, _started(guest, folder, environment, console) as guard:
        said = _follow(log, guard, progress)
    _judge(said, guard.returncode, guest, log)


def check(kernel: Path) -> None:
    """Raises `InputError` if the host lacks something that every guest needs."""
    missing = {package for program, package in PROGRAMS.items() if not _program_path(program)}
    if missing:
        raise InputError(f"The engine linux needs Debian's {', '.join(sorted(missing))}: apt-get install them as root.")
    if not os.access(kernel, os.X_OK):
        raise InputError(
            f"{kernel}: found no guest kernel that can be run; expected one made by `ackclock kernel build`"
        )
    if not _fixed_addresses_allowed():
        raise InputError(
            "The engine linux needs fixed addresses (setarch -R), and this system refuses them: "
            "in a container, allow the system call personality (docker run --security-opt seccomp=unconfined)."
        )


def _program_path(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:{ENVIRONMENT['PATH']}")


def _fixed_addresses_allowed() -> bool:
    """Tries it on this thread alone, and puts back what was."""
    personality = ctypes.CDLL(None).personality
    personality.argtypes, personality.restype = [ctypes.c_ulong], ctypes.c_int
    before = personality(_READ_PERSONALITY)
    allowed = before != -1 and personality(before | _ADDR_NO_RANDOMIZE) != -1
    if allowed:
        personality(before)
    return bool(allowed)


def memory_folder(memory_bytes: int) -> Path:
    """Return the folder for the guest's memory, an unnamed file: in RAM if there is room. Raises `InputError`."""
    tried = []
    for folder in dict.fromkeys((Path("/dev/shm"), Path(tempfile.gettempdir()), Path("/var/tmp"))):
        if reason := _unfit(folder, memory_bytes):
            tried.append(f"{folder} {reason}")
        else:
            return folder
    raise InputError(
        f"The guest needs {memory_bytes >> 20} MiB for its memory: {', '.join(tried)}; "
        "expected one with room (a larger /dev/shm, or TMPDIR set to another folder)"
    )


def _unfit(folder: Path, memory_bytes: int) -> str | None:
    try:
        there = os.statvfs(folder)
    except OSError as error:
        return f"cannot be used ({error.strerror})"
    if not os.access(folder, os.W_OK | os.X_OK):
        return "is not writable"
    if there.f_flag & os.ST_NOEXEC:
        return "is mounted noexec"
    free = there.f_bavail * there.f_frsize
    return f"has {free >> 20} MiB" if free < memory_bytes else None


def _script(command: Sequence[str]) -> str:
    words = [f"{name}={shlex.quote(value)}" for name, value in ENVIRONMENT.items()]
    return f"exec env -i {' '.join(words)} {shlex.join(command)}\n"


@contextmanager
def _started(
    guest: Guest, folder: Path, environment: Mapping[str, str], console: object
) -> Iterator[subprocess.Popen[bytes]]:
    with _own_processor() as pinned:
        guard = subprocess.Popen(
            ["/bin/sh", str(HERE / "guard.sh"), *pinned, "setarch", os.uname().machine, "-R", *guest.arguments()],
            stdin=subprocess.PIPE,
            stdout=console,  # type: ignore[call-overload]
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        try:
            with signals.cleanup(partial(_end, guard)):
                yield guard
        finally:
            for left in ("init", "command"):
                with suppress(OSError):
                    (folder / left).unlink()
            shutil.rmtree(folder / "uml", ignore_errors=True)


def _end(guard: subprocess.Popen[bytes]) -> None:
    """Ends the guard, which ends the guest."""
    assert guard.stdin is not None
    guard.stdin.close()
    guard.wait()


@contextmanager
def _own_processor() -> Iterator[list[str]]:
    """The words that keep a guest on a processor that no other guest has; none where all are taken.

    A guest is several processes that wait for each other at every system call, which costs less on one processor. An
    abstract socket of a name can be bound once, and goes with its process.
    """
    for processor in sorted(os.sched_getaffinity(0)):
        with socket.socket(socket.AF_UNIX) as taken:
            try:
                taken.bind(f"\0ackclock-processor-{processor}")
            except OSError:
                continue
            yield ["taskset", "-c", str(processor)]
            return
    yield []


def _follow(log: Path, guard: subprocess.Popen[bytes], progress: Callable[[float], None]) -> list[str]:
    """The lines of the console, to the guest's end; `progress` hears the last share again and again."""
    said: list[str] = []
    share, rest = 0.0, ""
    with log.open(encoding="utf-8", errors="replace", newline="\n") as console:
        running = True
        while running:
            progress(share)
            try:
                guard.wait(POLL_INTERVAL_S)
                running = False
            except subprocess.TimeoutExpired:
                pass
            *lines, rest = (rest + console.read()).split("\n")
            for line in map(str.rstrip, lines):
                if found := re.fullmatch(r"progress ([0-9.]+)", line):
                    share = float(found[1])
                    progress(share)
                else:
                    said.append(line)
    return [*said, rest.rstrip()] if rest.strip() else said


def _judge(said: Sequence[str], status: int, guest: Guest, log: Path) -> None:
    """Raises `GuestError` unless the command in the guest has ended well."""
    errors = [line.removeprefix("error ") for line in said if line.startswith("error ")]
    ended = next((line for line in reversed(said) if line.startswith("ended ")), None)
    text = "\n".join(said)
    if any(re.search(words, text, re.MULTILINE) for words in NO_MEMORY):
        size = f"{guest.memory_bytes >> 20} MiB"
        raise GuestError(f"The guest's memory of {size} is too small (`[linux] memory` sets it){_last(said, log)}")
    if panic := re.search(r"Kernel panic - not syncing: (.*)", text):
        raise GuestError(f"The guest's kernel panicked: {panic[1]}{_last(said, log)}")
    if errors:
        raise GuestError(f"In the guest: {errors[-1]}")
    if ended is None:
        raise GuestError(f"The guest ended early, with status {status}{_last(said, log)}")
    if ended != "ended 0":
        raise GuestError(
            f"The process in the guest failed with status {ended.removeprefix('ended ')}{_last(said, log)}"
        )


def _last(said: Sequence[str], log: Path) -> str:
    lines = [line for line in takewhile(lambda line: not line.startswith("ended "), said) if line.strip()]
    return "".join(f"\n  {line}" for line in (*lines[-QUOTED:], f"(all of it: {log})"))
