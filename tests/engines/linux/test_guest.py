"""A guest: its answers, its ends, its sameness. Those with `guest_kernel` start one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ackclock.engines.linux import guest
from ackclock.engines.linux.guest import Guest, GuestError
from ackclock.errors import InputError

PACKAGE = Path(guest.__file__).parents[3]
MEMORY_BYTES = 128 << 20

#: A script that shows any influence of the host, the clock or another run.
EVERYTHING = """
    cat /proc/sys/kernel/random/boot_id /proc/cmdline /proc/meminfo /proc/vmstat /proc/stat /proc/interrupts
    cat /proc/net/sockstat /proc/sys/net/ipv4/tcp_mem /proc/version
    date +%s.%N; sleep 3.25; date +%s.%N
    od -An -tx1 -N64 /dev/urandom; echo $$; env | grep -v ^PWD=; ulimit -a; hostname
"""


def run(kernel: Path, folder: Path, script: str, seed: int = 1, progress: Callable[[float], None] = lambda _: None):
    """Return the output of a shell script in a guest."""
    folder.mkdir(exist_ok=True)
    guest.run(Guest(kernel, MEMORY_BYTES, seed), folder / "order", progress, ["sh", "-c", script])
    return (folder / "console.log").read_text().split("ended ")[0].splitlines()


def processes(mark: str) -> list[int]:
    """The processes that have a text on their command line or are in a folder of that name."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                here = str((entry / "cwd").readlink())
                words = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if mark in here or mark in words:
                found.append(int(entry.name))
    return found


def soon(true: Callable[[], bool]) -> bool:
    """Return True if a condition comes true within the time limit."""
    end = time.monotonic() + 60
    while not (come := true()) and time.monotonic() < end:
        time.sleep(0.05)
    return come


def test_two_boots_are_the_same_to_the_byte(guest_kernel, tmp_path, monkeypatch):
    first = run(guest_kernel, tmp_path / "a", EVERYTHING)
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.setenv("ACKCLOCK_SOMETHING", "x" * 5000)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    second = run(guest_kernel, tmp_path / "another folder", EVERYTHING)
    assert first == second
    assert len(first) > 100


def test_the_seed_and_nothing_else_changes_the_randomness(guest_kernel, tmp_path):
    draws = [run(guest_kernel, tmp_path / "a", "od -An -tx1 -N64 /dev/urandom", seed) for seed in (1, 2, 1)]
    assert draws[0] == draws[2] != draws[1]


def test_tcp_may_have_half_of_the_memory(guest_kernel, tmp_path):
    """Linux's own limit is a sixteenth, which a hundred flows with a long way reach."""
    limits, memory = run(guest_kernel, tmp_path / "a", "cat /proc/sys/net/ipv4/tcp_mem; grep MemTotal /proc/meminfo")
    pages = int(memory.split()[1]) // 4
    assert [int(limit) for limit in limits.split()] == [pages // 2] * 3


def test_time_is_virtual(guest_kernel, tmp_path):
    began = time.monotonic()
    start, end = run(guest_kernel, tmp_path / "a", "date +%s; sleep 3600; date +%s")
    assert int(start) == guest.START_NS // 10**9
    assert int(end) - int(start) == 3600
    assert time.monotonic() - began < 3600


def test_progress_arrives_and_files_are_written(guest_kernel, tmp_path):
    shares: list[float] = []
    run(
        guest_kernel,
        tmp_path / "a",
        f"echo progress 0.25; echo progress 1; echo yes >{tmp_path}/result",
        1,
        shares.append,
    )
    assert list(dict.fromkeys(shares)) == [0.0, 0.25, 1.0]
    assert (tmp_path / "result").read_text() == "yes\n"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["console.log"]


def test_python_with_the_native_module_runs_in_it(guest_kernel, tmp_path):
    command = [sys.executable, "-s", "-c", "from ackclock import _core; print(_core.version)"]
    guest.run(Guest(guest_kernel, MEMORY_BYTES), tmp_path / "order", lambda _: None, command)
    from ackclock import _core

    assert (tmp_path / "console.log").read_text().splitlines()[0] == _core.version


def test_the_guest_has_networks_and_qdiscs(guest_kernel, tmp_path):
    said = run(
        guest_kernel,
        tmp_path / "a",
        """
        set -e
        ip netns add a; ip netns add b
        ip link add x netns a type veth peer name y netns b
        tc -n a qdisc add dev x root handle 1: htb default 1
        tc -n a class add dev x parent 1: classid 1:1 htb rate 10mbit burst 1600
        for leaf in "pfifo limit 5" fq_codel codel pie fq_pie red sfq cake fq choke hhf "netem delay 10ms"; do
            case $leaf in red|choke) leaf="$leaf limit 60000 min 10000 max 20000 avpkt 1000 burst 20" ;; esac
            case $leaf in choke*) leaf="choke limit 100 bandwidth 10mbit min 10 max 20" ;; esac
            tc -n a qdisc replace dev x parent 1:1 handle 10: $leaf; tc -n a qdisc del dev x parent 1:1
        done
        cat /proc/sys/net/ipv4/tcp_available_congestion_control
        """,
    )
    assert {"reno", "cubic", "bbr", "vegas", "dctcp", "westwood"} <= set(said[-1].split())


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo error no such thing; exit 1", r"^In the guest: no such thing$"),
        ("echo something; exit 3", r"failed with status 3\n  something\n"),
        ("echo c >/proc/sysrq-trigger", r"kernel panicked: sysrq triggered crash"),
        (
            f"{sys.executable} -c 'bytearray(1 << 28)'",
            r"memory of 128 MiB is too small \(`\[linux\] memory` sets it\)\n",
        ),
        ("head -c 200M /dev/zero | tail -c 200M", r"memory of 128 MiB is too small \(`\[linux\] memory` sets it\)\n"),
        ("kill -KILL $PPID; echo o >/proc/sysrq-trigger; sleep 9", r"ended early, with status 0"),
    ],
)
def test_failures_are_reported(guest_kernel, tmp_path, script, message):
    with pytest.raises(GuestError, match=message):
        run(guest_kernel, tmp_path / "a", script)


def test_who_stops_listening_ends_the_guest(guest_kernel, tmp_path):
    def progress(share: float) -> None:
        if share:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(guest_kernel, tmp_path / "a", "echo progress 0.1; while :; do :; done", 1, progress)
    assert soon(lambda: processes(str(tmp_path)) == [])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_of_a_guest_outlives_us(guest_kernel, tmp_path, number):
    code = f"""
        import sys; sys.path.insert(0, {str(PACKAGE)!r})
        from pathlib import Path
        from ackclock.engines.linux import guest
        command = ["sh", "-c", "sleep 1 & echo progress 0; while :; do :; done"]
        machine = guest.Guest(Path({str(guest_kernel)!r}), {MEMORY_BYTES})
        guest.run(machine, Path({str(tmp_path / "order")!r}), print, command)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stderr=subprocess.DEVNULL) as parent:
        log = tmp_path / "console.log"
        assert soon(lambda: log.exists() and "progress" in log.read_text())
        assert len(processes(str(tmp_path))) > 3  # us, the guard, the guest and its processes
        parent.send_signal(number)
    assert soon(lambda: processes(str(tmp_path)) == [])


def test_guests_at_the_same_time_have_processors_of_their_own(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {70_001, 70_003})
    with guest._own_processor() as first, guest._own_processor() as second, guest._own_processor() as third:
        assert [first, second, third] == [["taskset", "-c", "70001"], ["taskset", "-c", "70003"], []]
    with guest._own_processor() as again:
        assert again == first


def test_an_ordinary_user_may(guest_kernel, ordinary_user):
    """A guest of an ordinary user has a root of its own."""
    kernel = ordinary_user.home / "linux"
    kernel.write_bytes(guest_kernel.read_bytes())
    kernel.chmod(0o755)
    code = f"""
        from pathlib import Path
        from ackclock.engines.linux import guest
        here = Path({str(ordinary_user.home)!r})
        guest.run(guest.Guest(here / "linux", 96 << 20), here / "order", print, ["id", "-u"])
    """
    ordinary_user.python("-c", textwrap.dedent(code))
    assert (ordinary_user.home / "console.log").read_text().startswith("0\nended 0")


def test_a_folder_without_room_for_the_memory_is_named(monkeypatch):
    with pytest.raises(InputError, match=r"needs 1073741824 MiB for its memory: /dev/shm has \d+ MiB"):
        guest.memory_folder(1 << 50)


def test_a_file_that_is_no_kernel_is_rejected(tmp_path):
    with pytest.raises(InputError, match="found no guest kernel that can be run"):
        guest.run(Guest(tmp_path / "linux", MEMORY_BYTES), tmp_path / "order", lambda _: None)
    assert list(tmp_path.iterdir()) == []


def test_a_host_that_moves_addresses_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(guest, "_fixed_addresses_allowed", lambda: False)
    with pytest.raises(InputError, match="personality"):
        guest.check(Path(sys.executable))
