"""Testbeds for tests: network namespaces as hosts, each with a real sshd, and a router between them.

```text
  ctl ── management ──┬── alice ── 10.1.0.0/24 ──┐
                      ├── router ────────────────┤
                      └── bob ─── 10.2.0.0/24 ───┘
```

All addresses are in namespaces that are made here and removed at the end. Commands of ackclock run in `ctl`.

    python tests/testbeds.py FOLDER COMMAND…      # a command beside such a testbed; FOLDER/ssh_config reaches it
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
AGENTS = Path(__file__).parents[1] / "python" / "ackclock" / "hosts"

#: ackclock, with less patience than it has with hosts that are far.
IMPATIENT = """
import runpy
from ackclock.engines.linux import testbed
from ackclock.hosts import agent
agent.PATIENCE_S, agent.ALIVE_S, testbed.MAX_STALL_S, testbed.CLOCK_S = 3, 0.5, 2.0, 0.3
runpy.run_module("ackclock", run_name="__main__")
"""

HOSTS = ("alice", "router", "bob")

#: Share of a link's rate in real time that a test may count on: a busy machine pauses its hosts.
UNPAUSED = 0.4


def missing_requirement() -> str | None:
    """Why there can be no testbed here."""
    if os.name != "posix" or os.geteuid() != 0:
        return "namespaces with sshds need root"
    if missing := [name for name in ("ip", "tc", "ethtool", "ssh", "ssh-keygen", "setpriv") if not shutil.which(name)]:
        return f"no {', '.join(missing)}"
    if SSHD is None:
        return "no sshd: the Debian package openssh-server"
    if not [*AGENTS.glob("ackclock-agent-*")]:
        return "no agent: `make agent`"
    done = subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False)
    return "namespaces cannot be made here" if done.returncode else None


@dataclass(frozen=True)
class Testbed:
    """A testbed that is there: its folder, and the prefix of its namespaces' names."""

    __test__ = False
    folder: Path
    prefix: str

    @property
    def config(self) -> Path:
        """Return the configuration file of `ssh -F`."""
        return self.folder / "ssh_config"

    def namespace(self, host: str) -> str:
        return f"{self.prefix}{host}"

    def inside(self, host: str, *words: str, check: bool = True) -> str:
        """Return the output of a command in a host's namespace."""
        command = ["ip", "netns", "exec", self.namespace(host), *words]
        return subprocess.run(command, capture_output=True, text=True, check=check).stdout

    @property
    def from_bob(self) -> Path:
        """Return the configuration file of `ssh -F` on bob, who reaches alice through the router."""
        return self.folder / "ssh_config_of_bob"

    def ackclock(self, *words: str, on: str = "ctl") -> subprocess.Popen[str]:
        """A command of ackclock, started where the hosts are reached, or on one; all its patience is short."""
        command = ["ip", "netns", "exec", self.namespace(on), sys.executable, "-c", IMPATIENT, *words]
        own = {} if on == "ctl" else {"TMPDIR": str(self.folder / on)}
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder, env=os.environ | own
        )

    def run(self, *words: str, on: str = "ctl", timeout: float = 120) -> tuple[int, str, str]:
        """A command of ackclock's: its status, output and errors."""
        process = self.ackclock(*words, on=on)
        output, errors = process.communicate(timeout=timeout)
        return process.returncode, output, errors

    def processes(self, host: str) -> dict[int, str]:
        """Return the processes of a host but the sshd that listens."""
        pids = subprocess.run(
            ["ip", "netns", "pids", self.namespace(host)], capture_output=True, text=True, check=True
        ).stdout.split()
        found = {}
        for pid in map(int, pids):
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            except OSError:
                continue
            if "[listener]" not in line and line:
                found[pid] = line
        return found

    def agent(self, host: str, what: str = "serve") -> int:
        """The process of a host's agent, or of its guard."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            for pid, line in self.processes(host).items():
                words = line.split()
                if len(words) > 1 and words[1] == what and (words[0].endswith("/agent") or "exe" in words[0]):
                    return pid
            time.sleep(0.02)
        raise AssertionError(f"no {what} on {host}: {self.processes(host)}")

    def state(self) -> dict[str, str]:
        """All of each host that a run might leave behind."""
        found = {}
        for host in HOSTS:
            devices = [link["ifname"] for link in json.loads(self.inside(host, "ip", "-j", "link"))]
            found[f"{host} processes"] = "\n".join(sorted(self.processes(host).values()))
            found[f"{host} files"] = "\n".join(sorted(str(path) for path in (self.folder / host).rglob("*")))
            found[f"{host} qdiscs"] = self.inside(host, "tc", "qdisc", "show")
            found[f"{host} routes"] = self.inside(host, "ip", "-4", "route", "show", "table", "all")
            found[f"{host} sysctls"] = self.inside(host, "sh", "-c", "sysctl -a 2>/dev/null | grep ^net.ipv4")
            found[f"{host} offloads"] = "".join(
                self.inside(host, "ethtool", "-k", device, check=False) for device in devices if device != "lo"
            )
        return found

    def remaining(self, before: dict[str, str], within_s: float = 30.0) -> dict[str, tuple[str, str]]:
        """Return the differences from before when all running processes have ended: none, if all was undone."""
        end = time.monotonic() + within_s
        while True:
            after = self.state()
            different = {key: (before[key], after[key]) for key in before if before[key] != after[key]}
            if not different or time.monotonic() > end:
                return different
            time.sleep(0.1)


@contextmanager
def testbed(folder: Path) -> Iterator[Testbed]:
    """A testbed in a folder of its own, removed at the end."""
    made = Testbed(folder, f"ac{os.getpid() % 100000}-")
    try:
        _make(made)
        yield made
    finally:
        for host in ("ctl", *HOSTS):
            found = subprocess.run(
                ["ip", "netns", "pids", made.namespace(host)], capture_output=True, text=True, check=False
            )
            for pid in found.stdout.split():
                os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", made.namespace(host)], capture_output=True, check=False)


def _make(made: Testbed) -> None:
    names = {host: made.namespace(host) for host in ("ctl", *HOSTS)}
    lines = [f"ip netns add {name}" for name in names.values()]
    lines += [f"ip -n {name} link set lo up" for name in names.values()]
    for number, host in enumerate(HOSTS):
        lines += _cable(names["ctl"], f"to-{host}", f"10.9.{number}.1/24", names[host], "mgmt", f"10.9.{number}.2/24")
    lines += _cable(names["alice"], "data", "10.1.0.2/24", names["router"], "left", "10.1.0.1/24")
    lines += _cable(names["bob"], "data", "10.2.0.2/24", names["router"], "right", "10.2.0.1/24")
    lines += [f"ip -n {names['alice']} route add 10.2.0.0/24 via 10.1.0.1"]
    lines += [f"ip -n {names['bob']} route add 10.1.0.0/24 via 10.2.0.1"]
    lines += [f"ip netns exec {names['router']} sysctl -qw net.ipv4.ip_forward=1"]
    for line in lines:
        subprocess.run(line.split(), check=True, capture_output=True)
    _sshds(made)


def _cable(here: str, device: str, address: str, there: str, other: str, others: str) -> list[str]:
    return [
        f"ip link add {device} netns {here} type veth peer name {other} netns {there}",
        f"ip -n {here} addr add {address} dev {device}",
        f"ip -n {there} addr add {others} dev {other}",
        f"ip -n {here} link set {device} up",
        f"ip -n {there} link set {other} up",
    ]


def _sshds(made: Testbed) -> None:
    folder = made.folder
    Path("/run/sshd").mkdir(exist_ok=True)  # sshd wants it
    for key in ("login", "stranger", *(f"host-{host}" for host in HOSTS)):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
        subprocess.run(words, check=True)
    (folder / "authorized").write_text((folder / "login.pub").read_text())
    known = []
    also = {"alice": "ListenAddress 10.1.0.2\n"}  # bob's way to her
    config = [f"IdentityFile {folder}/login", "IdentitiesOnly yes", f"UserKnownHostsFile {folder}/known_hosts"]
    config += ["GlobalKnownHostsFile /dev/null", "StrictHostKeyChecking yes", "User root"]
    blocks = []
    for number, host in enumerate(HOSTS):
        address = f"10.9.{number}.2"
        (folder / host).mkdir(mode=0o777)
        (folder / host).chmod(0o777)
        own = folder / f"sshd-{host}"
        more = also.get(host, "")
        own.write_text(
            f"Port 22\nListenAddress {address}\n{more}HostKey {folder}/host-{host}\nPidFile none\n"
            "UsePAM no\nStrictModes no\n"
            f"AuthorizedKeysFile {folder}/authorized\nPermitRootLogin yes\nPasswordAuthentication no\n"
            f"KbdInteractiveAuthentication no\nSetEnv TMPDIR={folder / host} HOME={folder / host}\nPrintMotd no\n"
        )
        start_sshd(made, host)
        known.append(f"{address} {(folder / f'host-{host}.pub').read_text()}")
        blocks.append(f"Host {host}\n  HostName {address}\n")
    (folder / "known_hosts").write_text("".join(known))
    made.from_bob.write_text(
        "Host alice\n  HostName 10.1.0.2\n  HostKeyAlias 10.9.0.2\nHost *\n  " + "\n  ".join(config)
    )
    made.config.write_text("".join(blocks) + "Host *\n  " + "\n  ".join(config) + "\n")


def start_sshd(made: Testbed, host: str) -> None:
    """Starts a host's sshd, which goes into the background when it listens."""
    words = ["ip", "netns", "exec", made.namespace(host), str(SSHD), "-f", str(made.folder / f"sshd-{host}")]
    subprocess.run([*words, "-E", str(made.folder / f"log-{host}")], check=True)


SCENARIO = """\
name = "Reno beside CUBIC across two hosts"
duration = "{duration}s"
warmup = "1s"

[network]
topology = "testbed"
rate = "20Mbit"
queue = {{ discipline = "pfifo", limit = "50p" }}
{more}
[[network.hosts]]
name = "alice"
address = "alice"
role = "sender"
data = "10.1.0.2"

[[network.hosts]]
name = "router"
address = "router"
role = "router"
to_receivers = "right"
to_senders = "left"

[[network.hosts]]
name = "bob"
address = "bob"
role = "receiver"
data = "10.2.0.2"

[[flows]]
congestion = "reno"

[[flows]]
congestion = "cubic"
"""


def scenario(made: Testbed, *, duration: float = 3, more: str = "", name: str = "two.toml") -> Path:
    """The scenario of two flows through the router, as a file."""
    path = made.folder / name
    path.write_text(SCENARIO.format(duration=duration, more=more))
    return path


def with_traffic(bed: Testbed, traffic: str, name: str, *, duration: float = 2, more: str = "") -> Path:
    """The testbed's scenario with other flows."""
    path = scenario(bed, duration=duration, more=more, name=name)
    path.write_text(path.read_text().split("[[flows]]")[0] + traffic)
    return path


#: A quarter of the rate from the middle of the run on.
CHANGE = '[[network.changes]]\nat = "1.5s"\nlink = "bottleneck"\nrate = "5Mbit"\n'


#: Arguments that run a testbed's scenario.
LINUX = ("--engine", "linux", "--no-report")


def start(bed: Testbed, path: Path, out: str = "out") -> subprocess.Popen[str]:
    return bed.ackclock("run", str(path), *LINUX, "--ssh-config", str(bed.config), "--out", str(bed.folder / out))


def run(bed: Testbed, path: Path, *more: str, config: Path | None = None, out: str = "out") -> tuple[int, str, str]:
    words = ("run", str(path), *LINUX, "--ssh-config", str(config or bed.config), "--out", str(bed.folder / out))
    return bed.run(*words, *more)


def main(folder: str, *command: str) -> int:
    """Runs a command in `ctl` while a testbed is there; says what it left behind on the hosts, with status 1."""
    if reason := missing_requirement():
        sys.exit(f"{reason}")
    place = Path(folder).absolute()
    if place.exists():
        sys.exit(f"{folder}: found something there; expected a new folder")
    place.mkdir(mode=0o755)
    try:
        with testbed(place) as made:
            before = made.state()
            status = subprocess.run(["ip", "netns", "exec", made.namespace("ctl"), *command], check=False).returncode
            for what, (was, found) in (left := made.remaining(before)).items():
                print(f"{what}: was\n{was}\nis\n{found}", file=sys.stderr)
            return status or int(bool(left))
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
