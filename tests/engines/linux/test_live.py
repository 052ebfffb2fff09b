"""Private namespaces of this machine: what they lack is said beforehand, and nothing of them remains."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ackclock as ac
from ackclock import engines
from ackclock.engines.linux import held, live
from ackclock.errors import InputError

TEXT = """
duration = "10s"
[network]
topology = "dumbbell"
rate = "10Mbit"
rtt = "0.1us"
burst = "1600B"
queue = { discipline = "pfifo", limit = "20p" }
[[flows]]
congestion = "reno"
[linux]
kernel = "live"
"""


def plan(*changes):
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return ac.loads(text).plan()


def private_namespaces():
    try:
        return subprocess.run(live.private(["true"]), capture_output=True, check=False).returncode == 0
    except InputError:
        return False


needs_namespaces = pytest.mark.skipif(not private_namespaces(), reason="no private namespaces here")


@needs_namespaces
def test_the_shares_are_told_and_what_fails_is_said():
    told = []
    live.run(["printf", "progress 0.5\\nprogress 1.0\\n"], told.append)
    assert told == [0.5, 1.0]
    with pytest.raises(live.LiveError, match="^On the running kernel: no such device$"):
        live.run(["sh", "-c", "echo error no such device; exit 1"], told.append)
    with pytest.raises(live.LiveError, match="ended with status 3: so it goes"):
        live.run(["sh", "-c", "echo so it goes; exit 3"], told.append)


@needs_namespaces
def test_namespaces_are_nobody_elses(tmp_path):
    """What is made inside is not there outside, while it runs and after."""
    seen = []

    def look(share):
        seen.append(
            (Path("/run/netns/ackclock-test").exists(), [path.name for path in Path("/sys/class/net").iterdir()])
        )

    live.run(["sh", "-c", "ip netns add ackclock-test && ip link add probe type veth && echo progress 0.5"], look)
    assert seen
    assert all(not there and "probe" not in devices for there, devices in seen)


@needs_namespaces
def test_an_interrupt_ends_all_of_it(tmp_path):
    pid = tmp_path / "pid"

    class EnoughError(Exception):
        pass

    def enough(share):
        raise EnoughError

    with pytest.raises(EnoughError):
        live.run(["sh", "-c", f"echo here >{pid}; echo progress 0.1; exec sleep 1000.25"], enough)
    assert not _running("sleep 1000.25")


@needs_namespaces
def test_a_kill_ends_all_of_it():
    """SIGKILL leaves no time for anything; the kernel ends what hangs on us."""
    code = "from ackclock.engines.linux import live; live.run(['sleep', '1000.75'], print)"
    process = subprocess.Popen([sys.executable, "-c", code])
    _wait(lambda: _running("sleep 1000.75"))
    process.send_signal(signal.SIGKILL)
    process.wait()
    _wait(lambda: not _running("sleep 1000.75"))


def _running(command):
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found = path.read_bytes().replace(b"\0", b" ").decode().strip()
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


@needs_namespaces
def test_what_the_running_kernel_lacks_is_refused_by_name(monkeypatch):
    monkeypatch.setitem(live.LEAST, "pfifo", "nosuchqdisc")
    (reason,) = engines.refusals(engines.engine("linux"), plan())
    assert reason.what.startswith('queue discipline "pfifo" in the running kernel ')


@needs_namespaces
def test_a_control_that_is_not_there_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(live, "_tried", lambda tries: (frozenset({"cubic"}), ()))
    (reason,) = engines.refusals(engines.engine("linux"), plan())
    assert reason.what.startswith('congestion control "reno" in the running kernel ')


def test_a_missing_program_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr(live.shutil, "which", lambda name, path: None if name in ("tc", "ip") else name)
    with pytest.raises(InputError, match="--kernel live: found no iproute2; expected these Debian packages"):
        live.private(["true"])


def samples(times_s, backlog_p, utilisation):
    return {
        "queue_samples": {
            "time_s": times_s,
            "link": [0] * len(times_s),
            "backlog_p": backlog_p,
            "utilisation": utilisation,
        }
    }


def test_the_rate_that_was_held():
    """Of 21 samples, 20 come after one with packets waiting: 10 at 1.0 and 10 at 0.9."""
    times_s = [0.01 * n for n in range(21)]
    found = held.measured(plan(), samples(times_s, [5] * 21, [0.0] + [1.0, 0.9] * 10))
    assert found["shares"] == {"bottleneck": pytest.approx(0.95)}
    assert found["late_max_s"] == pytest.approx(0.0, abs=1e-12)
    (doubt,) = held.doubts(plan(), found)
    assert doubt == 'this machine could not keep up: the link "bottleneck" held 95.0 % of its rate while busy'


def test_an_idle_link_says_nothing_of_the_machine():
    found = held.measured(plan(), samples([0.0, 0.01, 0.02], [0, 0, 0], [0.1, 0.1, 0.1]))
    assert found["shares"] == {"bottleneck": None}
    assert list(held.doubts(plan(), found)) == []


def test_a_sample_that_comes_late():
    times_s = [0.0, 0.01, 0.035, 0.036]
    found = held.measured(plan(), samples(times_s, [0] * 4, [0.0] * 4))
    assert (found["late_max_s"], found["late_mean_s"]) == (pytest.approx(0.015), pytest.approx((0.015 + 0.006) / 4))
    (doubt,) = held.doubts(plan(), found)
    assert doubt == "this machine could not keep up: a sample came 15 ms late, of 10 ms"
