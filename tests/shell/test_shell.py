"""`ackclock shell`: real programs in namespaces, over a simulated network in real time.

The machine may be busy, so nothing here depends on how late packets are: what is tested are counts, bytes and bounds
that lateness cannot break.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_networks import dumbbell, leaf_spine

import ackclock as ac
from ackclock.errors import InputError
from ackclock.input.source import Source
from ackclock.shell import namespaces
from ackclock.shell.plans import FLOWS, GROUP, planned, with_programs

SCENARIO = f"""
duration = "10s"
{dumbbell("20Mbit", "40ms", "100p")}
"""

PYTHON = sys.executable

#: A server that sends so many bytes to each who connects, and a client that prints how many came.
SERVER = f"""exec {PYTHON} -c 'import socket
with socket.create_server(("", 5000)) as listener:
    while True:
        connection, _ = listener.accept()
        with connection: connection.sendall(bytes(300_000))'
"""
CLIENT = (
    "import os, socket\n"
    'connection = socket.create_connection((os.environ["ACKCLOCK_PEER"], 5000))\n'
    "print(sum(len(part) for part in iter(lambda: connection.recv(65536), b'')))"
)


def missing_requirement() -> str | None:
    """Why there can be no shell here."""
    try:
        namespaces.check()
    except InputError as error:
        return str(error)
    return None


MISSING = missing_requirement()
in_namespaces = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")


def shell(tmp_path: Path, *words: str, text: str = SCENARIO) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "path.toml"
    path.write_text(text)
    before, after = words[: words.index("--")], words[words.index("--") :]
    command = [
        PYTHON,
        "-m",
        "ackclock",
        "shell",
        "--no-report",
        "--out",
        str(tmp_path / "out"),
        *before,
        str(path),
        *after,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@in_namespaces
def test_a_download_crosses_the_network(tmp_path: Path):
    """Each byte arrives; no packet takes less than half of the RTT or more than that and the queue."""
    done = shell(tmp_path, "--peer", SERVER, "--pcap", "--", PYTHON, "-c", CLIENT)
    assert (done.returncode, done.stdout) == (0, "300000\n"), done.stderr
    data = ac.read(tmp_path / "out")
    (connection,) = data.manifest["shell"]["connections"]
    assert (connection["protocol"], connection["ends"]["peer"][1]) == (6, 5000)
    to_program, to_peer = connection["to"]["program"], connection["to"]["peer"]
    assert to_program["delivered_bytes"] >= 300_000
    full_s = 100 * 8 * 1500 / 20e6
    for direction in (to_program, to_peer):
        assert direction["delivered_packets"] <= direction["sent_packets"]
        assert 0 <= direction["delay_mean_s"] <= 0.040 + full_s
    assert to_program["delay_mean_s"] + to_peer["delay_mean_s"] >= 0.040
    (flow,) = data.flows.rows(named=True)
    assert flow["delivered_bytes"] == to_program["delivered_bytes"]
    assert flow["sent_packets"] == to_program["sent_packets"]
    assert data.plan.groups[flow["group"]].name == GROUP
    assert data.frame("links")["departed_p"].to_list()[0] >= to_program["delivered_packets"]
    for end, received in (("program", to_program), ("peer", to_peer)):
        seen = ac.capture([tmp_path / "out" / "captures" / f"{end}.pcap"]).data.flows
        assert len(seen) == 1, end
        assert received["delivered_packets"] > 0


@in_namespaces
def test_the_link_bounds_the_rate(tmp_path: Path):
    """300 kB take at least their transmission at 2 Mb/s, and at most 10 packets wait."""
    slow = SCENARIO.replace("20Mbit", "2Mbit").replace("100p", "10p")
    started = time.monotonic()
    done = shell(tmp_path, "--peer", SERVER, "--", PYTHON, "-c", CLIENT, text=slow)
    assert done.stdout == "300000\n", done.stderr
    assert time.monotonic() - started > 8 * 300_000 / 2e6
    data = ac.read(tmp_path / "out")
    assert data.frame("queue_samples")["backlog_p"].max() <= 10
    assert data.frame("links")["dropped_p"].to_list()[0] > 0


@in_namespaces
def test_simulated_flows_share_the_queue(tmp_path: Path):
    text = SCENARIO + '[[flows]]\ncount = 2\ncongestion = "cubic"\n'
    done = shell(tmp_path, "--peer", SERVER, "--", PYTHON, "-c", CLIENT, text=text)
    assert done.stdout == "300000\n", done.stderr
    flows = ac.read(tmp_path / "out").flows
    of_kernel = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    assert flows["congestion"].to_list() == ["cubic", "cubic", of_kernel]
    assert flows["delivered_bytes"].min() > 0


@in_namespaces
def test_marks_reach_the_program(tmp_path: Path):
    """The queue marks every ECT packet; a datagram socket sees its bits."""
    text = SCENARIO.replace(
        'queue = { discipline = "pfifo", limit = "100p" }',
        'queue = { discipline = "red", limit = "100p", min = "1p", max = "2p", probability = 1.0, ecn = true }',
    )
    server = f"""exec {PYTHON} -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("", 5000))
s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 2)
_, address = s.recvfrom(100)
for _ in range(100): s.sendto(bytes(1000), address)
s.sendto(b"end", address); s.recvfrom(100)'
"""
    client = """import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, 13, 1)
s.settimeout(60)
s.sendto(b"go", ("peer", 5000))
bits = set()
while True:
    data, control, _, _ = s.recvmsg(2000, 100)
    bits |= {c[2][0] & 3 for c in control}
    if data == b"end" or 3 in bits: break
print(sorted(bits))
"""
    done = shell(tmp_path, "--peer", server, "--", PYTHON, "-c", client, text=text)
    assert "3" in done.stdout, done.stdout + done.stderr


@in_namespaces
def test_the_status_is_the_programs(tmp_path: Path):
    assert shell(tmp_path, "--", "sh", "-c", "exit 7").returncode == 7
    assert shell(tmp_path, "--", "sh", "-c", "kill -9 $$").returncode == 137
    before = (tmp_path / "out" / "manifest.json").read_bytes()
    missing = shell(tmp_path, "--", "/none/such")
    assert (missing.returncode, missing.stderr) == (127, "/none/such: No such program\n")
    assert (tmp_path / "out" / "manifest.json").read_bytes() == before


@in_namespaces
def test_a_program_that_fails_to_find_localhost_has_a_hint(tmp_path: Path):
    failed = shell(tmp_path, "--", "sh", "-c", "exit 7", "http://localhost:8080/")
    assert 'hint: localhost is the program\'s own end; the server of --peer has the name "peer"' in failed.stderr
    fine = shell(tmp_path, "--", "sh", "-c", "exit 0", "http://localhost:8080/")
    assert "hint" not in fine.stderr


@in_namespaces
def test_nothing_is_left(tmp_path: Path):
    """Neither the program's children nor the peer outlive it, nor a killed shell's."""
    mark = "86397.25"
    done = shell(tmp_path, "--peer", f"sleep {mark}", "--", "sh", "-c", f"sleep {mark} & sleep {mark} & exit 0")
    assert done.returncode == 0, done.stderr
    assert not running(mark)
    path = tmp_path / "path.toml"
    words = [PYTHON, "-m", "ackclock", "shell", "--out", str(tmp_path / "killed"), str(path), "--", "sleep", mark]
    for kill in (subprocess.Popen.terminate, subprocess.Popen.kill):
        with subprocess.Popen(words, stderr=subprocess.DEVNULL) as process:
            while not running(f"sleep {mark}"):
                assert process.poll() is None
                time.sleep(0.05)
            kill(process)
        end = time.monotonic() + 30
        while running(f"sleep {mark}") and time.monotonic() < end:
            time.sleep(0.05)
        assert not running(f"sleep {mark}")
    assert not (tmp_path / "killed").exists()


@in_namespaces
def test_a_signal_at_any_moment_leaves_nothing(tmp_path: Path):
    """Signals to all processes of the shell, as a terminal sends them, or to the shell alone, at moments of a seed.

    No process is left, and a result is complete or absent. What SIGKILL leaves of temporary files, the next shell
    removes.
    """
    (tmp_path / "tmp").mkdir()
    (tmp_path / "path.toml").write_text(SCENARIO)
    mark, moments = f"ACKCLOCK_TEST={tmp_path}", random.Random(1)
    environment = dict([mark.split("=", 1)], TMPDIR=str(tmp_path / "tmp"))
    program = [
        "--peer",
        SERVER,
        str(tmp_path / "path.toml"),
        "--",
        PYTHON,
        "-c",
        f"{CLIENT}\nimport time\ntime.sleep(9)",
    ]
    words = [PYTHON, "-m", "ackclock", "shell", "--no-report", "--pcap"]
    for number, each in enumerate(2 * (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL)):
        out = tmp_path / f"out{number}"
        with subprocess.Popen(
            [*words, "--out", str(out), *program],
            env={**os.environ, **environment},
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # noqa: PLW1509 (no threads here)
            start_new_session=True,
        ) as process:
            time.sleep(moments.uniform(0.1, 4))
            to = os.killpg if each == signal.SIGINT else os.kill
            to(process.pid, each)
            process.wait(60)
        end = time.monotonic() + 30
        while with_variable(mark) and time.monotonic() < end:
            time.sleep(0.05)
        assert not with_variable(mark)
        assert not out.exists() or ac.read(out).manifest["shell"] is not None
    assert shell(tmp_path, "--", "true").returncode == 0
    kept = {f"out{number}" for number in range(8)} | {"tmp", "path.toml", "out"}
    assert {path.name for path in tmp_path.iterdir()} <= kept


def with_variable(mark: str) -> list[str]:
    """The processes that have a variable in their environment."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (each / "environ").read_bytes().split(b"\0"):
                found.append(each.name)
    return found


def running(mark: str) -> list[str]:
    """The commands that have a word, but for the shells that were told of it."""
    commands = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = each.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if words[0].endswith("sleep") and mark in " ".join(words):
            commands.append(" ".join(words))
    return commands


def test_programs_have_flows_of_their_own():
    plan = planned(
        with_programs(Source("path.toml", SCENARIO + '[[traffic]]\nkind = "udp"\nrate = "9/s"\npacket = "1B"\n'))
    )
    external = [each for each in plan.datagrams if each.source["kind"] == "external"]
    assert (len(external), len(plan.datagrams)) == (FLOWS, FLOWS + 1)
    assert plan.groups[external[0].group].name == GROUP


def test_a_scenario_without_a_path_is_one_line():
    text = 'duration = "1s"\n[network]\ntopology = "graph"\n'
    with pytest.raises(ac.errors.AckclockError):
        planned(with_programs(Source("path.toml", text)))


@in_namespaces
def test_commands_at_hosts(tmp_path: Path):
    text = 'duration = "10s"\n' + leaf_spine(2, 1, 2)
    client = CLIENT.replace('os.environ["ACKCLOCK_PEER"]', '"h3"').replace('"', '\\"')
    done = shell(tmp_path, "--at", "h3", SERVER, "--at", "h0", f'exec {PYTHON} -c "{client}"', "--", text=text)
    assert (done.returncode, done.stdout) == (0, "300000\n"), done.stderr
    flows = ac.read(tmp_path / "out").flows
    assert (flows["source"].to_list(), flows["destination"].to_list()) == (["h3"], ["h0"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--at", "h0", "true", "--", "true"], "--at: found a program"),
        (["--at", "h0", "true", "--peer", "true", "--"], "--at: found a program or --peer"),
        (["--at", "h0", "true", "--"], "at: found h0; expected 2 to 32 different hosts"),
        (["--at", "h0", "true", "--at", "h9", "true", "--"], 'at: found "h9"; expected a host: "h0" to "h3"\n'),
    ],
)
def test_impossible_hosts_are_rejected(tmp_path: Path, words: list[str], message: str):
    done = shell(tmp_path, *words, text='duration = "10s"\n' + leaf_spine(2, 1, 2))
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
