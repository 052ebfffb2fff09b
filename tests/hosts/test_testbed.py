"""Whole runs on testbeds of namespaces with real sshds, and all that can go wrong on the way."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import testbeds
from testbeds import CHANGE, LINUX, Testbed, run, start, with_traffic

import ackclock as ac
from ackclock import capture
from ackclock.hosts import agent

MISSING = testbeds.missing_requirement()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")


def ended(process: subprocess.Popen[str], status: int) -> str:
    """The one line with which a run failed, warnings aside."""
    _, errors = process.communicate(timeout=60)
    lines = [line for line in errors.splitlines() if not line.startswith("warning: ")]
    assert (process.returncode, len(lines)) == (status, 1), errors
    return lines[0]


def wait_for_traffic(bed: Testbed) -> None:
    """Until packets wait in the router's queue."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        said = bed.inside("router", "tc", "-j", "-s", "qdisc", "show", "dev", "right")
        if any(each.get("kind") == "pfifo" and each["qlen"] > 10 for each in json.loads(said)):
            return
        time.sleep(0.05)
    raise AssertionError("no traffic")


@pytest.mark.usefixtures("unchanged")
def test_two_flows_share_the_link_of_a_router(bed: Testbed):
    status, output, errors = run(bed, testbeds.scenario(bed, duration=3))
    assert status == 0, errors
    assert "wrote" in output
    data = ac.Dataset.read(bed.folder / "out")
    flows = data.flows
    assert flows["congestion"].to_list() == ["reno", "cubic"]
    goodput_bps = 8 * flows["measured_bytes"].sum() / 2
    assert testbeds.UNPAUSED < goodput_bps / 20e6 < 0.975  # less 4.3 % headers
    assert flows["retransmissions"].sum() > 0
    lost = flows["sent_packets"].cast(int) - flows["received_packets"].cast(int)
    assert 0 < lost.min() <= lost.max() < 200
    assert 40 < data.frame("queue_samples")["backlog_p"].max() <= 50
    samples = data.frame("flow_samples")
    assert set(samples["flow"]) == {0, 1}
    assert samples["time_s"].is_sorted()
    about = data.manifest["linux"]
    assert about["mode"] == "hosts"
    assert set(about["hosts"]) == {"alice", "router", "bob"}
    for clock in data.runs[0]["clocks"].values():
        # one machine, one clock: what is found is the error
        assert abs(clock["offset_s"]) <= clock["offset_error_s"] < 0.1


@pytest.mark.usefixtures("unchanged")
def test_transfers_are_those_of_the_other_engines(bed: Testbed):
    path = testbeds.scenario(bed, duration=2, more='rtt = "0ms"', name="web.toml")
    text = path.read_text()
    path.write_text(
        text[: text.index("[[flows]]")]
        + '[[traffic]]\nkind = "poisson"\nrate = "20/s"\nsize = "10KB"\ncongestion = "cubic"\n'
        + '[[traffic]]\nkind = "poisson"\nrate = "20/s"\nsize = "10KB"\ncongestion = "reno"\nrequest = "100B"\n'
        + '[record]\npcap = ["senders", "receivers"]\n'
    )
    status, _, errors = run(bed, path, out="web")
    assert status == 0, errors
    ours = ac.Dataset.read(bed.folder / "web").flows
    others = ac.run(ac.load(path)).flows
    begun = min(len(ours), len(others))
    assert begun > 40
    assert ours["flow"].to_list()[: begun - 2] == others["flow"].to_list()[: begun - 2]
    late_s = (ours["start_s"][: begun - 2] - others["start_s"][: begun - 2]).abs()
    assert late_s.median() < 0.05
    done = ours.filter(ours["end_s"].is_not_null())
    assert len(done) > testbeds.UNPAUSED * len(ours)
    assert (done["delivered_bytes"] == done["size_bytes"]).all()
    for place in ("senders", "receivers"):
        seen = capture.read([bed.folder / "web" / "captures" / f"seed-1-{place}.pcap"]).data.flows
        asked = ours.filter(ours["congestion"] == "reno")
        assert abs(len(seen) - len(ours) - len(asked)) <= 2  # those that ask have data both ways


@pytest.mark.usefixtures("unchanged")
def test_an_existing_path_is_not_changed(bed: Testbed):
    path = testbeds.scenario(bed, duration=1.5, more="existing_path = true", name="left.toml")
    text = path.read_text()
    router = text[text.index('[[network.hosts]]\nname = "router"') : text.index('[[network.hosts]]\nname = "bob"')]
    path.write_text(text.replace(router, ""))
    status, output, errors = run(bed, path, out="left")
    assert status == 0, output + errors
    data = ac.Dataset.read(bed.folder / "left")
    # Nothing between two namespaces holds them to 20 Mb/s.
    assert 8 * data.flows["measured_bytes"].sum() / 0.5 > 40e6
    assert data.frame("links")["departed_p"].to_list() == [None]
    assert set(data.manifest["linux"]["hosts"]) == {"alice", "bob"}


@pytest.mark.usefixtures("unchanged")
def test_a_sweep_runs_sequentially(bed: Testbed):
    path = testbeds.scenario(bed, duration=1.2, name="sweep.toml")
    path.write_text(path.read_text() + '\n[sweep]\n"network.queue.limit" = ["20p", "80p"]\n')
    words = ("sweep", str(path), "--engine", "linux", "--jobs", "2", "--no-report", "--ssh-config", str(bed.config))
    status, output, errors = bed.run(*words, "--out", str(bed.folder / "swept"))
    assert status == 0, output + errors


@pytest.mark.usefixtures("unchanged")
def test_an_agent_is_killed(bed: Testbed):
    process = start(bed, testbeds.scenario(bed, duration=20))
    pid = bed.agent("alice")
    wait_for_traffic(bed)
    os.kill(pid, signal.SIGKILL)
    assert ended(process, 1).startswith('host "alice": its agent is gone: ')


@pytest.mark.usefixtures("unchanged")
def test_a_guard_is_killed_and_replaced(bed: Testbed):
    process = start(bed, testbeds.scenario(bed, duration=3))
    pid = bed.agent("router", "guard")
    wait_for_traffic(bed)
    os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.usefixtures("unchanged")
def test_a_connection_is_cut(bed: Testbed):
    process = start(bed, testbeds.scenario(bed, duration=20))
    wait_for_traffic(bed)
    ssh = subprocess.run(
        ["ip", "netns", "pids", bed.namespace("ctl")], capture_output=True, text=True, check=True
    ).stdout.split()
    of_bob = next(pid for pid in ssh if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[-3:-2] == [b"bob"])
    os.kill(int(of_bob), signal.SIGKILL)
    assert ended(process, 1).startswith('host "bob": its agent is gone: ')


@pytest.mark.usefixtures("unchanged")
def test_the_path_to_a_host_goes_down(bed: Testbed):
    process = start(bed, testbeds.scenario(bed, duration=20))
    wait_for_traffic(bed)
    bed.inside("router", "ip", "link", "set", "mgmt", "down")
    try:
        assert ended(process, 1) in ('host "router": nothing heard for 2 s', 'host "router": nothing heard for 3 s')
        # Nobody can tell the router: its guard has to know by itself.
        end = time.monotonic() + 60
        while "htb" in bed.inside("router", "tc", "qdisc", "show") and time.monotonic() < end:
            time.sleep(0.1)
        assert "htb" not in bed.inside("router", "tc", "qdisc", "show")
    finally:
        bed.inside("router", "ip", "link", "set", "mgmt", "up")
        for pid, line in bed.processes("router").items():
            if "sshd" in line:
                os.kill(pid, signal.SIGKILL)  # it would wait for its peer for minutes


@pytest.mark.usefixtures("unchanged")
def test_a_short_stall_of_a_host_is_reported(bed: Testbed):
    process = start(bed, testbeds.scenario(bed, duration=3))
    pid = bed.agent("alice")
    wait_for_traffic(bed)
    os.kill(pid, signal.SIGSTOP)
    time.sleep(0.5)
    os.kill(pid, signal.SIGCONT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert 'host "alice": this machine could not keep up: a sample came' in errors


@pytest.mark.usefixtures("unchanged")
def test_a_stopped_host_is_an_error(bed: Testbed):
    process = start(bed, testbeds.scenario(bed, duration=20))
    pid = bed.agent("bob")
    wait_for_traffic(bed)
    os.kill(pid, signal.SIGSTOP)
    assert ended(process, 1).startswith('host "bob": nothing heard for')


@pytest.mark.usefixtures("unchanged")
def test_a_module_is_missing_on_a_host(bed: Testbed):
    lacks = subprocess.run(
        ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem"], capture_output=True, check=False
    ).returncode
    if not lacks:
        pytest.skip("this kernel has netem")
    status, _, errors = run(bed, testbeds.scenario(bed, more='rtt = "20ms"'), "--dry-run")
    assert status == 2
    line = errors.splitlines()[-1]
    assert line.startswith('host "router": found no queue discipline "netem" in its kernel ')
    assert line.endswith("; expected it (modprobe sch_netem)")


@pytest.mark.usefixtures("unchanged")
def test_a_dry_run_describes_each_host(bed: Testbed):
    path = testbeds.scenario(bed)
    path.write_text(
        path.read_text().replace("10.2.0.2", "10.2.0.77").replace('"left"', '"eth7"').replace("cubic", "bic")
    )
    status, _, errors = run(bed, path, "--dry-run")
    assert status == 2
    lines = errors.splitlines()
    assert sum(line.startswith('host "') and "clock" in line for line in lines) == 3
    assert 'host "bob": found no interface with the address 10.2.0.77; expected one' in errors
    assert 'host "router": found no interface "eth7"; expected one of left, lo, mgmt, right' in errors
    assert 'host "alice": found no congestion control "bic" in its kernel; expected it (modprobe tcp_bic)' in errors


def changed_config(bed: Testbed, **more: str) -> Path:
    """The configuration of ssh with other values first, which count."""
    path = bed.folder / "other_config"
    path.write_text("".join(f"{name} {value}\n" for name, value in more.items()) + bed.config.read_text())
    return path


@pytest.mark.usefixtures("unchanged")
def test_a_login_is_rejected(bed: Testbed):
    text = bed.config.read_text().replace(f"IdentityFile {bed.folder}/login", f"IdentityFile {bed.folder}/stranger")
    (bed.folder / "stranger_config").write_text(text)
    status, _, errors = run(bed, testbeds.scenario(bed), config=bed.folder / "stranger_config")
    assert status == 2
    assert 'host "alice": not reached: root@10.9.0.2: Permission denied (publickey).' in errors
    assert len(errors.splitlines()) == 3


@pytest.mark.usefixtures("unchanged")
def test_a_host_has_another_key(bed: Testbed):
    known = bed.folder / "wrong_hosts"
    known.write_text("".join(f"10.9.{n}.2 {(bed.folder / 'stranger.pub').read_text()}" for n in range(3)))
    status, _, errors = run(bed, testbeds.scenario(bed), config=changed_config(bed, UserKnownHostsFile=str(known)))
    assert status == 2
    assert errors.splitlines()[0] == 'host "alice": not reached: Host key verification failed.'


@pytest.mark.usefixtures("unchanged")
def test_a_host_does_not_exist(bed: Testbed):
    path = testbeds.scenario(bed)
    path.write_text(path.read_text().replace('address = "bob"', 'address = "10.9.2.99"'))
    status, _, errors = run(bed, path, config=changed_config(bed, ConnectTimeout="1"))
    assert status == 2
    assert errors.splitlines()[-1].startswith('host "bob": not reached: ')


@pytest.mark.parametrize(
    "address", ["-oProxyCommand=touch owned", "a b", "a;b", "$(touch owned)", "", "a@b@c", "ssh://x"]
)
def test_an_address_is_neither_an_option_nor_a_command(bed: Testbed, address: str):
    path = testbeds.scenario(bed)
    path.write_text(path.read_text().replace('address = "bob"', f'address = "{address}"'))
    status, _, errors = run(bed, path)
    assert status == 2
    assert 'expected a host as ssh knows it, such as "alice" or "root@alice.example.net"' in errors
    assert not (bed.folder / "owned").exists()


@pytest.mark.usefixtures("unchanged")
def test_the_agent_is_of_another_version(bed: Testbed, tmp_path: Path):
    """A shell script in its place: it is copied, checked, run, and says so."""
    package = tmp_path / "package"
    shutil.copytree(testbeds.AGENTS.parent, package / "ackclock", ignore=shutil.ignore_patterns("reproductions"))
    for file in (package / "ackclock" / "hosts").glob("ackclock-agent-*"):
        facts = '"user": 0, "release": "", "machine": "", "taken": false'
        answer = f'{{"answer": "hello", "version": "0.0.7", "form": {agent.FORM}, {facts}}}'
        file.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exit\necho \'{answer}\'\nrm -r "$2"\ncat > /dev/null\n')
    inside = ["ip", "netns", "exec", bed.namespace("ctl"), sys.executable, "-m", "ackclock"]
    words = [*inside, "run", str(testbeds.scenario(bed))]
    done = subprocess.run(
        [*words, *LINUX, "--ssh-config", str(bed.config), "--out", str(tmp_path / "out")],
        capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": str(package)},
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    first = done.stderr.splitlines()[0]
    assert first == f'host "alice": found an agent of version 0.0.7; expected {ac.__version__}: `make agent` builds it'


@pytest.mark.usefixtures("unchanged")
def test_without_root_only_traffic_is_sent(bed: Testbed):
    """bob's login has no rights."""
    config = bed.folder / "sshd-bob"
    before = config.read_text()
    drop = 'ForceCommand setpriv --reuid 65534 --regid 65534 --clear-groups sh -c "$SSH_ORIGINAL_COMMAND"\n'
    config.write_text(before + drop + "AcceptEnv *\n")
    listeners = [int(pid) for pid in bed.inside("bob", "pgrep", "-f", "sshd-bob").split()]
    reload_sshd(bed)
    try:
        status, _, errors = run(bed, testbeds.scenario(bed, duration=1.5))
    finally:
        config.write_text(before)
        reload_sshd(bed)
    assert listeners
    assert status == 0, errors
    assert 'host "bob": no root: its own TCP settings, routes and offloads stay; traffic and samples only' in errors


def reload_sshd(bed: Testbed) -> None:
    """Has bob's sshd begin anew, with its configuration as it is now."""
    pids = subprocess.run(["ip", "netns", "pids", bed.namespace("bob")], capture_output=True, text=True, check=True)
    for pid in pids.stdout.split():
        os.kill(int(pid), signal.SIGKILL)
    time.sleep(0.1)
    testbeds.start_sshd(bed, "bob")


@pytest.mark.parametrize("runs", [8, pytest.param(200, marks=pytest.mark.oracle)])
def test_killed_runs_leave_no_changes(bed: Testbed, runs: int):
    """By whatever signal, whenever, whatever they do: a run, one with all that changes, a measurement, the doctor."""
    before, moments = bed.state(), random.Random(runs)
    begin = [*begins(bed)]
    for number in range(runs):
        process = begin[number % len(begin)]()
        time.sleep(moments.uniform(0.2, 4.5))
        process.send_signal(moments.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
        process.communicate(timeout=30)
        if number % 8 == 7:
            assert bed.remaining(before) == {}
    assert bed.remaining(before) == {}


def begins(bed: Testbed) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Yield functions that start each kind of work on the hosts."""
    traffic = '[[flows]]\ncongestion = "cubic"\n[[traffic]]\nkind = "udp"\nrate = "500/s"\npacket = "1000B"\n'
    plain = testbeds.scenario(bed, duration=2)
    changing = with_traffic(bed, traffic, "changing.toml", more=CHANGE.replace("1.5s", "0.5s"))
    measured = testbeds.scenario(bed, duration=2, more='rtt = "measured"', name="killed.toml")
    yield from (partial(start, bed, path) for path in (plain, changing, measured))
    files = ("--file", str(bed.folder / "bob"), "--file", f":{bed.folder / 'alice'}")
    words = ("doctor", "host", "network", "alice", "--duration", "1s", "--ssh-config", str(bed.from_bob), *files)
    yield partial(bed.ackclock, *words, on="bob")


#: For runs of half a minute: a real machine's timers are late, so its link sends a little less than a guest's, in which
#: time stands still; and the windows' saw teeth do not stand at the same place at the end. The delay of BBR lies
#: between the guest's, where pacing holds it, and what its window holds (docs/guides/testbed.md).
BOUNDS = {"goodput_bps": 0.03, "queue_delay_mean_s": 0.1}

#: Bits of a full packet on the wire.
PACKET_BITS = 1514 * 8


@pytest.mark.oracle
@pytest.mark.usefixtures("unchanged", "guest_kernel")
@pytest.mark.parametrize("controls", [("reno", "reno"), ("cubic", "cubic"), ("reno", "cubic"), ("bbr",)])
def test_hosts_and_guest_agree(bed: Testbed, controls: tuple[str, ...]):
    path = testbeds.scenario(bed, duration=25, more='rtt = "0ms"', name="agree.toml")
    head = path.read_text().split("[[flows]]")[0].replace('warmup = "1s"', 'warmup = "5s"\nseeds = [1, 2]')
    path.write_text(
        head + "".join(f'[[flows]]\ncongestion = "{name}"\nstart = {{ jitter = "100ms" }}\n' for name in controls)
    )
    found = {}
    for kernel in ("hosts", "guest"):
        status, output, errors = run(bed, path, "--kernel", kernel, "--json", out=f"agree-{kernel}")
        assert status == 0, errors
        found[kernel] = json.loads(output)["summary"]
    for name in [*BOUNDS][: 1 if "bbr" in controls else 2]:
        real, virtual = (found[kernel][name]["mean"] for kernel in ("hosts", "guest"))
        assert real == pytest.approx(virtual, rel=BOUNDS[name])
    if "bbr" in controls:
        real, virtual = (found[kernel]["queue_delay_mean_s"]["mean"] for kernel in ("hosts", "guest"))
        window = ac.Dataset.read(bed.folder / "agree-hosts").frame("flow_samples")["cwnd"].to_numpy().mean()
        assert 0.9 * virtual < real < window * PACKET_BITS / 20e6
