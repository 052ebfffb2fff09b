"""Private namespaces of this machine: what they lack is said beforehand, and nothing of them remains."""

from __future__ import annotations

import json
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from changed import changed
from small_networks import dumbbell

import ackclock as ac
from ackclock import engines
from ackclock.engines.linux import live
from ackclock.errors import InputError

TEXT = f"""
duration = "10s"
{dumbbell("10Mbit", "0.1us", "20p")}
burst = "1600B"
[[flows]]
congestion = "reno"
[linux]
kernel = "live"
"""


def plan(*changes):
    return ac.loads(changed(TEXT, *changes)).plan()


def private_namespaces():
    try:
        return subprocess.run(live.private(["true"]), capture_output=True, check=False).returncode == 0
    except InputError:
        return False


requires_namespaces = pytest.mark.skipif(not private_namespaces(), reason="no private namespaces here")


@requires_namespaces
def test_progress_and_failures_are_reported():
    told = []
    live.run(["printf", "progress 0.5\\nprogress 1.0\\n"], told.append)
    assert list(dict.fromkeys(told)) == [0.0, 0.5, 1.0]
    with pytest.raises(live.LiveError, match="^On the running kernel: no such device$"):
        live.run(["sh", "-c", "echo error no such device; exit 1"], told.append)
    with pytest.raises(live.LiveError, match="ended with status 3: so it goes"):
        live.run(["sh", "-c", "echo so it goes; exit 3"], told.append)


@requires_namespaces
def test_namespaces_are_private(tmp_path):
    """Namespaces made inside do not exist outside, during and after the run."""
    seen = []

    def observe(share):
        if share:
            devices = [path.name for path in Path("/sys/class/net").iterdir()]
            seen.append((Path("/run/netns/ackclock-test").exists(), devices))

    live.run(["sh", "-c", "ip netns add ackclock-test && ip link add probe type veth && echo progress 0.5"], observe)
    assert seen
    assert all(not there and "probe" not in devices for there, devices in seen)


@requires_namespaces
def test_an_interrupt_ends_all_of_it(tmp_path):
    pid = tmp_path / "pid"

    class EnoughError(Exception):
        pass

    def enough(share):
        if share:
            raise EnoughError

    with pytest.raises(EnoughError):
        live.run(["sh", "-c", f"echo here >{pid}; echo progress 0.1; exec sleep 1000.25"], enough)
    _wait(lambda: not _running("sleep 1000.25"))


@requires_namespaces
def test_a_kill_ends_all_of_it():
    """SIGKILL leaves no time for anything; the kernel ends what hangs on us."""
    code = "from ackclock.engines.linux import live; live.run(['sleep', '1000.75'], print)"
    process = subprocess.Popen([sys.executable, "-c", code])
    _wait(lambda: _running("sleep 1000.75"))
    process.send_signal(signal.SIGKILL)
    process.wait()
    _wait(lambda: not _running("sleep 1000.75"))


RUN = f"""
duration = "30s"
{dumbbell("10Mbit", "0.1us", "20p")}
burst = "1600B"
[[flows]]
congestion = "cubic"
"""


def state_of_the_machine():
    """Return the machine's state that a run must not change; another test's concurrent run has separate namespaces."""
    sysctls = {}
    for path in Path("/proc/sys/net").rglob("*"):
        try:
            sysctls[path] = path.read_text()
        except OSError:
            continue
    devices = sorted(path.name for path in Path("/sys/class/net").iterdir())
    return devices, sorted(Path("/run").glob("netns/*")), sysctls


def namespaces():
    """Every network namespace that a process is in."""
    return {namespace(path.name) for path in Path("/proc").glob("[0-9]*")}


def namespace(process):
    """The network namespace of a process; None if it has ended."""
    try:
        return Path(f"/proc/{process}/ns/net").readlink()
    except OSError:
        return None


def inside(parent):
    """The processes below a process that carry out an order."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, rest = path.read_text().split(" (", maxsplit=1)
        except OSError:
            continue
        parents[int(number)] = int(rest.rsplit(")", maxsplit=1)[1].split()[1])
    below = {parent}
    while more := {number for number, its in parents.items() if its in below} - below:
        below |= more
    return [number for number in below if b"execute_run_spec" in _command(number)]


def _command(process):
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def nodes(process):
    """The named namespaces that a process sees."""
    return [path.name for path in Path(f"/proc/{process}/root/run/netns").glob("*")]


@requires_namespaces
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whoever_ends_a_run_finds_the_machine_as_it_was(tmp_path, number):
    (tmp_path / "run.toml").write_text(RUN)
    before = state_of_the_machine()
    words = ["run", "run.toml", "--engine", "linux", "--kernel", "live", "--out", "out"]
    command = [sys.executable, "-c", "from ackclock.cli.program import main; main()", *words]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _wait(lambda: any(map(nodes, inside(process.pid))))
        running = inside(process.pid)
        private = set(map(namespace, running)) - {namespace("self"), None}
        process.send_signal(number)
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    _wait(lambda: not any(map(_command, running)))
    _wait(lambda: not private & namespaces())
    assert state_of_the_machine() == before
    assert not (tmp_path / "out").exists()


@requires_namespaces
def test_an_ordinary_user_may(ordinary_user):
    """Run as a user where the system lets users make namespaces."""
    (ordinary_user.home / "run.toml").write_text(RUN.replace("30s", "1s") + "[record]\npcap = true\n")
    if ordinary_user.python("-c", MAY, check=False).returncode:
        pytest.skip("ordinary users may not make namespaces here")
    words = ["run", "run.toml", "--engine", "linux", "--kernel", "live", "--no-report", "--json"]
    done = ordinary_user.python("-c", "from ackclock.cli.program import main; main()", *words)
    assert json.loads(done.stdout)["summary"]["utilisation"]["mean"] > 0.5
    (folder,) = (ordinary_user.home / "results").iterdir()
    assert (folder / "captures" / "seed-1.pcap").stat().st_size > 10_000
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["linux"]["mode"], manifest["linux"]["release"]) == ("live", platform.release())
    assert manifest["plan"]["options"]["linux"]["kernel"] == "live"
    (held_in_it,) = [run["held"] for run in manifest["runs"]]
    assert 0 < held_in_it["late_mean_s"] <= held_in_it["late_max_s"]


MAY = """
import subprocess
from ackclock.engines.linux import live
subprocess.run(live.private(["true"]), check=True)
"""


def _running(command):
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found = path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        if found == command:
            return True
    return False


def _wait(done):
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@requires_namespaces
def test_features_missing_in_the_running_kernel_are_rejected_by_name(monkeypatch):
    monkeypatch.setitem(live.MINIMAL, "pfifo", "nosuchqdisc")
    (reason,) = engines.unsupported(engines.engine("linux"), plan())
    assert reason.what.startswith('queue discipline "pfifo" in the running kernel ')


@requires_namespaces
def test_a_missing_cca_is_rejected_by_name(monkeypatch):
    monkeypatch.setattr(live, "_tried", lambda tries: (frozenset({"cubic"}), ()))
    (reason,) = engines.unsupported(engines.engine("linux"), plan())
    assert reason.what.startswith('congestion control "reno" in the running kernel ')


@requires_namespaces
@pytest.mark.parametrize(("processing", "needs"), [("", False), ('[tcp]\nprocessing = "30us"\n', True)])
def test_real_hosts_have_their_own_processing_delay(monkeypatch, processing, needs):
    """No netem is needed for the default, only for what is written."""
    monkeypatch.setitem(live.MINIMAL, "netem", "nosuchqdisc")
    reasons = engines.unsupported(engines.engine("linux"), plan(("[[flows]]", f"{processing}[[flows]]")))
    assert any('queue discipline "netem"' in reason.what for reason in reasons) == needs


def test_a_missing_program_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr(live.shutil, "which", lambda name, path: None if name in ("tc", "ip") else name)
    with pytest.raises(InputError, match="--kernel live: found no iproute2; expected these Debian packages"):
        live.private(["true"])
